"""Rows `io-*`: all that a shuffle asks of a disk, counted twice, by strace and by our own counters.

Map outputs with real bytes behind our shuffle service; five fetchers ask for 20 outputs at a time, as Hadoop's do,
until every reducer has its part. Theirs reads the outputs as they are. Ours merges them first, 40 to a file, in the
same process, with the shipped size of buffers. A row's figure is all calls to the kernel that read or wrote something,
by strace: segments, indexes of outputs and of merged files, and all that the merger reads and writes. The merger's
writes are calls of 256 KB there. The kernel makes fewer requests of them: the counters' writes, of up to 20 MB, are
what the other rows count.

Both counts are beside. They are to be equal but for those writes, bytes included, else the row is an error. That all
is merged is told, not chosen: how many calls merging takes and saves is the question here.

- `io-terasort`: 200 maps x 50 reduces, blocks of 10 KB: `terasort-reads`' shape.
- `io-job-2`, `io-job-3`: the paper's, at a twentieth of maps and reduces, and a tenth of the block.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.inputs import WrongAnswer
from benchmarks.options import Options, progress
from benchmarks.report import Row, make_row
from benchmarks.riffle.counts import Shuffle
from benchmarks.riffle.plan_rows import JOBS
from benchmarks.riffle.seek_rows import SeekServer
from benchmarks.riffle.seek_server import FAN_IN
from benchmarks.riffle.traced import Asked, Traced, strace_command
from benchmarks.shuffle_client import MAPS_PER_REQUEST, fetch_all, write_outputs


def _part(shuffle: Shuffle) -> Shuffle:
    """Of one of the paper's jobs."""
    return Shuffle(shuffle.maps // 20, shuffle.partitions // 20, shuffle.block_bytes // 10, 1)


_SHUFFLES: Final = {
    "io-terasort": Shuffle(200, 50, 10 << 10, 1),
    "io-job-2": _part(JOBS["job-2"]),
    "io-job-3": _part(JOBS["job-3"]),
}
ROWS: Final = tuple(_SHUFFLES)


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """A count is exact, so one run is enough. No row where there is no strace."""
    rows: list[Row] = []
    facts: dict[str, Mapping[str, Any]] = {}
    for row_id in ROWS:
        if options.wants(row_id):
            shuffle = _SHUFFLES[row_id]
            maps = max(FAN_IN, round(shuffle.maps * options.scale))
            with tempfile.TemporaryDirectory(prefix="yaq-io-") as name:
                try:
                    found = {side: count_io(Path(name) / side, shuffle, maps, side) for side in options.sides}
                except FileNotFoundError as missing:
                    progress(f"{row_id} is not measured: {missing}")
                    continue
            calls = {side: [float(traced.all.reads + traced.all.writes)] for side, (traced, _) in found.items()}
            row = make_row(row_id, calls.get("ours", [0.0]), calls.get("theirs"), "calls", higher_is_better=False)
            rows.append(row)
            told = {"shape": f"{maps} x {shuffle.partitions}, blocks of {shuffle.block_bytes:,} bytes"}
            for side, (traced, counted) in found.items():
                told |= _told(side, traced, counted)
            if len(found) == 2:
                by_disk = _requests(found["theirs"][1]) / _requests(found["ours"][1])
                told["requests as the counters have them"] = f"{by_disk:.2f}x fewer"
            facts[row_id] = told
    return rows, facts


def count_io(root: Path, shuffle: Shuffle, maps: int, side: str) -> tuple[Traced, dict[str, float]]:
    """What one side asked for, by strace and by the counters. Raises WrongAnswer where they differ."""
    log = root / "strace.txt"
    root.mkdir()
    with SeekServer(root, root, *strace_command(log)) as server:
        outputs = write_outputs(server.target, 0, maps, shuffle.partitions, shuffle.block_bytes)
        target = server.start()
        merged = server.ask(f"merge {FAN_IN}") if side == "ours" else {}
        fetch_all(target, outputs, maps_per_request=MAPS_PER_REQUEST, rounds=1)
        counted = merged | server.ask("counts")
    traced = Traced.read(log)
    progress(f"{side}: {traced.all}")
    _compare(traced, counted, maps)
    return traced, counted


def _compare(traced: Traced, counted: Mapping[str, float], maps: int) -> None:
    """Raises WrongAnswer."""
    merges, merged_bytes = counted.get("merge_merges", 0), counted.get("merge_bytes", 0)
    of_merger = maps if merges else 0  # each output's index is one of the merger's reads
    both = {
        "reads of data": (traced.data.reads, counted["reads"] + counted.get("merge_reads", 0) - of_merger),
        "bytes of data": (traced.data.read_bytes, counted["bytes"] + merged_bytes),
        # a long one takes two calls; each that is written is opened once
        "indexes read": (traced.indexes.opens - merges, counted["index_reads"] + of_merger),
        # two for each output and for each merged file
        "files opened": (traced.all.opens, counted["opens"] + 2 * of_merger + 2 * merges),
        "bytes written": (traced.data.written_bytes, merged_bytes),
        "indexes written": (traced.indexes.writes, merges),
    }
    differ = [
        f"{what}: {seen:,} by strace, {count:,.0f} counted" for what, (seen, count) in both.items() if seen != count
    ]
    if differ:
        raise WrongAnswer("; ".join(differ))


def _requests(counted: Mapping[str, float]) -> float:
    names = ("reads", "index_reads", "merge_reads", "merge_writes")
    return sum(counted.get(name, 0) for name in names)


def _told(side: str, traced: Traced, counted: Mapping[str, float]) -> dict[str, str]:
    told = {
        f"{side}, by strace": f"data {_text(traced.data)}; indexes {_text(traced.indexes)}",
        f"{side}, by counters": f"service {counted['reads']:,.0f} reads of {counted['bytes'] / 1e6:,.1f} MB, "
        f"{counted['index_reads']:,.0f} of indexes, {counted['opens']:,.0f} opens",
    }
    if "merge_reads" in counted:
        told[f"{side}, by the merger's counters"] = (
            f"{counted['merge_reads']:,.0f} reads, indexes included, and {counted['merge_writes']:,.0f} writes "
            f"for {counted['merge_bytes'] / 1e6:,.1f} MB in {counted['merge_merges']:,.0f} merges"
        )
    return told


def _text(asked: Asked) -> str:
    return (
        f"{asked.opens:,} opens, {asked.reads:,} reads of {asked.read_bytes / 1e6:,.1f} MB, "
        f"{asked.writes:,} writes of {asked.written_bytes / 1e6:,.1f} MB"
    )
