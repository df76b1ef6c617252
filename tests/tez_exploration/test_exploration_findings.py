"""What the machine of explorations notices of reports: the best trial, limits, and reports without the metric."""

from dataclasses import replace
from math import inf

from tests.tez_exploration.exploration_world import World
from tez_adapter.core.exploration import events as ev
from yaqd.policies.explore.facts import TrialState
from yaqd.policies.explore.metric import Limit, Metric


def two_slots(world: World) -> World:
    for number in range(2):
        world.do(ev.SlotCame(f"{number}.0", "h"))
    return world


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
