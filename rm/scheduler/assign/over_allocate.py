"""Filling the nodes' queues: which ask sends a container to wait, and where.

Two questions, as the capacity policy has them. `for_ask`: an ask found no free room, at which node does it wait least?
It is the node with the best affinity divided by load (Yaq, algorithm 1; its load is the wait that it expects).
`for_node`: a node's queue has room, who comes next? The order is that for free room: queues by need, applications by
their queue's policy, asks by priority.

What comes next may be something that must not wait: a master, or what has no end that is known. Or it must not wait as
long as it would have to. Then the queue is left to drain for it, at as many nodes as it wants containers. For a master
the node keeps room, and it goes there before the queue has drained (`rm.scheduler.holds.choice`).
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from rm.scheduler.assign.candidates import Candidates
from rm.scheduler.assign.capacity import CapacityPolicy, has_turn, leaves_by_deficit
from rm.scheduler.assign.found import OverAllocation, Pick
from rm.scheduler.assign.sweep import CHEAP, DEAR, Look
from rm.scheduler.assign.walk import Judge, begin, first_in_leaf
from rm.scheduler.decisions import NodeQueuePlace
from rm.scheduler.holds.choice import has_room_before_queue
from rm.scheduler.holds.ends import why_given_up
from rm.scheduler.queues.user_limits import known_limit_share, least_limit_share
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import AskHold, HoldKind, NodeQueue, NodeView
from rm.scheduler.view.records import AppView, AttemptView, QueueView
from rm.scheduler.view.tally import Tally
from yaqd.model import ANY_HOST, Resource
from yaqd.policies.asks.placement import satisfies
from yaqd.policies.asks.rows import Locality
from yaqd.policies.asks.table import Ask
from yaqd.policies.queueing.place import choose

#: of a node that has given away since its last report what it had free then
_ROOM_GONE: Final = " (its node had room at its last report)"

#: why a master goes to a node where others wait
BEFORE_QUEUE: Final = "what runs on the node leaves room, and masters start before what waits there"


#: a hold: the ask has its turn and must not wait
_Found = OverAllocation | Pick | AskHold


class OverAllocator:
    def __init__(self, view: ClusterView, policy: CapacityPolicy) -> None:
        self.view = view
        self.queues = view.node_queues
        self.policy = policy
        #: the hold until now of the queue that looks for asks
        self._was: AskHold | None = None

    # ---- an ask looks for a queue

    def for_ask(self, attempt: AttemptView, ask: Ask) -> Iterator[OverAllocation]:
        """Yield where the ask's containers may wait. The owner sends each there before it asks for the next."""
        view, leaf, spec = self.view, attempt.app.leaf, self.queues.spec
        if spec is None:
            return
        accepts: Callable[[NodeView], bool] = partial(_accepts, view, attempt, ask)
        if ask.placement is None and not attempt.blacklist:
            accepts = _large_enough(view, ask.capability)
        candidates = Candidates(view.nodes, self.queues, attempt.app.id, ask, accepts)
        wait_limit_s = self.queues.wait_limit(attempt)
        while (
            ask.pending
            and self.queues.may_wait(attempt, ask)
            and self._may_send(leaf, ask.capability, attempt.app)
            and self.is_scarce(ask.capability)
            and self._is_in_turn(leaf)
        ):
            found = candidates.all()
            if wait_limit_s < math.inf:
                found = [one for one in found if one[0].expected_wait() < wait_limit_s]
            queue = choose(found)
            if queue is None:
                return
            near = ask.locality(queue.node.id.host, queue.node.rack) or Locality.NONE
            rule = f"nothing is free; of the queues at {self.queues.number} nodes it is the best by {spec.placement}"
            yield OverAllocation(attempt, ask, queue.node, near, self.place(attempt, ask, queue, rule))
            candidates.changed(queue)

    # ---- a queue looks for asks

    def for_node(self, node: NodeView, passed: dict[int, Ask], now: float) -> Iterator[OverAllocation | Pick]:
        """Yield who waits here next, until the queue is full or nobody wants it.

        `passed` gains, by their Python ids, the asks that were offered it and wait for a better place.
        """
        queue = node.queue
        if not queue.is_filled or queue.is_quiet:
            return
        self._was = self.view.holds.release(node)
        begin(queue)
        while self.view.root.waiting:
            has_room = self.queues.open.has_room(queue)
            if not has_room and not self._may_keep_room(queue):
                break
            # a full queue offers nothing, so that nothing passes it up
            chosen = self._next(node, queue, passed if has_room else {}, now)
            if isinstance(chosen, Pick) or (has_room and isinstance(chosen, OverAllocation)):
                yield chosen
                if queue.sweep is not None:
                    queue.sweep.given(chosen.attempt, chosen.ask.capability)
                continue
            if isinstance(chosen, AskHold) and (has_room or chosen.ask.is_master):
                self.view.holds.begin(chosen)
            break
        if node.hold is None:
            queue.room = None
        self.queues.open.enter_again(queue)

    def _may_keep_room(self, queue: NodeQueue) -> bool:
        """Tell whether a master may be given room at a queue where nothing more may wait: masters do not wait."""
        node = queue.node
        may = not queue.is_silent and not node.is_draining and node.hold is None
        return may and queue.keeps_room and queue.length > 0 and bool(self.view.masters_wanted)

    def _next(self, node: NodeView, queue: NodeQueue, passed: dict[int, Ask], now: float) -> _Found | None:
        judge: Judge[_Found] = _NodeQueueRoom(self, queue, passed, now)
        for leaf in self._leaves():
            chosen = first_in_leaf(queue, node, leaf, judge)
            if chosen is not None:
                return chosen
        return None

    def for_nobody(self, node: NodeView) -> None:
        """Let the queue be found again where nobody wants anything. It drains for nobody any more."""
        if node.queue.is_filled:
            self.view.holds.release(node)
            self.queues.open.enter_again(node.queue)

    def hold(self, attempt: AttemptView, ask: Ask, node: NodeView, now: float) -> AskHold | None:
        """Let the queue drain for the ask, unless room comes sooner at another node.

        What began to drain goes on, unless room comes much sooner elsewhere by now.
        """
        hold, view, choice = AskHold(node, attempt, HoldKind.QUEUE, now, ask), self.view, self.policy.choice
        if self._was is None or not self._was.is_for(attempt, ask):
            return hold if choice.comes_soon(view, hold, now) else None
        hold.since = self._was.since
        return hold if why_given_up(view, choice, hold, now) is None else None

    def place(self, attempt: AttemptView, ask: Ask, queue: NodeQueue, rule: str) -> NodeQueuePlace:
        """Describe the place as it is before the container is sent there."""
        estimate_s = self.queues.estimate(attempt.app.id, ask.key[0])
        if queue.wait_s > 0.0:
            return NodeQueuePlace(queue.expected_wait(), queue.length, rule, estimate_s)
        return NodeQueuePlace(queue.expected_wait(), queue.length, rule + _ROOM_GONE, estimate_s, queue.reported_at)

    def _leaves(self) -> Iterator[QueueView]:
        """Yield leaf queues with somebody waiting, the furthest below its guarantee first, waiting containers
        counted."""
        view = self.view
        if view.root.is_leaf or not view.shares.are_kept:
            return iter((view.root,))
        return leaves_by_deficit(view, view.shares, view.root, with_sent=True)

    def _is_in_turn(self, leaf: QueueView) -> bool:
        """Tell whether the leaf queue may take one more place in the nodes' queues.

        It may while it has less than its part of all places, or while no other that wants something needs one more.
        Otherwise places stay free for the others until nodes report. The first queue that asks would else take every
        free place.
        """
        view = self.view
        if not view.shares.are_kept or leaf.waiting == view.root.waiting:
            return True
        if leaf.sent.containers < self.queues.bounds * leaf.spec.absolute_capacity:
            return True
        return all(has_turn(view, view.shares, queue) for queue in leaf.upwards())

    def reach(self) -> float:
        """Return how many times what runs now may run or wait."""
        return 1.0 + self.queues.bounds / max(1, self.view.root.containers)

    def _may_send(self, leaf: QueueView, need: Resource, app: AppView) -> bool:
        """Tell whether it fits in what the queue may hold at most, and in its user's part of all that runs and waits.

        A maximum capacity is never passed, so that what waits counts as if it ran.
        """
        return self.view.has_room(leaf, need) and (not leaf.limits_users or self.has_turn(leaf, app))

    def has_turn(self, leaf: QueueView, app: AppView) -> bool:
        """Tell whether the application's user is within its limit, with what waits counted.

        The limit is for sharing among the queue's users. They share what waits in the same parts.
        """
        owner, sent = app.owner, app.owner.sent
        mb, cores = owner.used_mb + sent.used_mb, owner.used_cores + sent.used_cores
        if mb <= leaf.sure_mb and cores <= leaf.sure_cores and not owner.used_extras and not sent.used_extras:
            return True
        share, reach = self._share(owner, sent), self.reach()
        # the limit is never more than the fixed one, and has to be worked out after each container of anybody
        if leaf.limit_share is None and share <= least_limit_share(self.view, leaf) * reach:
            return True
        return share <= leaf.fixed_share * reach and share <= known_limit_share(self.view, leaf) * reach

    def _share(self, used: Tally, sent: Tally) -> float:
        """Return the part of the cluster that both are."""
        share, total = self.view.calculator.share_among, self.view.nodes.total
        extras = used.used_extras
        if sent.used_extras:
            extras = (used.used + sent.used).extras
        return share(used.used_mb + sent.used_mb, used.used_cores + sent.used_cores, extras, total)

    def is_scarce(self, shape: Resource) -> bool:
        """Tell whether so little is free that waiting is better than looking further (Rf_min), or room for it is
        nowhere."""
        spec, view = self.queues.spec, self.view
        if spec is None:
            return False
        used = self._share(view.root, view.root.sent)
        return 1.0 - used <= spec.free_share or view.nodes.emptiest(shape, None, ANY_HOST) is None


