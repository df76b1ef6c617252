"""One job's scheduler: events in, decisions out.

It knows what the ResourceManager published with its last answer, what it has placed itself since (which counts at
once), and what its master wants. Each container goes to the node with the highest affinity / load. Affinity is by where
the container was wanted, load is by the placement strategy. Nodes where it would start at once come first (Yaq,
Algorithm 1).

What no node takes is kept until a later heartbeat. All nodes may let it wait for ever or longer than the limit, or all
queues may be full. The job may also have as many tasks under way as it is allowed. A stock ResourceManager publishes an
order and no loads. Then each node gets at most one container per heartbeat that was not wanted there, as Hadoop's
proxies do.

Of a master that takes what it has started for running (WaitLimited) nothing goes where the wait is not known to be
short. What came back all the same waits nowhere for a while (yaqd.policies.queueing.lost_places).

Container ids count down from where the ResourceManager's begin. The lowest one used is handed in again after a restart.
"""

import math
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Final

from nm.distributed.facts import (
    Asked,
    ContainerOver,
    DistributedLimits,
    Event,
    NodeOffer,
    NodesPublished,
    NotBooked,
    Place,
    StageEstimated,
    WaitLimited,
)
from yaqd.model import ApplicationAttemptId, ContainerId, NodeId, Resource
from yaqd.model.values import value
from yaqd.policies.asks.rows import AskRow, Locality
from yaqd.policies.asks.table import Ask, AskKey, AskTable
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.lost_places import LostPlaces
from yaqd.policies.queueing.place import Placer, best_place
from yaqd.policies.queueing.place_scores import PLACES, Contender, Load

#: stages of which an estimate is kept
_STAGES_MAX: Final = 1000
#: containers given at a time, whatever was asked: the others come with the next heartbeats
_AT_ONCE_MAX: Final = 1000
#: asks that find no node before the others are left for the next heartbeat, which goes on there
_MISSES_MAX: Final = 1000
#: of a container that finds no room where nobody is said to wait
_LEAST_WAIT_S: Final = 1e-3


class _Node:
    """A published node and what went there since."""

    __slots__ = ("added_s", "offer", "placed", "rank", "soonest_s", "taken", "waiting")

    def __init__(self, offer: NodeOffer, rank: int) -> None:
        self.offer = offer
        self.rank = rank
        #: resources of the containers placed here since
        self.taken = Resource()
        #: how many, and how many of them found no room
        self.placed = 0
        self.waiting = 0
        #: how long they take one after the other, s. All of it counts when a node is looked for, not only the part
        #: that a newcomer waits longer. Other jobs' proxies place here meanwhile, and this one hears of it late. (Ours
        #: was 1.22x better than Mercury in `yaq-d` so, and with the part alone 1.14x; three seeds.)
        self.added_s = 0.0
        #: when the first of those that found room here gives it back, s
        self.soonest_s = math.inf

    def fits(self, need: Resource) -> bool:
        free = self.offer.free
        return free is not None and (self.taken + need).fits_in(free)

    @property
    def is_unknown(self) -> bool:
        """Published by a stock ResourceManager."""
        return self.offer.wait_s is None and self.offer.free is None and self.offer.queued is None

    @property
    def knows_wait(self) -> bool:
        """How long what finds no room waits: what a node says while it has room does not tell."""
        said_s = self.offer.wait_s
        return said_s is not None and (said_s > 0 or self.soonest_s < math.inf)

    @property
    def is_full(self) -> bool:
        offer = self.offer
        return (
            offer.queued is not None and offer.queue_max is not None and offer.queued + self.placed >= offer.queue_max
        )


@value()
class _Taken:
    """What was taken from the asks, and from what had lost its place, for one container."""

    rows: tuple[AskRow, ...]
    lost: float | None


