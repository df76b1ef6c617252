"""What happens to an exploration, what its machine decides of it, and what must be on storage before that.

Times are seconds since the exploration began. A slot is a container's process; it is named by its attempt. A lap is one
stay of a trial's process: reports of an earlier lap count no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from math import nan
from typing import Any, Final

Params = Mapping[str, Any]

# ---- events


@dataclass(frozen=True, slots=True)
class SlotCame:
    slot: str
    host: str
    #: it can write the memory of a stopped trial to disk, as an image from which the trial goes on there
    can_dump: bool = False
    #: why it cannot, though there is a program for that
    cannot_dump: str = ""


@dataclass(frozen=True, slots=True)
class SlotGone:
    """Its container is over, and all trials with a process there.

    `error`: what failed there, in words, as the program that ran may be why; "" where it was taken away.
    """

    slot: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class SlotClosing:
    """The ResourceManager wants its container back: what runs there is to be moved while there is time."""

    slot: str


@dataclass(frozen=True, slots=True)
class ParamsCame:
    """The generator answered; None: it has no more."""

    number: int
    params: Params | None


@dataclass(frozen=True, slots=True)
class TrialReported:
    number: int
    lap: int
    #: as the program counts; later than all that it reported before
    iteration: int
    #: in the user's orientation; NaN where it is missing
    value: float
    #: time of the epoch, without waits
    took_s: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    #: the program gave a function that makes a checkpoint
    can_checkpoint: bool = False
    #: what its processes hold
    memory_mb: int = 0
    #: values from outside the space that the program drew
    drawn: Params = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportLeftOut:
    """A trial reported, and the metric was not among what it has."""

    number: int
    lap: int
    #: what the report has
    names: tuple[str, ...]
    #: reports of this process that were left out, this one among them
    many: int


@dataclass(frozen=True, slots=True)
class CheckpointKept:
    """A checkpoint of this iteration is on storage, and older ones of the trial are no longer needed."""

    number: int
    iteration: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CheckpointLost:
    """The trial's checkpoint was removed for want of room, or cannot be read."""

    number: int


@dataclass(frozen=True, slots=True)
class TrialStopped:
    """Its process group has stopped in place."""

    number: int
    lap: int
    memory_mb: int
    #: disk that its image takes, which has taken the place of its memory
    image_mb: int = 0
    #: why no image could be made of it
    error: str = ""


@dataclass(frozen=True, slots=True)
class TrialOver:
    """Its process is over. `error`: what failed, in words; "" where it ended by itself."""

    number: int
    lap: int
    error: str = ""
    #: it was killed from outside, so that it may go on elsewhere
    is_killed: bool = False


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The exploration is to end; trials that run are parked with checkpoints first."""

    reason: str


@dataclass(frozen=True, slots=True)
class ClockTicked:
    pass


Event = (
    SlotCame
    | SlotGone
    | SlotClosing
    | ParamsCame
    | TrialReported
    | ReportLeftOut
    | CheckpointKept
    | CheckpointLost
    | TrialStopped
    | TrialOver
    | StopAsked
    | ClockTicked
)

# ---- decisions


class Order(IntEnum):
    """What a report is answered with."""

    CONTINUE = 0
    #: make a checkpoint and end
    SUSPEND = 1
    #: stop the process group in place
    FREEZE = 2
    #: end now: what was reached is wanted
    STOP = 3
    #: nobody wants this process any more
    LEAVE = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer the report at hand."""

    order: Order
    #: a checkpoint is wanted, and the trial goes on (or ends, with STOP)
    wants_checkpoint: bool = False


@dataclass(frozen=True, slots=True)
class Propose:
    """Ask the generator for the trial's hyperparameters."""

    number: int


@dataclass(frozen=True, slots=True)
class BeginTrial:
    """Start the trial's process in the slot."""

    slot: str
    number: int
    lap: int


@dataclass(frozen=True, slots=True)
class ThawTrial:
    """Let a process group go on that stopped in place; it asks what is wanted of it."""

    slot: str
    number: int
    lap: int


@dataclass(frozen=True, slots=True)
class DumpTrial:
    """Write the memory of a process group that stopped in place to disk. A `ThawTrial` has it go on from there, too."""

    slot: str
    number: int
    lap: int


@dataclass(frozen=True, slots=True)
class KillTrial:
    """End the trial's process in the slot, whatever it does."""

    slot: str
    number: int
    lap: int


@dataclass(frozen=True, slots=True)
class ReleaseSlot:
    """Give the slot's container back: there are more slots than trials that may still run."""

    slot: str


@dataclass(frozen=True, slots=True)
class TellGenerator:
    """Tell the generator what a trial reached; `is_final`: it ends with that."""

    number: int
    value: float
    is_final: bool


@dataclass(frozen=True, slots=True)
class Say:
    """A line for the user."""

    line: str


@dataclass(frozen=True, slots=True)
class EndExploration:
    """It is over."""

    succeeded: bool
    text: str


Decision = (
    Answer
    | Propose
    | BeginTrial
    | ThawTrial
    | DumpTrial
    | KillTrial
    | ReleaseSlot
    | TellGenerator
    | Say
    | EndExploration
)


@dataclass(slots=True)
class Outcome:
    """What follows from an event: records that must be on storage before the decisions are carried out."""

    records: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    @property
    def answer(self) -> Answer:
        """The answer to a report; nobody wants one that has none."""
        return next((one for one in self.decisions if isinstance(one, Answer)), LEAVE)


LEAVE: Final = Answer(Order.LEAVE)
#: no number, for facts of a verdict that has none
NO_FACT: Final = nan
