"""Whatever a policy of stages answers, what its caller gets can be done."""

import math
from typing import Any

import pytest

from tests.policies.clotho.scenes import random_job, scene
from yaqd.policies import guard
from yaqd.policies.clotho.facts import StageChoice
from yaqd.policies.clotho.heuristics import Fifo, WeightedFair
from yaqd.policies.clotho.policies import Chooser

#: what no type checker lets pass, and what others write all the same
_TEXT: Any = "high"
_PART: Any = 1.0
_ODD: list[Any] = [
    StageChoice(0, 0, 1, 5, math.nan),
    StageChoice(0, 0, 1, 5, math.inf),
    StageChoice(0, 0, 1, 5, _TEXT),
    StageChoice(0, 0, 1, -5, 1.0),
    StageChoice(0, 0, _PART, 5, 1.0),
    "the first",
]


@pytest.mark.parametrize("odd", _ODD)
def test_an_answer_that_is_none_gives_way_to_weighted_fair_sharing(monkeypatch: pytest.MonkeyPatch, odd: Any) -> None:
    said: list[str] = []
    monkeypatch.setattr(guard, "_told", [said.append])
    monkeypatch.setattr(Fifo, "choose", lambda self, scene: odd)
    found = scene(random_job(3), random_job(4))
    assert Chooser("fifo").choose(found) == WeightedFair().choose(found) is not None
    assert len(said) == 1 and said[0].startswith("stages policy 'fifo' gives way to weighted-fair")


@pytest.mark.parametrize(
    "beyond", [StageChoice(2, 0, 1, 5), StageChoice(0, 99, 1, 5), StageChoice(0, 0, 6, 5), StageChoice(-1, 0, 1, 5)]
)
def test_what_is_not_there_is_not_chosen(monkeypatch: pytest.MonkeyPatch, beyond: StageChoice) -> None:
    monkeypatch.setattr(Fifo, "choose", lambda self, scene: beyond)
    assert Chooser("fifo").choose(scene(random_job(3), random_job(4))) is None
