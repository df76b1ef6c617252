"""Cores of applications at nodes: what nodes say that each has used, and how many each may use there.

Nothing of it is known or told of an application before somebody sets its cores. What a node says is its own total, so
that an answer that was lost or repeated counts nothing twice. No node can say more than its processors could have done.

The containers of the last priority, its workers, divide an application's cores. What stands before them, a driver,
works while they wait. It may use as many beside them, as long as the application has not used more than was ordered.
"""

import logging
import math
from collections.abc import Iterable, Mapping
from typing import Final
from zlib import crc32

from rm.applications.records import Application
from rm.cluster import Cluster
from rm.nodes.node import RmNode
from rm.scheduler.decisions import Allocate
from yaqd.model import ApplicationId, NodeId
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto.training import MILLI_MAX, cpu_totals, put_apps_cores
from yaqd.proto.words import CORES

log = logging.getLogger(__name__)

#: what a node is believed to have at most
_PROCESSORS_MAX: Final = 4096
#: what a node has not said for so long it may say at once, and what clocks and the wire may differ by, s
_SILENT_MOST_S: Final = 600.0
_DIFFER_S: Final = 2.0
#: how long shares stay as they are while containers come and go, s
_SHARES_S: Final = 0.25
#: an application that has used so many times its order over this time divides it among all for longer, s; what its
#: processes used at their start, and what nodes do before an order reaches them, is let be
_WINDOW_S: Final = 10.0
_MUCH: Final = 1.5
_OWES_S: Final = 30.0
_STARTED_MS: Final = 2000.0
_LATE_S: Final = 2.0
#: nodes come so long after a division, s, and so many ms apart at most; none comes sooner than so, s
_AFTER_S: Final = 0.03
_APART_MS: Final = 50
_SOON_S: Final = 0.1


def divide(milli: int, weights: Mapping[NodeId, int], most: Mapping[NodeId, int]) -> dict[NodeId, int]:
    """Divide a number of cores among nodes by their weights, none of them with more than its most.

    All in thousandths; the parts make up the whole, or the sum of the most where that is less.
    """
    shares: dict[NodeId, int] = {}
    open_nodes, left = dict(weights), milli
    while True:
        total = sum(open_nodes.values())
        full = [node for node, weight in open_nodes.items() if left * weight >= most[node] * total]
        if not full:
            break
        for node in full:
            shares[node] = most[node]
            del open_nodes[node]
        left = max(0, left - sum(most[node] for node in full))
    weight, given = 0, 0
    for node in open_nodes:  # sums are rounded: so each share is its exact one rounded down or up, and within its most
        weight += open_nodes[node]
        shares[node] = left * weight // total - given
        given += shares[node]
    return shares


def beat_after(most_s: float, at_s: float, epoch_s: float) -> float:
    """Return the last time of `at_s`, `at_s` + `epoch_s` and so on that is at most `most_s` ahead, or a little more.

    Where there is none, `most_s`. All are seconds from now; `at_s` may be past.
    """
    first_s = at_s % epoch_s
    if first_s < _SOON_S:
        first_s += epoch_s
    if first_s > most_s + _SOON_S:
        return most_s
    return first_s + max(0, math.floor((most_s - first_s) / epoch_s)) * epoch_s


class _AtNode:
    """One application's time at one node."""

    __slots__ = ("_at", "_left_ms", "_life_ms", "_processors", "_said_ms")

    def __init__(self, node: RmNode, now: float, age_s: float) -> None:
        self._processors = node.processors
        self._life_ms, self._said_ms = node.counts_since_ms, 0
        #: what it may have used by now
        self._at, self._left_ms = now, 1000 * (age_s + _DIFFER_S) * node.processors

    def take(self, node: RmNode, said_ms: int, now: float) -> tuple[float, bool]:
        """Take in what the node says; returns what is new of it, ms, and whether it is less than was said."""
        most_ms = 1000 * _SILENT_MOST_S * self._processors
        grown_ms = self._left_ms + 1000 * max(0.0, now - self._at) * self._processors
        self._at, self._left_ms = now, min(grown_ms, max(most_ms, self._left_ms))
        is_same = node.counts_since_ms == self._life_ms and said_ms >= self._said_ms
        new_ms = said_ms - self._said_ms if is_same else said_ms
        self._life_ms, self._said_ms = node.counts_since_ms, said_ms
        accepted_ms = min(float(new_ms), self._left_ms)
        self._left_ms -= accepted_ms
        return accepted_ms, accepted_ms < new_ms


