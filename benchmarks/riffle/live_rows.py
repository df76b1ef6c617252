"""Rows `job-1-live` .. `job-4-live`: the paper's production jobs at a tenth of their maps and reduces, with real files.

The merge scheduler is told of blocks of the paper's size, and its merges are made by the merger of files whose blocks
have 64 bytes; five fetchers ask our shuffle service for every part of every reducer, a merged file in one request. Ours
is what the service counted that it read, theirs what `job-N`'s way of counting says at this size: they are to be equal.
Job 4 runs at a fortieth: at a tenth it has 7 million parts.
"""

import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from benchmarks.options import Options, progress
from benchmarks.report import Row, make_row
from benchmarks.riffle.counts import Drive, Shuffle, outputs
from benchmarks.riffle.plan_rows import JOBS, LATE
from benchmarks.riffle.seek_rows import SeekServer
from benchmarks.shuffle_client import MapOutputs, Target, fetch_all, write_outputs
from riffle_merger.merger.merge import READERS, MergeOrder, buffers_for, merge
from riffle_merger.merger.pool import BufferPool
from riffle_merger.plan.automatic import BLOCKS, DiskShape, ShuffleShape, choose
from riffle_merger.plan.counts import Buffers, Unit
from riffle_merger.plan.decisions import MapOutput, Publish
from riffle_merger.plan.policy import FAN_IN_MAX, MergePolicy
from riffle_merger.plan.scheduler import MergeSpec

_BLOCK: Final = 64
_BEST_EFFORT: Final = 0.95
_POOL_BYTES: Final = 64 << 20
#: how much smaller than the paper's
_PARTS: Final = {"job-1": 10, "job-2": 10, "job-3": 10, "job-4": 40}
ROWS: Final = tuple(f"{job}-live" for job in _PARTS)


class _Live(Drive):
    """The drive of the counted rows, whose merges are made."""

    def __init__(self, shuffle: Shuffle, spec: MergeSpec, target: Target, attempts: tuple[str, ...]) -> None:
        super().__init__(shuffle, spec, Buffers(), Unit())
        self._folder, self._attempts = target.folder, attempts
        self._pool = BufferPool(_POOL_BYTES)
        self._reader = ThreadPoolExecutor(READERS)
        self.groups: list[tuple[str, ...]] = []
        self.merges = self.requests = 0

    def merge(self, outputs: tuple[MapOutput, ...]) -> None:
        self.merges += 1
        order = MergeOrder(f"{self.merges}", (self._folder,), self._names(outputs))
        buffers = buffers_for(len(outputs), _POOL_BYTES, self._pool)
        merged = merge(order, self._pool, buffers, reader=self._reader, is_cancelled=lambda: False)
        self.requests += merged.reads + merged.writes

    def published(self, publish: Publish) -> None:
        names = self._names(publish.outputs)
        self.groups += [names[at : at + FAN_IN_MAX] for at in range(0, len(names), FAN_IN_MAX)]

    def _names(self, outputs: tuple[MapOutput, ...]) -> tuple[str, ...]:
        return tuple(self._attempts[output.map_index] for output in outputs)


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    rows: list[Row] = []
    facts: dict[str, Mapping[str, Any]] = {}
    for row_id in ROWS:
        if options.wants(row_id):
            job = row_id.removesuffix("-live")
            full, parts = JOBS[job], _PARTS[job] / min(1.0, options.scale)
            counted, read, facts[row_id] = _run(full, parts)
            rows.append(make_row(row_id, [read], [counted], "reads", higher_is_better=False))
            progress(f"{row_id}: {read:.0f} reads, {counted:.0f} counted")
    return rows, facts


def _run(full: Shuffle, parts: float) -> tuple[float, float, Mapping[str, Any]]:
    """Reads as counted, as made, and what belongs beside."""
    maps, reduces = max(8, round(full.maps / parts)), max(2, round(full.partitions / parts))
    shuffle = Shuffle(maps, reduces, full.block_bytes, max(1, round(full.nodes / parts)))
    shape = ShuffleShape(full.maps, full.partitions, float(full.block_bytes * full.partitions), full.nodes)
    policy = choose(shape, DiskShape()).policy
    policy = policy if policy.is_off else MergePolicy(block_bytes=BLOCKS[-1])
    spec = MergeSpec(maps, reduces, policy, best_effort=_BEST_EFFORT)
    with tempfile.TemporaryDirectory(prefix="yaq-live-") as name, SeekServer(Path(name), Path(name)) as server:
        written = write_outputs(server.target, 0, maps, reduces, _BLOCK)
        drive = _Live(shuffle, spec, server.target, written.attempts)
        counter = drive.run(outputs(shuffle, seed=1), LATE)
        target = server.start()
        server.ask("look")
        for group in drive.groups:
            of_group = MapOutputs(group, reduces, _BLOCK, written.content)
            fetch_all(target, of_group, maps_per_request=len(group), rounds=1)
        found = server.ask("counts")
    by_count = counter.merge_reads + counter.merge_writes
    facts = {
        "shape": f"{maps} x {reduces}, {policy}, {drive.merges} merges, {drive.cancelled} cancelled",
        "merger's requests": f"{drive.requests} made, indexes included, {by_count} counted with the paper's sizes",
    }
    return float(counter.shuffle_reads), found["reads"], facts
