"""Policies of stages by name, and what others bring along as entry points."""

from collections.abc import Callable
from typing import Any, Final

from yaqd.policies.clotho.facts import StagePolicy
from yaqd.policies.clotho.heuristics import Capped, Fair, Fifo, Packing, Shortest, Trouble, WeightedFair
from yaqd.policies.registry import PolicyTable, calls

#: (the policy's own options by name) -> the policy of one scheduler
StageMaker = Callable[..., StagePolicy]


def _answer(made: Any) -> Any:
    """Return what a maker of others made; raises TypeError."""
    if not callable(getattr(made, "choose", None)):
        raise TypeError(f"it made a {type(made).__name__} without choose")
    return made


#: entry points `yaqd.stages`; the learned policy is made where its weights are read
STAGES: Final[PolicyTable[StageMaker]] = PolicyTable(
    "stages",
    {
        "fifo": Fifo,
        "shortest": Shortest,
        "fair": Fair,
        "weighted-fair": WeightedFair,
        "packing": Packing,
        "trouble": Trouble,
        "capped": Capped,
    },
    instead="weighted-fair",
    guard=calls(_answer),
)
