"""Preemption between queues in the simulator: the live decision, and no queue short of its share for longer than ST."""

from dataclasses import replace

import pytest

from rm.applications.preemption import PreemptionSettings
from yaqd.config import Configuration
from yaqd.sim.experiments.ground import OURS
from yaqd.sim.simulation import ClusterShape, SimResult, System, simulate
from yaqd.sim.workload import SimJob, SimStage, SimTask, Workload
from yaqd.sim.yaq_c import YaqC

SHAPE = ClusterShape(nodes=12, slots=8, queues=(("a", 70.0), ("b", 30.0)))
COMES_S, UNTIL_S, ST_S = 20, 140, 20.0


def a_comes_late(system: System, *, long_s: float = 300.0, seed: int = 1) -> SimResult:
    """B holds all slots for so long when A comes; both want more than there is from then on."""

    def stage(seconds: float, tasks: int) -> SimStage:
        return SimStage("work", tuple(SimTask(seconds, priority=20) for _ in range(tasks)))

    jobs = (
        SimJob("long", (stage(long_s, 400),), queue="b"),
        *(SimJob(f"short{n}", (stage(5.0, 700),), queue="a", arrival_s=COMES_S) for n in range(3)),
    )
    return simulate(SHAPE, Workload(jobs), system, seed, horizon_s=UNTIL_S + 1.0)


def longest_short(result: SimResult) -> int:
    """For how many seconds at a stretch A has more than 5 points less than its share of what is used."""
    held = result.shares(1.0)
    longest = lasts = 0
    for a, b in list(zip(held["a"], held["b"], strict=True))[COMES_S:UNTIL_S]:
        lasts = lasts + 1 if a / (a + b) < 0.65 else 0
        longest = max(longest, lasts)
    return longest


def test_what_is_preempted_is_what_the_live_cluster_would_by_default() -> None:
    live = PreemptionSettings.read(Configuration.load(environ={}))
    assert YaqC(SHAPE, Workload(()), OURS, 1).limits().preemption == live.spec
    assert OURS.preempt == live.is_enabled


def test_no_queue_is_short_of_its_share_for_longer_than_the_threshold() -> None:
    """What is taken back is given to whom it was taken for, and not to its queue again."""
    system = replace(OURS, starve_s=ST_S, preempt=True)
    assert longest_short(a_comes_late(system)) <= ST_S


@pytest.mark.slow
@pytest.mark.parametrize("is_live", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_short_tasks_keep_their_share_beside_long_ones(seed: int, is_live: bool) -> None:
    """Whose tasks are long keeps every slot that it gets: of what waits it gets no more than its share will bear."""
    system = replace(OURS, starve_s=ST_S, preempt=True, out_of_turn=is_live, at_asks=is_live)
    held = a_comes_late(system, seed=seed).shares(1.0)
    later = slice(COMES_S + int(1.5 * ST_S), UNTIL_S)
    parts = [a / (a + b) for a, b in zip(held["a"][later], held["b"][later], strict=True)]
    assert min(parts) >= 0.65, "it does not drift until it is helped again"


def test_without_it_the_others_tasks_are_waited_for() -> None:
    result = a_comes_late(replace(OURS, starve_s=ST_S))
    assert longest_short(result) == UNTIL_S - COMES_S
    assert "preempted" not in result.counts


PREEMPTING = replace(OURS, starve_s=ST_S, preempt=True)


@pytest.mark.parametrize("system", [System("yarn", preempt=True), PREEMPTING, replace(PREEMPTING, max_wait_s=4.0)])
def test_what_was_taken_back_runs_again_and_once_to_its_end(system: System) -> None:
    """Also what ends by itself, or is given back for its wait, before its node hears that it was taken."""
    seconds = [12.0 + number * 37 % 150 / 8 for number in range(150)]
    stage = SimStage("work", tuple(SimTask(s) for s in seconds))
    jobs = (SimJob("b", (stage,), queue="b"), SimJob("a", (stage,), queue="a", arrival_s=5.0))
    result = simulate(SHAPE, Workload(jobs), system, 1)
    assert result.counts["preempted"] > 0 and not result.unfinished
    ran = (result.ended - result.started)[result.done]
    assert sorted(round(float(s), 6) for s in ran) == sorted(2 * seconds)
    assert len(result.done) - result.tasks <= result.counts["preempted"], "nothing else was cut short"
