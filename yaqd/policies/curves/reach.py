"""Predictors of rising curves by name: what ships with the program, and what others bring as entry points
`yaqd.reach`."""

from typing import Any, Final

import numpy as np

from yaqd.policies.curves.library import Level, LibraryOutlook, LibraryReach, Temper
from yaqd.policies.curves.outlook import EPOCHS_MAX, DrawnOutlook, Outlook, Reach
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.curves.walkers import WalkersReach
from yaqd.policies.guard import Guarded
from yaqd.policies.registry import PolicyTable

__all__ = [
    "EPOCHS_MAX",
    "REACH",
    "DrawnOutlook",
    "Level",
    "LibraryOutlook",
    "LibraryReach",
    "Outlook",
    "Reach",
    "Temper",
    "WalkersReach",
]


class _LateReach:
    """A predictor that is made when it is first asked: a process that explores nothing draws no shapes."""

    def __init__(self, make: type[LibraryReach] | type[WalkersReach]) -> None:
        self._make = make
        self._made: Reach | None = None

    def outlook(self, values: Floats, counts: Ints, epochs: int) -> Outlook:
        if self._made is None:
            self._made = self._make()
        return self._made.outlook(values, counts, epochs)


class _GuardedReach:
    """A predictor of others: a shipped one answers in its place from the first call on that it fails."""

    def __init__(self, what: str, policy: Any, instead: Any) -> None:
        if not callable(getattr(policy, "outlook", None)):
            raise TypeError("it has no method outlook")
        self._guarded = Guarded(what, policy.outlook, instead.outlook, _answer)

    def outlook(self, values: Floats, counts: Ints, epochs: int) -> Outlook:
        found: Outlook = self._guarded(values, counts, epochs)
        return found


def _answer(returned: Any) -> Outlook:
    """Return what a predictor of others answered; raises TypeError, ValueError.

    All chances are asked for once, so that what fails later fails here.
    """
    for name in ("reached", "at", "interval", "spread"):
        if not callable(getattr(returned, name, None)):
            raise TypeError(f"it returned {type(returned).__name__}, which has no method {name}")
    chances = np.asarray(returned.reached(0.5), dtype=np.float64)
    if chances.ndim != 2 or not ((chances >= 0.0) & (chances <= 1.0)).all():
        raise ValueError("its chances are not a table of numbers from 0 to 1")
    found: Outlook = returned
    return found


#: entry points `yaqd.reach`: objects with the method `outlook`
REACH: Final[PolicyTable[Reach]] = PolicyTable(
    "reach",
    {"library": _LateReach(LibraryReach), "walkers": _LateReach(WalkersReach)},
    instead="library",
    guard=_GuardedReach,
)
