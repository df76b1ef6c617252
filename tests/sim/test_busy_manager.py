"""A ResourceManager whose calls take time: it answers in turn, and late where it is busy."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from rm.scheduler.events import NodeQueueReported
from tests.rm.rm_world import World
from tests.sim.sim_jobs import stage
from yaqd.sim.engine import Engine
from yaqd.sim.jobs import ContainerRun, JobRun
from yaqd.sim.nodes import SimNode
from yaqd.sim.scheduling.service import BusyManager, GivesWay
from yaqd.sim.shape import CallCosts, ClusterShape, NodeFailure, System
from yaqd.sim.simulation import simulate
from yaqd.sim.workload import SimJob, Workload

_COSTS = CallCosts(beat_s=1e-4, call_s=2e-4, container_s=1e-4)
_SHAPE = ClusterShape(nodes=20, slots=2, heartbeat_s=1.0, am_poll_s=0.1, start_gap_s=0.0, noise=0.1, calls=_COSTS)
_OFF = System("yarn", out_of_turn=True, at_asks=True)
_AUTO = System("yaq-c", out_of_turn=True, at_asks=True, bound_target=0.95, bound_policy="utilization")
_BACKLOG = Workload(tuple(SimJob(f"job{number}", (stage(1000, 1.0),)) for number in range(4)))


class _Polls:
    """Notes when masters' calls are through; no node beats."""

    scheduler = World().scheduler

    def __init__(self) -> None:
        self.at: list[float] = []

    def gives_way(self) -> GivesWay | None:
        return None

    def queue_said(self, node: SimNode, now: float) -> NodeQueueReported | None:
        raise NotImplementedError

    def served(self, node: SimNode, said: NodeQueueReported | None, ended: Iterable[ContainerRun], now: float) -> None:
        raise NotImplementedError

    def answered(self, node: SimNode, now: float) -> None:
        raise NotImplementedError

    def polled(self, now: float, job: JobRun) -> None:
        self.at.append(now)


@pytest.mark.parametrize(("cores", "through"), [(1, [1.0, 2.0, 3.0, 4.0]), (2, [1.0, 1.0, 2.0, 2.0])])
def test_calls_are_served_in_turn_by_the_cores_there_are(cores: int, through: list[float]) -> None:
    shape = ClusterShape(nodes=1, calls=CallCosts(beat_s=1.0, call_s=1.0, cores=cores))
    engine, polls = Engine(1.0, ((0.0, None),)), _Polls()
    busy, job = BusyManager(shape, engine, polls, Random(1)), JobRun(0, SimJob("job", (stage(1, 1.0),)), [[1.0]])
    for _ in range(4):
        busy.calls(0.0, job)
    engine.run(lambda now, what: None, lambda: len(polls.at) == 4, lambda: False, 100.0)
    assert polls.at == through
    assert busy.busy_s == 4.0


def _used(system: System, shape: ClusterShape) -> float:
    return simulate(shape, _BACKLOG, system, 1, horizon_s=30.0).utilization_between(10.0, 30.0)


def test_a_busier_manager_leaves_more_slots_idle() -> None:
    costs = (_COSTS, replace(_COSTS, beat_s=5e-3), replace(_COSTS, beat_s=6e-2))
    used = [_used(_OFF, replace(_SHAPE, calls=one)) for one in costs]
    assert used[0] > used[1] > 1.3 * used[2]


def test_of_a_busy_manager_no_more_comes_than_its_core_can_do() -> None:
    shape = replace(_SHAPE, calls=replace(_COSTS, beat_s=1e-6, container_s=0.1))
    result = simulate(shape, _BACKLOG, _OFF, 1, horizon_s=30.0)
    assert result.counts["allocated"] <= 30.0 / 0.1 + shape.total_slots  # all slots are given at the first ask


def test_queues_hide_a_manager_that_answers_late() -> None:
    late = replace(_SHAPE, calls=replace(_COSTS, beat_s=6e-2))
    assert _used(replace(_AUTO, bound_least=1), late) > 1.3 * _used(_OFF, late)


def test_queues_form_by_themselves_where_masters_call_late_and_a_core_has_time() -> None:
    soon, late = (replace(_SHAPE, am_poll_s=seconds) for seconds in (0.05, 2.0))
    assert _used(_AUTO, soon) == pytest.approx(_used(_OFF, soon), abs=0.01)
    assert _used(_AUTO, late) > 1.3 * _used(_OFF, late)


@pytest.mark.parametrize("container_s", [0.01, 0.02, 0.04])
@pytest.mark.parametrize("am_poll_s", [0.1, 1.0])
def test_queues_take_nothing_from_a_full_core(container_s: float, am_poll_s: float) -> None:
    calls = CallCosts(beat_s=2e-3, call_s=2e-4, container_s=container_s, queued_s=container_s / 2, heeded_s=1e-3)
    shape = replace(_SHAPE, am_poll_s=am_poll_s, calls=calls)
    used = [
        simulate(shape, _BACKLOG, system, 1, horizon_s=90.0).utilization_between(30.0, 90.0) for system in (_OFF, _AUTO)
    ]
    assert used[1] >= 0.97 * used[0]


def test_a_node_has_one_heartbeat_under_way_and_beats_after_the_answer() -> None:
    shape = replace(_SHAPE, nodes=10, calls=replace(_COSTS, beat_s=0.5))
    result = simulate(shape, _BACKLOG, System("yarn"), 1, horizon_s=100.0)
    assert result.counts["answered"] <= 200
    assert result.counts["answers_us"] / result.counts["answered"] > 3e6


def test_calls_that_take_next_to_no_time_change_next_to_nothing() -> None:
    quick = replace(_SHAPE, calls=CallCosts(beat_s=1e-9))
    plain = replace(_SHAPE, calls=CallCosts())
    assert _used(_OFF, quick) == pytest.approx(_used(_OFF, plain), abs=0.02)


@pytest.mark.parametrize(
    ("shape", "system"),
    [(_SHAPE, System("sparrow")), (replace(_SHAPE, failures=(NodeFailure(1, 5.0),)), _OFF)],
)
def test_what_is_not_simulated_with_it_is_refused(shape: ClusterShape, system: System) -> None:
    with pytest.raises(ValueError, match="take time"):
        simulate(shape, _BACKLOG, system, 1)


def test_a_container_that_waits_at_its_node_costs_what_is_said_beside() -> None:
    cheap, dear = (replace(_SHAPE, calls=replace(_COSTS, queued_s=seconds)) for seconds in (0.0, 0.01))
    queued = replace(_AUTO, bound_least=1)
    took = [simulate(shape, _BACKLOG, queued, 1, horizon_s=10.0).counts["served_us"] for shape in (cheap, dear)]
    assert took[1] > 2 * took[0]
    took = [simulate(shape, _BACKLOG, _OFF, 1, horizon_s=10.0).counts["served_us"] for shape in (cheap, dear)]
    assert took[0] == took[1]  # nothing waits there
