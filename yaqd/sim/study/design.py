"""What the study runs: cells, each a system on a ground at a part of a measured capacity, in three parts.

`main` is a factorial of our switches beside stock's choices, at three loads that are the same for all. `loads` gives
each side its own part of its own capacity. `others` changes one thing at a time, for one system of stock's and three of
ours.
Every system is told as much of tasks' durations: each stage's mean, except where the history is the factor.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Final, Literal

from yaqd.model.values import value
from yaqd.sim.experiments.ground import SHIPPED as QUEUED_AS_SHIPPED
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.study.trial import Ground, StudyTrial, with_start

Part = Literal["main", "loads", "others"]
PARTS: Final[tuple[Part, ...]] = ("main", "loads", "others")
Side = Literal["stock", "ours"]
#: seeds of the study: of ours the longest wait at a node was chosen with the first ones in view, and nothing else
FIRST_SEED: Final = 1001
SEEDS: Final = 5
#: seeds of a saturated run; the same ones however many the study has, so that more seeds leave the loads as they are
_CAPACITY_SEEDS: Final = range(FIRST_SEED, FIRST_SEED + 3)

#: heartbeats of 1 s are what Hadoop ships, a start of 1 s is a JVM's on a cold node. Both sides have both
BASE: Final = Ground(shape=with_start(ClusterShape(nodes=80, slots=4, heartbeat_s=1.0, noise=0.1), 1.0))
MAIN_LOADS: Final = (0.5, 0.7, 0.9)
OWN_LOADS: Final = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.1)
#: of `others`
OTHERS_LOAD: Final = 0.7
#: containers that stock lets wait at a node: Hadoop's own limit, and others
OPPORTUNISTIC: Final = (None, 1, 2, 4, 8)
JOB_ORDERS: Final = ("fifo", "fair", "srjf")


@value()
class StudyCell:
    """A line of a table at one load."""

    part: Part
    side: Side
    #: the same at every load
    name: str
    ground: Ground
    system: System
    #: part of the capacity
    load: float
    #: whose capacity
    of: System
    #: on which ground; None: on its own
    of_ground: Ground | None = None
    #: of ours in `main` and of all in `others`: what is varied, and to what
    factors: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> tuple[Part, float, str, tuple[tuple[str, str], ...]]:
        """What no other cell has."""
        return self.part, self.load, self.name, self.factors

    def level(self, factor: str) -> str:
        """Return what the factor is here; empty: it does not apply."""
        return dict(self.factors).get(factor, "")

    def capacity_trials(self) -> list[StudyTrial]:
        """Return the saturated runs that its load needs."""
        return [StudyTrial(self.of_ground or self.ground, self.of, seed) for seed in _CAPACITY_SEEDS]

    def own_capacity_trials(self) -> list[StudyTrial]:
        """Return those of the system itself, of the parts that tell what each can do."""
        seeds = () if self.part == "others" else _CAPACITY_SEEDS
        return [StudyTrial(self.ground, self.system, seed) for seed in seeds]

    def trial(self, seed: int, capacity: float) -> StudyTrial:
        """Return the run itself, where so large a part of the slots is the capacity."""
        return StudyTrial(self.ground, self.system, seed, round(self.load * capacity, 4))


#: our ResourceManager with every switch off: the loads are parts of what it can do
OFF: Final = System("yarn")
#: Hadoop's CapacityScheduler, by its own rules, with nodes that report ends at once, as Hadoop's do
_STOCK: Final = System("yarn", rules="stock", out_of_turn=True)
_FAIR: Final = replace(_STOCK, job_order="fair")
#: containers of one heartbeat, and how often nodes are offered one where that does not go by heartbeats, s
_MANY: Final = 100
_ASYNC_S: Final = 0.005


#: queues at nodes, as yaq.queue.enabled has them: false, auto as shipped, true (one container at each node at least)
QUEUES: Final = {"off": OFF, "auto": QUEUED_AS_SHIPPED, "always": replace(QUEUED_AS_SHIPPED, bound_least=1)}


def ours(*, queues: str, events: bool, asks: bool, jobs: str = "srjf", nodes: str = "srjf") -> System:
    """Return our system with these switches: queues at nodes, heartbeats out of turn, decisions at asks, orders."""
    base = QUEUES[queues] if queues == "off" else replace(QUEUES[queues], order=nodes)
    return replace(base, out_of_turn=events, at_asks=asks, job_order=jobs)


SHIPPED: Final = ours(queues="auto", events=True, asks=True)
UNQUEUED: Final = ours(queues="off", events=True, asks=True)
QUEUED: Final = ours(queues="always", events=True, asks=True)
SHIPPED_NAME: Final = "ours: queues auto, events on, asks on, jobs srjf, nodes srjf"


def _main() -> Iterator[StudyCell]:
    for load in MAIN_LOADS:
        yield from _stock_cells(load)
        yield from _our_cells(load)


def _our_cells(load: float) -> Iterator[StudyCell]:
    for queues, events, asks, jobs in product(QUEUES, (False, True), (False, True), JOB_ORDERS):
        for nodes in {"off": ("",), "auto": ("srjf",), "always": ("srjf", "fifo")}[queues]:
            system = ours(queues=queues, events=events, asks=asks, jobs=jobs, nodes=nodes)
            factors = (
                ("queues", queues),
                ("events", _on(events)),
                ("asks", _on(asks)),
                ("jobs", jobs),
                *((("nodes", nodes),) if nodes else ()),
            )
            name = "ours: " + ", ".join(f"{factor} {level}" for factor, level in factors)
            yield StudyCell("main", "ours", name, BASE, system, load, OFF, BASE, factors)


def _stock_cells(load: float) -> Iterator[StudyCell]:
    for order, heartbeat in product(("fifo", "fair"), (1.0, 3.0, 0.2)):
        ground = _beating(heartbeat)
        yield _stock(f"stock: {order}, heartbeat {heartbeat:g} s", replace(_STOCK, job_order=order), load, ground)
    for order in ("fifo", "fair"):
        many = replace(_STOCK, job_order=order, off_switch_max=_MANY)
        yield _stock(f"stock: {order}, many at a heartbeat", many, load)
        yield _stock(f"stock: {order}, asynchronous", replace(_STOCK, job_order=order, async_s=_ASYNC_S), load)
    for bound in OPPORTUNISTIC:  # a queue's order of jobs does not reach such containers
        system = replace(_STOCK, name="yarn-opportunistic", bound=bound)
        limit = "Hadoop's limit" if bound is None else f"limit {bound}"
        yield _stock(f"stock: opportunistic, {limit}", system, load)


def _stock(name: str, system: System, load: float, ground: Ground = BASE) -> StudyCell:
    return StudyCell("main", "stock", name, ground, system, load, OFF, BASE)


def _beating(heartbeat_s: float) -> Ground:
    return replace(BASE, shape=replace(BASE.shape, heartbeat_s=heartbeat_s))


def _on(is_on: bool) -> str:
    return "on" if is_on else "off"


_SIDES: Final[tuple[tuple[Side, str, System], ...]] = (
    ("stock", "stock: fifo", _STOCK),
    ("stock", "stock: fair", _FAIR),
    ("stock", "stock: fair, asynchronous", replace(_FAIR, async_s=_ASYNC_S)),
    ("ours", "ours without queues", UNQUEUED),
    ("ours", "ours with queues", QUEUED),
    ("ours", "ours as shipped", SHIPPED),
)


#: of `others`
_COMPARED: Final = ("stock: fair", "ours without queues", "ours with queues", "ours as shipped")


def _loads() -> Iterator[StudyCell]:
    for load in OWN_LOADS:
        for side, name, system in _SIDES:
            yield StudyCell("loads", side, name, BASE, system, load, system)


#: jobs of a workload, so that each takes about as long to simulate
_WORKLOADS: Final = {
    "hive-ms": 185,
    "gridmix-ms": 110,
    "gridmix-sizes": 110,
    "heavy-tailed": 110,
    "mixed-5-50-jobs": 110,
    "graphs": 140,
    "5-sec": 200,
    "1-sec": 300,
}


def _far(network_s: float) -> Ground:
    return replace(BASE, shape=replace(BASE.shape, network_s=network_s))


#: one thing changed: its name, its level, the ground
_GROUNDS: Final[tuple[tuple[str, str, Ground], ...]] = (
    *(("heartbeat", f"{s:g} s", _beating(s)) for s in (0.2, 1.0, 3.0, 10.0)),
    *(("workload", name, replace(BASE, workload=name, jobs=jobs)) for name, jobs in _WORKLOADS.items()),
    *(("start", f"{s:g} s", replace(BASE, shape=with_start(BASE.shape, s))) for s in (1.0, 0.1)),
    *(("network", f"{s * 1000:g} ms", _far(s)) for s in (0.001, 0.1)),
)


def _yesterday(system: System) -> System:
    """Estimates begin as those of another day, twice too high or too low, and learn as a cluster's do."""
    return replace(system, estimates="blended", estimate_error=2.0)


