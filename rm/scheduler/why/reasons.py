"""Why an ask waits, in words: the checks of the policy gone through again for one ask; for people, not per decision."""

import math
from bisect import bisect_left
from collections import Counter
from functools import cached_property
from itertools import islice
from typing import Final

from rm.scheduler.node_queues.refusals import NoRoom, NoWait
from rm.scheduler.node_queues.table import NodeQueues
from rm.scheduler.opportunistic.placing import Opportunistic
from rm.scheduler.opportunistic.room import has_place, is_open, takes
from rm.scheduler.queues.spec import PREFIX
from rm.scheduler.queues.user_limits import masters_held, may_take, user_limit
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import HoldKind, NodeQueue, NodeView
from rm.scheduler.view.records import AttemptView, OrderKey, QueueView
from rm.scheduler.why.masters import MASTERS_LIMIT_KEY, NO_NODES, why_not_let_start
from rm.scheduler.why.refill import how_soon
from yaqd.model import ANY_HOST, Resource
from yaqd.model.values import value
from yaqd.policies.asks.table import Ask

_USER_KEYS: Final = "minimum-user-limit-percent and user-limit-factor say how much"
_MASTERS: Final = f"and its application masters alone leave no room for it ({MASTERS_LIMIT_KEY} limits them)"

_HELD: Final = {
    HoldKind.RESERVED: "what ends there leaves room for it",
    HoldKind.QUEUE: "nothing else is sent to wait there",
}
_NO_WAIT: Final = {
    NoWait.OFF: "",
    NoWait.MASTER: "application masters never wait at nodes",
    NoWait.LEAF: "containers of queue {leaf} never wait at nodes",
    NoWait.UNAWARE: "its master does not say that its containers may wait at nodes, so they do not",
    NoWait.OVERDUE: "it has waited at nodes for as long as it may, so it waits at none again",
    NoWait.ENDLESS: "nobody knows how long it runs, so it waits at no node",
}
#: of an attempt, for a report: of many there may be many
_ASKS_LOOKED_AT: Final = 8
_ALONE: Final = (
    "no other node is large enough: it can never run beside it. Larger nodes, a smaller master "
    "(yarn.app.mapreduce.am.resource.mb) or smaller containers are needed"
)


@value()
class WhyWaiting:
    reason: str
    #: applications of its queue that are served before it, for a container of this size
    ahead: int
    #: the shortest wait of a container at any node that was heard of lately, s; None: it waits at none, or for ever
    shortest_wait_s: float | None
    #: when that node said so, scheduler's seconds
    said_at: float | None = None


class Reasons:
    """Why the asks of one attempt wait at one moment.

    What looks at every node is gone through once for all asks of one size, as there may be thousands of them. Nodes
    whose last report of their queues is older than `heard_since` (scheduler's seconds) are expected to take nothing.
    """

    def __init__(self, view: ClusterView, attempt: AttemptView, heard_since: float = -math.inf) -> None:
        self._view = view
        self._attempt = attempt
        self._heard_since = heard_since
        #: by size: what `_own_master`, `_masters_everywhere` and `_shortest` found
        self._own: dict[tuple[Resource, bool], str | None] = {}
        self._masters: dict[Resource, str | None] = {}
        self._best: dict[Resource, tuple[float, float | None]] = {}

    def of(self, ask: Ask) -> WhyWaiting:
        """Say what keeps this pending ask from a container."""
        view, attempt, shape = self._view, self._attempt, ask.capability
        before = _before(attempt, ask)
        if (shape, ask.is_master) not in self._own:
            self._own[shape, ask.is_master] = _own_master(view, attempt, ask)
        reason = self._own[shape, ask.is_master] or _in_the_way(view, attempt, ask)
        if reason is not None:
            return WhyWaiting(reason, len(before), None)
        if shape not in self._masters:
            self._masters[shape] = _masters_everywhere(view, attempt, ask)
        masters = self._masters[shape]
        if masters is not None:
            return WhyWaiting(", ".join([masters, *_ahead(attempt.app.leaf, before)]), len(before), None)
        return self._no_room(ask, before)

    def _no_room(self, ask: Ask, before: list[OrderKey]) -> WhyWaiting:
        attempt, queues, said = self._attempt, self._view.node_queues, ["no node has room for it"]
        said += _places(self._view, ask)
        never = _never_waits(queues, attempt, ask)
        shortest: tuple[float, float | None] = math.inf, None
        if never is not None:
            said += [*([never] if never else []), *self._silent, *_ahead(attempt.app.leaf, before)]
            said += _held(self._view, attempt, ask) or (["no node is held for it yet"] if never else [])
        else:
            shortest = self._shortest(ask.capability)
            said += [*self._at_queues, *_ahead(attempt.app.leaf, before), *_held(self._view, attempt, ask)]
        text = f"{said[0]}: {', '.join(said[1:])}" if said[1:] else said[0]
        if not math.isfinite(shortest[0]):
            return WhyWaiting(text, len(before), None)
        return WhyWaiting(text, len(before), *shortest)

    @cached_property
    def _heard(self) -> list[NodeQueue]:
        queues = self._view.node_queues
        return [q for q in queues.all() if q.reported_at is not None and q.reported_at >= self._heard_since]

    @cached_property
    def _silent(self) -> list[str]:
        return _silent(self._view.node_queues, self._heard_since)

    @cached_property
    def _at_queues(self) -> list[str]:
        queues = self._view.node_queues
        return _at_queues(queues, self._heard, self._attempt)

    def _shortest(self, shape: Resource) -> tuple[float, float | None]:
        """Return how long it would wait where it waits least, s, and when that node said so."""
        if shape not in self._best:
            fits, accepts = self._view.calculator.fits, self._attempt.accepts
            takes = (q for q in self._heard if fits(shape, q.node.total) and accepts(q.node))
            best = min(takes, key=NodeQueue.expected_wait, default=None)
            self._best[shape] = (best.expected_wait(), best.reported_at) if best is not None else (math.inf, None)
        return self._best[shape]


