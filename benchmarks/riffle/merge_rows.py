"""How fast the merger merges, beside `cp --reflink=never` of the same files.

Rows `merge-cold-N`: N map outputs of 512 MB together in blocks of 64 KB; nothing of them is in the page cache, and both
sides wait until the disk has everything (fsync). MB/s of wall time.
Rows `merge-warm-SIZE`: 40 outputs of 512 MB together in blocks of that size, in the page cache; nobody waits for the
disk. The merger's buffers have been used before, as a long-running merger's have. `cp` copies; the merger also checks
every segment's checksum. MB per second of CPU time, which is all there is to it, whatever else the machine does; that
the merger reads and writes at the same time does not count in its favour. The fastest runs by wall time are beside.

The merger runs in this process, so that CPU seconds of both sides can be told.
"""

import os
import resource
import shutil
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from benchmarks.options import Options, progress
from benchmarks.report import Row, make_row
from riffle_merger.format import IndexEntry, SpillIndex
from riffle_merger.merger.merge import READERS, Merged, MergeOrder, buffers_for, merge
from riffle_merger.merger.pool import BufferPool

_KIB: Final = 1024
_MIB: Final = 1024 * 1024
_TOTAL: Final = 512 * _MIB
#: of a node's merger as shipped, and the merges that share it
_BUDGET: Final = 512 * _MIB
_AT_ONCE: Final = 2
_COLD: Final = {f"merge-cold-{count}": count for count in (5, 10, 20, 40)}
_WARM: Final = {"merge-warm-4k": 4 * _KIB, "merge-warm-64k": 64 * _KIB, "merge-warm-1m": _MIB}
_WARM_INPUTS: Final = 40
ROWS: Final = (*_COLD, *_WARM)


def make_outputs(app_dir: Path, count: int, block_bytes: int, total_bytes: int) -> tuple[list[str], int]:
    """Map outputs of equal blocks with right checksums; their names and how many bytes they have together."""
    partitions = max(1, total_bytes // count // block_bytes)
    body = os.urandom(block_bytes - 4)
    segment = body + zlib.crc32(body).to_bytes(4, "big")
    entries = [IndexEntry(number * block_bytes, block_bytes, block_bytes) for number in range(partitions)]
    index, names = SpillIndex(entries).to_bytes(), []
    for number in range(count):
        name = f"attempt_1700000000000_0001_m_{number:06d}_0"
        folder = app_dir / "output" / name
        folder.mkdir(parents=True)
        with (folder / "file.out").open("wb", buffering=_MIB) as file:
            for _ in range(partitions):
                file.write(segment)
        (folder / "file.out.index").write_bytes(index)
        names.append(name)
    return names, count * partitions * block_bytes


def _drop_from_cache(folder: Path) -> None:
    for path in folder.rglob("file.out*"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds, children's included."""

    def cpu() -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    started, used = time.perf_counter(), cpu()
    work()
    return time.perf_counter() - started, cpu() - used


class _Sides:
    """Both sides over the same outputs, turn by turn, so that what else happens on the machine hits both."""

    def __init__(self, app_dir: Path, names: list[str], total: int, *, is_cold: bool) -> None:
        self._app_dir, self._names, self._total, self._is_cold = app_dir, names, total, is_cold
        self._pool = BufferPool(_BUDGET)
        self.merged: Merged | None = None

    def merge(self) -> None:
        order = MergeOrder("1", (self._app_dir,), tuple(self._names), sync=self._is_cold)
        buffers = buffers_for(len(self._names), self._total, self._pool, self._pool.count // _AT_ONCE)
        with ThreadPoolExecutor(READERS) as reader:
            self.merged = merge(order, self._pool, buffers, reader=reader, is_cancelled=lambda: False)

    def copy(self) -> None:
        target = self._app_dir / "copy"
        subprocess.run(["cp", "-r", "--reflink=never", str(self._app_dir / "output"), str(target)], check=True)
        if self._is_cold:
            _sync(target)

    def run(self, options: Options) -> dict[str, list[tuple[float, float]]]:
        taken: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
        works = {"ours": self.merge, "theirs": self.copy}
        for turn in range(options.runs + 1):
            for side in options.sides:
                if self._is_cold:
                    _drop_from_cache(self._app_dir / "output")
                seconds = _timed(works[side])
                if turn:  # the first turn is for the pool and the allocator of the file system
                    taken[side].append(seconds)
                for name in ("riffle", "copy"):
                    shutil.rmtree(self._app_dir / name, ignore_errors=True)
        return taken


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    rows, beside = [], {}
    for row_id in ROWS:
        if options.wants(row_id):
            progress(row_id)
            row, facts = _row(row_id, options)
            rows.append(row)
            beside[row_id] = facts
    return rows, beside


def _row(row_id: str, options: Options) -> tuple[Row, Mapping[str, Any]]:
    is_cold = row_id in _COLD
    count, block_bytes = (_COLD[row_id], 64 * _KIB) if is_cold else (_WARM_INPUTS, _WARM[row_id])
    with tempfile.TemporaryDirectory(prefix="yaq-merge-") as folder:
        names, total = make_outputs(Path(folder), count, block_bytes, int(_TOTAL * options.scale))
        sides = _Sides(Path(folder), names, total, is_cold=is_cold)
        taken = sides.run(options)
    which = 0 if is_cold else 1
    speeds = {side: [total / seconds[which] / 1e6 for seconds in runs] for side, runs in taken.items()}
    facts: dict[str, Any] = {}
    for side, runs in taken.items():
        if runs:
            facts[f"CPU seconds per GB, best, {side}"] = min(cpu for _, cpu in runs) / total * 1e9
            facts[f"MB/s of wall time, best, {side}"] = total / min(wall for wall, _ in runs) / 1e6
    if sides.merged is not None:
        facts["requests"] = f"{sides.merged.reads} reads, {sides.merged.writes} writes for {total / 1e6:.0f} MB"
    return make_row(row_id, speeds["ours"] or [0.0], speeds["theirs"], "MB/s", higher_is_better=True), facts