class _NodeQueueRoom:
    """Judges who waits next in a node's queue, and for whom the queue drains."""

    def __init__(self, allocator: OverAllocator, queue: NodeQueue, passed: dict[int, Ask], now: float) -> None:
        self._allocator = allocator
        self._queue = queue
        self._passed = passed
        self._now = now
        self.is_in_turn = allocator.has_turn

    def takes_size(self, leaf: QueueView, shape: Resource) -> bool:
        node, view = self._queue.node, self._allocator.view
        if view.calculator.fits_among(shape, node.free_mb, node.free_cores, node.free_extras):
            return False
        return _is_large_enough(view, shape, node) and view.too_full(leaf, shape) is None

    def offer(self, attempt: AttemptView, ask: Ask, look: Look) -> _Found | None:
        allocator, queue = self._allocator, self._queue
        view, queues, node = allocator.view, allocator.queues, queue.node
        if ask.strict and ask.insists_on_others(node.id.host, node.rack):
            self._passed[id(ask)] = ask
            look.cost += CHEAP
            return None
        near = allocator.policy.locality(view, attempt, ask, node)
        if near is None:
            self._passed[id(ask)] = ask
            if ask.placement is None:
                look.passes += 1
                return None
        elif queues.why_not_wait(attempt, ask) is None and queue.expected_wait() < queues.wait_limit(attempt):
            if allocator.is_scarce(ask.capability):
                rule = "its queue had room, and it was this ask's turn"
                return OverAllocation(attempt, ask, node, near, allocator.place(attempt, ask, queue, rule))
            look.ends = True
            return None
        elif has_room_before_queue(view, ask, node):
            return Pick(attempt, ask, node, near)
        elif len(view.holds.of(attempt, ask)) < ask.pending and (hold := allocator.hold(attempt, ask, node, self._now)):
            return hold
        look.cost += DEAR
        return None


def _large_enough(view: ClusterView, need: Resource) -> Callable[[NodeView], bool]:
    """Return a test of a node for this size. It works the size out once."""
    if need.extras:
        return partial(_is_large_enough, view, need)
    mb, cores = need.memory_mb, need.vcores
    if not view.calculator.counts_vcores:
        return lambda node: mb <= node.total.memory_mb - node.masters.memory_mb
    return lambda node: (
        mb <= node.total.memory_mb - node.masters.memory_mb and cores <= node.total.vcores - node.masters.vcores
    )


def _is_large_enough(view: ClusterView, need: Resource, node: NodeView) -> bool:
    """Tell whether the node has room once all but masters have ended: waiting behind those alone has no end."""
    return view.calculator.fits(need + node.masters, node.total)


def _accepts(view: ClusterView, attempt: AttemptView, ask: Ask, node: NodeView) -> bool:
    if not _is_large_enough(view, ask.capability, node):
        return False
    constraint = ask.placement.constraint if ask.placement is not None else None
    return attempt.accepts(node) and satisfies(constraint, node, attempt.app.asking, view.tags)