def why_waits(view: ClusterView, attempt: AttemptView, ask: Ask) -> WhyWaiting:
    """Say what keeps one ask alone from a container."""
    return Reasons(view, attempt).of(ask)


class NoNodeTakes:
    """The same of an attempt's opportunistic asks, which look at the nodes' queues alone."""

    def __init__(self, opportunistic: Opportunistic, attempt: AttemptView) -> None:
        queues = opportunistic.queues()
        allowed = [queue for queue in queues if queue.opportunistic_max > 0 and attempt.accepts(queue.node)]
        self._known = [queue for queue in allowed if is_open(queue, attempt.id)]
        self._wait_limit_s, self._fits = opportunistic.wait_limit(attempt), opportunistic.fits
        waits = [queue.wait_s for queue in self._known if queue.wait_s < math.inf]
        self._shortest = min(waits, default=None)
        self._nowhere: str | None = None
        if not allowed:
            self._nowhere = f"none of {len(queues)} nodes lets opportunistic containers wait, as far as they have said"
        elif not self._known:
            self._nowhere = (
                f"all {len(allowed)} nodes that let opportunistic containers wait are held for other applications"
            )
        #: by size
        self._full: dict[Resource, str | None] = {}

    def of(self, ask: Ask) -> WhyWaiting:
        reason = self._nowhere or self._all_full(ask.capability)
        if reason is None and not ask.allows(ANY_HOST):
            reason = "no node of those that it insists on takes it"
        elif reason is None:
            reason = "nodes take it: it gets a container when its master calls next"
        return WhyWaiting(reason, 0, self._shortest)

    def _all_full(self, shape: Resource) -> str | None:
        """Say why no node would take it; None: some node would."""
        if shape not in self._full:
            known, wait_limit_s = self._known, self._wait_limit_s
            self._full[shape] = None
            if not any(has_place(queue, shape, self._fits) for queue in known):
                self._full[shape] = (
                    f"the queues at all {len(known)} nodes that let opportunistic containers wait are full"
                )
            elif not any(takes(queue, shape, wait_limit_s, self._fits) for queue in known):
                may = f"{wait_limit_s:g} s, as its master does not say that its containers may wait"
                self._full[shape] = (
                    f"no queue at {len(known)} nodes is known to be so short that it would wait for less than it may "
                    f"({may})"
                )
        return self._full[shape]


def _before(attempt: AttemptView, ask: Ask) -> list[OrderKey]:
    """Return the places of those of its leaf queue that are served before it, for a container of this size."""
    leaf = attempt.app.leaf
    if attempt.filed_at is None:
        return []
    line = leaf.lines.get((ask.capability, attempt.app.user if leaf.limits_users else ""), [])
    return line[: bisect_left(line, attempt.filed_at)]


