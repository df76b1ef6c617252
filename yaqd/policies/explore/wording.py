"""Why a trial runs, waits or ended, in words."""

import math
from collections.abc import Callable, Mapping
from typing import Final

from yaqd.policies.explore.facts import Why
from yaqd.policies.explore.metric import Metric

#: targets per hour below which hours per target are said, and below which there is nothing to say
_FEW: Final = 0.01
_NOTHING: Final = 1e-6
#: (value, bound, metric) -> a line of words, each number with what it is
_Worded = Callable[[float, float, Metric], str]


def worded(why: Why, value: float, bound: float, metric: Metric = Metric()) -> str:
    """Return a reason and its two facts (see `Why`) in a line; metrics are shown in the user's orientation."""
    return _WORDS[why](value, bound, metric)


def _chance(value: float) -> str:
    return "?" if not math.isfinite(value) else f"{value:.3f}" if value >= 0.001 or value == 0.0 else f"{value:.1g}"


def _shown(value: float, metric: Metric) -> str:
    return f"{metric.shown(value):.6g}" if math.isfinite(value) else "none yet"


def _rate(value: float) -> str:
    """Say targets per second of slot time as targets per hour, or as hours that one takes."""
    if not math.isfinite(value):
        return "-"
    an_hour = 3600 * value
    if an_hour >= _FEW:
        return f"{an_hour:,.0f}/h" if an_hour >= 100 else f"{an_hour:.3g}/h"
    return f"1 in {1 / an_hour:,.0f} h" if an_hour >= _NOTHING else "next to nothing"


def _whole(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else "?"


def _next(value: float, bound: float, metric: Metric) -> str:
    if not math.isfinite(value):
        return "its turn"
    other = f", the best that waits {_rate(bound)}" if math.isfinite(bound) else ""
    return f"its turn: a fresh trial is worth {_rate(value)}{other}"


def _between(value: float, bound: float, metric: Metric) -> str:
    to = f", the next look is at a multiple of {_whole(bound)}" if bound > 0 else ", no rung is here"
    return f"{_whole(value)} epochs{to}"


def _limit(value: float, metric: Metric, what: str, bound: float) -> str:
    side = "above" if metric.is_better_low else "below"
    return f"its best {_shown(value, metric)} is {side} {what} {_shown(bound, metric)}"


def _opportunistic(value: float, bound: float, metric: Metric) -> str:
    held = f" of at least {_chance(bound)}" if math.isfinite(bound) else ""
    return f"takes turns: chance {_chance(value)}, promising ones have one{held}"


def _promising(value: float, bound: float, metric: Metric) -> str:
    held = f", the threshold is {_chance(bound)}" if math.isfinite(bound) else ""
    return f"promising: chance {_chance(value)}{held}"


def _at_cut(value: float, bound: float, metric: Metric, how: str) -> str:
    return f"{how} of its rung: {_shown(value, metric)}, cut-off {_shown(bound, metric)}"


def _reached(value: float, bound: float) -> str:
    if not math.isfinite(value):
        return ""
    return f": {value:.6g}" + (f", asked {bound:.6g}" if math.isfinite(bound) else "")


def _worth(value: float, bound: float, metric: Metric, how: str) -> str:
    return f"its slot is worth {how}: {_rate(value)}, elsewhere {_rate(bound)}"


_WORDS: Final[Mapping[Why, _Worded]] = {
    Why.NEXT: _next,
    Why.EARLY: lambda value, bound, metric: f"too early to judge: {_whole(value)} of {_whole(bound)}",
    Why.BETWEEN: _between,
    Why.DONE: lambda value, bound, metric: f"it ran all its {_whole(bound)} epochs",
    Why.NOT_LEARNING: lambda value, bound, metric: (
        f"it has learnt nothing: {_limit(value, metric, 'the kill threshold', bound)}"
    ),
    Why.NEAR_BEST: lambda value, bound, metric: (
        f"near the best: with its slack {_shown(value, metric)}, the best has {_shown(bound, metric)}"
    ),
    Why.FAR_FROM_BEST: lambda value, bound, metric: (
        f"far from the best: even with its slack {_shown(value, metric)}, the best has {_shown(bound, metric)}"
    ),
    Why.LIKELY: lambda value, bound, metric: f"may still get there: chance {_chance(value)} of {_chance(bound)} asked",
    Why.UNLIKELY: lambda value, bound, metric: (
        f"will hardly get there: chance {_chance(value)} of {_chance(bound)} asked"
    ),
    Why.PROMISING: _promising,
    Why.OPPORTUNISTIC: _opportunistic,
    Why.ABOVE_CUT: lambda value, bound, metric: _at_cut(value, bound, metric, "among the best"),
    Why.BELOW_CUT: lambda value, bound, metric: _at_cut(value, bound, metric, "not among the best"),
    Why.AT_RUNG: lambda value, bound, metric: (
        f"waits at epoch {_whole(value)} until the rung of {_whole(bound)} decides"
    ),
    Why.ABOVE_MEDIAN: lambda value, bound, metric: (
        f"as good as the median of the others: {_shown(value, metric)}, median {_shown(bound, metric)}"
    ),
    Why.BELOW_MEDIAN: lambda value, bound, metric: (
        f"worse than the median of the others: {_shown(value, metric)}, median {_shown(bound, metric)}"
    ),
    Why.RISING: lambda value, bound, metric: f"got better {_whole(value)} epochs ago, patience {_whole(bound)}",
    Why.STALLED: lambda value, bound, metric: f"no better for {_whole(value)} epochs, patience {_whole(bound)}",
    Why.WORTH_MOST: lambda value, bound, metric: _worth(value, bound, metric, "most here"),
    Why.WORTH_LESS: lambda value, bound, metric: _worth(value, bound, metric, "more elsewhere"),
    Why.ROOM: lambda value, bound, metric: "nothing better waits",
    Why.REACHED: lambda value, bound, metric: f"it reached the target{_reached(value, bound)}",
    Why.FAILED: lambda value, bound, metric: f"its program failed after {_whole(value)} epochs",
    Why.LEFT: lambda value, bound, metric: (
        f"its program ended by itself after {_whole(value)} of {_whole(bound)} epochs"
    ),
}
