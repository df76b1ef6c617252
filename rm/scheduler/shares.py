"""What each queue has been given of the cluster, in time: a book beside what each holds.

What a queue holds of nodes' queues says little of what runs for it: its containers may wait longer there than
another's, and be reordered. Where nodes are filled beyond their size, need is therefore what a queue holds and what it
is owed (`yaqd.policies.queueing.sharing`), both as parts of its guarantee. A container counts with its estimate when it
is given, with how long it has run where that is longer, and with how long it ran in the end; one that goes back without
having run, with nothing.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Final

from yaqd.model import ContainerId, Resource
from yaqd.policies.queueing.sharing import DeficitCounters

if TYPE_CHECKING:
    from rm.scheduler.calculators import Calculator
    from rm.scheduler.nodes import NodeTable, NodeView
    from rm.scheduler.records import AppView, QueueView

#: what is owed is made up for over so many seconds: about as long as it takes until what is given runs
_OVER_S: Final = 5.0
#: nobody is owed more than its part of so many seconds: much more would be seen as a violation when it is paid back
_OWED_S: Final = 3.0
#: weight of the last container in what is usual
_NEW: Final = 0.05
#: what runs longer than it counts with is counted anew after so much more
_OVER: Final = 0.1
#: bounds of that, s
_SOONEST_S: Final = 1.0
_LATEST_S: Final = 60.0


class _Given:
    """A container that is not over."""

    __slots__ = ("app", "seconds", "share", "since")

    def __init__(self, app: "AppView", share: float, seconds: float) -> None:
        self.app = app
        #: of the cluster
        self.share = share
        #: that it counts with
        self.seconds = seconds
        #: when its node first said that it runs, scheduler's seconds; None: it has not
        self.since: float | None = None


class Shares:
    def __init__(self, calculator: "Calculator", nodes: "NodeTable") -> None:
        self._calculator = calculator
        self._nodes = nodes
        #: by path of the parent
        self._counters: dict[str, DeficitCounters] = {}
        self._given: dict[ContainerId, _Given] = {}
        #: paths of queues for which containers are being taken back, and of those above them
        self._first: frozenset[str] = frozenset()
        #: how long containers ran of late, s
        self._usual_s = 0.0

    def queues_changed(self) -> None:
        """Other queues, or other guarantees: nobody is owed anything."""
        self._counters.clear()

    def serve_first(self, queues: "Iterable[QueueView]") -> None:
        """These need most, whatever they hold and are owed, until something else is said: what is taken back for them
        must not go to those that it was taken from."""
        self._first = frozenset(above.path for queue in queues for above in queue.upwards())

    def need(self, parent: "QueueView", held: "dict[str, float]") -> dict[str, float]:
        """By path of those children that want something, with `held`, what those asked for hold: how much of
        its guarantee each has, what it is owed counted. The least comes first."""
        counters = self._counters.get(parent.path)
        if counters is None:
            counters = self._counters[parent.path] = DeficitCounters(_OWED_S)
        found = {}
        for child in parent.children:
            path = child.path
            if not child.waiting:
                if path in counters:
                    counters.rest(path)
                continue
            guarantee = child.spec.absolute_capacity
            counters.want(path, guarantee)
            if path in held:
                share = held[path] - counters.deficit(path) / _OVER_S
                found[path] = share / guarantee if guarantee > 0 else share * 1e9
                if path in self._first:
                    found[path] = -inf
        return found

    # ---- containers

    def given(self, container_id: ContainerId, app: "AppView", size: Resource, estimate_s: float | None) -> None:
        given = _Given(app, self._calculator.share(size, self._nodes.total), 0.0)
        self._given[container_id] = given
        self._count(given, estimate_s if estimate_s is not None else self._usual_s)

    def run(self, node: "NodeView", started: frozenset[ContainerId], now: float) -> None:
        """These are what its node says to run: those that it did not name before have begun.

        Reports come often, and most of what they name has been named before. So what runs longer than it counts with
        is counted anew once it has, and again after each tenth more.
        """
        due = node.looked_at
        if started != node.started:
            for container_id in started - node.started:
                given = self._given.get(container_id)
                if given is not None and given.since is None:
                    given.since = now
                    heappush(due, (_next(now + given.seconds, now), container_id))
            node.started = started
        while due and due[0][0] <= now:
            container_id = heappop(due)[1]
            given = self._given.get(container_id)
            if given is None or given.since is None:
                continue
            at = given.since + given.seconds
            if at < now:
                self._count(given, now - given.since)
                at = now + given.seconds * _OVER
            heappush(due, (_next(at, now), container_id))

    def ran(self, container_id: ContainerId, seconds: float) -> None:
        """It is over, and ran so long."""
        given = self._given.pop(container_id, None)
        if given is not None:
            self._count(given, seconds)
            self._usual_s += (seconds - self._usual_s) * (_NEW if self._usual_s else 1.0)

    def ended(self, container_id: ContainerId, now: float) -> None:
        """It is over; nobody says how long it ran, if it did."""
        given = self._given.pop(container_id, None)
        if given is not None:
            self._count(given, max(0.0, now - given.since) if given.since is not None else 0.0)

    def _count(self, given: _Given, seconds: float) -> None:
        """It counts with so many seconds from now on."""
        change = (seconds - given.seconds) * given.share
        given.seconds = seconds
        if not change:
            return
        for queue in given.app.leaf.above:
            counters = self._counters.get(queue.parent.spec.path) if queue.parent is not None else None
            if counters is not None:
                counters.give(queue.spec.path, change)


def _next(at: float, now: float) -> float:
    """When a container is looked at: neither at every report, nor so late that those that are over pile up."""
    return min(max(at, now + _SOONEST_S), now + _LATEST_S)
