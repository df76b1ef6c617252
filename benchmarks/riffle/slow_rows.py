"""Rows `auto-slow-*` and `auto-fast-*`: what the automatic choice does for jobs on a slow disk, and on a fast one.

A node of 1 GB on a disk of its own, which holds all that the cluster writes; job inputs and outputs are elsewhere. Ours
is a cluster as it is shipped, theirs the same without mergers (`yaq.riffle.enabled=false`). Both stay up, and runs take
turns. The slow disk makes 125 requests a second, as a turning one does (`slow_disk.py`: the kernel's limit, on reads
and on writes); the fast one is the same without that limit. Beside: each run, the worst of ours beside the best of
theirs, what the job manager decided by what it measured, and what the kernel counted at the disk.

- `terasort`: benchmarks/jobs/terasort.py, 4 GB of records, 200 reduces.
- `sort`: examples/sort_lines.py, 1.3 GB of lines as `sha256sum` prints them, 400 reduces.

Splits, compression and all else are what they are when nothing is said. At least 1.3x is wanted on the slow disk, and
0.97x on the fast one.

Row `auto-fast-sort-same` is `auto-fast-sort` with both sides as shipped. What it differs from 1 is no doing of mergers.
"""

import errno
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.inputs import Digest, check_line_order, check_total_order, hash_file, record_file
from benchmarks.mapreduce import JOBS
from benchmarks.options import Options, progress
from benchmarks.ours import OurCluster
from benchmarks.report import Row, make_row
from benchmarks.riffle.slow_disk import DiskRequests, OwnDisk, SmallNode, own_disk
from benchmarks.riffle.throttle import NoThrottle

_NODE_BYTES: Final = 1 << 30
_DISK_BYTES: Final = 24 << 30
_REQUESTS_PER_S: Final = 125
_WITHOUT: Final = {"yaq.riffle.enabled": "false"}
#: lines or records of one input file, of a hundred bytes
_LINES: Final = 320_000


@dataclass(frozen=True, slots=True)
class _Work:
    script: Path
    #: from the number of lines and a seed
    make_file: Callable[[int, int], tuple[Path, Digest]]
    files: int
    reduces: int
    check: Callable[[Iterable[bytes], Digest], None]


_WORKS: Final = {
    "terasort": _Work(JOBS / "terasort.py", record_file, 125, 200, check_total_order),
    "sort": _Work(JOBS.parents[1] / "examples" / "sort_lines.py", hash_file, 40, 400, check_line_order),
}
_DISKS: Final = {"slow": _REQUESTS_PER_S, "fast": None}
#: both sides as shipped
_SAME: Final = "-same"
ROWS: Final = (*(f"auto-{disk}-{work}" for disk in _DISKS for work in _WORKS), f"auto-fast-sort{_SAME}")


@dataclass(slots=True)
class _Side:
    cluster: OurCluster
    seconds: list[float] = field(default_factory=list)
    decided: str = ""
    disk: list[DiskRequests] = field(default_factory=list)


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """No row where the kernel makes no disk slow."""
    rows: list[Row] = []
    facts: dict[str, Mapping[str, Any]] = {}
    for row_id in ROWS:
        if options.wants(row_id):
            _, disk, work = row_id.removesuffix(_SAME).split("-")
            with _clearing_up(), tempfile.TemporaryDirectory(prefix="yaq-slow-") as name:
                try:
                    sides = _run(row_id, Path(name), _WORKS[work], _DISKS[disk], options)
                except NoThrottle as missing:
                    progress(f"{row_id} is not measured: {missing}")
                    continue
            taken = {side: found.seconds for side, found in sides.items()}
            rows.append(make_row(row_id, taken.get("ours", [0.0]), taken.get("theirs"), "s", higher_is_better=False))
            facts[row_id] = _facts(sides)
    return rows, facts


