"""What the machine of explorations notices of reports: the best trial, limits, bounds, no metric, trials that fail."""

from dataclasses import replace
from math import expm1, inf

import pytest

from tests.tez_exploration.exploration_world import POLICIES, World, two_slots
from tez_adapter.core.exploration import events as ev
from yaqd.policies.explore.facts import TrialState
from yaqd.policies.explore.metric import Limit, Metric, Solved


def reported(number: int, value: float, **metrics: float) -> ev.TrialReported:
    return ev.TrialReported(number, 1, 1, value, 1.0, {"accuracy": value, **metrics}, True)


def test_the_best_keeps_the_limits_and_a_missing_one_is_said_once() -> None:
    world = two_slots(World.of("default", limits=(Limit("memory", "<=", 5.0),), target=0.9))
    assert world.machine.best is None
    world.do(reported(0, 0.8, memory=9.0))
    assert world.machine.best is None and world.machine.run(0).broken == [1]
    world.do(reported(1, 0.3, memory=5.0))
    assert world.machine.best == 1 and not world.lines
    for epoch in (2, 3):
        world.do(replace(reported(1, 0.7, memori=5.0), iteration=epoch))
    assert world.lines == ["a report has no memory, so it breaks the --limit: it has accuracy, memori"]
    assert world.machine.best == 1
    world.restart("default")
    assert world.machine.best == 1 and world.machine.run(1).broken == [2, 3]


def test_a_trial_that_never_reports_the_metric_fails_alone_where_others_do() -> None:
    world = two_slots(World.of("default", epochs=3))
    world.do(reported(0, 0.5))
    names = ("precision",)
    assert world.do(ev.ReportLeftOut(1, 1, names, 1)).answer.order is ev.Order.CONTINUE
    assert world.do(ev.ReportLeftOut(1, 1, names, 3)).answer.order is ev.Order.STOP
    assert world.machine.run(1).error == "none of its first 3 reports has accuracy: they have precision"
    assert world.end is None and world.machine.trials.states[1] == TrialState.ENDED
    assert world.do(ev.ReportLeftOut(0, 1, names, 3)).answer.order is ev.Order.CONTINUE


def test_an_infinity_is_said_with_what_it_counts_as() -> None:
    for metric, said in ((Metric(), "the lowest of all"), (Metric("min", 0.0, 3.0), "its bound")):
        world = two_slots(World.of("default", metric=metric))
        for number in range(2):
            world.do(reported(number, inf))
        assert world.lines == [f"trial 0 reports inf as accuracy in iteration 1: such epochs count as {said}"]


@pytest.mark.parametrize("has_reported", (True, False))
def test_time_that_ends_before_any_report_is_a_failure(has_reported: bool) -> None:
    world = two_slots(World.of("default", max_time_s=5.0))
    if has_reported:
        world.do(reported(0, 0.5))
    world.now = 6.0
    world.do(ev.ClockTicked())
    world.now = 600.0
    world.do(ev.ClockTicked())
    assert world.end is not None and world.end.succeeded is has_reported
    assert world.end.text == "the time is over: 5 s"


@pytest.mark.parametrize("policy", POLICIES)
def test_one_trial_that_fails_holds_up_no_other(policy: str) -> None:
    world = two_slots(World.of(policy, trials=12, epochs=9, hopeless=9))
    failed = False

    def fail_once(world: World) -> None:
        nonlocal failed
        process = next((process for process in world.running() if process.number == 3), None)
        if process is not None and not failed:
            failed = True
            world.processes.pop((process.number, process.lap))
            world.do(ev.TrialOver(process.number, process.lap, "out of memory"))

    world.run(disturb=fail_once)
    assert failed and world.end is not None and world.end.text == "all trials have ended"
    assert {number for number, _ in world.reports()} >= set(range(12)) - {3}


@pytest.mark.parametrize("policy", ("index", "earlyterm", "pop"))
def test_slots_do_not_follow_a_trial_that_breaks_a_limit_at_the_target(policy: str) -> None:
    """Trials 0 and 1 are at the target after six epochs, for nothing; trial 5 is there after twenty."""
    limits = (Limit.parse("memory <= 500"),)
    world = two_slots(World.of(policy, trials=8, slots=2, epochs=100, target=0.7, limits=limits))
    world.metrics = lambda number: {"memory": 900.0 if number < 2 else 100.0}
    world.curve = lambda number, epoch: (
        min(1.0, 0.4 + epoch / 20) if number < 2 else 0.9 * -expm1(-epoch / (14 if number == 5 else 60))
    )
    world.run()
    counts = world.machine.trials.counts
    assert world.machine.winner is not None and world.machine.winner >= 2
    assert counts[:2].sum() < counts[2:].sum()
    assert world.machine.trials.best[:2].max() < 0.7


def test_what_is_better_than_a_bound_is_told_and_reaches_nothing() -> None:
    world = two_slots(World.of("default", epochs=4, target=0.5, metric=Metric("max", 0.0, 1.0)))
    process = world.running()[0]
    for value in (7.5, inf, -3.0, 0.4):
        world.step(process, value)
    assert world.machine.winner is None
    assert world.machine.trials.best[process.number] == 0.4
    assert world.machine.trials.values[process.number].tolist() == [0.0, 0.0, 0.0, 0.4]
    assert ["7.5" in world.lines[0], "inf" in world.lines[1], "-3.0" in world.lines[2]] == [True] * 3
    assert "the lowest of all" in world.lines[0] and "its bound" in world.lines[2] and len(world.lines) == 3
    solved = two_slots(World.of(metric=Metric("max", 0.0, 1.0), solved=Solved.parse("mean(2) >= 0.8")))
    process = solved.running()[0]
    for value in (0.1, 7.5, 0.1):
        solved.step(process, value)
    assert solved.machine.winner is None


def test_an_exploration_all_of_whose_trials_fail_has_failed() -> None:
    world = two_slots(World.of("default", trials=3, epochs=9))
    while world.end is None:
        process = world.running()[0]
        world.step(process)
        world.processes.pop((process.number, process.lap))
        world.do(ev.TrialOver(process.number, process.lap, "CUDA error"))
    assert world.end == ev.EndExploration(False, "all 3 trials failed, as the first one: CUDA error")