class _Bounded:
    """One application whose cores somebody has set."""

    __slots__ = (
        *("_counted_at", "_ordered_ms", "_owes_until", "_used_ms", "_window_at"),
        *("at_nodes", "milli", "shares", "shares_at", "total_ms"),
    )

    def __init__(self) -> None:
        self.milli: int | None = None
        self.total_ms = 0.0
        #: since when is counted, and by when was counted, what it was ordered and what it used
        self._window_at: float | None = None
        self._counted_at = self._ordered_ms = self._used_ms = 0.0
        self._owes_until = -math.inf
        self.at_nodes: dict[NodeId, _AtNode] = {}
        #: as they were computed last, and when
        self.shares: dict[NodeId, int | None] = {}
        self.shares_at: float | None = None

    def settle(self, now: float, used_ms: float = 0.0) -> None:
        """Count what it was ordered until now, and what it is said to have used."""
        if self.milli is None:
            self._window_at = None
            return
        if self._window_at is None:
            self._window_at, self._counted_at, self._ordered_ms, self._used_ms = now, now, 0.0, 0.0
        self._ordered_ms += max(0.0, now - self._counted_at) * self.milli
        self._counted_at = now
        self._used_ms += used_ms
        if now - self._window_at >= _WINDOW_S:
            if self._used_ms > _MUCH * self._ordered_ms + _STARTED_MS:
                self._owes_until = now + _OWES_S
            self._window_at = None

    def order(self, milli: int | None, now: float) -> None:
        """Go by another order from now on; it takes some time to reach the nodes."""
        self.settle(now)
        if self.milli is not None and milli is not None and self._window_at is not None:
            self._ordered_ms += _LATE_S * max(0, self.milli - milli)
        self.milli, self.shares_at = milli, None

    def owes(self, now: float) -> bool:
        """Whether it has used much more than it was ordered."""
        return now < self._owes_until


