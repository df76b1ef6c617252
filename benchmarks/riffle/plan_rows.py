"""How many reads a shuffle takes, merged and not, counted through the merge scheduler.

At full size and without the bytes: the object that the job manager calls, told of every map's end and every merge's.

Rows `reads`, `reads-best-effort`: 2,000 x 200, 40 files a merge: read requests of one reducer.
Rows `reads-paper`, `reads-paper-best-effort`: the paper's 8,000 x 2,500 with blocks of 150 KB, the same.
Rows `units-paper`, `units-paper-best-effort`: its reads in units of 512 KB with the mergers' own, millions; a read
costs 17 units more than its bytes, which is what the paper's own 360 M without merging come to.
Rows `job-1` .. `job-4`: its production jobs, all requests in millions, the mergers' own included (buffers of 64 MB,
best effort 95 %): with what is chosen automatically where that leaves a job alone, else with blocks of 4 MB. What the
other sizes of blocks come to is printed beside.

In the best-effort rows no merge ends before the last map, so that 5 % of the merges are always cancelled: the most
reads there can be. Theirs is not merging.
"""

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.options import Options
from benchmarks.report import Row, make_row
from benchmarks.riffle.counts import Shuffle, count
from riffle_merger.plan.automatic import BLOCKS, DiskShape, ShuffleShape, choose
from riffle_merger.plan.counts import Buffers, ReadCounter
from riffle_merger.plan.policy import OFF, MergePolicy
from riffle_merger.plan.scheduler import MergeSpec

_KIB: Final = 1024
_MIB: Final = 1024 * 1024
_FORTY: Final = MergePolicy(files=40)
_BEST_EFFORT: Final = 0.95
#: no merge ends while maps run
LATE: Final = 1e9
_OURS: Final = Shuffle(2000, 200, 16 * _KIB, nodes=10)
_PAPER: Final = Shuffle(8000, 2500, 150_000, nodes=100)
#: Table 4.1: maps, reduces, average block
JOBS: Final = {
    "job-1": Shuffle(915, 200, 983 * _KIB, nodes=100),
    "job-2": Shuffle(7040, 1438, 120 * _KIB, nodes=100),
    "job-3": Shuffle(8064, 2500, 147 * _KIB, nodes=100),
    "job-4": Shuffle(36145, 20011, 360 * _KIB, nodes=100),
}
_JOB_BUFFERS: Final = Buffers(64 * _MIB, 64 * _MIB)
ROWS: Final = (
    "reads",
    "reads-best-effort",
    "reads-paper",
    "reads-paper-best-effort",
    "units-paper",
    "units-paper-best-effort",
    *JOBS,
)


def merged(shuffle: Shuffle, policy: MergePolicy, best_effort: float, buffers: Buffers | None = None) -> ReadCounter:
    """The shuffle's reads; with best effort below 1, the most there can be."""
    spec = MergeSpec(shuffle.maps, shuffle.partitions, policy, best_effort=best_effort)
    return count(shuffle, spec, merge_takes=1.0 if best_effort == 1 else LATE, buffers=buffers)


def _reads(row_id: str) -> tuple[Row, Mapping[str, Any]]:
    shuffle = _PAPER if "paper" in row_id else _OURS
    best_effort = _BEST_EFFORT if row_id.endswith("best-effort") else 1.0
    without, ours = merged(shuffle, OFF, 1.0), merged(shuffle, _FORTY, best_effort)
    facts = {
        "requests of all reducers": f"{ours.shuffle_reads:,} of {without.shuffle_reads:,}",
        "with the mergers' own": f"{ours.requests:,}, {without.requests / ours.requests:.1f}x fewer",
        "average read": f"{ours.mean_read / 1e6:.2f} MB of {without.mean_read / 1e6:.2f} MB",
    }
    if row_id.startswith("units"):
        row = make_row(row_id, [ours.all_units / 1e6], [without.all_units / 1e6], "M units", higher_is_better=False)
    else:
        row = make_row(row_id, [ours.files], [without.files], "reads/reducer", higher_is_better=False)
    return row, facts


def _job(row_id: str) -> tuple[Row, Mapping[str, Any]]:
    shuffle = JOBS[row_id]
    shape = ShuffleShape(
        shuffle.maps, shuffle.partitions, float(shuffle.block_bytes * shuffle.partitions), shuffle.nodes
    )
    choice = choose(shape, DiskShape())
    without = merged(shuffle, OFF, 1.0, _JOB_BUFFERS)
    by_size = {
        f"{size // _KIB} KB": merged(shuffle, MergePolicy(block_bytes=size), _BEST_EFFORT, _JOB_BUFFERS)
        for size in BLOCKS
    }
    ours = without if choice.policy.is_off else by_size[f"{BLOCKS[-1] // _KIB} KB"]
    facts = {
        "automatic": choice.reason,
        "blocks": {size: f"{without.requests / counted.requests:.1f}x" for size, counted in by_size.items()},
        "reads of a reducer": f"{ours.files} of {without.files}",
    }
    requests = make_row(row_id, [ours.requests / 1e6], [without.requests / 1e6], "M requests", higher_is_better=False)
    return requests, facts


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """The rows asked for, and what belongs beside each. A count is exact, so one run is enough."""
    rows, beside = [], {}
    for row_id in ROWS:
        if options.wants(row_id):
            row, beside[row_id] = (_job if row_id in JOBS else _reads)(row_id)
            rows.append(row)
    return rows, beside
