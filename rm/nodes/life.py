"""The life of nodes: registration, heartbeats, sickness, loss.

A heartbeat that brings no news costs a look-up or two: statuses of containers already known to run are recognised by
the bytes of their id and not converted again.
"""

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from rm.applications.records import RmContainer
from rm.applications.states import ContainerEvent, ContainerStage
from rm.cluster import Cluster
from rm.node_queues.named import NamedContainers
from rm.node_queues.words import NodeQueueing
from rm.nodes.liveness import Liveness
from rm.nodes.node import NodeEvent, RmNode
from rm.nodes.sizes import NodeSizes
from rm.nodes.topology import Topology
from rm.scheduler.events import NodeBeat, NodeJoined, NodeLeft, NodeResized, NodeSilent
from rm.scheduler.node_queues.spec import silent_after
from yaqd.model import ApplicationId, ContainerId, ExitStatus, NodeId, NodeState, Resource
from yaqd.model.endings import LOST_NODE
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server

log = logging.getLogger(__name__)

_REPORT_MAX: Final = 4096
_DIAGNOSTICS_MAX: Final = 64 * 1024
#: nodes that left and are still listed
_GONE_MAX: Final = 5000


@dataclass(frozen=True, slots=True)
class Registration:
    """What a node says of itself."""

    node_id: NodeId
    http_address: str
    total: Resource
    version: str
    capabilities: tuple[str, ...]
    #: containers that it has kept alive
    alive: tuple[ContainerId, ...]
    #: ended containers that it has not been told to forget: id, exit status, diagnostics
    ended: tuple[tuple[ContainerId, int, str], ...]
    applications: tuple[ApplicationId, ...]
    is_healthy: bool
    health_report: str
    #: containers that may wait on it; None: any number
    queue_max: int | None = None