@contextmanager
def _clearing_up() -> Iterator[None]:
    """Has SIGTERM end this as Ctrl-C does: the kernel's limits, the disk and the groups would stay."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _facts(sides: Mapping[str, _Side]) -> dict[str, Any]:
    facts: dict[str, Any] = {side: found.seconds for side, found in sides.items()}
    if len(sides) == 2:
        worst = min(sides["theirs"].seconds) / max(sides["ours"].seconds)
        facts["worst of ours beside best of theirs"] = f"{worst:.2f}x"
    for side, found in sides.items():
        facts[f"{side}, at the disk"] = "; ".join(map(str, found.disk))
    if "ours" in sides:
        facts["decided"] = sides["ours"].decided
    return facts


def _run(row_id: str, folder: Path, work: _Work, requests_per_s: int | None, options: Options) -> dict[str, _Side]:
    """Raises NoThrottle."""
    source, expected = _input(work, folder, max(2, round(work.files * options.scale)))
    _read_what_is_shared(work, folder, source)
    with ExitStack() as stack:
        disk = stack.enter_context(own_disk(folder, _DISK_BYTES, requests_per_s=requests_per_s))
        sites = {"ours": {}, "theirs": {} if row_id.endswith(_SAME) else _WITHOUT}
        sides = {side: _Side(_cluster(stack, disk.folder / side, side, sites[side])) for side in options.sides}
        for turn in range(options.runs):
            for side in sorted(sides, reverse=turn % 2 == 1):
                _one(row_id, side, sides[side], disk, work, source, folder / "out", expected)
        if "ours" in sides:
            sides["ours"].decided = _decision(sides["ours"].cluster)
    return sides


def _read_what_is_shared(work: _Work, folder: Path, source: Path) -> None:
    """Run a job outside of both nodes, which reads one input.

    The kernel charges a page of a file to the group that reads it first: the side that starts first would have all of
    Python in its memory, and the other one would not.
    """
    few = folder / "few"
    few.mkdir()
    link_or_copy(next(source.iterdir()), few / "one")
    words = ["mr", "submit", str(work.script), "--input", few.as_uri(), "--output", (folder / "sorted").as_uri()]
    with OurCluster(folder / "before", nodes=1) as cluster:
        cluster.yaq(*words, "--reduces", "4")


def _input(work: _Work, folder: Path, files: int) -> tuple[Path, Digest]:
    """As many files, each of which is a map's at most."""
    source, expected = folder / "input", Digest(0, 0)
    source.mkdir()
    for number in range(files):
        path, of_file = work.make_file(_LINES, number + 1)
        link_or_copy(path, source / path.name)
        expected += of_file
    return source, expected


def link_or_copy(path: Path, target: Path) -> None:
    """A copy where the two lie on different file systems, or theirs knows no links."""
    try:
        target.hardlink_to(path)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
            raise
        shutil.copyfile(path, target)


def _cluster(stack: ExitStack, folder: Path, side: str, site: Mapping[str, str]) -> OurCluster:
    """In a node of its own."""
    node = SmallNode(f"yaq-bench-{side}", _NODE_BYTES)
    stack.callback(node.remove)
    with node.inside():
        return stack.enter_context(OurCluster(folder, nodes=1, site=site))


def _one(
    row_id: str, name: str, side: _Side, disk: OwnDisk, work: _Work, source: Path, target: Path, expected: Digest
) -> None:
    before = disk.requests()
    words = ["mr", "submit", str(work.script), "--input", source.as_uri(), "--output", target.as_uri()]
    taken = side.cluster.yaq(*words, "--reduces", str(work.reduces)).seconds
    side.disk.append(disk.requests().since(before))
    side.seconds.append(taken)
    work.check((part.read_bytes() for part in sorted(target.glob("part-*"))), expected)
    shutil.rmtree(target)
    progress(f"{row_id}: {name}: {taken:.1f} s, {side.disk[-1]}")


def _decision(cluster: OurCluster) -> str:
    """Of the last job there."""
    listed = cluster.yaq("app", "list", "--state", "finished").stdout.split()
    application = max(word for word in listed if word.startswith("application_"))
    lines = cluster.yaq("explain", application).stdout.splitlines()
    found = [number for number, line in enumerate(lines) if "Map outputs" in line]
    return "; ".join(line.strip() for line in lines[found[0] : found[0] + 3]) if found else "nothing said"
