"""The learned policy, and what it falls back to: weighted fair sharing, with the reason and a count."""

from collections.abc import Callable
from enum import StrEnum
from math import isfinite
from typing import Final

import numpy as np

from yaqd.policies.clotho.facts import Scene, StageChoice, StagePolicy
from yaqd.policies.clotho.heuristics import WeightedFair
from yaqd.policies.clotho.network import TIE, Network, Scores, allowed
from yaqd.policies.clotho.weights import WeightsError, unpack

#: a decision that takes longer is late, s
LATE_S: Final = 0.2
#: decisions that are left out at most before one is timed again
_PAUSE_MAX: Final = 256


class FallBack(StrEnum):
    """Why weighted fair sharing decided."""

    NO_WEIGHTS = "its weights do not load"
    NOT_FINITE = "a score is not finite"
    LATE = "its decision is late, or was before"


class Learned:
    """Decides by the network; the same scene gives the same choice."""

    def __init__(
        self,
        data: bytes,
        *,
        clock: Callable[[], float] | None = None,
        late_s: float = LATE_S,
        note: Callable[[str], None] = lambda line: None,
        instead: StagePolicy | None = None,
    ) -> None:
        """`data`: weights. `clock` tells seconds; without one no decision is late. `note` hears of each kind of
        fall-back once. `instead` decides then."""
        self.fallbacks: Final = dict.fromkeys(FallBack, 0)
        self.last: Scores | None = None
        self._clock, self._late_s, self._note = clock, late_s, note
        self._instead = instead if instead is not None else WeightedFair(-1.0)
        #: decisions that are left out after a late one: twice as many each time, until one is in time
        self._pause = self._left_out = 0
        self._network: Network | None = None
        self._problem = ""
        try:
            self._network = Network(unpack(data).arrays)
        except WeightsError as error:
            self._problem = f": {error}"

    def choose(self, scene: Scene) -> StageChoice | None:
        """Return the stage with the highest score whose job is below its limit."""
        if self._network is None:
            return self._fall_back(FallBack.NO_WEIGHTS, scene, self._problem)
        if self._left_out:
            self._left_out -= 1
            return self._fall_back(FallBack.LATE, scene)
        if not scene.jobs:
            return None
        began = self._clock() if self._clock is not None else 0.0
        scores = self._network.scores(scene)
        if self._clock is not None:
            is_late = self._clock() - began > self._late_s
            self._pause = min(_PAUSE_MAX, 2 * self._pause or 1) if is_late else 0
            if is_late:
                self._left_out = self._pause
                return self._fall_back(FallBack.LATE, scene)
        if not (np.isfinite(scores.score).all() and np.isfinite(scores.logarithm).all()):
            return self._fall_back(FallBack.NOT_FINITE, scene)
        self.last = scores
        return pick(scores, scene)

    def scores(self, scene: Scene) -> Scores | None:
        """Return what the network says of a scene with jobs; None: its weights do not load."""
        return None if self._network is None else self._network.scores(scene)

    def _fall_back(self, why: FallBack, scene: Scene, more: str = "") -> StageChoice | None:
        if not self.fallbacks[why]:
            self._note(f"clotho: weighted fair sharing decides, as {why}{more}")
        self.fallbacks[why] += 1
        return self._instead.choose(scene)


def pick(scores: Scores, scene: Scene) -> StageChoice | None:
    """Return the choice that scores and limits make; the earlier of equal stages."""
    if not len(scores.job):
        return None
    mask = allowed(scores, scene.source)
    spills = not mask.any()
    values = np.where(mask | spills, scores.score, -np.inf)
    most = float(values.max())
    place = int(np.flatnonzero(values >= most - TIE * max(1.0, abs(most)))[0])
    job = int(scores.job[place])
    limit = float(scores.limit[job])
    many = min(scene.free, int(scores.claimable[place]))
    if spills:
        many = 1
    elif job != scene.source and limit - scores.has[job] < many:
        many = max(1, int(limit - scores.has[job]))
    score = float(scores.score[place])
    assert isfinite(score)
    return StageChoice(job, int(scores.stage[place]), many, int(limit), score, spills)