class ApplicationCores:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._applications: dict[ApplicationId, _Bounded] = {}
        self._liars: set[NodeId] = set()
        #: when cores were divided last, and time between two divisions, s; None: nobody divides them
        self._division: tuple[float, float] | None = None

    def divided(self, epoch_s: float | None) -> None:
        """Note that cores are divided now, and again after `epoch_s` seconds; None: nobody divides them any more."""
        self._division = (self._cluster.clock.now(), epoch_s) if epoch_s is not None else None

    # ---- what the scheduler's owner of training jobs asks and orders

    def set_cores(self, app_id: ApplicationId, milli: int | None) -> bool:
        """Let an application's containers, its masters aside, use so many thousandths of a core, all nodes together.

        None: as many as they can; what they use is counted. Nodes hear of it at their next heartbeats. Returns False,
        and changes nothing, where there is no such application or it is over.
        """
        app = self._cluster.applications.get(app_id)
        if app is None or app.is_over:
            self.forget(app_id)
            return False
        bounded = self._applications.setdefault(app_id, _Bounded())
        milli = None if milli is None else min(max(0, milli), MILLI_MAX)
        if milli != bounded.milli:
            bounded.order(milli, self._cluster.clock.now())
        return True

    def forget(self, app_id: ApplicationId) -> None:
        """Stop bounding and counting it."""
        self._applications.pop(app_id, None)

    def cpu_s(self, app_id: ApplicationId) -> float | None:
        """Return the processor time, s, that its containers have used, as nodes say. None: its cores were never set."""
        bounded = self._applications.get(app_id)
        return None if bounded is None else bounded.total_ms / 1000

    def shares(self, app_id: ApplicationId) -> Mapping[NodeId, int | None]:
        """Return how many thousandths of a core it may use at each node that it has containers on."""
        bounded, app = self._applications.get(app_id), self._cluster.applications.get(app_id)
        return {} if bounded is None or app is None else self._shares(bounded, app)

    def unaware_nodes(self, app_id: ApplicationId) -> list[NodeId]:
        """Return the nodes it has containers on that hold nobody to anything."""
        nodes = self._cluster.nodes
        return [node_id for node_id in self.shares(app_id) if not _is_aware(nodes.get(node_id))]

    def check(self, now: float) -> None:
        """Forget what is over."""
        for app_id in list(self._applications):
            app = self._cluster.applications.get(app_id)
            if app is None or app.is_over:
                self.forget(app_id)

    # ---- the conversation with nodes

    def registered(self, node: RmNode, said: server.NodeCapabilities) -> None:
        """Take in what a node says of its processors; what it was told is void."""
        node.processors = min(said.processors if said.processors > 0 else max(1, node.total.vcores), _PROCESSORS_MAX)
        node.counts_since_ms = said.counts_since_ms
        node.cores_told = {}

    def reported(self, node: RmNode, status: server.NodeStatus) -> None:
        """Take in what a node says that applications have used."""
        if not status.yaq_cpu or not _is_aware(node):
            return
        now, wall_ms = self._cluster.clock.now(), self._cluster.clock.wall_ms()
        for app_id, said_ms in cpu_totals(status.yaq_cpu).items():
            bounded, app = self._applications.get(app_id), self._cluster.applications.get(app_id)
            if bounded is None or app is None or node.id not in app.nodes:
                continue
            at = bounded.at_nodes.get(node.id)
            if at is None:
                age_s = max(0, wall_ms - app.submitted_ms) / 1000
                at = bounded.at_nodes[node.id] = _AtNode(node, now, age_s)
            new_ms, is_absurd = at.take(node, said_ms, now)
            bounded.total_ms += new_ms
            bounded.settle(now, new_ms)
            if is_absurd and node.id not in self._liars:
                self._liars.add(node.id)
                log.warning(
                    "node %s: says that %s has used %d ms, which its %d processors cannot have done; it is bounded",
                    *(node.id, app_id, said_ms, node.processors),
                )

    def put_orders(self, node: RmNode, response: server.NodeHeartbeatResponse) -> None:
        """Tell a node what has changed for it."""
        if not _is_aware(node) or not (self._applications or node.cores_told):
            return
        wanted: dict[ApplicationId, int | None] = {}
        for app_id in node.applications & self._applications.keys():
            shares = self.shares(app_id)
            if node.id in shares:
                wanted[app_id] = shares[node.id]
        if wanted != node.cores_told:
            node.cores_told = wanted
            put_apps_cores(response.yaq_cores, wanted)

    def heartbeat_ms(self, node: RmNode, most_ms: int) -> int:
        """Return how soon a node is to come again, ms: where it holds jobs to their cores right after a division."""
        if self._division is None or not _is_aware(node) or self._applications.keys().isdisjoint(node.applications):
            return most_ms
        at, epoch_s = self._division
        after_s = _AFTER_S + crc32(str(node.id).encode()) % _APART_MS / 1000
        return round(1000 * beat_after(most_ms / 1000, at + after_s - self._cluster.clock.now(), epoch_s))

    def _shares(self, bounded: _Bounded, app: Application) -> dict[NodeId, int | None]:
        now = self._cluster.clock.now()
        if bounded.shares_at is None or now - bounded.shares_at >= _SHARES_S:
            bounded.shares_at = now
            bounded.settle(now)
            running = app.attempt.containers.values() if app.attempt is not None else ()
            mine = [one.allocation for one in running if not one.allocation.is_master]
            last = max((one.priority for one in mine), default=0)
            owes = bounded.owes(now)
            workers = [one for one in mine if one.priority == last or owes]
            drivers = [] if owes else [one for one in mine if one.priority != last]
            if bounded.milli is None:
                bounded.shares = dict.fromkeys(one.node_id for one in mine)
            else:
                bounded.shares = self._divided(bounded.milli, _vcores(workers), _vcores(drivers))
        return bounded.shares

    def _divided(
        self, milli: int, workers: Mapping[NodeId, int], drivers: Mapping[NodeId, int]
    ) -> dict[NodeId, int | None]:
        most = self._most({**workers, **drivers})
        shares = divide(milli, workers, most)
        for node_id, vcores in drivers.items():
            shares[node_id] = min(most[node_id], shares.get(node_id, 0) + min(milli, 1000 * vcores))
        return dict(shares)

    def _most(self, weights: Mapping[NodeId, int]) -> dict[NodeId, int]:
        """Return what each node's processors are, in thousandths."""
        nodes = self._cluster.nodes
        return {node_id: 1000 * (node.processors if (node := nodes.get(node_id)) else 1) for node_id in weights}


def _vcores(allocations: Iterable[Allocate]) -> dict[NodeId, int]:
    """Return the virtual cores of containers by node, one at least."""
    found: dict[NodeId, int] = {}
    for one in allocations:
        found[one.node_id] = found.get(one.node_id, 0) + max(1, one.resource.vcores)
    return found


def _is_aware(node: RmNode | None) -> bool:
    return node is not None and CORES in node.capabilities
