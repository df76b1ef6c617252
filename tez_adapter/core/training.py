"""Which worker computes which partitions of a data-parallel training job, step by step.

A step is one state on all partitions. Partitions stay with the workers that loaded them; between steps they are dealt
anew where workers came or are to go. What a worker that is lost had still to do, the others do. Which bytes a step is
about is not the machine's business: it names steps by numbers that only grow.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

# ---- events


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """A worker asks what to do; until it is answered it does nothing."""

    worker: str


@dataclass(frozen=True, slots=True)
class PartialsCame:
    worker: str
    step: int
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WorkerGone:
    worker: str


@dataclass(frozen=True, slots=True)
class StepAsked:
    """A new state is to be computed on all partitions; an earlier step that is not done is no longer wanted."""

    step: int


@dataclass(frozen=True, slots=True)
class WorkersWanted:
    count: int


@dataclass(frozen=True, slots=True)
class TimePassed:
    pass


Event = WorkerReady | PartialsCame | WorkerGone | StepAsked | WorkersWanted | TimePassed

# ---- decisions


@dataclass(frozen=True, slots=True)
class GiveStep:
    """Answer the worker: compute these partitions; of those in `keep` the data stays."""

    worker: str
    step: int
    partitions: tuple[int, ...]
    keep: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GiveLeave:
    """Answer the worker: it is not wanted any more."""

    worker: str


@dataclass(frozen=True, slots=True)
class StepDone:
    """All partitions are computed."""

    step: int


Decision = GiveStep | GiveLeave | StepDone


@dataclass(slots=True)
class Worker:
    id: str
    #: in rising order
    owned: list[int] = field(default_factory=list)
    is_waiting: bool = False
    #: of the step under way, what it has been given and has not handed in
    given: set[int] = field(default_factory=set)


class TrainingMachine:
    def __init__(self, partitions: int, *, wanted: int, gather_s: float) -> None:
        """`gather_s`: the first step waits so long for workers that are wanted, from when the first one is there."""
        if partitions < 1:
            raise ValueError(f"{partitions} partitions")
        self._partitions = partitions
        self._gather_s = gather_s
        self.wanted = max(1, wanted)
        #: in the order in which they came
        self._workers: dict[str, Worker] = {}
        self._step: int | None = None
        #: of the step under way, what nobody has handed in
        self._missing: set[int] = set()
        self._has_begun = False
        self._first_came: float | None = None
        self._out: list[Decision] = []
        self._now = 0.0
        self._handlers: dict[type, Callable[..., None]] = {
            WorkerReady: self._on_ready,
            PartialsCame: self._on_partials,
            WorkerGone: self._on_gone,
            StepAsked: self._on_asked,
            WorkersWanted: self._on_wanted,
            TimePassed: self._on_time,
        }

    def handle(self, event: Event, now: float) -> list[Decision]:
        """Return what follows from an event. `now`: seconds on any steady clock."""
        self._out, self._now = [], now
        self._handlers[type(event)](event)
        return self._out

    @property
    def workers(self) -> tuple[str, ...]:
        return tuple(self._workers)

    def given(self, worker: str) -> tuple[int, ...]:
        """Return what a worker computes at present."""
        return tuple(sorted(self._workers[worker].given)) if worker in self._workers else ()

    def owned(self) -> dict[str, tuple[int, ...]]:
        """Partitions by worker."""
        return {worker.id: tuple(worker.owned) for worker in self._workers.values()}

    # ---- events

    def _on_ready(self, event: WorkerReady) -> None:
        worker = self._workers.get(event.worker)
        if worker is None:
            worker = self._workers[event.worker] = Worker(event.worker)
            if self._first_came is None:
                self._first_came = self._now
        worker.is_waiting = True
        # what it was given and did not hand in, it has lost or was never told of
        worker.given.clear()
        if self._step is None or not self._has_begun:
            self._begin_if_gathered()
        else:
            self._feed(worker)

    def _on_partials(self, event: PartialsCame) -> None:
        worker = self._workers.get(event.worker)
        if worker is not None:
            worker.given.difference_update(event.partitions)
        if event.step != self._step or not self._has_begun:
            return
        self._missing.difference_update(event.partitions)
        if not self._missing:
            self._out.append(StepDone(event.step))
            self._step = None

    def _on_gone(self, event: WorkerGone) -> None:
        if self._workers.pop(event.worker, None) is not None and self._has_begun:
            self._feed_all()

    def _on_asked(self, event: StepAsked) -> None:
        self._step = event.step
        self._missing = set(range(self._partitions))
        for worker in self._workers.values():
            worker.given.clear()
        if self._has_begun:
            self._deal()
            self._feed_all()
        else:
            self._begin_if_gathered()

    def _on_wanted(self, event: WorkersWanted) -> None:
        self.wanted = max(1, event.count)
        self._begin_if_gathered()

    def _on_time(self, _: TimePassed) -> None:
        self._begin_if_gathered()

    # ---- who does what

    def _begin_if_gathered(self) -> None:
        """The first step: dealing all to the first worker that comes would have it load what others then load again."""
        if self._has_begun or self._step is None or self._first_came is None:
            return
        is_late = self._now - self._first_came >= self._gather_s
        if self._workers and (is_late or len(self._workers) >= min(self.wanted, self._partitions)):
            self._has_begun = True
            self._deal()
            self._feed_all()

    def _deal(self) -> None:
        """Between steps: let those go that are too many; the others get equal parts, and as little moves as can be."""
        most = min(self.wanted, self._partitions)
        for worker in list(self._workers.values())[most:]:
            if worker.is_waiting:
                del self._workers[worker.id]
                self._out.append(GiveLeave(worker.id))
        if self._workers:
            dealt = deal(self._partitions, [worker.owned for worker in self._workers.values()])
            for worker, owned in zip(self._workers.values(), dealt, strict=True):
                worker.owned = owned

    def _feed_all(self) -> None:
        for worker in list(self._workers.values()):
            if worker.is_waiting:
                self._feed(worker)

    def _feed(self, worker: Worker) -> None:
        """Give a worker that waits what is left to do of its own, and its share of what is nobody's."""
        if self._step is None:
            return
        orphans = self._orphans()
        if orphans:
            share = math.ceil(len(orphans) / len(self._workers))
            worker.owned = sorted({*worker.owned, *orphans[:share]})
        given = tuple(p for p in worker.owned if p in self._missing)
        if given:
            worker.is_waiting = False
            worker.given.update(given)
            self._out.append(GiveStep(worker.id, self._step, given, tuple(worker.owned)))

    def _orphans(self) -> list[int]:
        """Of the step under way, what no worker owns."""
        owned = {p for worker in self._workers.values() for p in worker.owned}
        return sorted(self._missing - owned)


def deal(partitions: int, owned: Sequence[Sequence[int]]) -> list[list[int]]:
    """Deal `partitions` to the owners in parts that differ by one at most: each owner keeps what it has, as far as its
    part goes. The result is in rising order."""
    least, larger = divmod(partitions, len(owned))
    # who has more gets the larger parts
    order = sorted(range(len(owned)), key=lambda i: (-len(owned[i]), i))
    sizes = {i: least + (1 if place < larger else 0) for place, i in enumerate(order)}
    taken: set[int] = set()
    kept: list[list[int]] = []
    for i, has in enumerate(owned):
        mine = [p for p in sorted(has) if p < partitions and p not in taken][: sizes[i]]
        taken.update(mine)
        kept.append(mine)
    free = iter(p for p in range(partitions) if p not in taken)
    return [sorted([*mine, *(next(free) for _ in range(sizes[i] - len(mine)))]) for i, mine in enumerate(kept)]
