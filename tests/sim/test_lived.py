"""What a live run shows beside its tasks' work, in the simulator: first asks, what managers hear, turns of starts."""

from dataclasses import replace

import numpy as np
import pytest

from tests.sim.sim_jobs import map_reduce, mixed, same, stage
from yaqd.sim.shape import LivedTimes
from yaqd.sim.simulation import ClusterShape, NodeFailure, SimResult, System, simulate
from yaqd.sim.workload import SimJob, Workload

#: the manager polls at whole seconds, and the only node beats every 3 s
SHAPE = ClusterShape(nodes=1, slots=8, heartbeat_s=3.0, am_poll_s=1.0, network_s=0.0, start_gap_s=0.0)
AT_ASKS = System("yarn", at_asks=True)
HEARS = LivedTimes(hears_by_polls=True)


def run(system: System, workload: Workload, lived: LivedTimes = LivedTimes()) -> SimResult:
    return simulate(replace(SHAPE, lived=lived), workload, system, 1)


def one_job(*stages: tuple[int, float]) -> Workload:
    made = tuple(stage(*of, after=(at - 1,) if at else ()) for at, of in enumerate(stages))
    return Workload((SimJob("one", made, arrival_s=0.5),))


def test_a_job_asks_first_when_it_has_registered() -> None:
    workload = one_job((2, 5.0))
    (at_once,) = run(AT_ASKS, workload).jobs
    (later,) = run(AT_ASKS, workload, LivedTimes(register_s=0.75)).jobs
    assert later.from_submission == pytest.approx(at_once.from_submission + 0.75)
    assert later.submitted == at_once.submitted == 0.5 and later.started == pytest.approx(1.25)


def test_a_manager_hears_of_ends_when_the_node_has_told_and_it_polls() -> None:
    workload = one_job((2, 4.2), (2, 1.0))
    told_by_tasks = run(AT_ASKS, workload)
    heard = run(AT_ASKS, workload, LivedTimes(hears_by_polls=True))
    ended = told_by_tasks.ended[:2].max()
    assert sorted(told_by_tasks.started)[2] - ended <= SHAPE.am_poll_s, "the next stage needs a poll alone"
    beats = heard.started[2:].min()
    assert beats - ended > SHAPE.am_poll_s, "here the node's heartbeat too"
    assert beats - ended <= SHAPE.heartbeat_s + SHAPE.am_poll_s
    assert (beats - 0.5) % SHAPE.am_poll_s == pytest.approx(0.0), "and it asks as soon as it hears"
    prompt = run(replace(AT_ASKS, out_of_turn=True), workload, LivedTimes(hears_by_polls=True))
    assert sorted(prompt.started)[2] == sorted(told_by_tasks.started)[2], "a node that tells at once costs no time"


@pytest.mark.parametrize("system", [System("yarn", job_order="srjf", estimates="blended"), System("yaq-c", bound=3)])
def test_jobs_end_with_their_last_process_however_late_it_is_heard(system: System) -> None:
    workload = Workload(tuple(map_reduce(index, 9, 2, 2.0) for index in range(6)))
    result = run(system, workload, LivedTimes(hears_by_polls=True))
    assert result.tasks == sum(job.tasks for job in workload) and len(result.jobs) == 6
    for index, job in enumerate(result.jobs):
        assert job.ended == pytest.approx(result.ended[result.job == index].max())


@pytest.mark.parametrize("system", [AT_ASKS, System("yaq-c", bound=3)])
@pytest.mark.parametrize("down_s", [4.0, float("inf")])
def test_work_that_was_done_when_its_node_failed_is_heard_when_the_node_is_lost(system: System, down_s: float) -> None:
    """The node does not say so any more: they end between two of its heartbeats, and it fails before the next."""
    shape = replace(SHAPE, nodes=2, lived=HEARS, expiry_s=9.0)
    jobs = Workload(tuple(SimJob(f"job{at}", (stage(4, 1.0),), arrival_s=0.5) for at in range(4)))
    whole = simulate(shape, jobs, system, 1)
    at_s = float(np.sort(whole.ended)[0]) + 0.01
    failed = simulate(replace(shape, failures=(NodeFailure(0, at_s, down_s),)), jobs, system, 1)
    unheard = (failed.ended < at_s).sum()
    assert unheard and failed.counts["lost"] == 0, "each of the node's tasks had ended, and none was told"
    assert failed.tasks == whole.tasks == 16 and len(failed.jobs) == 4


def test_starts_take_turns_on_the_one_machine() -> None:
    starts = np.sort(run(AT_ASKS, one_job((8, 5.0)), LivedTimes(start_turn_s=0.02)).started)
    assert np.diff(starts) == pytest.approx([0.02] * 7) and starts[0] == pytest.approx(0.52)
    few = Workload(tuple(replace(one_job((1, 0.1)).jobs[0], arrival_s=float(at)) for at in range(3)))
    assert np.sort(run(AT_ASKS, few, LivedTimes(start_turn_s=0.02)).started) == pytest.approx([0.02, 1.02, 2.02])


@pytest.mark.parametrize("name", ["yarn", "yaq-c"])
def test_heartbeats_that_can_do_nothing_may_be_left_out_of_it(name: str) -> None:
    shape = ClusterShape(nodes=4, slots=3, lived=replace(HEARS, register_s=0.3, start_turn_s=0.01))
    played, left_out = (
        simulate(shape, mixed(12), System(name), 2, skip_idle=skip, horizon_s=1e6) for skip in (False, True)
    )
    assert same(played, left_out)


@pytest.mark.parametrize("name", ["yaq-d", "mercury", "sparrow"])
def test_systems_without_heartbeats_between_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="hears_by_polls"):
        simulate(replace(SHAPE, lived=HEARS), one_job((1, 1.0)), System(name))
