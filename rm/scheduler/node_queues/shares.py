"""What each queue has been given of the cluster, in time: a book beside what each holds.

What a queue holds of nodes' queues says little of what runs for it. Its containers may wait longer there than
another's, and be reordered. So where nodes are filled beyond their size, need is what a queue holds and what it is
owed, both as parts of its guarantee (`yaqd.policies.queueing.sharing`). A container counts with its estimate when it
is given. Where it has run longer it counts with that, and in the end with how long it ran. One that goes back without
having run counts with nothing.

What waits at nodes is dealt out by what each queue will hold once it has started. A queue with short tasks frees slots
for all. A queue whose tasks are much longer keeps every slot that it gets. Its part of what waits would grow to more
than its part of what runs.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from math import inf
from typing import Final

from rm.scheduler.view.calculators import Calculator
from rm.scheduler.view.node import NodeQueue
from rm.scheduler.view.node_table import NodeTable
from rm.scheduler.view.records import AppView, QueueView
from yaqd.model import ContainerId, Resource
from yaqd.policies.queueing.sharing import DeficitCounters

#: what is owed is made up for over so many seconds: about as long as it takes until what is given runs
_OVER_S: Final = 5.0
#: nobody is owed more than its part of so many seconds: paying much more back would look like a violation
_OWED_S: Final = 3.0
#: weight of the last container in what is usual
_NEW: Final = 0.05
#: what runs longer than it counts with is counted anew after so much more
_OVER: Final = 0.1
#: tasks are taken to run no shorter than this, s
_SHORTEST_S: Final = 0.1
#: so many times as long as usual: less may be an error of estimates
_MUCH_LONGER: Final = 4.0
#: bounds of that, s
_SOONEST_S: Final = 1.0
_LATEST_S: Final = 60.0


class _Given:
    """A container that is not over."""

    __slots__ = ("app", "has_end", "paces", "rate", "seconds", "share", "since")

    def __init__(
        self, app: AppView, paces: "tuple[_Pace, ...]", share: float, seconds: float, rate: float, has_end: bool
    ) -> None:
        self.app = app
        #: of the queues that it was given through, its leaf queue first
        self.paces = paces
        self.has_end = has_end
        #: the part of the cluster that it gives back in a second, in the mean
        self.rate = rate
        #: of the cluster
        self.share = share
        #: that it counts with
        self.seconds = seconds
        #: when its node first said that it runs, scheduler's seconds; None: it has not
        self.since: float | None = None


class _Pace:
    """What a queue was given and is not over."""

    __slots__ = ("number", "path", "rate", "share")

    def __init__(self, path: str) -> None:
        #: of the queue
        self.path = path
        self.number = 0
        #: of the cluster
        self.share = 0.0
        #: the part of that which ends in a second, by what it counts with
        self.rate = 0.0


class Shares:
    """The book; empty, and written in by nobody, until it begins."""

    def __init__(self, calculator: Calculator, nodes: NodeTable) -> None:
        self._calculator = calculator
        self._nodes = nodes
        self.are_kept = False
        self._clear()

    def begin(self) -> None:
        """Write down what is given from now on."""
        self.are_kept = True

    def end(self) -> None:
        """Forget all, and write nothing down any more."""
        self.are_kept = False
        self._clear()

    def _clear(self) -> None:
        #: by path of the parent
        self._counters: dict[str, DeficitCounters] = {}
        self._given: dict[ContainerId, _Given] = {}
        #: paths of queues for which containers are being taken back, and of those above them
        self._first: frozenset[str] = frozenset()
        #: how long containers ran of late, s
        self._usual_s = 0.0
        #: by path of the queue; those of queues without a container are not there
        self._paces: dict[str, _Pace] = {}
        #: by leaf queue: it and the queues above it, and their paces, all of them there
        self._above: dict[QueueView, tuple[tuple[QueueView, ...], tuple[_Pace, ...]]] = {}
        #: the part of the cluster that the last container is: most are as large as the one before
        self._size, self._total, self._part = Resource(), Resource(), 0.0

    def queues_changed(self) -> None:
        """Forget what queues are owed: there are others now, or other guarantees."""
        self._counters.clear()

    def serve_first(self, queues: Iterable[QueueView]) -> None:
        """Let these queues come first, whatever they hold and are owed, until others are named.

        What is taken back for them must not go to those that it was taken from.
        """
        self._first = frozenset(above.path for queue in queues for above in queue.upwards())

    def need(self, parent: QueueView, held: "dict[str, float]") -> dict[str, float]:
        """Return how much of its guarantee each child has that wants something, by path, what it is owed counted.

        The least comes first. `held`: what each of those that are asked for holds, as a part of the cluster, by path.
        """
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

    def soon(self, used: "dict[str, float]", sent: "dict[str, float]") -> dict[str, float]:
        """Return what each sibling will hold once all that waits has started, as far as it matters for who comes next.

        Parts of the cluster by path: `used` runs and `sent` waits. A queue whose tasks are much longer than the others'
        keeps all that it has got. The others share what is left.
        """
        held = {path: share + sent[path] for path, share in used.items()}
        paces, total, done = {}, 0.0, 0.0
        for path, share in used.items():
            paces[path] = pace = self._pace(path)
            total += share
            done += share * pace
        usual = done / total if total > 0 else 0.0
        keeping = {path for path, pace in paces.items() if pace * _MUCH_LONGER < usual}
        if not keeping:
            return held
        left = max(0.0, total - sum([held[path] for path in keeping]))
        others = sum([share for path, share in held.items() if path not in keeping])
        part = left / others if others > 0 else 0.0
        return {path: share if path in keeping else share * part for path, share in held.items()}

    def _pace(self, path: str) -> float:
        """Return how often the queue's slots turn over in a second."""
        pace = self._paces.get(path)
        if pace is None or pace.share <= 0 or pace.rate <= 0:
            return 0.0
        return pace.rate / pace.share

    # ---- containers

    def given(self, container_id: ContainerId, app: AppView, size: Resource, estimate_s: float | None) -> None:
        if not self.are_kept:
            return
        if size is not self._size or self._nodes.total is not self._total:
            self._size, self._total = size, self._nodes.total
            self._part = self._calculator.share(size, self._total)
        share, paces = self._part, self._paces_of(app.leaf)
        if estimate_s is not None:
            seconds, rate = estimate_s, share / (estimate_s if estimate_s > _SHORTEST_S else _SHORTEST_S)
        else:
            seconds, rate = self._usual_s, 0.0
        for pace in paces:
            pace.number += 1
            pace.share += share
            pace.rate += rate
        self._given[container_id] = _Given(app, paces, share, seconds, rate, estimate_s is not None)
        if self._counters:
            self._book(app, seconds * share)

    def _paces_of(self, leaf: QueueView) -> tuple[_Pace, ...]:
        known = self._above.get(leaf)
        if known is not None and known[0] is leaf.above:
            return known[1]
        for queue in leaf.above:
            if queue.spec.path not in self._paces:
                self._paces[queue.spec.path] = _Pace(queue.spec.path)
        paces = tuple(self._paces[queue.spec.path] for queue in leaf.above)
        self._above[leaf] = leaf.above, paces
        return paces

    def run(self, queue: NodeQueue, before: frozenset[ContainerId], now: float) -> None:
        """Take in what the queue's node says of what runs there. What it did not name `before` has begun.

        Reports come often, and most of what they name has been named before. So what runs longer than it counts with is
        counted anew once it has, and again after each tenth more.
        """
        if not self.are_kept:
            return
        due = queue.looked_at
        if queue.started is not before:
            for container_id in queue.started - before:
                given = self._given.get(container_id)
                if given is not None and given.since is None:
                    given.since = now
                    heappush(due, (_next(now + given.seconds, now), container_id))
        self._look(due, now)
        queue.look_at = due[0][0] if due else inf

    def _look(self, due: list[tuple[float, ContainerId]], now: float) -> None:
        """Look at those whose time it is."""
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
        """Note that a container is over, and ran so long, s."""
        given = self._given.pop(container_id, None)
        if given is not None:
            self._over(given)
            self._count(given, seconds)
            self._usual_s += (seconds - self._usual_s) * (_NEW if self._usual_s else 1.0)

    def ended(self, container_id: ContainerId, now: float) -> None:
        """Note that a container is over. Nobody says how long it ran, if it did."""
        given = self._given.pop(container_id, None)
        if given is not None:
            self._over(given)
            self._count(given, max(0.0, now - given.since) if given.since is not None else 0.0)

    def _over(self, given: _Given) -> None:
        """Take it out of its queues' paces: it ends no more."""
        for pace in given.paces:
            pace.number -= 1
            if not pace.number:
                del self._paces[pace.path]  # and with it what was rounded
                self._above.clear()
                continue
            pace.share -= given.share
            pace.rate -= given.rate
        given.has_end = False

    def _count(self, given: _Given, seconds: float) -> None:
        """Count it with so many seconds from now on."""
        change = (seconds - given.seconds) * given.share
        if given.has_end:
            rate = given.share / max(seconds, _SHORTEST_S)
            for pace in given.paces:
                pace.rate += rate - given.rate
            given.rate = rate
        given.seconds = seconds
        if change:
            self._book(given.app, change)

    def _book(self, app: AppView, work: float) -> None:
        """Book that the application's queues were given so much more."""
        if not self._counters:
            return
        for queue in app.leaf.above:
            counters = self._counters.get(queue.parent.spec.path) if queue.parent is not None else None
            if counters is not None:
                counters.give(queue.spec.path, work)

    def validate(self) -> None:
        """Assert every invariant."""
        counted: dict[str, list[float]] = {}
        for given in self._given.values():
            for pace in given.paces:
                sums = counted.setdefault(pace.path, [0, 0.0, 0.0])
                sums[:] = sums[0] + 1, sums[1] + given.share, sums[2] + given.rate
        assert counted.keys() == self._paces.keys()
        for path, pace in self._paces.items():
            number, share, rate = counted[path]
            assert pace.number == number, path
            assert abs(pace.share - share) + abs(pace.rate - rate) < 1e-6, (path, pace.share, share, pace.rate, rate)


def _next(at: float, now: float) -> float:
    """Return when a container is looked at: neither at every report, nor so late that those that are over pile up."""
    soonest, latest = now + _SOONEST_S, now + _LATEST_S
    return soonest if at < soonest else latest if at > latest else at
