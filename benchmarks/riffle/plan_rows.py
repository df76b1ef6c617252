"""How many reads a shuffle takes, merged and not, counted through the merge scheduler.

At full size and without the bytes: the object that the job manager calls, told of every map's end and every merge's.
What mergers ask of their disks is what they would: their windows are planned by the merger's own code.

Rows `reads`, `reads-best-effort`: 2,000 x 200, 40 files a merge: read requests of one reducer.
Rows `reads-paper`, `reads-paper-best-effort`: the paper's 8,000 x 2,500 with blocks of 150 KB, the same.
Rows `units`, `units-best-effort`: its reducers' reads in units of 512 KB, millions, and nothing for a read itself.
Rows `units-paper`, `units-paper-best-effort`: the same where a read costs 17 units more than its bytes. That number is
fitted: the paper's own 360 M without merging come to it, and most of these rows' ratio is that number. With what the
mergers read, and with what they read and write, in the same units: beside.
Rows `job-1` .. `job-4`: its production jobs, all requests in millions, reads of indexes and the mergers' own included,
as they are merged by what is shipped: the automatic choice for the paper's disks, 512 MB of a node's memory for
mergers, two merges at a time, best effort 95 %. Where indexes have no room in a node's memory for them they are read
again, on both sides (`indexes.py`). What would be, had they room, is printed beside.
Rows `job-1-paper` .. `job-4-paper`: the same where mergers have the memory of the paper's, 8 GB a node, for 10 merges
at a time (it says 10 to 20). What its sizes of blocks come to is printed beside.

In the best-effort rows no merge ends before the last map, and each node does its merges in their order: 5 % of the
merges are always cancelled. Theirs is not merging.
"""

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.options import Options
from benchmarks.report import Row, make_row
from benchmarks.riffle.counts import Shuffle, count
from benchmarks.riffle.indexes import ALL_AT_HAND, IndexMemory, index_requests
from riffle_merger.merger.requests import MergerRequests
from riffle_merger.plan.automatic import BLOCKS, Choice, DiskShape, ShuffleShape, choose
from riffle_merger.plan.counts import ReadCounter, Unit
from riffle_merger.plan.merge_scheduler import MergeSpec
from riffle_merger.plan.policy import OFF, MergePolicy

_KIB: Final = 1024
_FORTY: Final = MergePolicy(files=40)
BEST_EFFORT: Final = 0.95
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
#: of a node's mergers, bytes, and the merges that share it: 4.3.1 and 4.5.1, and as shipped
PAPERS: Final = (8 << 30, 10)
SHIPPED: Final = (512 << 20, 2)
ROWS: Final = (
    "reads",
    "reads-best-effort",
    "reads-paper",
    "reads-paper-best-effort",
    "units",
    "units-best-effort",
    "units-paper",
    "units-paper-best-effort",
    *JOBS,
    *(f"{job}-paper" for job in JOBS),
)


def merged(
    shuffle: Shuffle,
    policy: MergePolicy,
    best_effort: float,
    memory: tuple[int, int] = SHIPPED,
    unit: Unit | None = None,
) -> ReadCounter:
    """The shuffle's reads; with best effort below 1, merges begin late. `memory` of mergers: bytes, merges at once."""
    spec = MergeSpec(shuffle.maps, shuffle.partitions, policy, best_effort=best_effort)
    return count(shuffle, spec, MergerRequests(*memory), merge_takes=1.0 if best_effort == 1 else LATE, unit=unit)


def chosen(shuffle: Shuffle, memory: tuple[int, int]) -> Choice:
    """Automatically, on turning disks."""
    size = float(shuffle.block_bytes * shuffle.partitions)
    shape = ShuffleShape(shuffle.maps, shuffle.partitions, size, shuffle.nodes)
    return choose(shape, DiskShape(merge_memory=memory[0] / memory[1]))


def _reads(row_id: str) -> tuple[Row, Mapping[str, Any]]:
    is_of_units = row_id.startswith("units")
    shuffle = _PAPER if is_of_units or "paper" in row_id else _OURS
    best_effort = BEST_EFFORT if row_id.endswith("best-effort") else 1.0
    unit = Unit() if "paper" in row_id else Unit(opening=0.0)
    without, ours = merged(shuffle, OFF, 1.0, unit=unit), merged(shuffle, _FORTY, best_effort, unit=unit)
    if is_of_units:
        row = make_row(row_id, [ours.units / 1e6], [without.units / 1e6], "M units", higher_is_better=False)
        reads, both = ours.units + ours.merge_units, ours.units + 2 * ours.merge_units
        return row, {
            "with what mergers read": f"{reads / 1e6:.1f} M units, {without.units / reads:.2f}x fewer",
            "with what they read and write": f"{both / 1e6:.1f} M units, {without.units / both:.2f}x fewer",
        }
    facts = {
        "requests of all reducers": f"{ours.shuffle_reads:,} of {without.shuffle_reads:,}",
        "with the mergers' own": f"{ours.requests:,}, {without.requests / ours.requests:.1f}x fewer",
        "average read": f"{ours.mean_read / 1e6:.2f} MB of {without.mean_read / 1e6:.2f} MB",
    }
    return make_row(row_id, [ours.files], [without.files], "reads/reducer", higher_is_better=False), facts


def _job(row_id: str) -> tuple[Row, Mapping[str, Any]]:
    shuffle = JOBS[row_id.removesuffix("-paper")]
    memory = PAPERS if row_id.endswith("-paper") else SHIPPED
    choice = chosen(shuffle, memory)
    without, ours = merged(shuffle, OFF, 1.0), merged(shuffle, choice.policy, BEST_EFFORT, memory)

    def requests(counted: ReadCounter, memory: IndexMemory | None = None) -> int:
        # as shipped, nodes have mergers, which look at outputs that are left alone too
        return counted.requests + index_requests(counted, shuffle.nodes, looks=counted is not without, memory=memory)

    theirs = requests(without)

    def fewer(counted: ReadCounter) -> str:
        return f"{theirs / requests(counted):.1f}x"

    facts: dict[str, Any] = {"automatic": choice.reason, "reads of a reducer": f"{ours.files} of {without.files}"}
    if not choice.policy.is_off:
        facts |= {
            "a merger's reads and writes": f"{ours.merged_size / ours.merge_reads / 1e6:.1f} MB and "
            f"{ours.merged_size / ours.merge_writes / 1e6:.1f} MB",
            "of the requests, reads of indexes beside mergers": f"{requests(ours) - ours.requests:,} of ours, "
            f"{theirs - without.requests:,} of theirs",
            "where all indexes have room": f"{requests(without, ALL_AT_HAND) / requests(ours, ALL_AT_HAND):.1f}x",
            "without best effort": fewer(merged(shuffle, choice.policy, 1.0, memory)),
            "blocks": {
                f"{size // _KIB} KB": fewer(merged(shuffle, MergePolicy(block_bytes=size), BEST_EFFORT, memory))
                for size in BLOCKS
            },
        }
    row = make_row(row_id, [requests(ours) / 1e6], [theirs / 1e6], "M requests", higher_is_better=False)
    return row, facts


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """The rows asked for, and what belongs beside each. A count is exact, so one run is enough."""
    rows, beside = [], {}
    for row_id in ROWS:
        if options.wants(row_id):
            row, beside[row_id] = (_job if row_id.startswith("job") else _reads)(row_id)
            rows.append(row)
    return rows, beside
