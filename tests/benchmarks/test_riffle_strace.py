"""The counts that the rows go by, beside what the kernel was asked for: merged and not, on a small case."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.inputs import WrongAnswer
from benchmarks.riffle.counts import Shuffle
from benchmarks.riffle.io_rows import count_io
from benchmarks.riffle.seek_rows import SeekServer
from benchmarks.riffle.seek_server import FAN_IN
from benchmarks.riffle.traced import Traced, strace_command
from benchmarks.shuffle_client import MAPS_PER_REQUEST, fetch_all, write_outputs

REDUCES, BLOCK = 5, 16 << 10
#: a reducer's part of a merged file, 64 MB: four times what a node keeps of one by default
LONG_MAPS, LONG_BLOCK = 200, 320_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="counts with strace"),
]


@pytest.mark.parametrize("is_merged", [False, True])
def test_the_kernel_was_asked_for_what_is_counted(tmp_path: Path, is_merged: bool) -> None:
    log = tmp_path / "strace.txt"
    with SeekServer(tmp_path, tmp_path, *strace_command(log)) as server:
        outputs = write_outputs(server.target, 0, FAN_IN, REDUCES, BLOCK)
        target = server.start()
        merge_requests = server.ask(f"merge {FAN_IN}")["merge_requests"] if is_merged else 0
        fetch_all(target, outputs, maps_per_request=MAPS_PER_REQUEST, rounds=1)
        counted = server.ask("counts")
    asked = Traced.read(log)
    if is_merged:
        assert counted["reads"] == asked.merged.reads == REDUCES
        # of the merger's requests, an index of each input and of the merged file go another way, and one is its write
        assert asked.outputs.reads == merge_requests - FAN_IN - 2
        assert asked.outputs.reads == FAN_IN
    else:
        assert counted["reads"] == asked.outputs.reads == FAN_IN * REDUCES
        assert not asked.merged.reads


@pytest.mark.parametrize("is_merged", [False, True])
def test_a_long_partition_is_read_in_few_large_reads(tmp_path: Path, is_merged: bool) -> None:
    log = tmp_path / "strace.txt"
    with SeekServer(tmp_path, tmp_path, *strace_command(log)) as server:
        outputs = write_outputs(server.target, 0, LONG_MAPS, 1, LONG_BLOCK)
        target = server.start()
        if is_merged:
            server.ask(f"merge {LONG_MAPS}")
        # each of the five threads compares what it gets first: one request of twenty maps each, so all
        for at in range(0, LONG_MAPS, 100):
            some = replace(outputs, attempts=outputs.attempts[at : at + 100])
            fetch_all(target, some, maps_per_request=MAPS_PER_REQUEST, rounds=1, compares=True)
        counted = server.ask("counts")
    asked = Traced.read(log)
    assert counted["bytes"] == LONG_MAPS * LONG_BLOCK
    if is_merged:
        # ten requests of 6.4 MB, 4 MB a read: 3.2 MB in the mean
        assert counted["reads"] == asked.merged.reads == 20
    else:
        assert counted["reads"] == asked.outputs.reads >= LONG_MAPS


def test_indexes_and_what_the_merger_does_are_counted_as_the_kernel_saw_them(tmp_path: Path) -> None:
    maps, shuffle = 2 * FAN_IN, Shuffle(2 * FAN_IN, REDUCES, BLOCK, 1)
    ours, counted = count_io(tmp_path / "ours", shuffle, maps, "ours")
    assert counted["merge_merges"] == ours.merged_indexes.writes == 2
    # the merger, and the look at what it has merged
    assert ours.output_indexes.opens == 2 * maps
    assert ours.merged.written_bytes == maps * REDUCES * BLOCK
    theirs, counted = count_io(tmp_path / "theirs", shuffle, maps, "theirs")
    assert theirs.output_indexes.opens == counted["index_reads"] == maps
    assert theirs.all.reads == maps * (REDUCES + 1) > ours.all.reads + ours.all.writes
    assert not theirs.all.writes


def test_a_count_that_is_not_what_the_kernel_saw_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = SeekServer.ask
    monkeypatch.setattr(SeekServer, "ask", lambda self, word: ask(self, word) | {"index_reads": FAN_IN - 1})
    with pytest.raises(WrongAnswer, match=f"indexes read: {FAN_IN} by strace, {FAN_IN - 1} counted"):
        count_io(tmp_path / "theirs", Shuffle(FAN_IN, REDUCES, BLOCK, 1), FAN_IN, "theirs")
