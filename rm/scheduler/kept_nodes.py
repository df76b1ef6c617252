"""Nodes whose queues are kept for masters that take what they have started for running, where all queues are long.

Nothing of theirs is sent where it would wait for longer than `unaware_wait_s`, so that masters that tolerate waiting
could keep every queue longer than that, and them without a container, for ever. Who wants opportunistic containers and
has been given none for as long as the starvation threshold (`starve_s`) has a node kept for it: nobody else sends
opportunistic containers there, its queue gets shorter by itself, and what is free in the end is found as any free room
is, whatever the estimates are. A queue that does not get short in time is given back to all, and it is another node's
turn. It stays kept for as many containers as run there at once, which leaves the others
their part of a small cluster too, or until it has had room for as long as the threshold and was not used. The next
ones are given after another wait of the threshold.

At most a tenth of the nodes is kept at a time, and at least one, in the order in which the attempts have waited.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from rm.scheduler.decisions import Keep, KeepNoMore
from rm.scheduler.node_load import NodeLoad
from yaqd.model import ApplicationAttemptId, NodeId
from yaqd.model.values import value

#: one node of so many is kept at most, and one at least
_PART: Final = 10
#: times the threshold after which a node of which nobody knows when its queue is empty is changed for another one
_UNKNOWN: Final = 10.0
#: how often is looked for nodes to keep, s
_LOOK_S: Final = 1.0


@value()
class KeptNode:
    """A node that is kept for an attempt; times in scheduler's seconds."""

    node_id: NodeId
    since: float
    #: so many containers more
    left: int
    #: since when the attempt had been given nothing when the node was kept
    starved_since: float


class _Want:
    """An attempt's containers that found no node."""

    __slots__ = ("accepts", "in_vain", "number", "since")

    def __init__(self, since: float) -> None:
        #: when it was given something last, or wanted something first
        self.since = since
        self.number = 0
        self.accepts: Callable[[NodeLoad], bool] = _any
        #: nodes that were kept for it since then, and whose queues have not become short in time
        self.in_vain: set[NodeId] = set()


class _Kept:
    __slots__ = ("attempt_id", "left", "room_since", "since", "starved_since", "until")

    def __init__(
        self, attempt_id: ApplicationAttemptId, left: int, *, since: float, starved_since: float, until: float
    ) -> None:
        self.attempt_id = attempt_id
        #: so many containers more
        self.left = left
        self.since = since
        #: since when the attempt had been given nothing then
        self.starved_since = starved_since
        #: when another node is looked for
        self.until = until
        #: since when it would start something at once; inf: it would not
        self.room_since = math.inf


