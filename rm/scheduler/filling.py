"""Filling the nodes' queues: which ask sends a container to wait, and where.

Two questions, as the capacity policy has them. `for_ask`: an ask found no free room, at which node does it wait least?
The node with the best affinity divided by load (Yaq, algorithm 1; its load is the wait that it expects). `for_node`: a
node's queue has room, who comes next? The same order as for free room: queues by need, applications by their queue's
policy, asks by priority. When what comes next must not wait (a master, or what has no end that is known), the queue is
left to drain for it, at as many nodes as it wants containers.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final

from rm.scheduler.asks import Ask
from rm.scheduler.capacity import CapacityPolicy, Pass, leaves_by_deficit
from rm.scheduler.decisions import Locality, QueuePlace
from rm.scheduler.node_queue import NodeQueue
from rm.scheduler.nodes import NodeView
from rm.scheduler.placement import satisfies
from rm.scheduler.queueing import NodeQueues
from rm.scheduler.tally import Tally
from rm.scheduler.users import known_limit_share
from rm.scheduler.view import AppView, AttemptView, ClusterView, OrderKey, QueueView
from yaqd.model import ANY_HOST, Resource
from yaqd.model.values import value
from yaqd.policies.queueing.place import choose

#: queues compared when the ask prefers places: of all and one of so many racks, and of preferred hosts
_COMPARED: Final = 8
_HOSTS_LOOKED_AT: Final = 16
#: applications of one line, and asks of one attempt, that may refuse a node
_REFUSALS_MAX: Final = 32


@value()
class QueuePick:
    """Send a container for this ask to wait on this node."""

    attempt: AttemptView
    ask: Ask
    node: NodeView
    locality: Locality
    place: QueuePlace


@value()
class _Hold:
    """This ask has its turn and must not wait."""

    attempt: AttemptView
    ask: Ask


class QueueFilling:
    def __init__(self, view: ClusterView, queues: NodeQueues, policy: CapacityPolicy) -> None:
        self._view = view
        self._queues = queues
        self._policy = policy

    # ---- an ask looks for a queue

    def for_ask(self, attempt: AttemptView, ask: Ask) -> Iterator[QueuePick]:
        """Where the ask's containers may wait; resumed after each was sent there."""
        view, leaf, spec = self._view, attempt.app.leaf, self._queues.spec
        if spec is None:
            return
        accepts: Callable[[NodeView], bool] = partial(_accepts, view, attempt, ask)
        if ask.placement is None and not attempt.blacklist:
            accepts = partial(_is_large_enough, view, ask.capability)
        while (
            ask.pending
            and self._queues.may_wait(attempt, ask)
            and self._may_send(leaf, ask.capability, attempt.app)
            and self._is_scarce(ask.capability)
        ):
            near = {queue: _locality(ask, queue.node) for queue in self._candidates(ask, accepts)}
            app_id, queues = attempt.app.id, self._queues
            queue = choose(
                (queue, queues.affinity(queue, locality, app_id, ask.key[0]), queues.load(queue), queue.length)
                for queue, locality in near.items()
                if locality is not None
            )
            if queue is None:
                return
            locality = near[queue] or Locality.NONE
            rule = f"nothing is free; of the queues at {queues.number} nodes it is the best by {spec.placement}"
            yield QueuePick(attempt, ask, queue.node, locality, QueuePlace(queue.expected_wait(), queue.length, rule))

    def _candidates(self, ask: Ask, accepts: Callable[[NodeView], bool]) -> Iterable[NodeQueue]:
        if not ask.prefers_places:
            return self._queues.best(accepts, 1)
        near: dict[NodeQueue, None] = {}
        nodes, queues = self._view.nodes, self._queues
        for host in islice((n for n in ask.counts if n != ANY_HOST and n[0] != "/"), _HOSTS_LOOKED_AT):
            for node in islice(nodes.at(host), _COMPARED):
                if node.queue is not None and queues.has_room(node.queue) and accepts(node):
                    near[node.queue] = None
        for rack in islice((n for n in ask.counts if n[0] == "/" and ask.allows(n)), _COMPARED):
            if nodes.has_place(rack):
                near.update(dict.fromkeys(queues.best_of(rack, nodes.at(rack), accepts)))
        if ask.allows(ANY_HOST):
            near.update(dict.fromkeys(queues.best(accepts, _COMPARED)))
        return near

    # ---- a queue looks for asks

    def for_node(self, node: NodeView) -> Iterator[QueuePick | Pass]:
        """Who waits here next, until the queue is full or nobody wants it."""
        queue = node.queue
        if queue is None:
            return
        self._queues.release(queue)
        while self._view.root.waiting and self._queues.has_room(queue):
            chosen: QueuePick | _Hold | None = None
            for leaf in self._leaves():
                for result in self._in_leaf(leaf, node, queue):
                    if isinstance(result, Pass):
                        yield result
                    else:
                        chosen = result
                if chosen is not None:
                    break
            if isinstance(chosen, QueuePick):
                yield chosen
                continue
            if chosen is not None:
                self._queues.hold(queue, chosen.attempt, chosen.ask)
            break
        self._queues.enter_again(queue)

    def _in_leaf(self, leaf: QueueView, node: NodeView, queue: NodeQueue) -> Iterator[QueuePick | _Hold | Pass]:
        """Passes, then at most one pick or hold: what comes first in the leaf queue."""
        view = self._view
        best: tuple[tuple[OrderKey, tuple[int, int]], QueuePick | _Hold] | None = None
        for (shape, whose), line in leaf.lines.items():
            fits = view.calculator.fits
            if fits(shape, node.free) or not fits(shape, node.total):
                continue
            if not self._may_send(leaf, shape, leaf.attempts[line[0][-1]].app if whose else None):
                continue
            is_scarce = self._is_scarce(shape)
            for key in islice(line, _REFUSALS_MAX):
                if best is not None and key > best[0][0]:
                    break
                found: QueuePick | _Hold | None = None
                for outcome in self._first_ask(leaf.attempts[key[-1]], shape, node, queue):
                    if isinstance(outcome, Pass):
                        yield outcome
                    else:
                        found = outcome
                if isinstance(found, QueuePick) and not is_scarce:
                    break
                if found is not None:
                    rank = (key, found.ask.key)
                    if best is None or rank < best[0]:
                        best = (rank, found)
                    break
        if best is not None:
            yield best[1]

    def _first_ask(
        self, attempt: AttemptView, shape: Resource, node: NodeView, queue: NodeQueue
    ) -> Iterator[QueuePick | _Hold | Pass]:
        view, queues = self._view, self._queues
        if not attempt.accepts(node):
            return
        for ask in islice(attempt.asks.of_shape(shape), _REFUSALS_MAX):
            locality = self._policy.locality(view, attempt, ask, node)
            if locality is None:
                yield Pass(ask)
            elif queues.may_wait(attempt, ask):
                wait = queue.expected_wait()
                rule = "its queue had room, and it was this ask's turn"
                yield QueuePick(attempt, ask, node, locality, QueuePlace(wait, queue.length, rule))
                return
            elif queues.holds(attempt, ask) < ask.pending:
                yield _Hold(attempt, ask)
                return

    def _leaves(self) -> Iterator[QueueView]:
        """Leaf queues with somebody waiting, the furthest below its guarantee first, waiting containers counted."""
        view = self._view
        if view.root.is_leaf or view.shares is None:
            return iter((view.root,))
        return leaves_by_deficit(view, view.shares, view.root, with_sent=True)

    def reach(self) -> float:
        """How many times what runs now may run or wait."""
        return 1.0 + self._queues.bounds / max(1, self._view.root.containers)

    def _may_send(self, leaf: QueueView, need: Resource, app: AppView | None) -> bool:
        """Does it fit in what the queue may hold at most, and in its user's part of all that runs and waits?

        A maximum capacity is never passed, so that what waits counts as if it ran. A user's limit is for sharing among
        the queue's users, who share what waits in the same parts. `app` None: no user is limited.
        """
        view = self._view
        if not view.has_room(leaf, need):
            return False
        if app is None or not leaf.limits_users:
            return True
        return self._share(app.owner, app.owner.sent) <= known_limit_share(view, leaf) * self.reach()

    def _share(self, used: Tally, sent: Tally) -> float:
        """The part of the cluster that both are."""
        share, total = self._view.calculator.share_among, self._view.nodes.total
        extras = used.used_extras
        if sent.used_extras:
            extras = (used.used + sent.used).extras
        return share(used.used_mb + sent.used_mb, used.used_cores + sent.used_cores, extras, total)

    def _is_scarce(self, shape: Resource) -> bool:
        """Is so little free that waiting is better than looking further (Rf_min), or room for it nowhere?"""
        spec, view = self._queues.spec, self._view
        if spec is None:
            return False
        used = self._share(view.root, view.root.sent)
        return 1.0 - used <= spec.free_share or view.nodes.emptiest(shape, None, ANY_HOST) is None


def _is_large_enough(view: ClusterView, need: Resource, node: NodeView) -> bool:
    return view.calculator.fits(need, node.total)


def _accepts(view: ClusterView, attempt: AttemptView, ask: Ask, node: NodeView) -> bool:
    if not _is_large_enough(view, ask.capability, node):
        return False
    constraint = ask.placement.constraint if ask.placement is not None else None
    return attempt.accepts(node) and satisfies(constraint, node, attempt.app.asking, view.tags)


def _locality(ask: Ask, node: NodeView) -> Locality | None:
    """How near the node is to what the ask wants; None when the ask forbids it."""
    if not ask.prefers_places:
        return Locality.NONE if ask.allows(ANY_HOST) else None
    if node.id.host in ask.counts:
        return Locality.NODE
    if ask.allows(node.rack):
        return Locality.RACK
    return Locality.OFF_SWITCH if ask.allows(ANY_HOST) else None
