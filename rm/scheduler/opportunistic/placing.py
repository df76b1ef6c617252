"""Opportunistic containers: placed by how long the nodes' own queues are, not by what is free.

They use what guaranteed containers leave idle, so they are charged to no queue and take no node's room. The node lets
them wait, and ends them when a guaranteed container needs the place. This is the choosing side, as Hadoop's
CentralizedOpportunisticContainerAllocator and NodeQueueLoadMonitor have it. Of the few nodes with the shortest queues
it takes the one that has held least so far. What was given since a node's last report is added to what it reported. So
one heartbeat interval does not pile everything on one node.

Asks that no node can take now wait for their master's next heartbeat. So do those that there is no time to look at, and
that heartbeat goes on with them.
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from rm.scheduler.decisions import Allocate
from rm.scheduler.events import ProxyPlaced
from rm.scheduler.opportunistic.room import (
    RULES,
    LoadOrder,
    backlog,
    behind,
    is_open,
    lets_wait,
    load,
    place_there,
    starts,
    takes,
    used_share,
)
from rm.scheduler.opportunistic.search import Search
from rm.scheduler.opportunistic.starved import Starved
from rm.scheduler.opportunistic.unplaced import Unplaced
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import NodeQueue, NodeView
from rm.scheduler.view.records import AttemptView
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, ExecutionType, NodeId, Resource
from yaqd.policies.asks.rows import AskRow, Locality
from yaqd.policies.asks.table import Ask, AskKey, AskTable
from yaqd.policies.queueing.place import best_place
from yaqd.policies.queueing.place_scores import PLACES, Contender
from yaqd.policies.queueing.rebalance import queue_limit


@dataclass(frozen=True, slots=True)
class OpportunisticLimits:
    #: nodes among which one is chosen
    nodes_used: int = 10
    #: containers that one heartbeat of a master may be given; negative: any number
    per_heartbeat: int = -1
    order: LoadOrder = LoadOrder.QUEUE_LENGTH
    #: how long a choice of nodes, and the limit of their queues, is kept, s
    choice_s: float = 1.0
    #: nodes are told to keep no more waiting than the mean plus so many standard deviations, within the two bounds
    deviations: float = 1.0
    queue_min: int = 5
    queue_max: int = 15


@dataclass(frozen=True, slots=True)
class Placed:
    """An opportunistic container that is not over."""

    node_id: NodeId
    resource: Resource
    priority: int = 0


class Opportunistic:
    def __init__(self, limits: OpportunisticLimits, view: ClusterView, *, ask_rows_max: int) -> None:
        self.limits = limits
        self._view = view
        self._holds = view.holds
        #: how nodes are filled beyond their size, and which tasks have to be placed again
        self._queues = view.node_queues
        self._ask_rows_max = ask_rows_max
        self.fits: Final = view.calculator.fits
        self._asks: dict[ApplicationAttemptId, AskTable] = {}
        #: the last ask that was done with, where its master's next heartbeat goes on after it
        self._reached: dict[ApplicationAttemptId, AskKey | None] = {}
        self._chosen: list[NodeQueue] = []
        self._chosen_at = -math.inf
        #: which nodes were held then (`Starved.version`)
        self._chosen_without = 0
        #: how many containers any node should let wait (Hadoop's QueueLimitCalculator)
        self.queue_limit = limits.queue_max
        self._limit_at = -math.inf
        #: containers that are not over
        self.containers: dict[ContainerId, Placed] = {}
        #: how many of a stage each node has
        self._alike: Counter[tuple[NodeId, ApplicationId, int]] = Counter()
        #: masters that must not wait for long
        self.starved = Starved(view.holds)

    # ---- nodes

    def node_joined(self, node: NodeView, containers: Iterable[ContainerId]) -> None:
        """Take a node in with the `containers` that it brings along."""
        for container_id in containers:
            placed = self.containers.get(container_id)
            if placed is not None and placed.node_id == node.id:
                node.queue.held += placed.resource
        self.choose_again()

    def node_left(self, node_id: NodeId) -> None:
        self.starved.node_left(node_id)
        self.choose_again()

    def choose_again(self) -> None:
        """Choose the nodes anew at the next call: one of them has gone, or is silent."""
        self._chosen_at = -math.inf

    def limit_queues(self, now: float) -> None:
        """Work out how long queues may be, once in a while, as Hadoop does.

        It depends on all nodes, and each asks at its heartbeats.
        """
        bounds = self.limits
        if not 0.0 <= now - self._limit_at < bounds.choice_s:
            lengths = (queue.queued for queue in self.queues() if queue.opportunistic_max > 0)
            self.queue_limit = int(queue_limit(lengths, bounds.deviations, bounds.queue_min, bounds.queue_max))
            self._limit_at = now

    def queues(self) -> list[NodeQueue]:
        """List the queues of all nodes."""
        return [node.queue for node in self._view.nodes.all()]

    # ---- asks

    def waits(self, attempt_id: ApplicationAttemptId) -> bool:
        """Tell whether there is something that a heartbeat of this master may place."""
        return attempt_id in self._asks

    def pending(self, attempt_id: ApplicationAttemptId) -> Iterator[Ask]:
        return iter(self._asks.get(attempt_id, ()))

    def put(self, attempt: AttemptView, rows: Iterable[tuple[AskRow, Resource]], now: float) -> None:
        """Take rows in, each with its normalized capability."""
        for row, capability in rows:
            table = self._asks.get(attempt.id)
            if table is None:
                table = self._asks[attempt.id] = AskTable(self._ask_rows_max)
            table.put(row, capability, now)
        self._drop_if_empty(attempt.id)

    def check_room(self, attempt_id: ApplicationAttemptId, rows: int) -> None:
        """Raise `TooManyAsks` when so many further rows might be too many."""
        table = self._asks.get(attempt_id)
        (table if table is not None else AskTable(self._ask_rows_max)).check_room(rows)

    def attempt_ended(self, attempt_id: ApplicationAttemptId) -> None:
        self._asks.pop(attempt_id, None)
        self._reached.pop(attempt_id, None)
        self.starved.forget(attempt_id)

    def _drop_if_empty(self, attempt_id: ApplicationAttemptId) -> None:
        table = self._asks.get(attempt_id)
        if table is not None and not any(True for _ in table):
            del self._asks[attempt_id]
            self._reached.pop(attempt_id, None)

    # ---- placing

    def place(self, attempt: AttemptView, now: float) -> Iterator[Allocate]:
        """Yield what the attempt can be given now, already booked."""
        table = self._asks.get(attempt.id)
        left = self.limits.per_heartbeat if self.limits.per_heartbeat >= 0 else math.inf
        search = Search(partial(self._at, attempt.id), partial(self._takes, attempt))
        reached = self._reached.pop(attempt.id, None)
        for ask in table.in_turn(reached) if table is not None else ():
            while ask.pending and left > 0 and table is not None and not search.is_over:
                wait_limit_s = self._wait_limit_of(attempt, ask, now)
                is_new = search.is_new(ask, wait_limit_s)
                found = self._find(attempt, ask, wait_limit_s, search, now) if is_new else None
                if found is None:
                    search.missed(ask, wait_limit_s)
                    reached = ask.key
                    break
                queue, locality = found
                app_id, node = attempt.id.application_id, queue.node
                may_wait = not starts(queue, ask.capability, self.fits)
                since = self._queues.lost_places.take(app_id, ask.key[0], ask.pending, may_wait=may_wait)
                table.take(ask, node.id.host, node.rack, locality, now)
                left -= 1
                self.starved.given(attempt.id, node.id, now)
                yield self._give(attempt, ask, queue, locality, since)
            if search.is_over:
                self._reached[attempt.id] = reached
                break
            reached = ask.key
        self._drop_if_empty(attempt.id)
        self.wanted(attempt, Unplaced.of(self.pending(attempt.id)), now)

    def wanted(self, attempt: AttemptView, unplaced: Unplaced, now: float) -> None:
        """Note that these of its containers have found no node, here or at its proxy."""
        if self.wait_limit(attempt) < math.inf:
            self.starved.wants(attempt, unplaced, now)
        else:
            self.starved.forget(attempt.id)
        self._look(now)

    def _look(self, now: float) -> None:
        spec = self._queues.spec
        if spec is None:
            self.starved.clear()
        else:
            self.starved.look(self._view.nodes.all(), spec.starve_s, now)

    def _give(
        self, attempt: AttemptView, ask: Ask, queue: NodeQueue, locality: Locality, since: float | None
    ) -> Allocate:
        attempt.sequence += 1
        container_id = ContainerId.make(attempt.id, attempt.sequence, epoch=attempt.epoch)
        spec = self._queues.spec
        waits = f"of the nodes with room it is the best by {spec.placement}" if spec else RULES[self.limits.order]
        rule, queued = "its node had room", None
        if not starts(queue, ask.capability, self.fits):
            rule, queued = waits, place_there(queue, waits)
            self._queues.sent_opportunistic(queue, attempt.id.application_id, ask.key[0])
        self.adopt(container_id, queue.node.id, ask.capability, ask.key[0])
        priority, request_id = ask.key
        return Allocate(
            container_id,
            queue.node.id,
            ask.capability,
            priority,
            request_id,
            ExecutionType.OPPORTUNISTIC,
            locality,
            False,
            rule,
            queued=queued,
            waits_since=since,
        )

    def elapsed(self, now: float) -> None:
        """Bring up to date what comes with time, for who asks next."""
        if self._holds.opportunistic:
            self._look(now)
        self._choose(now)

    def ranked(self, attempt_id: ApplicationAttemptId | None = None) -> list[NodeQueue]:
        """List the nodes that take opportunistic containers, the least loaded first.

        They are at most `nodes_used`, and those that are held for this attempt.
        """
        own = self._holds.opportunistic_of(attempt_id) if attempt_id is not None else ()
        return [*self._chosen, *(hold.node.queue for hold in own if self._is_known(hold.node.queue))]

    def _ranked_at(self, now: float, attempt_id: ApplicationAttemptId) -> list[NodeQueue]:
        self.elapsed(now)
        return self.ranked(attempt_id)

    def book(self, placed: ProxyPlaced, now: float) -> Allocate:
        """Book what somebody else has chosen. It counts like what is chosen here."""
        self.starved.given(placed.container_id.attempt_id, placed.node_id, now)
        node = self._view.nodes.get(placed.node_id)
        if node is not None and not starts(node.queue, placed.resource, self.fits):
            self._queues.sent_opportunistic(node.queue, placed.container_id.application_id, placed.priority)
        self.adopt(placed.container_id, placed.node_id, placed.resource, placed.priority)
        return Allocate(
            placed.container_id,
            placed.node_id,
            placed.resource,
            placed.priority,
            placed.allocation_request_id,
            ExecutionType.OPPORTUNISTIC,
            Locality.NONE,
            False,
            placed.rule or "the proxy at its master's node chose the node",
            queued=placed.place,
        )

    def may_go(self, attempt: AttemptView, node_id: NodeId, need: Resource) -> bool:
        """Tell whether what somebody else placed for the attempt may go to the node.

        The node must be held for no other attempt. The wait there must be shorter than `wait_limit`.
        """
        wait_limit_s, node = self.wait_limit(attempt), self._view.nodes.get(node_id)
        if node is not None and not is_open(node.queue, attempt.id):
            return False
        return wait_limit_s == math.inf or (node is not None and takes(node.queue, need, wait_limit_s, self.fits))

    def _find(
        self, attempt: AttemptView, ask: Ask, wait_limit_s: float, search: Search, now: float
    ) -> tuple[NodeQueue, Locality] | None:
        """Find a node for one container: on a wanted host, in a wanted rack, anywhere, as far as the ask allows."""
        spec = self._queues.spec
        open_ones: list[NodeQueue] = []
        for locality, taking in search.takers(ask, wait_limit_s, partial(self._ranked_at, now, attempt.id)):
            if spec is not None:
                open_ones += taking
            elif taking:
                return min(taking, key=self._order), locality
        if spec is None:
            return None
        contenders = (self._contender(attempt, ask, queue) for queue in dict.fromkeys(open_ones))
        best = best_place(PLACES[spec.placement], spec.affinity, contenders)
        return (best.node, best.near) if best is not None else None

    def _contender(self, attempt: AttemptView, ask: Ask, queue: NodeQueue) -> Contender[NodeQueue]:
        near = ask.locality(queue.node.id.host, queue.node.rack) or Locality.NONE
        alike = self._alike[queue.node.id, attempt.id.application_id, ask.key[0]]
        return Contender(queue, near, alike, load(queue), starts(queue, ask.capability, self.fits), behind(queue))

    def _at(self, attempt_id: ApplicationAttemptId, name: str) -> Iterator[NodeQueue]:
        """List the nodes of a host or rack that are not held for others."""
        return (node.queue for node in self._view.nodes.at(name) if is_open(node.queue, attempt_id))

    def _takes(self, attempt: AttemptView, queue: NodeQueue, need: Resource, wait_limit_s: float) -> bool:
        return takes(queue, need, wait_limit_s, self.fits) and attempt.accepts(queue.node)

    def wait_limit(self, attempt: AttemptView) -> float:
        """Return the limit of expected waits, s. The attempt's containers go only where a wait is shorter."""
        spec = self._queues.spec
        return math.inf if spec is None or attempt.tolerates_waiting else spec.unaware_wait_s

    def _wait_limit_of(self, attempt: AttemptView, ask: Ask, now: float) -> float:
        """Return the same of the ask's next container."""
        app_id, priority = attempt.id.application_id, ask.key[0]
        return self._queues.lost_places.wait_limit(app_id, priority, ask.pending, self.wait_limit(attempt), now)

    def _choose(self, now: float) -> None:
        is_new = self._chosen_without != self.starved.version
        if now - self._chosen_at >= self.limits.choice_s or is_new or not self._chosen:
            known = (queue for queue in self.queues() if is_open(queue, None) and self._is_known(queue))
            self._chosen = heapq.nsmallest(self.limits.nodes_used, known, key=self._order)
            self._chosen_at, self._chosen_without = now, self.starved.version

    def _is_known(self, queue: NodeQueue) -> bool:
        if self.limits.order is LoadOrder.QUEUE_WAIT_TIME and queue.wait_s == math.inf:
            return False
        return lets_wait(queue) and backlog(queue) < queue.opportunistic_max

    def _order(self, queue: NodeQueue) -> tuple[float, float, float, NodeId]:
        wait_s = queue.wait_s if self.limits.order is LoadOrder.QUEUE_WAIT_TIME else 0.0
        return wait_s, backlog(queue), used_share(queue), queue.node.id

    # ---- containers

    def adopt(self, container_id: ContainerId, node_id: NodeId, resource: Resource, priority: int) -> None:
        """Book a container as opportunistic from now on."""
        self.containers[container_id] = Placed(node_id, resource, priority)
        self._alike[node_id, container_id.application_id, priority] += 1
        self._queues.jobs.began(container_id.application_id, priority)
        self._view.reorder(container_id.application_id)
        node = self._view.nodes.get(node_id)
        if node is not None:
            node.queue.held += resource

    def release(self, container_id: ContainerId) -> Placed | None:
        """Forget a container that is over, or opportunistic no longer, and return its record; None when it was not."""
        placed = self.containers.pop(container_id, None)
        if placed is not None:
            node = self._view.nodes.get(placed.node_id)
            if node is not None:
                node.queue.held -= placed.resource
            stage = (placed.node_id, container_id.application_id, placed.priority)
            self._alike[stage] -= 1
            if not self._alike[stage]:
                del self._alike[stage]
            self._queues.jobs.ended(container_id.application_id, placed.priority)
            self._view.reorder(container_id.application_id)
        return placed

    def validate(self) -> None:
        """Assert every invariant."""
        nodes = self._view.nodes.all()
        for node in nodes:
            held, found = Resource(), node.queue.held
            for placed in self.containers.values():
                if placed.node_id == node.id:
                    held = held + placed.resource
            assert (held.memory_mb, held.vcores) == (found.memory_mb, found.vcores), node.id
        self.starved.validate(node.id for node in nodes)
        stages = ((placed.node_id, c.application_id, placed.priority) for c, placed in self.containers.items())
        assert Counter(stages) == self._alike
        for table in self._asks.values():
            table.validate()