def _in_the_way(view: ClusterView, attempt: AttemptView, ask: Ask) -> str | None:
    """Say what is in its way; None: nothing but that no node has room."""
    leaf, shape, fits = attempt.app.leaf, ask.capability, view.calculator.fits
    if not view.nodes.total.memory_mb:
        return NO_NODES
    too_large = _larger_than_a_queue(view, leaf, shape)
    if too_large is not None:
        return too_large
    if attempt.master is None:
        return why_not_let_start(view, attempt)
    full = view.too_full(leaf, shape)
    if full is not None and full.limit is not None:
        waits = "" if full.sent.used.is_zero() else f", with {full.sent.used} that waits at nodes,"
        masters = "" if fits(masters_held(view, full) + shape, full.limit) else f", {_MASTERS}"
        return f"queue {full.path} holds {full.used + full.sent.used}{waits} of at most {full.limit}{masters}"
    if not may_take(view, attempt.app):
        held, user = masters_held(view, leaf, attempt.app.user), attempt.app.user
        limit, used = user_limit(view, leaf), leaf.users[user].used
        masters = "" if fits(held + shape, limit) else f", {_MASTERS}"
        return f"user {user} holds {used} of queue {leaf.path}, and one user may hold {limit} ({_USER_KEYS}){masters}"
    if not fits(shape, view.nodes.largest):
        return f"no node is as large as {shape}"
    own = [node_id for node_id, whose in view.reserved_for.items() if whose == attempt.id]
    if own:
        more = f" and {len(own) - 1} more nodes are" if len(own) > 1 else " is"
        return f"{own[0]}{more} reserved for it: what ends there leaves room for it"
    if view.nodes.emptiest(shape, lambda node: _is_open(view, attempt, node), ANY_HOST) is not None:
        if ask.prefers_places:
            return f"it waits for one of the places that it prefers ({ask.missed} other offers passed up so far)"
        return "there is room, which it gets at that node's next heartbeat"
    return None


def _is_open(view: ClusterView, attempt: AttemptView, node: NodeView) -> bool:
    return attempt.accepts(node) and node.id not in view.reserved_for


def _larger_than_a_queue(view: ClusterView, leaf: QueueView, shape: Resource) -> str | None:
    """Say which queue can never hold it. Of several it is the highest: more for those below it would change nothing."""
    for queue in reversed(list(leaf.upwards())):
        if queue.limit is not None and not view.calculator.fits(shape, queue.limit):
            return (
                f"queue {queue.path} may hold at most {queue.limit} of {view.nodes.total}, less than {shape}: it can "
                f"never run there unless {PREFIX}{queue.path}.maximum-capacity is raised or nodes are added"
            )
    return None


def own_master_alone(view: ClusterView, attempt: AttemptView) -> str | None:
    """Say how its own master keeps an attempt from all that it wants, whatever else ends. None: something may run."""
    asks = [ask for ask in islice(attempt.asks, _ASKS_LOOKED_AT) if ask.pending]
    whys = [_own_master(view, attempt, ask) for ask in asks]
    return f"Nothing of it can run: {whys[0]}" if whys and all(whys) else None


def _own_master(view: ClusterView, attempt: AttemptView, ask: Ask) -> str | None:
    """Say how its own master leaves no room on any node.

    None: were nothing else there, some node would have room for it beside its own application master.
    """
    shape, fits, found = ask.capability, view.calculator.fits, None
    for node in view.nodes.all():
        if not fits(shape, node.total) or not attempt.accepts(node):
            continue
        held = (view.containers[name] for name in node.containers)
        own = [one.resource for one in held if one.is_master and one.application is attempt.app]
        if fits(shape, node.total - sum(own, Resource())):
            return None
        found = f"its own application master holds {sum(own, Resource())} of {node.total} at {node.id}"
    return f"{found}, and {_ALONE}" if found is not None and not ask.is_master else None


def _masters_everywhere(view: ClusterView, attempt: AttemptView, ask: Ask) -> str | None:
    """Say how masters leave no room for it on any node.

    None: beside the masters that run there is room for it on a node, or would be once other things have ended.
    """
    shape, fits = ask.capability, view.calculator.fits
    number, held, total = 0, Resource(), Resource()
    for node in view.nodes.all():
        if not fits(shape, node.total) or node.is_draining or not attempt.accepts(node):
            continue
        if fits(shape, node.total - node.masters):
            return None
        number += sum(1 for container_id in node.containers if view.containers[container_id].is_master)
        held, total = held + node.masters, total + node.total
    if not number:
        return None
    which, ends = (
        ("an application master holds", "it ends")
        if number == 1
        else (f"{number} application masters hold", "one ends")
    )
    return f"{which} {held} of {total}, so that no node has room for it until {ends} ({MASTERS_LIMIT_KEY} limits them)"


def _never_waits(queues: NodeQueues, attempt: AttemptView, ask: Ask) -> str | None:
    """Say why it is not sent to wait at any node; empty where none ever is, None where it may."""
    why = queues.why_not_wait(attempt, ask)
    return None if why is None else _NO_WAIT[why].format(leaf=attempt.app.leaf.path)


