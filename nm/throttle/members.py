"""An application on this node as its processor time is counted and held: its containers' processes, masters aside."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from nm.containers.container import Container
from nm.containers.states import Stage
from nm.resources.processes import ContainerProcess
from nm.throttle.bucket import LOOK_S, Bucket
from nm.throttle.hold import Hold
from nm.throttle.ledger import Ledger, SeenProcess
from nm.throttle.look import Wanted
from yaqd.model import ContainerId, ContainerType

Clock = Callable[[int], float | None]
#: what is held and uses more than this between two looks is not held in full, s
_AT_REST_S: Final = 0.0005


class Member:
    """One process of a container and all that it starts. A container that runs again is another one."""

    def __init__(self, process: ContainerProcess, clock: Clock, *, was_earlier: bool) -> None:
        self.process = process
        self.ledger = Ledger(clock)
        self.hold = Hold(process)
        #: it ran before anybody asked, and nobody has looked at it yet
        self.was_earlier = was_earlier

    def wanted(self) -> Wanted:
        """Tell what its processes are found by."""
        return Wanted(self.process.pid, self.process.mark, self.process.group, self.process.strays)

    def total_s(self) -> float:
        """Return the processor time that it has used so far, s."""
        reaped = self.process.reaped
        return max(self.ledger.total_s(), reaped.cpu_s if reaped is not None else 0.0)


class Members:
    """One application's. Nothing here waits."""

    def __init__(self, clock: Clock, *, processors: int) -> None:
        self._clock, self._processors = clock, processors
        self._by_id: dict[ContainerId, Member] = {}
        #: those that are ending, and the processor time of those that are over
        self._leaving: list[Member] = []
        self._ended_s = 0.0
        #: used before anybody asked: no tokens are due for it
        self._earlier_s = 0.0
        self._is_first = True
        #: thousandths of a core; None: it is counted only
        self.milli: int | None = None
        #: None: nothing is held by signals
        self.bucket: Bucket | None = None
        #: of all, when they were held or looked at last
        self._held_at_s = 0.0
        #: when to look at the bucket next, monotonic s
        self.due_at = 0.0

    def __iter__(self) -> Iterator[Member]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def total_s(self) -> float:
        """Return the processor time that all have used so far, s. It never falls."""
        here = (*self._by_id.values(), *self._leaving)
        return self._ended_s + sum(member.total_s() for member in here)

    def refresh(self, containers: Iterable[Container]) -> None:
        """Take in what runs of its containers, and let go of what has ended or is to end: that must hear of it."""
        alive = {container.id: process for container in containers if (process := _held_process(container)) is not None}
        for container_id, member in list(self._by_id.items()):
            if alive.get(container_id) is not member.process:
                member.hold.release()
                self._leaving.append(self._by_id.pop(container_id))
        for container_id, process in alive.items():
            if container_id not in self._by_id:
                self._by_id[container_id] = Member(process, self._clock, was_earlier=self._is_first)
        self._is_first = False
        for member in [one for one in self._leaving if one.process.exited.done()]:
            self._ended_s += member.total_s()
            self._leaving.remove(member)

    def looked(self, found: Mapping[int, list[SeenProcess]]) -> list[SeenProcess]:
        """Take in a look, by leader; returns the processes that are new."""
        new: list[SeenProcess] = []
        for member in self:
            if member.process.pid not in found:
                continue
            fresh = member.ledger.take_in(found[member.process.pid])
            if member.was_earlier:
                member.was_earlier = False
                self._earlier_s += member.total_s()
            if fresh and member.hold.is_held:
                member.hold.hold(fresh)
            new += fresh
        return new

    def bound(self, milli: int, now: float) -> None:
        """Hold it to so many thousandths of a core by a bucket from now on."""
        if self.bucket is None:
            self.bucket = Bucket(milli / 1000, now, self._charged_s(), processors=self._processors)
        else:
            self.bucket.change(milli / 1000, now, self._charged_s())
        self.due_at = now

    def free(self) -> None:
        """Hold it no longer."""
        self.bucket = None
        for member in self:
            member.hold.release()

    def turn(self, now: float) -> None:
        """Have the bucket decide, and stop the processes or let them go on."""
        if self.bucket is None:
            return
        if any(member.was_earlier for member in self):
            self.due_at = now + LOOK_S  # what they had used before is not known yet
            return
        used_s = self._charged_s()
        self.due_at = now + self.bucket.turn(now, used_s)
        if not self._by_id:
            self.bucket.forfeit()
        is_escaping = used_s > self._held_at_s + _AT_REST_S
        for member in self:
            if not self.bucket.is_held:
                member.hold.release()
            elif is_escaping or not member.hold.is_held:
                member.hold.hold(member.ledger.seen.values())
        self._held_at_s = used_s

    def _charged_s(self) -> float:
        return self.total_s() - self._earlier_s


def _held_process(container: Container) -> ContainerProcess | None:
    """Return the process of one that runs; None of a master, and where it is to end."""
    if container.stage is not Stage.RUNNING or container.grant.container_type is ContainerType.APPLICATION_MASTER:
        return None
    process = container.process
    return None if process is None or process.is_over or process.is_ending else process
