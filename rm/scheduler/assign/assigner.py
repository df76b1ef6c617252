"""Giving containers away: an ask that finds room, room that finds an ask, and reservations for what needs more of it.

The policy picks; here each pick is charged to the view and becomes a decision.
"""

from collections.abc import Iterable, Iterator

from rm.scheduler.asks.job_starvation import JobStarvation
from rm.scheduler.asks.starving import Starving
from rm.scheduler.asks.updates import Updates
from rm.scheduler.assign.capacity import CapacityPolicy
from rm.scheduler.assign.found import OverAllocation, Pass, Pick
from rm.scheduler.assign.over_allocate import BEFORE_QUEUE, OverAllocator
from rm.scheduler.decisions import Allocate, NodeQueuePlace, Outcome
from rm.scheduler.holds.ends import GOT, is_void, why_given_up
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import AskHold, NodeView
from rm.scheduler.view.records import AttemptView
from yaqd.model import ContainerId
from yaqd.policies.asks.table import Ask


class Assigner:
    def __init__(
        self,
        view: ClusterView,
        policy: CapacityPolicy,
        updates: Updates,
        *,
        at_asks: bool = True,
        starvation: JobStarvation = JobStarvation(),
    ) -> None:
        """`at_asks`: give when asked."""
        self._view = view
        self.policy = policy
        self._updates = updates
        self.at_asks = at_asks
        #: fills the nodes' queues; None where nothing may wait
        self.over_allocator: OverAllocator | None = None
        self.starving = Starving(view, starvation)

    @property
    def has_work(self) -> bool:
        """Would a node's heartbeat be an opportunity for anybody?"""
        return self._view.root.waiting > 0 or self._updates.any_waiting

    def place(
        self, attempt: AttemptView, asks: list[Ask], hosts: dict[tuple[int, int], list[str]], now: float
    ) -> Iterator[Outcome]:
        """Give these asks what there is room for, and file the attempt for the rest."""
        if attempt.app.leaf.limits_users:
            self._view.file(attempt)  # its user is active from now on, which moves the limit
        self._view.jobs.touch(attempt.app.id)
        waits = attempt.app.leaf.spec.orders_stages or self._view.keeps_room
        for ask in asks if self.at_asks else ():
            if not ask.pending or (waits and not ask.is_master):
                continue
            for pick in self.policy.for_ask(self._view, attempt, ask, hosts.get(ask.key, list(ask.counts))):
                yield self._carry_out(pick, now, "asked, and there was room")
            if self.over_allocator is not None and ask.pending:
                if self._view.root.waiting:
                    self._view.file(attempt)  # its queue wants something, which is what decides whose turn it is
                for waiting in self.over_allocator.for_ask(attempt, ask):
                    yield self._carry_out(waiting, now, waiting.place.rule, waiting.place)
        self.starving.waits(attempt, now)
        self._view.file(attempt)

    def give_away(self, node: NodeView, now: float) -> Iterable[Outcome]:
        """Give away what became free on the node. A node that is drained is shrunk by it instead."""
        if node.is_draining:
            self.shrink(node)
            return ()
        return self.fill(node, now)

    def shrink(self, node: NodeView) -> None:
        """Count a node that is drained as large as what it holds."""
        self._view.nodes.resize(node, node.total - node.free)
        self._view.set_limits()

    def beat(self, node: NodeView, now: float) -> Iterable[Outcome]:
        """Give away what the node has at a heartbeat.

        Most of them come to nothing, at once: there are as many as nodes, however few wait.
        """
        if self.has_work and (node.free_mb > 0 or node.queue.is_filled):
            return self.fill(node, now)
        return ()

    def offer(self, node: NodeView, now: float) -> Iterable[Outcome]:
        """Give away what the node has in a pass over all nodes."""
        return self.beat(node, now)

    def fill(self, node: NodeView, now: float) -> Iterable[Outcome]:
        """Give away what the node has free."""
        if self._view.root.waiting or self._view.holds.reserved or self._updates.any_waiting:
            return self._fill(node, now)
        if self.over_allocator is not None:
            self.over_allocator.for_nobody(node)
        return ()

    def _fill(self, node: NodeView, now: float) -> Iterator[Outcome]:
        if self._updates.any_waiting:
            yield from self._updates.settle(node)
        view, reserved = self._view, node.reserved
        if reserved is not None and (why := why_given_up(view, self.policy.choice, reserved, now)) is not None:
            yield from view.holds.end(reserved, why)
        passed: dict[int, Ask] = {}
        for result in self.policy.for_node(self._view, node, now) if self._view.root.waiting else ():
            match result:
                case Pass(ask):
                    passed[id(ask)] = ask
                case AskHold():
                    yield from view.holds.begin(result)
                case Pick():
                    yield from self._give(result, now, "the node had room")
        if self.over_allocator is not None and not view.keeps_room:
            for found in self.over_allocator.for_node(node, passed, now):
                place = found.place if isinstance(found, OverAllocation) else None
                yield from self._give(found, now, place.rule if place is not None else BEFORE_QUEUE, place)
        for ask in passed.values():
            ask.missed += 1
        self.starving.find(now)

    def _give(
        self, pick: Pick | OverAllocation, now: float, why: str, queued: NodeQueuePlace | None = None
    ) -> Iterator[Outcome]:
        """Carry the pick out. Nodes held for an ask that has all are given up, and this one if it was the attempt's."""
        yield self._carry_out(pick, now, why, queued)
        self._view.file(pick.attempt)
        here, holds = pick.node.hold, self._view.holds
        if here is not None and here.attempt is pick.attempt:
            yield from holds.end(here, GOT)
        if not pick.ask.pending:
            for hold in list(holds.of(pick.attempt, pick.ask)):
                yield from holds.end(hold, GOT)

    def _carry_out(
        self, pick: Pick | OverAllocation, now: float, why: str, queued: NodeQueuePlace | None = None
    ) -> Allocate:
        attempt, ask, node, view = pick.attempt, pick.ask, pick.node, self._view
        app, size, priority = attempt.app, ask.capability, ask.key[0]
        lost, since = view.node_queues.lost_places, None
        if lost and not ask.is_master:
            since = lost.take(app.id, priority, ask.pending, may_wait=queued is not None)
        attempt.sequence += 1
        container_id = ContainerId.make(attempt.id, attempt.sequence, epoch=attempt.epoch)
        decision = Allocate(
            container_id,
            node.id,
            size,
            priority,
            ask.key[1],
            ask.execution_type,
            pick.locality,
            ask.is_master,
            why,
            ask.placement.tags if ask.placement is not None else (),
            queued,
            since,
        )
        attempt.moved = 0
        attempt.asks.take(ask, node.id.host, node.rack, pick.locality, now)
        view.charge(container_id, app, node, size, ask.is_master, priority)
        node.queue.room = None
        if ask.is_master:
            view.masters_wanted.discard(attempt.id)
        queues = view.node_queues
        if view.shares.are_kept:
            estimate = queues.estimate(app.id, priority) if not ask.is_master else None
            view.shares.given(container_id, app, size, estimate)
        if queued is not None:
            queues.sent(node, container_id, attempt, ask)
        else:
            queues.given(node)
        if not ask.is_master:
            view.jobs.given(attempt, priority)
        self.starving.given(attempt, now)
        if decision.tags:
            view.tags.add(container_id, node, app.asking, decision.tags)
        return decision

    def ended(self, attempt: AttemptView, now: float) -> Iterator[Outcome]:
        """Give up what is held for an attempt that has ended."""
        yield from self.settle(attempt, now)

    def validate(self) -> None:
        """Assert every invariant of what is kept beside the view."""

    def left(self, node: NodeView) -> Iterator[Outcome]:
        """Give up what the node is held for, which is there no more."""
        if node.hold is not None:
            yield from self._view.holds.end(node.hold, "the node left")

    def settle(self, attempt: AttemptView, now: float) -> Iterator[Outcome]:
        """Give up nodes that are held for the attempt and of no use to it any more."""
        for hold in self._view.holds.of_attempt(attempt):
            # what became free at the node before may have been all that another ask wanted, which ended its hold
            if hold.node.hold is hold and is_void(self._view, hold):
                yield from self._view.holds.end(hold, "the ask is gone")
                yield from self.fill(hold.node, now)
