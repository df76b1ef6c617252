"""Whose use may be corrected by force where nodes are filled beyond their size, and how soon.

There a queue's use swings: what waits for it at nodes starts earlier or later than another's, and is reordered. What
evens out again is left alone. So deficit counters are kept over what runs, as it was at each look
(`yaqd.policies.queueing.sharing`). A queue has a claim only while three things hold. It uses less than it is
guaranteed, it wants more, and it is owed that. What waits for it at nodes counts as wanted. Only queues that are not
owed anything themselves give back.

Yaq's bound on a violation, ST (section 3.4.2), needs preemption. Until a queue has been short for nearly so long it is
helped as in Hadoop, a part at a time and after a grace period. Then it is helped at once and whole, and what waits at
nodes in its way goes back as well.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rm.scheduler.preemption.spec import PreemptionSpec
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.records import QueueView
from yaqd.model import ContainerId, NodeId
from yaqd.policies.queueing.sharing import DeficitCounters

#: no queue is owed, or owes, more than its part of so many seconds: who was ahead is helped a little later
_OWED_S: Final = 3.0


class Claims:
    def __init__(self) -> None:
        #: by path of the leaf queue: since when it has been short, scheduler's seconds
        self._short: dict[str, float] = {}
        #: those of them that are owed something
        self._paths: frozenset[str] = frozenset()
        self._counters = DeficitCounters(_OWED_S)
        self._looked_at: float | None = None

    def look(self, view: ClusterView, interval_s: float, now: float) -> None:
        """Count what ran since the last look, or at the first one for `interval_s`, and note who has a claim now."""
        passed_s = interval_s if self._looked_at is None else max(0.0, now - self._looked_at)
        self._looked_at = now
        short, ran = {}, {}
        for leaf in [queue for queue in view.root.walk() if queue.is_leaf]:
            path, guarantee, used = leaf.path, leaf.spec.absolute_capacity, _used(view, leaf)
            wants = bool(leaf.waiting) or not leaf.sent.used.is_zero()
            if wants or used > guarantee:  # what it has beyond its part is others'
                self._counters.want(path, guarantee)
                ran[path] = used
            else:
                self._counters.rest(path)
            if wants and used < guarantee:
                short[path] = self._short.get(path, now)
        for path, used in ran.items():
            self._counters.give(path, used * passed_s)
        self._short = short
        self._paths = frozenset(path for path in short if self.is_owed(path))

    def __bool__(self) -> bool:
        return bool(self._paths)

    def is_owed(self, path: str) -> bool:
        """Tell whether less has run for this leaf queue than its part of what ran for all that wanted something."""
        return self._counters.deficit(path) > 0.0

    def are_due(self, view: ClusterView, interval_s: float, now: float) -> bool:
        """Tell whether all claims are due: the oldest would else reach ST before it is met.

        A container is told of at one look and killed at the next one. Its node hears of that with a heartbeat. The
        master for which it is killed hears of another container with its own heartbeat.
        """
        spec = view.node_queues.spec
        if spec is None or not self._paths:
            return bool(self._paths)
        oldest = min(self._short[path] for path in self._paths)
        # a queue may have been short for an interval when that was seen first
        soonest_s = 3 * interval_s + spec.tuning.heartbeat_s + spec.tuning.poll_s
        return now - oldest >= spec.starve_s - soonest_s

    def of(self, view: ClusterView) -> list[QueueView]:
        """List the leaf queues that have a claim."""
        return [view.queues[path] for path in self._paths]

    def places(self, view: ClusterView) -> dict[NodeId, int]:
        """Count the waiting containers of such queues by node. What ends at other nodes is of no use to them."""
        return {
            queue.node.id: count
            for queue in view.node_queues.all()
            if (count := sum(sent.app.leaf.path in self._paths for sent in queue.waiting.values()))
        }

    def in_the_way(self, view: ClusterView) -> Iterator[tuple[ContainerId, str]]:
        """Yield what waits before containers of such queues, or instead of them, each with the path of its leaf queue.

        Its leaf queue has more than its guarantee. Such a container has done nothing yet that would be lost.
        """
        want_more = any(view.queues[path].waiting for path in self._paths)
        for queue in view.node_queues.all():
            ours = [sent.app.leaf.path in self._paths for sent in queue.waiting.values()]
            last = len(ours) - 1 - ours[::-1].index(True) if True in ours else len(ours) if want_more else 0
            for container_id, sent in list(queue.waiting.items())[:last]:
                if self._gives(view, sent.app.leaf):
                    yield container_id, sent.app.leaf.path

    def _gives(self, view: ClusterView, leaf: QueueView) -> bool:
        is_above = _used(view, leaf) > leaf.spec.absolute_capacity
        return is_above and not leaf.spec.preemption_disabled and not self.is_owed(leaf.path)


def at_once(spec: PreemptionSpec) -> PreemptionSpec:
    """Return the same settings, but all is taken, at the first look after the one at which it was told of."""
    return replace(spec, wait_s=0.0, per_round=1.0, natural_termination=1.0)


def _used(view: ClusterView, leaf: QueueView) -> float:
    return view.calculator.share(leaf.used, view.nodes.total)