def _unknown(system: System) -> System:
    return replace(system, estimates="learned")


def _unaware(system: System) -> System:
    return replace(system, aware=False)


def _patient(system: System) -> System:
    return replace(system, aware=False, max_wait_unaware_s=5.0)


def _same(system: System) -> System:
    return system


def _ordered(order: str) -> Callable[[System], System]:
    return lambda system: replace(system, order=order)


_QUEUED_SIDES: Final = {"ours as shipped": SHIPPED, "ours with queues": QUEUED}
_BOTH_SIDES: Final = {"ours as shipped": SHIPPED, "ours without queues": UNQUEUED}
#: what changes a system and not the ground: factor, level, what it does, whom it can reach. Hardly anything waits where
#: queues are `auto` on this ground, so masters and orders are tried with queues always, too
_SYSTEMS: Final[tuple[tuple[str, str, Callable[[System], System], dict[str, System]], ...]] = (
    ("masters", "tolerate waiting", _same, _QUEUED_SIDES),
    ("masters", "do not", _unaware, _QUEUED_SIDES),
    ("masters", "do not, 5 s allowed", _patient, _QUEUED_SIDES),
    ("history", "exact", _same, _BOTH_SIDES),
    ("history", "of another day", _yesterday, _BOTH_SIDES),
    ("history", "none", _unknown, _BOTH_SIDES),
    *(("node order", order, _ordered(order), _QUEUED_SIDES) for order in ("srjf", "fifo", "stf", "ejf", "lrtf")),
)


