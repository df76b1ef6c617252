"""The counts of reads that the rows go by, beside what the kernel was asked for: merged and not, on a small case."""

import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.riffle.seek_rows import SeekServer
from benchmarks.riffle.seek_server import FAN_IN
from benchmarks.shuffle_client import MAPS_PER_REQUEST, fetch_all, write_outputs

REDUCES, BLOCK = 5, 16 << 10
#: a reducer's part of a merged file, 64 MB: four times what a node keeps of one by default
LONG_MAPS, LONG_BLOCK = 200, 320_000
CALLS = "pread64,preadv,preadv2,sendfile,splice"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="counts with strace"),
]


def kernel_reads(log: Path) -> Counter[str]:
    """Reads of data files that the kernel carried out, by what they are of.

    Neither the end of a file nor a socket that was full (EAGAIN) read anything.
    """
    found: Counter[str] = Counter()
    begun: dict[str, str] = {}
    for line in log.read_text().splitlines():
        thread = line.split(maxsplit=1)[0]
        if "<unfinished ...>" in line:
            begun[thread] = line
            continue
        call = begun.pop(thread, "") if " resumed>" in line else line
        match = re.search(r"/(output|riffle)/[^>]*\.out>", call)
        if match and int(line.rpartition(" = ")[2].split()[0]) > 0:
            found[match[1]] += 1
    return found


@pytest.mark.parametrize("is_merged", [False, True])
def test_the_kernel_was_asked_for_what_is_counted(tmp_path: Path, is_merged: bool) -> None:
    log = tmp_path / "strace.txt"
    strace = ["strace", "-f", "-y", "-e", f"trace={CALLS}", "-o", str(log)]
    with SeekServer(tmp_path, tmp_path, *strace) as server:
        outputs = write_outputs(server.target, 0, FAN_IN, REDUCES, BLOCK)
        target = server.start()
        merge_requests = server.ask(f"merge {FAN_IN}")["merge_requests"] if is_merged else 0
        fetch_all(target, outputs, maps_per_request=MAPS_PER_REQUEST, rounds=1)
        counted = server.ask("counts")
    asked = kernel_reads(log)
    if is_merged:
        assert counted["reads"] == asked["riffle"] == REDUCES
        # of the merger's requests, an index of each input and of the merged file go another way, and one is its write
        assert asked["output"] == merge_requests - FAN_IN - 2
        assert asked["output"] == FAN_IN
    else:
        assert counted["reads"] == asked["output"] == FAN_IN * REDUCES
        assert not asked["riffle"]


@pytest.mark.parametrize("is_merged", [False, True])
def test_a_long_partition_is_read_in_few_large_reads(tmp_path: Path, is_merged: bool) -> None:
    log = tmp_path / "strace.txt"
    strace = ["strace", "-f", "-y", "-e", f"trace={CALLS}", "-o", str(log)]
    with SeekServer(tmp_path, tmp_path, *strace) as server:
        outputs = write_outputs(server.target, 0, LONG_MAPS, 1, LONG_BLOCK)
        target = server.start()
        if is_merged:
            server.ask(f"merge {LONG_MAPS}")
        # each of the five threads compares what it gets first: one request of twenty maps each, so all
        for at in range(0, LONG_MAPS, 100):
            some = replace(outputs, attempts=outputs.attempts[at : at + 100])
            fetch_all(target, some, maps_per_request=MAPS_PER_REQUEST, rounds=1, compares=True)
        counted = server.ask("counts")
    asked = kernel_reads(log)
    assert counted["bytes"] == LONG_MAPS * LONG_BLOCK
    if is_merged:
        # ten requests of 6.4 MB, 4 MB a read: 3.2 MB in the mean
        assert counted["reads"] == asked["riffle"] == 20
    else:
        assert counted["reads"] == asked["output"] >= LONG_MAPS
