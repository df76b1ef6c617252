"""From what was asked for to the objects that decide."""

from collections.abc import Iterator

import numpy as np
import pytest

from tez_adapter.exploration.terms import make_policy
from tez_adapter.jobspec import Exploration
from yaqd.policies.curves.outlook import Outlook
from yaqd.policies.curves.reach import REACH, LibraryReach
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.explore.facts import Action, Trials, Why
from yaqd.policies.explore.halving import AshaStop
from yaqd.policies.registry import UnknownPolicy


class _Told:
    """A predictor that notes how many curves it was asked about."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def outlook(self, values: Floats, counts: Ints, epochs: int) -> Outlook:
        self.asked.append(len(counts))
        return LibraryReach(shapes=20).outlook(values, counts, epochs)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Told]:
    predictor = _Told()
    monkeypatch.setitem(REACH._foreign, "ours", predictor)
    yield predictor


def test_the_named_predictor_is_asked(told: _Told) -> None:
    policy = make_policy(
        Exploration("accuracy", target=0.9, epochs=9, policy="earlyterm", predictor="ours", boundary=1)
    )
    trials = Trials(1, 9)
    trials.start(0)
    trials.report(0, 0.1, 1.0)
    policy.reported(trials, 0, 0.0)
    assert policy.iterated(trials, 0, 0.0).why in (Why.LIKELY, Why.UNLIKELY)
    assert told.asked == [1]


def test_walkers_can_be_asked_and_what_is_unknown_is_refused() -> None:
    make_policy(Exploration("accuracy", predictor="walkers"))
    with pytest.raises(UnknownPolicy, match="known: library, walkers"):
        make_policy(Exploration("accuracy", predictor="nobody"))


def test_a_policy_takes_its_options_by_name() -> None:
    policy = make_policy(Exploration("accuracy", epochs=27, policy="asha-stop:grace=3,eta=3"))
    assert isinstance(policy, AshaStop)
    trials = Trials(9, 27)
    for number in range(9):
        trials.start(number)
        for epoch in range(1, 4):
            trials.report(number, 0.1 * (9 - number), 1.0)
            verdict = policy.iterated(trials, number, 0.0)
            assert (verdict.why is Why.BETWEEN) == (epoch < 3)
    assert verdict.action is Action.TERMINATE
    # 2 / 3 of the way from the lowest to the highest of eight
    assert verdict.bound == pytest.approx(np.quantile([0.1 * (9 - number) for number in range(8)], 2 / 3))