class Nodes:
    def __init__(self, cluster: Cluster, *, expiry_s: float, topology: Topology, heartbeat_s: float = math.inf) -> None:
        """`heartbeat_s`: how often nodes are told to report."""
        self.cluster = cluster
        self.liveness: Liveness[NodeId] = Liveness(expiry_s)
        #: of nodes with queues, as long as what they said last is believed
        self.heard: Liveness[NodeId] = Liveness(silent_after(heartbeat_s))
        self.topology = topology
        #: what the nodes named here have, whatever they say themselves; set by the daemon and the administrator
        self.sizes: NodeSizes = {}
        #: hears of nodes that report grown containers; set by the daemon
        self.on_increased: Callable[[RmNode, server.NodeStatus], None] = lambda node, status: None
        #: takes in what nodes say of their queues; set by the daemon
        self.queueing: NodeQueueing | None = None
        #: nodes that are not there any more, in the order of their going
        self._gone: dict[NodeId, None] = {}

    # ---- joining and leaving

    def register(self, said: Registration) -> RmNode:
        """Have a node join, or join again: what it does not bring along of its old containers is lost."""
        cluster = self.cluster
        node = cluster.nodes.get(said.node_id)
        if node is None:
            node = cluster.nodes[said.node_id] = RmNode(said.node_id, self.topology.rack_of(said.node_id.host))
        else:
            self._rejoin(node, said)
        self._gone.pop(node.id, None)
        node.rack = self.topology.rack_of(said.node_id.host)
        node.http_address, node.version = said.http_address, said.version
        node.total = cluster.scheduler.facts.bounds.known(said.total)
        node.capabilities, node.queue_max = said.capabilities, said.queue_max
        node.health_report, node.health_reported_ms = said.health_report, cluster.clock.wall_ms()
        node.reset_conversation()
        node.machine.advance(NodeEvent.REGISTER)
        node.heard_at = cluster.clock.now()
        self.liveness.seen(node.id, node.heard_at)
        log.info("node %s: registered with %s, rack %s, version %s", node.id, node.total, node.rack, node.version)
        cluster.note_node_change(node)
        for container_id in said.alive:
            self._reported_alive(node, container_id)
        for container_id, exit_status, diagnostics in said.ended:
            self._reported_ended(node, container_id, exit_status, diagnostics)
        for app_id in said.applications:
            self._reported_application(node, app_id)
        if said.is_healthy:
            cluster.schedule(NodeJoined(node.id, node.rack, node.total, tuple(node.containers)))
        else:
            self._sicken(node, said.health_report)
        return node

    def _rejoin(self, node: RmNode, said: Registration) -> None:
        kept = frozenset(said.alive) | {container_id for container_id, *_ in said.ended}
        self._node_left(node, kept)
        self._lose_containers(node, LOST_NODE, lambda container: container.id not in kept)
        node.running.clear()
        node.running_wire.clear()
        node.named = NamedContainers()
        if node.containers:
            # They stay charged: the scheduler gets the node with them on it.
            log.info("node %s: back with %d containers", node.id, len(node.containers))

    def _node_left(self, node: RmNode, kept: frozenset[ContainerId] = frozenset()) -> None:
        """Before its containers' ends are booked, all but those kept."""
        if self.queueing is not None:
            self.queueing.lost(node, kept)
        self.cluster.schedule(NodeLeft(node.id))

    def _lose_containers(self, node: RmNode, why: str, is_lost: Callable[[RmContainer], bool]) -> None:
        for container in list(node.containers.values()):
            if is_lost(container):
                self.cluster.end_container(container, ContainerEvent.KILL, ExitStatus.ABORTED, why, kill=False)

    def _leave(self, node: RmNode, event: NodeEvent, why: str) -> None:
        was_draining = node.state is NodeState.DECOMMISSIONING
        if not node.machine.advance(event):
            return
        if was_draining:
            node.total = node.used  # what clients were told since the draining began
        level = logging.INFO if event is NodeEvent.SHUT_DOWN else logging.WARNING
        log.log(level, "node %s: %s (%s)", node.id, node.state.name, why)
        self.liveness.forget(node.id)
        self.heard.forget(node.id)
        self._node_left(node)
        self.cluster.note_node_change(node)
        self._lose_containers(node, LOST_NODE, lambda _: True)
        node.running_wire.clear()
        node.named = NamedContainers()
        self._gone[node.id] = None
        while len(self._gone) > _GONE_MAX:
            oldest = next(iter(self._gone))
            del self._gone[oldest], self.cluster.nodes[oldest]

    def shut_down(self, node_id: NodeId, why: str = "it unregistered") -> None:
        """Note that the node goes, or is to go."""
        node = self.cluster.nodes.get(node_id)
        if node is not None and node.machine.can(NodeEvent.SHUT_DOWN):
            self._leave(node, NodeEvent.SHUT_DOWN, why)

    def decommission(self, node: RmNode, why: str) -> None:
        """Send the node away, as an administrator wants."""
        if node.machine.can(NodeEvent.DECOMMISSION):
            self._leave(node, NodeEvent.DECOMMISSION, why)

    def gone(self) -> list[RmNode]:
        """List nodes that are not there any more and still listed."""
        return [self.cluster.nodes[node_id] for node_id in self._gone]

    def forget(self, node: RmNode) -> None:
        """List a node that is gone no longer."""
        self._gone.pop(node.id, None)
        self.cluster.nodes.pop(node.id, None)

    def check_silence(self, now: float) -> None:
        """Tell the scheduler of silent nodes: their reports are too old to send work to wait there."""
        for node_id in self.heard.expired(now):
            self.cluster.schedule(NodeSilent(node_id))

    def check_expiry(self, now: float) -> None:
        for node_id in self.liveness.expired(now):
            node = self.cluster.nodes.get(node_id)
            if node is not None:
                self._leave(node, NodeEvent.EXPIRE, f"no heartbeat for {self.liveness.limit_s:g} s")
        for container_id in self.cluster.unstarted.expired(now):
            container = self.cluster.containers.get(container_id)
            if container is not None:
                why = f"Container {container_id} expired since it was unused"
                self.cluster.end_container(container, ContainerEvent.EXPIRE, ExitStatus.ABORTED, why, kill=True)

    def resize(self, node: RmNode, total: Resource) -> None:
        """Give the node another size, as an administrator wants."""
        node.total = self.cluster.scheduler.facts.bounds.known(total)
        node.orders.resized = True
        if node.state is not NodeState.DECOMMISSIONING:
            self.cluster.schedule(NodeResized(node.id, node.total))

    # ---- heartbeats

    def beat(self, node: RmNode, status: server.NodeStatus) -> None:
        """Take in what a node reports and let the scheduler use the opportunity."""
        heard_at, node.heard_at = node.heard_at, self.cluster.clock.now()
        if node.state is NodeState.DECOMMISSIONED:  # it stays all the same: what it has still ends
            self._statuses(node, status.containersStatuses)
            return
        self.liveness.refresh(node.id, node.heard_at)
        node.status = status
        if status.HasField("nodeHealthStatus"):
            self._note_health(node, status.nodeHealthStatus)
        if self.queueing is not None:
            self.queueing.reported(node, status, node.heard_at - heard_at if heard_at is not None else None)
            if self.queueing.is_on:
                self.heard.seen(node.id, node.heard_at)
        if status.containersStatuses or node.running:
            self._statuses(node, status.containersStatuses)
        if status.increased_containers:
            self.on_increased(node, status)
        scheduler = self.cluster.scheduler
        if scheduler.has_waiting:
            self.cluster.schedule(NodeBeat(node.id))

    def _note_health(self, node: RmNode, health: server.NodeHealthStatus) -> None:
        """A node may be healthy and have something to report: a disk of several that is full."""
        node.health_report = health.health_report[:_REPORT_MAX]
        node.health_reported_ms = health.last_health_report_time or node.health_reported_ms
        if node.state is NodeState.DECOMMISSIONING:
            return  # it goes anyway: sickness changes nothing
        if health.is_node_healthy == node.is_usable:
            return
        if not health.is_node_healthy:
            self._sicken(node, node.health_report)
        elif node.machine.advance(NodeEvent.RECOVER):
            log.info("node %s: healthy again", node.id)
            self.cluster.note_node_change(node)
            self.cluster.schedule(NodeJoined(node.id, node.rack, node.total))

    def _sicken(self, node: RmNode, report: str) -> None:
        if node.machine.advance(NodeEvent.SICKEN):
            log.warning("node %s: unhealthy: %s", node.id, report[:500])
            self._node_left(node)
            self.cluster.note_node_change(node)
            for container in list(node.containers.values()):
                self.cluster.end_container(container, ContainerEvent.KILL, ExitStatus.ABORTED, LOST_NODE, kill=True)

    def _statuses(self, node: RmNode, statuses: Iterable[common.ContainerStatus]) -> None:
        known = node.running_wire
        running: set[bytes] = set()
        for status in statuses:
            wire = status.container_id.SerializeToString()
            if status.state == common.C_COMPLETE:
                container_id = convert.container_id(status.container_id)
                ending = node.containers.get(container_id)
                if ending is not None and self.queueing is not None:
                    self.queueing.ended(node, ending, status)
                self._reported_ended(node, container_id, status.exit_status, status.diagnostics)
            else:
                if wire not in known:
                    self._reported_alive(node, convert.container_id(status.container_id))
                running.add(wire)
        if running != known:
            node.running_wire = running
        if len(node.running) > len(running):
            self._find_missing(node, running)

    def _reported_alive(self, node: RmNode, container_id: ContainerId) -> None:
        container = node.containers.get(container_id)
        if container is None:
            log.warning("%s: runs on %s and should not; it is stopped", container_id, node.id)
            node.orders.containers_to_kill[container_id] = None
        elif container_id not in node.running:
            container.attempt.app.ran_on(node.id)
            self.cluster.container_started(container, node)

    def _reported_ended(self, node: RmNode, container_id: ContainerId, exit_status: int, diagnostics: str) -> None:
        container = node.containers.get(container_id)
        if container is not None:
            if container.stage is ContainerStage.ALLOCATED:
                # Nobody can have started what nobody was told of.
                log.warning("%s: ended on %s before its master had it", container_id, node.id)
                container.machine.advance(ContainerEvent.ACQUIRE)
            container.attempt.app.ran_on(node.id)
            text = diagnostics[:_DIAGNOSTICS_MAX]
            self.cluster.end_container(container, ContainerEvent.FINISH, exit_status, text, kill=False)
        elif not self._is_awaited(container_id):
            node.orders.containers_to_forget.append(container_id)

    def _is_awaited(self, container_id: ContainerId) -> bool:
        """Has this end been booked, and does its master not have it for certain?"""
        app = self.cluster.applications.get(container_id.application_id)
        attempt = app.attempt if app is not None else None
        if attempt is None:
            return False
        return any(c.container_id == container_id for c in (*attempt.completions, *attempt.told_completions))

    def _find_missing(self, node: RmNode, running: set[bytes]) -> None:
        """Containers that the node ran and no longer speaks of are lost."""
        for container_id in list(node.running):
            container = node.containers.get(container_id)  # None: it went with its master, a moment ago
            if container is not None and convert.container_id_pb(container_id).SerializeToString() not in running:
                why = f"Container {container_id} was running but not reported from {node.id}"
                self.cluster.end_container(container, ContainerEvent.KILL, ExitStatus.ABORTED, why, kill=True)

    def _reported_application(self, node: RmNode, app_id: ApplicationId) -> None:
        app = self.cluster.applications.get(app_id)
        if app is None or app.is_over:
            node.orders.applications_to_clean.append(app_id)
        else:
            node.applications.add(app_id)
            app.nodes[node.id] = None
