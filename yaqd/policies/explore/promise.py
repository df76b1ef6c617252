"""What each trial of an exploration promises, for people who look: chance of the target and time until then."""

from dataclasses import dataclass

import numpy as np

from yaqd.policies.curves.reach import REACH, Level, LibraryReach, Reach
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.explore.facts import Terms, Trials, TrialState, aim
from yaqd.policies.explore.foresight import Predicted
from yaqd.policies.explore.pop import remaining, threshold


@dataclass(frozen=True, slots=True, eq=False)
class Promises:
    """What trials promise, by number: NaN for those that have reported nothing or have ended."""

    #: chance that the target is reached within the trial's epochs and the time that is left
    chance: Floats
    #: expected slot time until then, s (ERT of the paper)
    expected_s: Floats
    #: a chance from which a trial is promising (section 7.2 of the paper); inf: none is
    least: float
    #: slots that promising trials deserve
    slots: float

    def is_promising(self, number: int) -> bool:
        """Return whether a trial is one of the promising ones."""
        return bool(self.chance[number] >= self.least)


def reach_of(level: str, predictor: str = "library") -> Reach:
    """Return a predictor by its name.

    `level`: a belief about the metric, START START_SD RISE RISE_SD, for the predictor `library`; "" for the default.
    Raises UnknownPolicy, ValueError.
    """
    if not level.strip():
        return REACH[predictor]
    if predictor != "library":
        raise ValueError(f"level {level!r}: it is the belief of the predictor library, and this is {predictor}")
    words = level.replace(",", " ").split()
    try:
        start, start_sd, rise, rise_sd = map(float, words)
    except ValueError:
        raise ValueError(f"level {level!r}: give four numbers: START START_SD RISE RISE_SD") from None
    return LibraryReach(level=Level(start=start, start_sd=start_sd, rise=rise, rise_sd=rise_sd))


def promises(trials: Trials, terms: Terms, reach: Reach, now: float) -> Promises:
    """Return what the trials promise `now` seconds after the begin."""
    chance, expected = np.full((2, len(trials)), np.nan)
    known: Ints = np.flatnonzero((trials.counts > 0) & (trials.states != TrialState.ENDED))
    least, slots = float("inf"), 0.0
    if known.size:
        reached = Predicted(reach).reached(trials, known, aim(terms, trials))
        epoch_s = trials.spent_s[known] / trials.counts[known]
        left_s = max(0.0, terms.max_time_s - now)
        chance[known], expected[known] = remaining(reached, trials.counts[known], epoch_s, left_s)
        # a chance of what has happened: the target was seen
        chance[known[trials.best[known] >= aim(terms, trials)]] = 1.0
        least, slots = threshold(chance[known], expected[known] < terms.max_time_s, terms.slots)
    return Promises(chance, expected, least, slots)
