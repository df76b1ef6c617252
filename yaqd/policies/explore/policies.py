"""Exploration policies by name, and what others bring along as entry points."""

import inspect
import math
from collections.abc import Callable
from typing import Any, Final

from yaqd.policies.explore.facts import ExplorePolicy, Foresight, Terms
from yaqd.policies.explore.halving import AshaPromote, AshaStop, Hyperband
from yaqd.policies.explore.index import Index
from yaqd.policies.explore.ordered import Bandit, Default, EarlyTerm, Median, Patience
from yaqd.policies.explore.pop import Pop
from yaqd.policies.guard import Guarded
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


def parsed(text: str) -> tuple[str, dict[str, float]]:
    """Return the name and the options that `asha-stop:grace=3,eta=3` says. Raises ValueError."""
    name, colon, rest = text.partition(":")
    options: dict[str, float] = {}
    for word in rest.split(",") if colon else ():
        option, _, number = word.partition("=")
        try:
            options[option.strip()] = float(number)
        except ValueError:
            raise ValueError(f"policy {text!r}: write its options as NAME:OPTION=NUMBER,OPTION=NUMBER") from None
    return name.strip(), options


def made(text: str, terms: Terms, foresight: Foresight) -> ExplorePolicy:
    """Return the policy that a name with options says. Raises UnknownPolicy, ValueError."""
    name, options = parsed(text)
    maker = EXPLORE[name]
    if not isinstance(maker, Guarded):  # of others nobody can tell what they take
        known = list(inspect.signature(maker).parameters)[2:]
        for option, number in options.items():
            if option not in known:
                raise ValueError(f"policy {name} has no {option}: it has {', '.join(known) or 'no options'}")
            if not math.isfinite(number):
                raise ValueError(f"policy {text!r}: give finite numbers")
    return maker(terms, foresight, **options)
