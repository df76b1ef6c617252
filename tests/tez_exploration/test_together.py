"""Reports that come together are predicted in one call, and answered as if each had come alone."""

import asyncio

import numpy as np

from tests.tez_exploration.exploration_world import REACH, World, rules_for
from tez_adapter.core.exploration import events as ev
from tez_adapter.core.exploration.machine import ExplorationMachine
from tez_adapter.exploration.reports import Together
from yaqd.policies.curves.outlook import Outlook
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.explore.facts import Trials
from yaqd.policies.explore.foresight import Predicted
from yaqd.policies.explore.policies import EXPLORE

_TRIALS = 12


class _Counted:
    """The library of shapes; notes how many curves each call predicts."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def outlook(self, values: Floats, counts: Ints, epochs: int) -> Outlook:
        self.calls.append(len(values))
        return REACH.outlook(values, counts, epochs)


def _world() -> tuple[World, _Counted]:
    """Twelve trials of twenty run, one epoch before the index looks at them."""
    reach, rules = _Counted(), rules_for(target=0.95, epochs=20, slots=_TRIALS)
    policy = EXPLORE["index"](rules.terms, Predicted(reach))
    world = World(ExplorationMachine(policy, Trials(_TRIALS + 8, 20), rules))
    for number in range(_TRIALS):
        world.do(ev.SlotCame(str(number), "h"))
    for _ in range(2):
        for process in world.running():
            world.step(process)
    assert not reach.calls and len(world.running()) == _TRIALS
    return world, reach


def _reports(world: World, nth: int = 3) -> list[ev.TrialReported]:
    return [
        ev.TrialReported(process.number, process.lap, nth, world.curve(process.number, nth), 1.0, {}, True)
        for process in world.running()
    ]


def _answers(world: World) -> list[ev.Answer]:
    return [world.machine.handle(event, world.now).answer for event in _reports(world)]


def test_they_are_predicted_in_one_call_and_answered_as_alone() -> None:
    alone, one_by_one = _world()
    expected = _answers(alone)
    world, reach = _world()
    together = Together()

    async def come() -> None:
        await asyncio.gather(*(together.foresee(world.machine, event) for event in _reports(world)))

    asyncio.run(come())
    assert reach.calls == [_TRIALS]
    assert _answers(world) == expected
    assert reach.calls == [_TRIALS] and one_by_one.calls == [1] * _TRIALS
    assert {answer.order for answer in expected} > {ev.Order.CONTINUE}


def test_what_became_otherwise_is_predicted_anew() -> None:
    world, reach = _world()
    trials, foresight = world.machine.trials, Predicted(reach)
    numbers = np.arange(_TRIALS)
    foresight.prime(trials, numbers, np.full(_TRIALS, 0.3))
    for number in range(_TRIALS):
        trials.report(number, 0.3 if number else 0.4, 1.0)
    trials.values[1, 0] = 0.29
    plain = Predicted(REACH)
    for number in numbers[:, None]:
        found, expected = foresight.reached(trials, number, 0.8), plain.reached(trials, number, 0.8)
        assert np.allclose(found, expected, rtol=0.0, atol=1e-12)
    assert reach.calls == [_TRIALS, 1, 1]
