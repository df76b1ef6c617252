"""What the machine tells policies of suspensions, and users of metrics that a policy misjudges."""

import pytest

from tests.tez_exploration.exploration_world import World, curve, two_slots
from tez_adapter.core.exploration import events as ev


def test_suspensions_are_timed_and_ends_are_not() -> None:
    world = two_slots(World.of("pop", epochs=9))
    world.run()
    assert world.machine.trials.suspend_s == 0.0, "in this world they take no time"
    world = World.of("index", trials=6, epochs=9, target=0.95)
    world.do(ev.SlotCame("0.0", "h"))
    while (process := world.running()[0]) and process.epoch < 8:
        number, lap = process.number, process.lap
        event = ev.TrialReported(number, lap, process.epoch + 1, curve(number, process.epoch + 1), 1.0, {}, True)
        process.epoch = process.known = process.epoch + 1
        outcome = world.machine.handle(event, world.now)
        if outcome.answer.order is ev.Order.SUSPEND:
            break
    assert outcome.answer.order is ev.Order.SUSPEND
    world.now += 5.0
    world.machine.handle(ev.TrialOver(number, lap), world.now)
    assert world.machine.trials.suspend_s == 5.0


@pytest.mark.parametrize("takes_unit", (True, False))
def test_a_metric_that_the_policy_takes_to_lie_elsewhere_is_said_once(takes_unit: bool) -> None:
    world = two_slots(World.of(takes_unit=takes_unit))
    world.curve = lambda number, epoch: float(epoch)
    world.run()
    said = [line for line in world.lines if "--lower and --upper" in line]
    assert len(said) == takes_unit and all("reports 2 as accuracy" in line for line in said)
