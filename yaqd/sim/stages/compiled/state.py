"""What one run of the compiled simulator holds: a plan that never changes, and what does, as records.

Stages of all jobs have one numbering. A container is an executor of Decima's simulator.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from yaqd.policies.curves.samples import Ints
from yaqd.sim.stages.rules import DECIMA, Rules
from yaqd.sim.workloads.graphs import GraphLoad

#: of `Live.counts`
ACTIVE, FREE, HEAP, SERIAL, DECISIONS, STARTED, LEFT, TRACED, WANTING = range(9)

_PLAN_STAGE: Final = np.dtype(
    [("job", "i8"), ("source", "i8"), ("tasks", "i8"), ("est_s", "f8"), ("leaves_first", "i8")]
)
_PLAN_JOB: Final = np.dtype([("first", "i8"), ("arrive_s", "f8"), ("whole_s", "f8")])
_WAVE: Final = np.dtype([("at", "i8"), ("many", "i8"), ("is_cold", "i8")])
_STAGE: Final = np.dtype(
    [
        *((name, "i8") for name in ("started", "ended", "coming", "held", "waits", "unclaimed", "claimable")),
        #: longest chain from this stage on, by duration of one task and by work, and how long it waits to open, s
        *((name, "f8") for name in ("chain_s", "chain_work_s", "wait_s")),
        #: as the network said last
        ("score", "f8"),
    ]
)
_JOB: Final = np.dtype(
    [
        *((name, "i8") for name in ("stages_left", "here", "on_way", "idle", "held", "fresh")),
        #: tasks that nobody has claimed: all, of stages that may be chosen, of those that are open
        *((name, "i8") for name in ("unclaimed", "claims", "open_claims", "is_dirty")),
        *((name, "f8") for name in ("work_s", "longest_s", "done_s", "value", "limit")),
    ]
)
#: when, in which order, what (stage * 2, + 1 where a container arrives)
_EVENT: Final = np.dtype([("when_s", "f8"), ("serial", "i8"), ("what", "i8")])


class Plan(NamedTuple):
    """A load and the rules it runs by; arrays of records."""

    stages: Any
    #: one more than there are: the last holds where stages end
    jobs: Any
    #: of the set of graphs, see `GraphSet`
    child_at: Ints
    child: Ints
    waves: Any
    values: Any
    seed: int
    slots: int
    move_s: float
    warm_s: float


class Live(NamedTuple):
    """What changes while it runs; arrays of records."""

    stages: Any
    jobs: Any
    active: Ints
    heap: Any
    counts: Ints
    #: (decisions, 3): source, stage and containers, as far as there is room
    trace: Ints


def leaves_first(waits: Ints, child_at: Ints, child: Ints) -> list[int]:
    """Return stages of one graph so that each comes after all that wait for it. Raises ValueError for a circle."""
    missing = waits.tolist()
    order = [stage for stage, count in enumerate(missing) if not count]
    for stage in order:
        for edge in range(child_at[stage], child_at[stage + 1]):
            missing[child[edge]] -= 1
            if not missing[child[edge]]:
                order.append(int(child[edge]))
    if len(order) != len(missing):
        raise ValueError("stages wait for each other in a circle")
    return order[::-1]


def plan_of(load: GraphLoad, rules: Rules = DECIMA) -> Plan:
    """Lay a load out. Raises ValueError where stages wait for each other in a circle."""
    graphs = load.graphs
    orders = {}
    for number in np.unique(load.graph):
        rows = graphs.rows(int(number))
        at = graphs.child_at[rows.start : rows.stop + 1]
        orders[int(number)] = leaves_first(graphs.waits[rows], at, graphs.child)
    counts = graphs.first[load.graph + 1] - graphs.first[load.graph]
    jobs = np.zeros(len(load) + 1, dtype=_PLAN_JOB)
    jobs["first"][1:] = np.cumsum(counts)
    jobs["arrive_s"][:-1] = load.arrive_s
    stages = np.zeros(int(counts.sum()), dtype=_PLAN_STAGE)
    stages["job"] = np.repeat(np.arange(len(load)), counts)
    stages["source"] = np.concatenate([np.arange(graphs.first[g], graphs.first[g + 1]) for g in load.graph])
    stages["tasks"] = graphs.tasks[stages["source"]]
    stages["est_s"] = graphs.mean_s[stages["source"]] * load.error
    stages["leaves_first"] = np.concatenate(
        [jobs["first"][job] + np.array(orders[int(g)]) for job, g in enumerate(load.graph)]
    )
    jobs["whole_s"][:-1] = np.add.reduceat(stages["tasks"] * stages["est_s"], jobs["first"][:-1])
    waves = np.zeros(graphs.wave_at.shape, dtype=_WAVE)
    waves["at"], waves["many"], waves["is_cold"] = graphs.wave_at, graphs.wave_len, graphs.is_cold
    return Plan(
        stages,
        jobs,
        graphs.child_at,
        graphs.child,
        waves,
        graphs.values,
        load.seed,
        rules.slots,
        float(rules.move_s),
        float(rules.warm_s),
    )


def live_of(plan: Plan, load: GraphLoad, trace: int = 0) -> Live:
    """Return the state before the first arrival. `trace`: decisions to keep."""
    stages = np.zeros(len(plan.stages), dtype=_STAGE)
    stages["waits"] = load.graphs.waits[plan.stages["source"]]
    jobs = np.zeros(len(load), dtype=_JOB)
    jobs["stages_left"] = np.diff(plan.jobs["first"])
    jobs["done_s"] = np.nan
    jobs["is_dirty"] = 1
    count = np.zeros(WANTING + 1, dtype=np.int64)
    count[FREE], count[LEFT] = plan.slots, len(load)
    return Live(
        stages,
        jobs,
        np.zeros(len(load), dtype=np.int64),
        np.zeros(plan.slots + 2, dtype=_EVENT),
        count,
        np.zeros((trace, 3), dtype=np.int64),
    )
