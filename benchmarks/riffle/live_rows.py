"""Rows `job-1-live` .. `job-4-live`: the paper's production jobs at a tenth of their maps and reduces, with real files.

Merged as `job-N-paper` is, through the merge scheduler, by the merger, of files whose blocks have few bytes; five
fetchers ask our shuffle service for every part of every reducer, a merged file in one request. Ours is what the service
and the merger counted that they asked of the disk, theirs what `job-N-paper`'s way of counting says at this size: they
are to be equal, both parts of it, reads of indexes included. Nodes with mergers look at all outputs, those of job 1
too, which is left alone. The merger's buffers are small, so that its merges take several turns.
"""

import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from benchmarks.options import Options, progress
from benchmarks.report import Row, make_row
from benchmarks.riffle.counts import Drive, Shuffle, outputs
from benchmarks.riffle.plan_rows import BEST_EFFORT, JOBS, LATE, PAPERS, chosen
from benchmarks.riffle.seek_rows import SeekServer
from benchmarks.shuffle_client import MapOutputs, Target, fetch_all, write_outputs
from riffle_merger.merger.merge import READERS, MergeOrder, merge
from riffle_merger.merger.pool import BufferPool
from riffle_merger.merger.requests import MergerRequests
from riffle_merger.plan.counts import Unit
from riffle_merger.plan.decisions import MapOutput, Publish
from riffle_merger.plan.merge_scheduler import MergeSpec
from riffle_merger.plan.policy import FAN_IN_MAX

#: stored bytes of a block
_BLOCKS: Final = {"job-1": 1024, "job-2": 1024, "job-3": 1024, "job-4": 64}
#: how much smaller than the paper's in maps and in reduces
_PARTS: Final = 10
#: of the merger: half of it may go to the indexes of one merge, 8 MB of job 4
_BUDGET: Final = 17 << 20
_BUFFER: Final = 64 << 10
ROWS: Final = tuple(f"{job}-live" for job in JOBS)


class _Live(Drive):
    """The drive of the counted rows, whose merges are made."""

    def __init__(self, shuffle: Shuffle, spec: MergeSpec, target: Target, attempts: tuple[str, ...]) -> None:
        self._requests = MergerRequests(_BUDGET, 1, buffer_bytes=_BUFFER)
        super().__init__(shuffle, spec, self._requests, Unit())
        self._folder, self._attempts = target.folder, attempts
        self._pool = BufferPool(_BUDGET, buffer_bytes=_BUFFER)
        self._reader = ThreadPoolExecutor(READERS)
        self.groups: list[tuple[str, ...]] = []
        self.merges = self.requests = 0

    def merge(self, outputs: tuple[MapOutput, ...]) -> None:
        self.merges += 1
        order = MergeOrder(f"{self.merges}", (self._folder,), self._names(outputs))
        buffers = self._requests.buffers([output.size for output in outputs], self.counter.partitions)
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
            counted, made, facts[row_id] = _run(row_id.removesuffix("-live"), _PARTS / min(1.0, options.scale))
            rows.append(make_row(row_id, [made], [counted], "requests", higher_is_better=False))
            progress(f"{row_id}: {made:.0f} requests, {counted:.0f} counted")
    return rows, facts


def _run(job: str, parts: float) -> tuple[float, float, Mapping[str, Any]]:
    """Requests as counted, as made, and what belongs beside."""
    full, block = JOBS[job], _BLOCKS[job]
    maps, reduces = max(8, round(full.maps / parts)), max(2, round(full.partitions / parts))
    shuffle = Shuffle(maps, reduces, block, max(1, round(full.nodes / parts)))
    policy = chosen(full, PAPERS).policy
    spec = MergeSpec(maps, reduces, policy, best_effort=BEST_EFFORT)
    with tempfile.TemporaryDirectory(prefix="yaq-live-") as name, SeekServer(Path(name), Path(name)) as server:
        written = write_outputs(server.target, 0, maps, reduces, block)
        drive = _Live(shuffle, spec, server.target, written.attempts)
        counter = drive.run(outputs(shuffle, seed=1), LATE)
        progress(f"{job}: {drive.merges} merges made")
        target = server.start()
        server.ask("look")
        for group in drive.groups:
            of_group = MapOutputs(group, reduces, block, written.content)
            fetch_all(target, of_group, maps_per_request=len(group), rounds=1)
        found = server.ask("counts")
        read = found["reads"] + found["index_reads"]
    by_reducers = counter.shuffle_reads + counter.index_reads(looks=True)
    by_mergers = counter.merge_reads + counter.merge_writes
    facts = {
        "shape": f"{maps} x {reduces}, {policy}, {drive.merges} merges, {drive.cancelled} cancelled",
        "reads of reducers": f"{read:,.0f}, {by_reducers:,} counted",
        "requests of mergers": f"{drive.requests:,}, {by_mergers:,} counted",
    }
    return float(by_reducers + by_mergers), read + drive.requests, facts