def _ahead(leaf: QueueView, before: list[OrderKey]) -> list[str]:
    if not before:
        return []
    first = leaf.attempts[before[0][-1]].id.application_id
    if len(before) == 1:
        return [f"{first} of its queue comes before it"]
    return [f"{len(before)} applications of its queue come before it, {first} first"]


def _held(view: ClusterView, attempt: AttemptView, ask: Ask) -> list[str]:
    """Say which nodes are held for it, and what that does, a sentence for each kind."""
    found = []
    for kind, what in _HELD.items():
        nodes = [hold.node for hold in view.holds.of(attempt, ask) if hold.kind is kind]
        if nodes:
            which = f"{nodes[0].id} is" if len(nodes) == 1 else f"{nodes[0].id} and {len(nodes) - 1} more are"
            found.append(f"{which} held for it: {what}{_when(nodes[0].queue)}")
    return found


def _when(queue: NodeQueue) -> str:
    """Say when room comes, as a node says it that keeps the room itself."""
    if queue.room is None or queue.room_s is None:
        return ""
    if not math.isfinite(queue.room_s):
        return ", where nobody knows when anything ends"
    return f", in {queue.room_s:.0f} s by the estimates of what runs there"


def _silent(queues: NodeQueues, heard_since: float) -> list[str]:
    """Say how many nodes look as full as they were when they were last heard of."""
    known = [q.reported_at for q in queues.all() if q.reported_at is not None]
    silent = sum(1 for at in known if at < heard_since)
    return [f"{silent} of {len(known)} nodes have not been heard of lately"] if silent else []


def _of_which(closed: int) -> str:
    return f" (of {closed} the bound is 0, so that nothing may wait there)" if closed else ""


def _places(view: ClusterView, ask: Ask) -> list[str]:
    """Say where it would rather be, or has to be."""
    found = (
        ["its placement constraint has to hold, so that no node is held for it"] if ask.placement is not None else []
    )
    hosts = [name for name in ask.counts if name != ANY_HOST and not name.startswith("/")]
    if hosts:
        more = f" and {len(hosts) - 1} more" if len(hosts) > 1 else ""
        gone = "" if any(map(view.nodes.has_place, hosts)) else ", of which none is in the cluster"
        found.append(f"it {'insists on' if ask.is_pinned() else 'prefers'} {hosts[0]}{more}{gone}")
    return found


def _at_queues(queues: NodeQueues, heard: list[NodeQueue], attempt: AttemptView) -> list[str]:
    """Say why no queue of those that were heard of takes it."""
    wait_max_s = queues.spec.wait_max_s if queues.spec is not None else None
    soon = [queue.tuner for queue in heard if not queue.bound and queue.tuner is not None]
    why = Counter(queue.no_room(wait_max_s) for queue in heard)
    closed = sum(1 for queue in heard if not queue.bound)
    said: list[str] = []
    if soon:
        said = [f"at {len(soon)} of {len(heard)} nodes nothing waits, as there {how_soon(soon)}"]
    if len(soon) < len(heard):
        full, closed = why[NoRoom.FULL] - len(soon), closed - len(soon)
        said.append(f"{full} of {len(heard)} queues at nodes are as long as their bounds{_of_which(closed)}")
    if len(heard) < queues.number:
        said.append(f"{queues.number - len(heard)} more have not been heard of lately")
    if why[NoRoom.HELD]:
        said.append(f"at {why[NoRoom.HELD]} the node is held for somebody")
    if why[NoRoom.DRAINING]:
        said.append(f"at {why[NoRoom.DRAINING]} the node is drained")
    others = [queue for queue in heard if queue.no_room(wait_max_s) in (None, NoRoom.LONG)]
    endless = sum(1 for queue in others if not math.isfinite(queue.expected_wait()))
    if endless:
        said.append(f"at {endless} nobody knows when anything ends")
    known = [queue for queue in others if math.isfinite(queue.expected_wait())]
    late = [queue for queue in known if queue.longest_wait(None) <= queue.expected_wait()]
    if late:
        longest_s = max(queue.longest_wait(None) for queue in late)
        said.append(f"at {len(late)} it would wait for longer than is worth it ({longest_s:.3g} s)")
    known = [queue for queue in known if queue.expected_wait() < queue.longest_wait(None)]
    wait_limit_s = queues.wait_limit(attempt)
    long = sum(1 for queue in known if wait_limit_s <= queue.expected_wait())
    if long:
        aware = "" if attempt.tolerates_waiting else ", as its master does not say that its containers may wait"
        said.append(f"at {long} it would wait for longer than it may ({wait_limit_s:g} s{aware})")
    return said