class DistributedScheduler:
    """Invariants: no id is given twice, and every id is below all earlier ones; `live` never exceeds the limit."""

    def __init__(
        self,
        attempt_id: ApplicationAttemptId,
        limits: DistributedLimits,
        *,
        least: Resource,
        most: Resource,
        id_start: int,
    ) -> None:
        """Containers are sized in steps of `least` up to `most`; the first one's id is one below `id_start`."""
        self._attempt_id = attempt_id
        self._limits = limits
        self._least, self._most = least, most
        #: the lowest container id used
        self.lowest_id = id_start
        self.asks = AskTable(limits.ask_rows_max)
        #: the last ask that was looked at, where so many found no node that the next heartbeat goes on after it
        self._reached: AskKey | None = None
        self._nodes: list[_Node] = []
        self._policy = PLACES[limits.placement]
        self._placer: Placer[_Node] = Placer(limits.placement)
        #: those that the placer knows
        self._offered: list[_Node] = []
        #: hosts and racks that the master avoids
        self.blacklist: set[str] = set()
        self._estimates: dict[int, float] = {}
        #: nothing goes where it would wait as long, s
        self._wait_limit_s = math.inf
        #: containers given and not known to be over, each with its priority and since when its task waits. None: that
        #: is not known, as the container is from before a restart
        self.live: dict[ContainerId, tuple[int, float] | None] = {}
        self._lost_places = LostPlaces()
        #: of containers that the ResourceManager has not heard of
        self._taken: dict[ContainerId, _Taken] = {}
        #: where each of those is that was placed here, and how many of a priority each node has
        self._places: dict[ContainerId, tuple[NodeId, int]] = {}
        self._alike: Counter[tuple[NodeId, int]] = Counter()

    def change(self, limits: DistributedLimits) -> None:
        """Go by these from now on; what was asked for beyond fewer rows stays."""
        self._limits = limits
        self._policy = PLACES[limits.placement]
        self._placer, self._offered = Placer(limits.placement), []
        self._offer_again()

    def handle(self, event: Event, now: float) -> list[Place]:
        """Take one event in and return the places that it leads to. Events come in here alone.

        Raises TooManyAsks, with nothing changed.
        """
        match event:
            case NodesPublished(nodes):
                self._nodes = [_Node(offer, rank) for rank, offer in enumerate(nodes)]
                self._taken.clear()
                self._offer_again()
            case ContainerOver(container_ids, unserved):
                for container_id in container_ids:
                    given = self.live.pop(container_id, None)
                    self._forget_place(container_id)
                    if given is not None and container_id in unserved:
                        self._lost(*given, now)
            case NotBooked(containers):
                for container_id, rows in containers:
                    self._take_back(container_id, rows, now)
            case StageEstimated(priority, estimate_s):
                self._estimated(priority, estimate_s)
            case WaitLimited(most_s):
                self._wait_limit_s = limits.duration(most_s)
            case Asked():
                self._take_in(event, now)
                return list(self._place(now))
        return []

    def _take_back(self, container_id: ContainerId, rows: tuple[AskRow, ...], now: float) -> None:
        self.live.pop(container_id, None)
        self._forget_place(container_id)
        taken = self._taken.get(container_id)
        if taken is None:
            self.asks.give_back(rows, now)
            return
        self.asks.give_back(taken.rows, now)
        if taken.lost is not None:
            self._lost(taken.rows[0].priority, taken.lost, now)

    def _lost(self, priority: int, since: float, now: float) -> None:
        is_overdue = now - since >= self._wait_limit_s
        self._lost_places.lost(self._attempt_id.application_id, priority, since, now, is_overdue=is_overdue)

    def _forget_place(self, container_id: ContainerId) -> None:
        place = self._places.pop(container_id, None)
        if place is not None:
            self._alike[place] -= 1
            if not self._alike[place]:
                del self._alike[place]

    def _offer_again(self) -> None:
        """For strategies that draw: the nodes as published now."""
        if self._policy.draws is not None:
            for node in self._offered:
                self._placer.remove(node)
            for node in self._nodes:
                offer = node.offer
                self._placer.put(node, str(node.rank), Load(offer.queued or 0, offer.wait_s or 0.0, offer.slots))
            self._offered = self._nodes

    def _estimated(self, priority: int, estimate_s: float | None) -> None:
        usable_s = limits.duration(estimate_s)
        if usable_s == math.inf:
            self._estimates.pop(priority, None)
        elif priority in self._estimates or len(self._estimates) < _STAGES_MAX:
            self._estimates[priority] = usable_s

    def _take_in(self, event: Asked, now: float) -> None:
        self.asks.check_room(sum(row.count > 0 for row in event.rows))
        self.blacklist.difference_update(event.blacklist_removals)
        self.blacklist.update(event.blacklist_additions)
        for row in event.rows:
            self.asks.put(row, self._normalized(row), now)

    def _normalized(self, row: AskRow) -> Resource:
        asked, least, most = row.capability, self._least, self._most
        memory = _stepped(asked.memory_mb, least.memory_mb, most.memory_mb)
        return Resource(memory, _stepped(asked.vcores, least.vcores, most.vcores), asked.extras)

    # ---- placing

    def _place(self, now: float) -> Iterator[Place]:
        left = min(self._limits.per_beat, _AT_ONCE_MAX) if self._limits.per_beat >= 0 else _AT_ONCE_MAX
        if self._limits.tasks_max >= 0:
            left = min(left, self._limits.tasks_max - len(self.live))
        #: those of an unknown load that have got what was not wanted there
        served: set[int] = set()
        misses = 0
        after, self._reached = self._reached, None
        for ask in self.asks.in_turn(after) if self._nodes else ():
            if left <= 0 or misses >= _MISSES_MAX:
                return
            while ask.pending and left > 0:
                best = self._choose(ask, served, self._wait_limit(ask, now))
                if best is None:
                    misses += 1
                    self._reached = ask.key if misses >= _MISSES_MAX else None
                    break
                left -= 1
                yield self._give(ask, best.node, best.near, served, now)

    def _wait_limit(self, ask: Ask, now: float) -> float:
        """How long the next container of this ask may."""
        app_id, priority = self._attempt_id.application_id, ask.key[0]
        return self._lost_places.wait_limit(app_id, priority, ask.pending, self._wait_limit_s, now)

    def _choose(self, ask: Ask, served: set[int], wait_limit_s: float) -> Contender[_Node] | None:
        """Return the best node that may have a container of this ask."""
        nodes, policy = self._nodes, self._policy
        if policy.draws is not None:
            takes = partial(self._contender, ask, served=served, wait_limit_s=wait_limit_s)
            nodes = self._placer.candidates(lambda node: takes(node) is not None, len(nodes))
        found = (self._contender(ask, node, served, wait_limit_s) for node in nodes)
        return best_place(policy, self._limits.affinity, (one for one in found if one is not None))

    def _contender(self, ask: Ask, node: _Node, served: set[int], wait_limit_s: float) -> Contender[_Node] | None:
        """Return what the node is worth to the ask; None where its container must not go."""
        offer = node.offer
        near = self._nearness(ask, offer)
        if near is None or node.is_full or (node.rank in served and near is not Locality.NODE):
            return None
        wait = self._load_s(node, ask.capability)
        if wait == math.inf or wait > self._limits.wait_max_s:
            return None
        if wait > 0 and wait_limit_s < math.inf and (wait >= wait_limit_s or not node.knows_wait):
            return None
        alike = self._alike.get((offer.node_id, ask.key[0]), 0)
        load = Load((offer.queued or 0) + node.placed, wait, offer.slots)
        return Contender(node, near, alike, load, wait <= 0.0, node.placed)

    def _nearness(self, ask: Ask, offer: NodeOffer) -> Locality | None:
        """Return how near the node is to what was asked for; None where the ask or the master forbids it."""
        host, rack = offer.node_id.host, offer.rack
        if offer.partition or host in self.blacklist or rack in self.blacklist:
            return None
        return ask.locality(host, rack)

    def _load_s(self, node: _Node, need: Resource) -> float:
        """How long a container would wait there, s; 0 where nothing is known."""
        offer = node.offer
        if node.is_unknown or (node.fits(need) and not offer.queued):
            return 0.0
        if offer.wait_s is not None:
            # what was free when it said that nobody waits may have been given away since
            first = node.soonest_s if offer.wait_s <= 0 and node.soonest_s < math.inf else offer.wait_s
            return max(first, _LEAST_WAIT_S) + node.added_s
        waiting = (offer.queued or 0) + node.placed + (offer.free is not None)
        return waiting * self._limits.typical_s

    def _give(self, ask: Ask, node: _Node, near: Locality, served: set[int], now: float) -> Place:
        offer, app_id, priority = node.offer, self._attempt_id.application_id, ask.key[0]
        wait = self._load_s(node, ask.capability)
        # of what counts, what is not waited for: as many run beside each other
        others_s = node.added_s * (1 - 1 / max(1, offer.slots))
        lost = self._lost_places.take(app_id, priority, ask.pending, may_wait=wait > 0)
        since = now if lost is None else min(lost, now)
        behind, rule = (offer.queued or 0) + node.waiting, self._rule(node, wait)
        estimate = self._estimates.get(priority)
        self.lowest_id -= 1
        container_id = ContainerId(self._attempt_id, self.lowest_id)
        self.live[container_id] = (priority, since)
        self._places[container_id] = place = (offer.node_id, priority)
        self._alike[place] += 1
        runs_s = estimate if estimate is not None else self._limits.typical_s
        if node.fits(ask.capability):
            node.soonest_s = min(node.soonest_s, runs_s)
        else:
            node.added_s += runs_s
            node.waiting += 1
        node.taken += ask.capability
        node.placed += 1
        if node.is_unknown:
            served.add(node.rank)
        host, rack = offer.node_id.host, offer.rack
        rows = ask.rows_for(host, rack, near)
        self._taken[container_id] = _Taken(rows, lost)
        self.asks.take(ask, host, rack, near, now)
        known = None if offer.wait_s is None else wait and wait - others_s
        waited_s, most_s = now - since, self._wait_limit_s
        return Place(
            container_id, offer, ask.capability, *ask.key, estimate, known, waited_s, behind, rule, most_s, rows
        )

    def _rule(self, node: _Node, wait_s: float) -> str:
        """What a node was chosen by."""
        if node.is_unknown:
            return "the ResourceManager named it and says nothing of its load"
        if wait_s <= 0:
            return "it had room as far as the job's proxy knew"
        known = f"{len(self._nodes)} nodes that the job's proxy knows"
        return f"nothing is free; of the {known} it is the best by {self._limits.placement}"

    def validate(self) -> None:
        """Assert every invariant."""
        self.asks.validate()
        self._lost_places.validate()
        assert all(container_id.id >= self.lowest_id for container_id in self.live)
        assert self._places.keys() <= self.live.keys() and Counter(self._places.values()) == self._alike


def _stepped(amount: int, step: int, most: int) -> int:
    """Rounded up to whole steps, at least one and at most `most`."""
    step = max(step, 1)
    return min(-(-max(amount, step) // step) * step, most)
