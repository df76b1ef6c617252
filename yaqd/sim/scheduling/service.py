"""A ResourceManager whose calls take time: they are served one after another, and whoever calls waits until then.

Heartbeats then are each node's own: one at a time, the next an interval after the last answer, or at once when a
container ended meanwhile and nodes report out of turn. So a node is the slower the busier the ResourceManager
is, and never floods it. What a heartbeat says is what was so when it was sent.
"""

from collections.abc import Iterable
from heapq import heapify, heapreplace
from random import Random
from typing import Final, Protocol

from rm.scheduler.events import NodeQueueReported
from rm.scheduler.scheduler import Scheduler
from yaqd.policies.queueing.full_core import LOOK_S, FullCore
from yaqd.policies.queueing.means import RecentMean
from yaqd.sim.engine import Engine
from yaqd.sim.jobs import ContainerRun, JobRun
from yaqd.sim.nodes import SimNode
from yaqd.sim.results import Recorder
from yaqd.sim.scheduling.timing import TimedScheduler
from yaqd.sim.shape import ClusterShape

#: the systems whose ResourceManager can be busy
BUSY_SYSTEMS: Final = ("yarn", "yaq-c")
#: heartbeats whose answers a node remembers, as the live one
_ANSWERS: Final = 16


class GivesWay(Protocol):
    """Queues at nodes that may be off where the core is full."""

    def fill_queues(self, now: float, *, fills: bool) -> None:
        """Fill them from now on, or no more."""


class CallTaker(Protocol):
    """What is done with calls once they are served: the system itself."""

    @property
    def scheduler(self) -> Scheduler | TimedScheduler: ...

    def gives_way(self) -> GivesWay | None:
        """Return its queues at nodes, where a full core may do without."""

    def queue_said(self, node: SimNode, now: float) -> NodeQueueReported | None: ...

    def served(self, node: SimNode, said: NodeQueueReported | None, ended: Iterable[ContainerRun], now: float) -> None:
        """Take in a heartbeat."""

    def answered(self, node: SimNode, now: float) -> None:
        """Have the node hear the answer."""

    def polled(self, now: float, job: JobRun) -> None:
        """Take in a manager's call and answer it."""


class BusyManager:
    """The line of calls before a ResourceManager, first come, first served by the first core that is free."""

    def __init__(self, shape: ClusterShape, engine: Engine, taker: CallTaker, random: Random) -> None:
        self._costs = shape.calls
        self._core: Final = FullCore()
        #: hears how long containers ran that ended well, s
        self.ran: Final = self._core.ran
        self._shape, self._engine, self._taker, self._random = shape, engine, taker, random
        #: when each core is through with what came so far, s
        self._free_at = [0.0] * self._costs.cores
        heapify(self._free_at)
        #: so far: what all calls took, how many heartbeats were answered, and what these waited, s
        self.busy_s = 0.0
        self.answered = 0
        self.answer_s = 0.0
        #: how much of `busy_s` was done at the last look
        self._done_s = 0.0
        queues = taker.gives_way()
        if self.is_on and queues is not None:
            engine.at(LOOK_S, self._look, queues)

    def _look(self, now: float, queues: GivesWay) -> None:
        """Look how busy it has been, as the live daemon does (`rm.node_queues.core_time`)."""
        done_s = self.busy_s - sum([max(0.0, free_at - now) for free_at in self._free_at])
        busy = (done_s - self._done_s) / (LOOK_S * self._costs.cores)
        self._done_s = done_s
        if self._core.look(min(1.0, busy)):
            queues.fill_queues(now, fills=self._core.admits)
            calls = self._shape.calls
            self._costs = calls if self._core.admits or calls.without_queues is None else calls.without_queues
        self._engine.at(now + LOOK_S, self._look, queues)

    @property
    def is_on(self) -> bool:
        return self._costs.beat_s > 0.0

    def _takes(self, now: float, seconds: float) -> float:
        """Return when a call that comes now is through."""
        self.busy_s += seconds
        through = max(now, self._free_at[0]) + seconds
        heapreplace(self._free_at, through)
        return through

    def count(self, recorder: Recorder) -> None:
        """Put into the record what calls took and waited, in whole microseconds."""
        if self.is_on:
            recorder.count("served_us", round(1e6 * self.busy_s))
            recorder.count("answered", self.answered)
            recorder.count("answers_us", round(1e6 * self.answer_s))

    def gave(self, now: float) -> None:
        """Count what a container takes, now that it is given: those that call later wait for that."""
        if self.is_on:
            self._takes(now, self._costs.container_s)

    def sent_to_wait(self, now: float) -> None:
        """Count what it takes beside that a container waits at its node."""
        self._takes(now, self._costs.queued_s)

    # ---- heartbeats

    def joined(self, node: SimNode, now: float) -> None:
        """Let the node's heartbeats begin, at a moment of its own."""
        node.is_calling = False
        self._engine.at(now + self._random.random() * self._shape.heartbeat_s, self._regular, (node, node.calls))

    def _regular(self, now: float, due: tuple[SimNode, int]) -> None:
        """Beat, unless the node did since that was set."""
        node, calls = due
        if node.calls == calls and node.is_up:
            self.sends(node, now)

    def sends(self, node: SimNode, now: float) -> None:
        """Have the node's heartbeat arrive; while one is under way it says so with the next."""
        if node.is_calling:
            node.calls_again = True
            return
        node.is_calling, node.calls_again = True, False
        node.calls += 1
        node.called_at = now
        ended, node.ended = node.ended, []
        heeded_s = self._costs.heeded_s if self._taker.scheduler.facts.bound_of(node.id) else 0.0
        through = self._takes(now, self._costs.beat_s + heeded_s)
        self._engine.at(through, self._served, (node, self._taker.queue_said(node, now), ended))

    def _served(self, now: float, call: tuple[SimNode, NodeQueueReported | None, list[ContainerRun]]) -> None:
        node, said, ended = call
        self._taker.served(node, said, ended, now)
        self._engine.at(now + self._shape.network_s, self._answered, node)

    def _answered(self, now: float, node: SimNode) -> None:
        if node.answers is None:
            node.answers = RecentMean(_ANSWERS)
        node.answers.add(now - node.called_at)
        self.answered += 1
        self.answer_s += now - node.called_at
        node.is_calling = False
        self._taker.answered(node, now)
        if node.calls_again:
            self.sends(node, now)
        else:
            self._engine.at(now + self._shape.heartbeat_s, self._regular, (node, node.calls))

    # ---- masters

    def calls(self, now: float, job: JobRun) -> None:
        """Have a manager's call arrive."""
        self._engine.at(self._takes(now, self._costs.call_s), self._taker.polled, job)
