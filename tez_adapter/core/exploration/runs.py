"""What the machine remembers of each trial beside the policy's arrays, and of each slot."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf, isnan, nan

from tez_adapter.core.exploration.events import Answer, Params
from yaqd.policies.explore.facts import TrialState, Verdict

#: before the first report
NO_ITERATION = -(1 << 63)


class TrialPhase(StrEnum):
    """What a trial's process does."""

    #: there is none
    NONE = "NONE"
    RUNNING = "RUNNING"
    #: told to end or to stop in place, and not yet there
    LEAVING = "LEAVING"
    #: stopped in place
    FROZEN = "FROZEN"


@dataclass(slots=True)
class Run:
    number: int
    #: None: the generator was not asked, or has not answered
    params: Params | None = None
    is_proposed: bool = False
    #: values from outside the space that the program drew
    drawn: Params = field(default_factory=dict)
    phase: TrialPhase = TrialPhase.NONE
    lap: int = 0
    #: the slot that it takes up; "": none
    slot: str = ""
    #: the slot whose container has its process; "": none
    home: str = ""
    #: of the last report
    iteration: int = NO_ITERATION
    #: of the checkpoint that is kept; None: there is none
    checkpoint: int | None = None
    checkpoint_bytes: int = 0
    #: when the last checkpoint was asked for or kept, s
    checkpoint_at: float = 0.0
    can_checkpoint: bool = False
    memory_mb: int = 0
    #: disk that its image takes or is to take; 0 from when it goes on and has reported
    image_mb: int = 0
    #: processes of it that were lost
    losses: int = 0
    error: str = ""
    #: the answer to the last report
    answer: Answer | None = None
    #: why it runs, waits or ended
    verdict: Verdict | None = None
    #: a process that was told to leave is killed then, s
    deadline: float = inf
    #: when it was told to make room for another in its slot, s; NaN: it was not, or has
    suspended_at: float = nan
    #: the iterations that its epochs had, and the metric after each in the user's orientation
    iterations: list[int] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    #: epochs, from 1, whose reports break a limit
    broken: list[int] = field(default_factory=list)
    #: when its first process began, and when it reported last, s; NaN: neither
    begun_at: float = nan
    reported_at: float = nan
    #: counts whatever can be seen of the trial
    version: int = 0

    @property
    def values(self) -> Params:
        """All values that its program runs with, as far as they are known."""
        return {**(self.params or {}), **self.drawn}

    def began(self, lap: int, now: float) -> None:
        """Note that a process of it began."""
        self.lap = lap
        self.begun_at = now if isnan(self.begun_at) else self.begun_at

    def reported(self, iteration: int, value: float, now: float, *, held: bool) -> None:
        """Note a report. `held`: it keeps the limits."""
        self.iteration, self.reported_at = iteration, now
        self.iterations.append(iteration)
        self.shown.append(value)
        if not held:
            self.broken.append(len(self.shown))

    def makes_room(self, state: int, *, ending: bool) -> bool:
        """Return whether a trial in that state was told to make room; it may have been chosen again since.

        `ending`: all are told to leave, as the exploration ends.
        """
        is_chosen_again = state == TrialState.RUNNING and self.phase is TrialPhase.LEAVING and not ending
        return state == TrialState.PARKED or is_chosen_again

    def freed(self) -> None:
        """Note that it has no process."""
        self.phase, self.home, self.slot, self.deadline = TrialPhase.NONE, "", "", inf
        self.memory_mb = self.image_mb = 0


@dataclass(slots=True)
class Slot:
    name: str
    host: str
    #: it can make images of stopped trials; else why it cannot, though there is a program for that
    can_dump: bool = False
    cannot_dump: str = ""
    #: the trial that takes it up: its process runs or is leaving
    running: Run | None = None
    #: the trial that comes next
    following: Run | None = None
    #: its container is wanted back
    is_closing: bool = False


class Slots:
    """All slots, in the order in which they came."""

    def __init__(self) -> None:
        self._slots: dict[str, Slot] = {}
        #: those that are free, while only reports have come since they were looked for; None: to be looked for
        self._free: list[Slot] | None = None
        #: those in which a trial was to begin
        self._awaited: dict[str, Slot] = {}

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots.values())

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, slot: Slot) -> None:
        self._slots.setdefault(slot.name, slot)

    def remove(self, name: str) -> Slot | None:
        self._awaited.pop(name, None)
        return self._slots.pop(name, None)

    def get(self, name: str) -> Slot | None:
        return self._slots.get(name)

    def changed(self) -> None:
        """Note that some may have come free, or have gone."""
        self._free = None

    def left_by(self, run: Run) -> None:
        """Note that a trial is told to leave its slot."""
        slot = self._slots.get(run.slot)
        if self._free is not None and slot is not None and slot.following is None and not slot.is_closing:
            self._free.append(slot)

    def free(self) -> list[Slot]:
        """Return those that a trial may be chosen for, idle ones first."""
        if self._free is None:
            # a loop without calls: there may be thousands
            idle, left, leaving = [], [], TrialPhase.LEAVING
            for slot in self._slots.values():
                if slot.following is None and not slot.is_closing:
                    if slot.running is None:
                        idle.append(slot)
                    elif slot.running.phase is leaving:
                        left.append(slot)
            self._free = idle + left
        return self._free

    def awaited(self) -> list[Slot]:
        """Return those that were left, and in which a trial is to begin."""
        self._awaited = {name: slot for name, slot in self._awaited.items() if slot.following is not None}
        return [slot for slot in self._awaited.values() if slot.running is None]

    def take(self, run: Run, free: list[Slot]) -> None:
        """Choose one of the free slots for a trial: its own, else one on the same host, else the first."""
        home = self.get(run.home) if run.home else None
        at = 0
        if home is not None:
            own = (at for at, slot in enumerate(free) if slot is home)
            near = (at for at, slot in enumerate(free) if slot.host == home.host)
            at = next(own, next(near, 0))
        slot = free.pop(at)
        slot.following = run
        self._awaited[slot.name] = slot