def _others() -> Iterator[StudyCell]:
    for factor, level, ground in _GROUNDS:
        for side, name, system in (one for one in _SIDES if one[1] in _COMPARED):
            yield _other(side, name, ground, system, factor, level)
    for factor, level, change, sides in _SYSTEMS:
        for name, system in sides.items():
            yield _other("ours", name, BASE, change(system), factor, level)
    yield _other("stock", "stock: fair", BASE, _FAIR, "history", "not used")


def _other(side: Side, name: str, ground: Ground, system: System, factor: str, level: str) -> StudyCell:
    return StudyCell("others", side, name, ground, system, OTHERS_LOAD, OFF, factors=((factor, level),))


_BY_PART: Final = {"main": _main, "loads": _loads, "others": _others}


def cells(parts: Iterable[Part] = PARTS) -> list[StudyCell]:
    """Return the cells of the parts, in the order of the tables."""
    return [cell for part in parts for cell in _BY_PART[part]()]


def small(chosen: Iterable[StudyCell]) -> list[StudyCell]:
    """Return the cells on 8 nodes with few jobs, of `main` at one load: to see that all runs."""
    few = (cell for cell in chosen if cell.part != "main" or cell.load == MAIN_LOADS[1])
    return [_on_ground(cell, lambda ground: _sized(ground, 8, ground.jobs // 40)) for cell in few]


def scaled(chosen: Iterable[StudyCell], nodes: int) -> list[StudyCell]:
    """Return the cells on so many nodes, with as many times fewer or more jobs."""
    return [_on_ground(cell, lambda one: _sized(one, nodes, one.jobs * nodes // one.shape.nodes)) for cell in chosen]


def _on_ground(cell: StudyCell, change: Callable[[Ground], Ground]) -> StudyCell:
    of_ground = None if cell.of_ground is None else change(cell.of_ground)
    return replace(cell, ground=change(cell.ground), of_ground=of_ground)


def _sized(ground: Ground, nodes: int, jobs: int) -> Ground:
    return replace(ground, jobs=max(4, jobs), shape=replace(ground.shape, nodes=nodes))