class KeptNodes:
    def __init__(self) -> None:
        self._wants: dict[ApplicationAttemptId, _Want] = {}
        self._kept: dict[NodeId, _Kept] = {}
        #: which nodes were kept when; where nobody knows how long they take it is the turn of those longest ago
        self._last: dict[NodeId, float] = {}
        self._looked_at = -math.inf
        #: moves whenever a node is kept, or is no longer
        self.version = 0
        #: what the decision log has not been told of yet
        self.news: list[Keep | KeepNoMore] = []

    def __bool__(self) -> bool:
        return bool(self._kept)

    def wants(
        self, attempt_id: ApplicationAttemptId, number: int, accepts: Callable[[NodeLoad], bool], now: float
    ) -> None:
        """So many of its containers have found no node; 0: none. `accepts`: might one of them start there?"""
        want = self._wants.get(attempt_id)
        if number <= 0:
            self.forget(attempt_id)
            return
        if want is None:
            want = self._wants[attempt_id] = _Want(now)
        want.number, want.accepts = number, accepts

    def given(self, attempt_id: ApplicationAttemptId, node_id: NodeId, now: float) -> None:
        """One was sent to this node."""
        want = self._wants.get(attempt_id)
        if want is not None:
            want.since = now
            want.in_vain.clear()
        kept = self._kept.get(node_id)
        if kept is not None and kept.attempt_id == attempt_id:
            kept.left -= 1
            if kept.left <= 0:
                self._leave(node_id, "as many as run there at once were sent there for it")

    def forget(self, attempt_id: ApplicationAttemptId) -> None:
        """It wants nothing."""
        if self._wants.pop(attempt_id, None) is not None:
            for node_id in self.of(attempt_id):
                self._leave(node_id, "no opportunistic container of it waits for a node any more")

    def node_left(self, node_id: NodeId) -> None:
        self._leave(node_id, "the node has left")
        self._last.pop(node_id, None)

    def clear(self) -> None:
        for attempt_id in list(self._wants):
            self.forget(attempt_id)

    def _leave(self, node_id: NodeId, why: str) -> None:
        kept = self._kept.pop(node_id, None)
        if kept is not None:
            self.version += 1
            self.news.append(KeepNoMore(node_id, kept.attempt_id, why))

    def take_news(self) -> list[Keep | KeepNoMore]:
        """What has been decided since the last call."""
        news, self.news = self.news, []
        return news

    # ---- who may go where

    def of(self, attempt_id: ApplicationAttemptId) -> list[NodeId]:
        return [node_id for node_id, kept in self._kept.items() if kept.attempt_id == attempt_id]

    def facts_of(self, attempt_id: ApplicationAttemptId) -> list[KeptNode]:
        """The nodes that are kept for it, for people."""
        return [
            KeptNode(node_id, kept.since, kept.left, kept.starved_since)
            for node_id, kept in self._kept.items()
            if kept.attempt_id == attempt_id
        ]

    def number_closed_to(self, attempt_id: ApplicationAttemptId) -> int:
        """How many nodes are kept for others."""
        return sum(1 for kept in self._kept.values() if kept.attempt_id != attempt_id)

    def is_open(self, node_id: NodeId, attempt_id: ApplicationAttemptId | None) -> bool:
        """None: to anybody."""
        kept = self._kept.get(node_id)
        return kept is None or kept.attempt_id == attempt_id

    # ---- keeping

    def look(self, loads: Mapping[NodeId, NodeLoad], starve_s: float, now: float) -> None:
        """Keep what is due, leave what need not be kept any more."""
        if not self._wants or 0.0 <= now - self._looked_at < _LOOK_S:
            return
        self._looked_at = now
        self._look_again(loads, starve_s, now)
        most = max(1, len(loads) // _PART)
        due = [item for item in self._wants.items() if now - item[1].since >= starve_s]
        for attempt_id, want in sorted(due, key=lambda item: item[1].since) if len(self._kept) < most else ():
            self._keep(attempt_id, want, loads.values(), most, starve_s, now)

    def _look_again(self, loads: Mapping[NodeId, NodeLoad], starve_s: float, now: float) -> None:
        for node_id, kept in list(self._kept.items()):
            load = loads[node_id]
            kept.room_since = min(kept.room_since, now) if _has_room(load) else math.inf
            if now - kept.room_since > starve_s:
                self._wants[kept.attempt_id].since = now
                self._leave(node_id, f"it had room for {starve_s:g} s and was not used")
            elif now > kept.until:
                self._wants[kept.attempt_id].in_vain.add(node_id)
                self._leave(node_id, "its queue has not become short in time")
            elif not _may_be_kept(load):
                self._leave(node_id, "it takes no opportunistic containers, or has not been heard of")

    def _keep(
        self,
        attempt_id: ApplicationAttemptId,
        want: _Want,
        loads: Iterable[NodeLoad],
        most: int,
        starve_s: float,
        now: float,
    ) -> None:
        missing = want.number - sum(kept.left for kept in self._kept.values() if kept.attempt_id == attempt_id)
        open_ones = (load for load in loads if load.node.id not in self._kept and _may_be_kept(load))
        possible = list(filter(want.accepts, open_ones)) if missing > 0 else []
        if possible and all(load.node.id in want.in_vain for load in possible):
            want.since = now  # what holds them does not end: they are the others' for another threshold
            want.in_vain.clear()
            return
        for load in sorted((load for load in possible if load.node.id not in want.in_vain), key=self._nearness):
            if missing <= 0 or len(self._kept) >= most:
                return
            slots = _slots(load)
            wait_s = load.expected_wait()
            lasts_s = starve_s + 2.0 * wait_s if wait_s < math.inf else _UNKNOWN * starve_s
            left = min(slots, missing)
            self._kept[load.node.id] = _Kept(attempt_id, left, since=now, starved_since=want.since, until=now + lasts_s)
            self._last[load.node.id] = now
            self.version += 1
            why = f"given no opportunistic container for {now - want.since:.0f} s, its master does not know of waiting"
            self.news.append(Keep(load.node.id, attempt_id, left, why))
            missing -= slots

    def _nearness(self, load: NodeLoad) -> tuple[float, float, int, NodeId]:
        """The one whose queue is empty first, as far as is known, goes first."""
        return load.expected_wait(), self._last.get(load.node.id, -math.inf), load.queued, load.node.id

    def validate(self, nodes: Iterable[NodeId]) -> None:
        """Assert every invariant."""
        assert self._kept.keys() | self._last.keys() <= set(nodes)
        assert all(kept.left > 0 and kept.attempt_id in self._wants for kept in self._kept.values())
        assert all(want.number > 0 for want in self._wants.values())


def _may_be_kept(load: NodeLoad) -> bool:
    return load.length is not None and load.capacity != 0 and not load.node.is_draining and not load.is_silent


def _slots(load: NodeLoad) -> int:
    """How many run there at once; 1 where nobody has seen it."""
    queue = load.node.queue
    return max(1, queue.slots) if queue is not None else 1


def _has_room(load: NodeLoad) -> bool:
    """For one of what it usually runs."""
    queue = load.node.queue
    return not load.queued and queue is not None and queue.running < _slots(load)


def _any(load: NodeLoad) -> bool:
    return True


def all_open(nodes: Iterable[NodeLoad], kept: KeptNodes, attempt_id: ApplicationAttemptId | None) -> Iterator[NodeLoad]:
    """Those that are not kept for others."""
    return (load for load in nodes if kept.is_open(load.node.id, attempt_id)) if kept else iter(nodes)
