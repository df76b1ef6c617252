"""Exploration policies by name, and what others bring along as entry points."""

from collections.abc import Callable
from typing import Any, Final

from yaqd.policies.explore.facts import ExplorePolicy
from yaqd.policies.explore.halving import AshaPromote, AshaStop, Hyperband
from yaqd.policies.explore.index import Index
from yaqd.policies.explore.ordered import Bandit, Default, EarlyTerm, Median, Patience
from yaqd.policies.explore.pop import Pop
from yaqd.policies.registry import PolicyTable, calls

#: (terms, foresight, the policy's own options by name) -> the policy of one exploration
ExploreMaker = Callable[..., ExplorePolicy]
_CALLS: Final = ("allocate", "reported", "foresee", "iterated")


def _answer(made: Any) -> Any:
    """Return what a maker of others made; raises TypeError."""
    absent = [name for name in _CALLS if not callable(getattr(made, name, None))]
    if absent:
        raise TypeError(f"it made a {type(made).__name__} without {', '.join(absent)}")
    return made


#: entry points `yaqd.explore`
EXPLORE: Final[PolicyTable[ExploreMaker]] = PolicyTable(
    "explore",
    {
        "index": Index,
        "pop": Pop,
        "earlyterm": EarlyTerm,
        "bandit": Bandit,
        "default": Default,
        "asha-stop": AshaStop,
        "asha-promote": AshaPromote,
        "hyperband": Hyperband,
        "median": Median,
        "patience": Patience,
    },
    instead="default",
    guard=calls(_answer),
)
