"""An Optuna objective as a trial: `objective(trial)` runs unchanged.

A suggestion is answered with the trial's value. Steps count from 0, epochs from 1. The value that an objective returns
counts as a report where it has made none.
"""

import math
import sys
import zlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np

from tez_adapter.exploration.joins.begun import Begun, TrialError
from yaqd.ml.reporting import report_metrics, short
from yaqd.ml.space import FloatRange, IntRange, OneOf
from yaqd.ml.trial import trial as process

#: the exception of Optuna by which an objective says that it heeds `should_prune`
_PRUNED: Final = "TrialPruned"
_ROUNDING: Final = 1e-9
#: what None among choices is in a space, where TOML has no word for it
NOTHING: Final = "None"


class ObjectiveTrial:
    """What an objective uses of `optuna.Trial`."""

    def __init__(self, begun: Begun) -> None:
        self._begun = begun
        self.number: int = begun.number
        #: suggested so far
        self.params: dict[str, Any] = {}
        self.user_attrs: dict[str, Any] = {}
        self.datetime_start = datetime.now()
        self.reports = 0
        self._steps: set[int] = set()
        self._offset: int | None = None
        self._is_stopped = False

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Return the trial's value. TrialError: it is not between `low` and `high`."""
        if step is not None:
            many = math.floor((high - low) / step + _ROUNDING) + 1
            value = float(self._suggested(name, lambda part: low + step * min(int(part * many), many - 1)))
        else:
            value = float(self._suggested(name, FloatRange(low, high, log).at if high > low else lambda part: low))
        return self._within(name, value, low, high)

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """Return the trial's value. TrialError: it is not a whole number between `low` and `high`."""
        value = self._suggested(name, IntRange(low, high, log, step).at if high > low else lambda part: low)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise TrialError(f"{name} = {value!r} in the space, and the objective takes a whole number")
        return int(self._within(name, value, low, high))

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Return the trial's value. TrialError: it is none of `choices`."""
        known = list(choices)
        value = self._suggested(name, OneOf(tuple(known)).at)
        at = OneOf(tuple(known)).index(value)
        if at is None and value == NOTHING and None in known:
            at = known.index(None)
        if at is None:
            raise TrialError(f"{name} = {value!r} in the space, and the objective takes one of {short(known)}")
        return known[at]

    def suggest_uniform(self, name: str, low: float, high: float) -> float:
        """Return the trial's value, as older objectives ask for it."""
        return self.suggest_float(name, low, high)

    def suggest_loguniform(self, name: str, low: float, high: float) -> float:
        """Return the trial's value, as older objectives ask for it."""
        return self.suggest_float(name, low, high, log=True)

    def suggest_discrete_uniform(self, name: str, low: float, high: float, q: float) -> float:
        """Return the trial's value, as older objectives ask for it."""
        return self.suggest_float(name, low, high, step=q)

    def report(self, value: float, step: int) -> None:
        """Report the metric after a step. A step that was reported before is left out, as in Optuna."""
        if step in self._steps:
            return
        self._steps.add(step)
        if self._offset is None:
            self._offset = 1 - step if step < 1 else 0
        self.reports += 1
        self._is_stopped = report_metrics(step + self._offset, {self._begun.metric: value}).stop

    def should_prune(self) -> bool:
        """Return whether the trial is to end."""
        return self._is_stopped

    def set_user_attr(self, key: str, value: Any) -> None:
        """Keep a value beside the trial, for the objective itself."""
        self.user_attrs[key] = value

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a trial of an exploration has no {name}: it has suggest_*, report and should_prune")

    def _suggested(self, name: str, at: Callable[[float], Any]) -> Any:
        """Return the value of the space, or one from the objective's own range where the space has no such name."""
        if name not in self.params:
            if name in self._begun.params:
                self.params[name] = self._begun.params[name]
            else:
                part = np.random.default_rng((self._begun.seed, self.number, zlib.crc32(name.encode()))).random()
                value = self.params[name] = at(float(part))
                process.drawn[name] = (
                    value if value is None or isinstance(value, bool | int | float | str) else short(value)
                )
                print(f"yaqd.ml: {name} is not in the space: {short(self.params[name])} was drawn", file=sys.stderr)
        return self.params[name]

    def _within(self, name: str, value: float, low: float, high: float) -> float:
        if not low <= value <= high:
            raise TrialError(f"{name} = {value:g} in the space, and the objective takes {low:g} to {high:g}")
        return value


def run_objective(objective: Callable[[Any], Any], begun: Begun) -> None:
    """Call an objective to its end, or until it heeds `should_prune`. TrialError: it returned no number."""
    seen = ObjectiveTrial(begun)
    try:
        value = objective(seen)
    except Exception as error:
        if any(kind.__name__ == _PRUNED for kind in type(error).__mro__):
            return
        raise
    if seen.reports:
        return
    try:
        final = float(value)
    except (TypeError, ValueError):
        raise TrialError(f"the objective reported nothing and returned {short(value)}: return a number") from None
    report_metrics(1, {begun.metric: final})
