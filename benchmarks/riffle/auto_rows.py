"""Rows `auto-*`: jobs for which merging does not pay, with the automatic choice (ours) and without merging (theirs).

Word counts of 2 MB and 256 MB and a sort of 500 MB, submitted by command to two clusters of ours, one as shipped and
one without mergers (`yaq.riffle.enabled`). Both stay up, and runs take turns, so that a machine that slows down slows
both. At most 3 % slower is wanted of each; what the job manager decided is printed beside.
"""

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from benchmarks.mapreduce import WORKS, Files, Work
from benchmarks.options import Options, progress
from benchmarks.ours import AS_STOCK, OurCluster
from benchmarks.report import Row, make_row

_WORKS: Final = {
    "auto-wordcount-2mb": "wordcount-small",
    "auto-wordcount-256mb": "wordcount-record",
    "auto-sort-500mb": "sort",
}
_WITHOUT: Final = {"yaq.riffle.enabled": "false"}
ROWS: Final = tuple(_WORKS)


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    wanted = [row_id for row_id in ROWS if options.wants(row_id)]
    if not wanted:
        return [], {}
    rows: list[Row] = []
    facts: dict[str, Mapping[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="yaqd-bench-") as name, ExitStack() as stack:
        clusters = {
            side: stack.enter_context(
                OurCluster(Path(name) / side, site=AS_STOCK | ({} if side == "ours" else _WITHOUT))
            )
            for side in options.sides
        }
        files = Files(Path(name) / "files", None, None)
        for row_id in wanted:
            work = next(work for work in WORKS if work.id == _WORKS[row_id])
            taken = _take_turns(row_id, work, clusters, files, options)
            if "ours" in clusters:
                facts[row_id] = {"decided": _decision(clusters["ours"])} | taken
            rows.append(make_row(row_id, taken.get("ours", [0.0]), taken.get("theirs"), "s", higher_is_better=False))
    return rows, facts


def _take_turns(
    row_id: str, work: Work, clusters: Mapping[str, OurCluster], files: Files, options: Options
) -> dict[str, list[float]]:
    """Seconds of each side's runs; each has one more to warm up."""
    path, expected = work.make_input(max(1000, int(work.size * options.scale)))
    taken: dict[str, list[float]] = {side: [] for side in clusters}
    for turn in range(options.runs + 1):
        for side in sorted(clusters, reverse=turn % 2 == 1):
            with files.output() as target:
                seconds = clusters[side].yaq(*work.ours(files.put(path), target)).seconds
                work.check(files.parts(target), expected)
            if turn:
                taken[side].append(seconds)
            progress(f"{row_id}: {side}: {seconds:.2f} s")
    return taken


def _decision(cluster: OurCluster) -> str:
    """Of the last job there."""
    listed = cluster.yaq("app", "list", "--state", "finished").stdout.split()
    application = max(word for word in listed if word.startswith("application_"))
    lines = cluster.yaq("explain", application).stdout.splitlines()
    return next((line.strip() for line in lines if "Map outputs" in line), "nothing said")
