"""Nodes that an administrator sends away, at once or after what they run has ended, and lets back in.

The host files say who; `refreshNodes` says how. A node that is drained takes no new containers. It is told to shut down
with the heartbeat after its containers have ended and the applications that had some there are over. (Other containers
may still fetch their map outputs from it.) Or it is told so after its time is up, as Hadoop's
DecommissioningNodesWatcher has it.

Nodes that are drained by name (`drain`) wait for what they run however long it takes. They stay where they are, with
nothing to do, and take containers again as soon as they are let back in. Where an administrator does not wait for what
they run, it ends, and they are DECOMMISSIONED. Their heartbeats go on all the same, with nothing to do.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable
from typing import Final

from rm.applications.states import ContainerEvent
from rm.nodes.drained import DrainedNodes, host_of
from rm.nodes.hosts import HostLists, address_of
from rm.nodes.life import Nodes
from rm.nodes.node import NodeEvent, RmNode
from rm.scheduler.events import NodeDraining, NodeResized
from yaqd.model import ExitStatus, NodeId, NodeState
from yaqd.model.endings import LOST_NODE

log = logging.getLogger(__name__)

_PRESENT: Final = (NodeState.RUNNING, NodeState.UNHEALTHY, NodeState.DECOMMISSIONING)
#: of a drain that nobody has set a time
_FOR_EVER: Final = -1
#: nodes that an answer names
_NAMED_MAX: Final = 20
#: port of a node that is known from the exclude file alone
_NO_PORT: Final = -1


class Decommission:
    def __init__(
        self, nodes: Nodes, hosts: HostLists, drained: DrainedNodes, *, timeout_s: int, untracked_s: float
    ) -> None:
        self._nodes = nodes
        #: by name
        self._drained = drained
        self._cluster = nodes.cluster
        self.hosts = hosts
        #: how long a drained node may take when nobody says; negative: for ever
        self._timeout_s = timeout_s
        #: how long a node that went is listed after it was taken from the include file
        self._untracked_s = untracked_s
        self._untracked: dict[NodeId, float] = {}
        for host in hosts.excluded:
            self._list_excluded(host)

    def _list_excluded(self, host: str) -> None:
        """Show an excluded host that never registered, as Hadoop does after a start."""
        node = RmNode(NodeId(host, _NO_PORT), "/default-rack")
        node.http_address = f"{host}:{_NO_PORT}"
        node.machine.advance(NodeEvent.DECOMMISSION)
        self._cluster.nodes[node.id] = node

    # ---- who may join

    async def find_address(self, host: str) -> str:
        """Find the host's address where a list names addresses, else ""."""
        if not self.hosts.name_addresses:
            return ""
        return await asyncio.to_thread(address_of, host)

    def refuses(self, node_id: NodeId, address: str) -> bool:
        """Return whether this node may not be here. One that is drained may until it is done."""
        if self.hosts.admits(node_id.host, address):
            return False
        node = self._cluster.nodes.get(node_id)
        return node is None or node.state is not NodeState.DECOMMISSIONING

    def joined(self, node: RmNode, address: str) -> None:
        """Note that the node has registered."""
        node.address = address
        self._cluster.nodes.pop(NodeId(node.id.host, _NO_PORT), None)
        self._untracked.pop(node.id, None)
        if node.state is NodeState.DECOMMISSIONING:
            self._cluster.schedule(NodeDraining(node.id))
        elif self._is_drained(node):
            if self._drained.was_forced(str(node.id).lower()):
                self._send_away(node)
            else:
                self._drain(node, _FOR_EVER)

    def is_kept(self, node: RmNode) -> bool:
        """Return whether the node was sent away and stays so until somebody lets it back in.

        Nodes that are drained by name do.
        """
        return node.state is NodeState.DECOMMISSIONED and self._is_drained(node)

    # ---- by name

    def drain(self, names: Iterable[str]) -> None:
        """Raises ValueError, and drains nothing, where a name is none of a node that is there."""
        found = [(name.lower(), self._named(name)) for name in names]
        for name, nodes in found:
            if all(self.is_kept(node) for node in nodes):
                raise ValueError(
                    f"{name[:255]} is drained and has left: `yaq node undrain {name[:255]}` lets it back in"
                )
        for name, nodes in found:
            self._drained.add(name)
            for node in nodes:
                if not self.is_kept(node):
                    self._drain(node, _FOR_EVER)

    def undrain(self, names: Iterable[str]) -> None:
        """Let nodes back in. A host's name lets in all nodes there, however they were named when they were drained.

        Raises ValueError, and changes nothing, where a name is neither drained nor of a node that is there. It does so,
        too, where a node would stay drained all the same.
        """
        asked = [name.lower() for name in names]
        dropped = {name for one in asked for name in self._drained if name == one or host_of(name) == one}
        for one in asked:
            if not any(name == one or host_of(name) == one for name in dropped):
                self._named(one)
        for node in self._cluster.nodes.values():
            if any(name in asked for name in _names(node)) and self._is_there(node):
                self._check_let_in(node, dropped)
        for name in sorted(dropped):
            self._drained.drop(name)
        for node in self._cluster.nodes.values():
            # one that left by force and stayed is had to register anew by its next heartbeat
            is_let_in = not self._is_drained(node) and self.hosts.admits(node.id.host, node.address)
            if is_let_in and node.state is NodeState.DECOMMISSIONING:
                self._recommission(node)

    def _check_let_in(self, node: RmNode, dropped: Collection[str]) -> None:
        """Raises ValueError where it stays drained when these names are not any more."""
        if not self.hosts.admits(node.id.host, node.address):
            raise ValueError(
                f"node {node.id} is drained by the files of hosts: change these, and then `yaq rm refresh nodes`"
            )
        host = node.id.host.lower()
        if host in self._drained and host not in dropped:
            raise ValueError(f"node {node.id} is drained as part of {host}: `yaq node undrain {host}` lets it back in")

    def _named(self, name: str) -> list[RmNode]:
        present = [node for node in self._cluster.nodes.values() if self._is_there(node)]
        found = [node for node in present if name.lower() in _names(node)]
        if not found:
            known = sorted(str(node.id) for node in present)
            more = f" and {len(known) - _NAMED_MAX} more" if len(known) > _NAMED_MAX else ""
            raise ValueError(
                f"there is no node {name[:255]}; there are {', '.join(known[:_NAMED_MAX]) or 'none'}{more}"
            )
        return found

    def _is_there(self, node: RmNode) -> bool:
        return node.state in _PRESENT or self.is_kept(node)

    def _is_drained(self, node: RmNode) -> bool:
        return any(name in self._drained for name in _names(node))

    # ---- refreshNodes

    async def refresh(self, hosts: HostLists, *, graceful: bool, timeout_s: int | None) -> None:
        """Take new lists: send away who is no longer admitted, let drained nodes that are back in."""
        self.hosts = hosts
        present = [node for node in self._cluster.nodes.values() if node.state in _PRESENT]
        if hosts.name_addresses:
            for node in present:
                node.address = node.address or await asyncio.to_thread(address_of, node.id.host)
        default = self._timeout_s if timeout_s is None else timeout_s
        for node in present:
            if hosts.admits(node.id.host, node.address):
                if not self._is_drained(node):
                    self._recommission(node)
            elif graceful:
                self._drain(node, hosts.timeout_s(node.id.host, default))
            else:
                self._send_away(node)

    def force(self) -> None:
        """Do not wait any longer for nodes that are being drained."""
        for node in self.draining():
            if self._is_drained(node):
                self._drained.force(str(node.id).lower())
            self._send_away(node)

    def draining(self) -> list[RmNode]:
        return [node for node in self._cluster.nodes.values() if node.state is NodeState.DECOMMISSIONING]

    def _send_away(self, node: RmNode) -> None:
        if self.hosts.is_untracked(node.id.host, node.address):
            self._nodes.shut_down(node.id, "it is in no list of hosts any more")
        elif self.hosts.admits(node.id.host, node.address):
            self._end_containers(node)  # it stays, and is told so
            self._nodes.decommission(node, "an administrator drained it, and does not wait")
        else:
            self._nodes.decommission(node, "an administrator excluded it")

    def _drain(self, node: RmNode, timeout_s: int) -> None:
        now = self._cluster.clock.now()
        if node.state is NodeState.DECOMMISSIONING:
            if node.drain_timeout_s != timeout_s and node.drained_since is not None:
                node.drain_timeout_s = timeout_s
                log.info("node %s: has %d s to end what it runs", node.id, timeout_s)
            return
        if not node.machine.advance(NodeEvent.DRAIN):
            return
        node.drained_since, node.drain_timeout_s, node.rests = now, timeout_s, False
        log.info("node %s: DECOMMISSIONING, %d containers, has %d s", node.id, len(node.containers), timeout_s)
        self._cluster.schedule(NodeDraining(node.id))
        self._cluster.note_node_change(node)

    def _recommission(self, node: RmNode) -> None:
        if node.state is not NodeState.DECOMMISSIONING:
            return
        node.machine.advance(NodeEvent.RECOMMISSION)
        node.drained_since = None
        log.info("node %s: recommissioned", node.id)
        self._cluster.schedule(NodeResized(node.id, node.total))
        self._cluster.note_node_change(node)

    # ---- the end of a drained node

    def is_done(self, node: RmNode) -> bool:
        """Return whether the drained node may go now."""
        if node.state is not NodeState.DECOMMISSIONING or node.drained_since is None:
            return False
        if not node.containers and not node.applications:
            return True
        waited = self._cluster.clock.now() - node.drained_since
        return 0 <= node.drain_timeout_s <= waited

    def stays(self, node: RmNode) -> bool:
        """Return whether the node stays when it is drained. What it still runs after its time is then ended here."""
        if not self._is_drained(node):
            return False
        if not node.rests:
            node.rests = True
            log.info("node %s: drained", node.id)
            self._end_containers(node)
        return True

    def _end_containers(self, node: RmNode) -> None:
        for container in list(node.containers.values()):
            self._cluster.end_container(container, ContainerEvent.KILL, ExitStatus.ABORTED, LOST_NODE, kill=True)

    def finish(self, node: RmNode) -> str:
        """Let the drained node go; returns what it is told."""
        message = f"DECOMMISSIONING {node.id} is ready to be decommissioned"
        self._nodes.decommission(node, "it is drained" if not node.containers else "its time is up")
        return message

    def forget_untracked(self, now: float) -> None:
        """Stop listing nodes that went and are in no list of hosts."""
        if not self.hosts.included:
            self._untracked.clear()
            return
        for node in self._nodes.gone():
            if not self.hosts.is_untracked(node.id.host, node.address):
                self._untracked.pop(node.id, None)
            elif now - self._untracked.setdefault(node.id, now) > self._untracked_s:
                del self._untracked[node.id]
                self._nodes.forget(node)
                log.info("node %s: forgotten, it is in no list of hosts", node.id)


def _names(node: RmNode) -> tuple[str, str]:
    """What it may be called."""
    return node.id.host.lower(), str(node.id).lower()
