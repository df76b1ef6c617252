"""Policies of stages by name, and what others bring along as entry points."""

from collections.abc import Callable
from math import isfinite
from typing import Any, Final

from yaqd.policies.clotho.facts import Scene, StageChoice, StageJob, StagePolicy
from yaqd.policies.clotho.heuristics import Capped, Fair, Fifo, Packing, Shortest, Trouble, WeightedFair
from yaqd.policies.clotho.learned import Learned
from yaqd.policies.guard import GIVES_WAY, Guarded
from yaqd.policies.registry import PolicyTable, UnknownPolicy, calls

#: (the policy's own options by name) -> the policy of one scheduler
StageMaker = Callable[..., StagePolicy]


def _answer(made: Any) -> Any:
    """Return what a maker of others made; raises TypeError."""
    if not callable(getattr(made, "choose", None)):
        raise TypeError(f"it made a {type(made).__name__} without choose")
    return made


#: the policy that was trained
LEARNED: Final = "clotho"
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


class Chooser:
    """A policy by name, asked so that whatever it answers can be done. Its faults end nobody."""

    def __init__(
        self,
        name: str,
        weights: bytes = b"",
        *,
        clock: Callable[[], float] | None = None,
        note: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`weights`, `clock` and `note` are the learned policy's. Raises UnknownPolicy."""
        self.name = name
        self.policy: Final[StagePolicy] = (
            Learned(weights, clock=clock, note=note) if name == LEARNED else STAGES[name]()
        )
        what = f"stages policy {name!r}{GIVES_WAY}weighted-fair until a restart"
        self._ask: Callable[[Scene], StageChoice | None] = Guarded(
            what, self.policy.choose, WeightedFair().choose, _choice_or_none
        )

    @staticmethod
    def check(name: str) -> str:
        """Return the name itself; raise UnknownPolicy where no policy has it."""
        known = (LEARNED, *STAGES.names())
        if name not in known:
            raise UnknownPolicy(STAGES.kind, name, f"there is none; known: {', '.join(known)}")
        return name if name == LEARNED else STAGES.check(name)

    def choose(self, scene: Scene) -> StageChoice | None:
        """Return what the policy chooses; None: nothing, or what cannot be."""
        choice = self._ask(scene) if scene.jobs else None
        return choice if choice is not None and _can_be(choice, scene.jobs, scene.free) else None


def _can_be(choice: StageChoice, jobs: tuple[StageJob, ...], free: int) -> bool:
    if not 0 <= choice.job < len(jobs) or not 0 <= choice.stage < jobs[choice.job].graph.many:
        return False
    return 1 <= choice.containers <= free


def _choice_or_none(found: Any) -> Any:
    """Return what a policy answered; raises TypeError."""
    if found is not None and not isinstance(found, StageChoice):
        raise TypeError(f"choose returned a {type(found).__name__}, no StageChoice")
    if found is not None and not all(
        isinstance(each, int) for each in (found.job, found.stage, found.containers, found.limit)
    ):
        raise TypeError("choose returned a StageChoice whose numbers are no whole ones")
    if found is not None and found.limit < 0:
        raise TypeError(f"choose returned a StageChoice whose limit is {found.limit}")
    if found is not None and not (isinstance(found.score, (int, float)) and isfinite(found.score)):
        raise TypeError(f"choose returned a StageChoice whose score is {found.score!r:.40}, no finite number")
    return found
