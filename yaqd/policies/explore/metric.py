"""The metric of an exploration: how it is turned so that more is better, what bounds it, and when it is solved."""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

MODES: Final = ("max", "min")
#: values that a condition may look back on
WINDOW_MAX: Final = 100_000
#: by so much of a bound may a metric be better than it, as a sum of floats may
_ROUNDING: Final = 1e-6

_COMPARED: Final[Mapping[str, Callable[[float, float], bool]]] = {"<=": operator.le, ">=": operator.ge}
_SOLVED: Final = re.compile(r"\s*(mean|min|max|last)\s*(?:\(\s*(\d+)\s*\))?\s*(<=|>=)\s*(\S+)\s*")
_LIMIT: Final = re.compile(r"\s*([^<>=\s]+)\s*(<=|>=)\s*(\S+)\s*")
_TAKEN: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {"mean": fmean, "min": min, "max": max}


@dataclass(frozen=True, slots=True)
class Metric:
    """Turns a metric so that it rises as the model gets better; with both bounds, also into 0 to 1.

    Policies see the turned metric, users their own. What is worse than its bound counts as the bound. What is better
    than its bound, but for rounding, counts as no number: it cannot be.
    """

    mode: str = "max"
    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode {self.mode!r}: use max or min")
        bounds = [bound for bound in (self.lower, self.upper) if bound is not None]
        if not all(map(math.isfinite, bounds)) or (len(bounds) == 2 and bounds[0] >= bounds[1]):
            raise ValueError(f"bounds {self.lower} to {self.upper}: give finite numbers, the lower one first")

    @property
    def is_better_low(self) -> bool:
        return self.mode == "min"

    def risen(self, value: float) -> float:
        """Return the metric as policies see it. NaN stays NaN, and so does an infinity without a bound."""
        best = self.lower if self.is_better_low else self.upper
        if best is not None and self.is_better(value, best) and abs(value - best) > _ROUNDING * max(1.0, abs(best)):
            return math.nan
        if self.lower is not None and value < self.lower:
            value = self.lower
        elif self.upper is not None and value > self.upper:
            value = self.upper
        if self.lower is None or self.upper is None:
            return -value if self.is_better_low else value
        part = (value - self.lower) / (self.upper - self.lower)
        return 1.0 - part if self.is_better_low else part

    def counted(self, value: float, target: float | None, *, held: bool) -> float:
        """Return a report's metric as policies see it. `target`: turned. `held`: the report keeps the limits.

        One that is at the target and breaks a limit counts as no number, or policies would go on with the trial as long
        as it has epochs.
        """
        risen = self.risen(value)
        return math.nan if not held and target is not None and risen >= target else risen

    def shown(self, risen: float) -> float:
        """Return the metric as the user has it."""
        if self.lower is None or self.upper is None:
            return -risen if self.is_better_low else risen
        part = 1.0 - risen if self.is_better_low else risen
        return self.lower + part * (self.upper - self.lower)

    def is_within(self, value: float) -> bool:
        """Return whether a value of the user's is within the bounds; NaN is not."""
        low = -math.inf if self.lower is None else self.lower
        return low <= value <= (math.inf if self.upper is None else self.upper)

    def is_better(self, value: float, other: float) -> bool:
        """Return whether the first of two values of the user's is better."""
        return value < other if self.is_better_low else value > other


@dataclass(frozen=True, slots=True)
class Limit:
    """Another metric that must hold where the target is reached."""

    name: str
    relation: str
    bound: float

    def __post_init__(self) -> None:
        if self.relation not in _COMPARED or not self.name or not math.isfinite(self.bound):
            raise ValueError(f"limit {self.name!r} {self.relation} {self.bound}: write it as 'NAME <= NUMBER', or >=")

    @classmethod
    def parse(cls, text: str) -> "Limit":
        """Return the limit that `memory_mb <= 512` says. Raises ValueError."""
        found = _LIMIT.fullmatch(text)
        if found is None:
            raise ValueError(f"limit {text!r}: write it as 'NAME <= NUMBER', or >=")
        return cls(found[1], found[2], _number("limit", text, found[3]))

    def holds(self, metrics: Mapping[str, float]) -> bool:
        """Return whether a report keeps to it; one without the metric does not."""
        value = metrics.get(self.name)
        return value is not None and _COMPARED[self.relation](value, self.bound)

    def __str__(self) -> str:
        return f"{self.name} {self.relation} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Solved:
    """A condition on a trial's last reports, such as a mean reward of 200 over 100 of them; in the user's numbers."""

    taken: str
    window: int
    relation: str
    bound: float

    @classmethod
    def parse(cls, text: str) -> "Solved":
        """Return the condition that `mean(100) >= 200` says. Raises ValueError."""
        found = _SOLVED.fullmatch(text)
        if found is None:
            raise ValueError(f"condition {text!r}: write it as 'mean(100) >= 200'; mean, min, max or last; >= or <=")
        if (found[1] == "last") != (found[2] is None):
            raise ValueError(f"condition {text!r}: mean, min and max take a number of reports, last takes none")
        window = int(found[2] or 1)
        if not 1 <= window <= WINDOW_MAX:
            raise ValueError(f"condition {text!r}: it may look back on 1 to {WINDOW_MAX} reports")
        return cls(found[1], window, found[3], _number("condition", text, found[4]))

    def holds(self, values: Sequence[float]) -> bool:
        """Return whether the last values fulfil it; fewer than it looks back on do not, nor do some that are NaN."""
        if len(values) < self.window:
            return False
        last = values[-self.window :]
        taken = last[-1] if self.taken == "last" else _TAKEN[self.taken](last)
        return all(map(math.isfinite, last)) and _COMPARED[self.relation](taken, self.bound)

    def __str__(self) -> str:
        over = "" if self.taken == "last" else f"({self.window})"
        return f"{self.taken}{over} {self.relation} {self.bound:g}"


def _number(what: str, text: str, number: str) -> float:
    try:
        value = float(number)
    except ValueError:
        raise ValueError(f"{what} {text!r}: {number!r} is no number") from None
    if not math.isfinite(value):
        raise ValueError(f"{what} {text!r}: give a finite number")
    return value
