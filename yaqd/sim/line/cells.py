"""The cells: nodes, how long tasks run, heartbeats, and who waits where; and one cell's run.

Masters ask for more than can run all the time, so what counts is which part of the slots works. Tasks of one job are
alike, and how long they run is known to be so long, as of jobs that recur.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Final

from yaqd.model.values import value
from yaqd.sim.line.costs import MeasuredCosts
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.simulation import simulate
from yaqd.sim.study.design import QUEUED, SHIPPED, UNQUEUED
from yaqd.sim.workload import SimJob, SimStage, SimTask, Workload

NODES: Final = (100, 500, 1000, 2000, 5000, 10_000)
TASKS_S: Final = (1.0, 5.0, 20.0)
HEARTBEATS_S: Final = (1.0, 3.0)
#: as yaq.queue.enabled has it, each with the side of whose costs it is
QUEUES: Final[Mapping[str, tuple[System, str]]] = {
    "off": (UNQUEUED, "off"),
    "auto": (SHIPPED, "queues"),
    "always": (QUEUED, "queues"),
}
MASTERS: Final = 20
#: of the logarithm of tasks' durations
NOISE: Final = 0.1
#: what is looked at, tasks' durations and no less than so much, s; and durations that go before it at least
_WINDOW: Final = (1.5, 20.0)
_WARM: Final = 1.5
#: beside them, what it takes until all slots were given once, s a slot
_FILLED_S: Final = 8e-4


@value()
class LineGround:
    """What all cells have in common."""

    slots: int = 4
    #: of masters, and what a container takes until its process runs, s
    poll_s: float = 1.0
    start_s: float = 0.1
    cores: int = 1
    #: before slots are looked at, s, at least. A full core takes a minute to find out what to do about queues
    warm_s: float = 10.0


@value()
class LineCell:
    """One run: a cluster and a way to have queues."""

    nodes: int
    task_s: float
    heartbeat_s: float
    queues: str
    ground: LineGround
    costs: MeasuredCosts
    seed: int

    @property
    def tasks_a_second(self) -> float:
        """What would end in a second if all slots worked all the time."""
        return self.nodes * self.ground.slots / self.task_s

    @property
    def at(self) -> tuple[float, float, int]:
        """What is compared: heartbeat, task and nodes."""
        return self.heartbeat_s, self.task_s, self.nodes

    def run(self) -> "LineFound":
        """Run it. Raises ValueError."""
        system, side = QUEUES[self.queues]
        ground, costs = self.ground, self.costs.sides
        shape = ClusterShape(
            nodes=self.nodes,
            slots=ground.slots,
            heartbeat_s=self.heartbeat_s,
            am_poll_s=ground.poll_s,
            start_gap_s=0.0,
            prepare_s=ground.start_s,
            noise=NOISE,
            calls=replace(costs[side], cores=ground.cores, without_queues=replace(costs["off"], cores=ground.cores)),
        )
        warm_s = max(_WARM * self.task_s, ground.warm_s) + _FILLED_S * shape.total_slots
        until = warm_s + max(_WINDOW[0] * self.task_s, _WINDOW[1])
        result = simulate(shape, self._workload(until), system, self.seed, horizon_s=until)
        return LineFound(
            used=result.utilization_between(warm_s, until),
            busy=min(1.0, result.counts["served_us"] / 1e6 / (until * ground.cores)),
            answer_s=result.counts["answers_us"] / 1e6 / max(1, result.counts["answered"]),
        )

    def _workload(self, until: float) -> Workload:
        """More than can run until then."""
        slots = self.nodes * self.ground.slots
        costs = self.costs.sides[QUEUES[self.queues][1]]
        most = min(1.3 * slots / self.task_s, 1.1 * self.ground.cores / costs.container_s)
        each = 1 + math.ceil((2.0 * slots + most * until) / MASTERS)
        stage = SimStage("tasks", (SimTask(self.task_s),) * each)
        return Workload(tuple(SimJob(f"job-{number}", (stage,)) for number in range(MASTERS)), "backlog")


@value()
class LineFound:
    """What came of a run."""

    #: part of the slots' time in which a task ran, and of the ResourceManager's cores' in which they worked
    used: float
    busy: float
    #: of a heartbeat, mean, s
    answer_s: float


def cells(
    ground: LineGround,
    costs: MeasuredCosts,
    *,
    nodes: Iterable[int] = NODES,
    tasks_s: Iterable[float] = TASKS_S,
    heartbeats_s: Iterable[float] = HEARTBEATS_S,
    queues: Iterable[str] = QUEUES,
    seeds: Iterable[int] = (1,),
) -> Iterator[LineCell]:
    """Make the cells, in the order of the table."""
    for heartbeat_s, task_s, many, way, seed in product(heartbeats_s, tasks_s, nodes, queues, seeds):
        yield LineCell(many, task_s, heartbeat_s, way, ground, costs, seed)
