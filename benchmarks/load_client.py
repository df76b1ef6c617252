"""Thousands of simulated NodeManagers in one process, over real Hadoop RPC, against any ResourceManager.

Each node is a NodeId with a loopback address of its own (127.x.y.z are all this machine) and the port of one listening
server, so that the ResourceManager can start containers on every one of them. Nodes run nothing: what they are told
to start counts as running until it is ended. Latency counts from the moment a heartbeat was *due*, not from when the
client got round to sending it.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from yaqd.ipc import Caller, RpcClient, RpcServer
from yaqd.model import NodeAction
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ContainerManagementProtocol, ResourceTracker
from yaqd.security import Credentials, MasterKey, NMTokenSecrets, Token, VerifierKeys

_TICK_S = 0.002
_REGISTER_AT_ONCE = 64

#: (credentials, container) of an application master that was told to start
MasterStarted = Callable[[Credentials, server.ContainerTokenIdentifier], None]


@dataclass(slots=True)
class Beats:
    """What came of a period of heartbeats."""

    count: int = 0
    elapsed_s: float = 0.0
    #: from due to answered, one per heartbeat
    latencies_s: list[float] = field(default_factory=list)
    #: not sent because the node's previous one was still unanswered
    skipped: int = 0
    errors: int = 0
    first_error: str = ""

    @property
    def rate(self) -> float:
        """Answered heartbeats per second."""
        return self.count / self.elapsed_s if self.elapsed_s else 0.0

    def percentile_ms(self, share: float) -> float:
        """The latency that this share of the heartbeats stays within."""
        ordered = sorted(self.latencies_s)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000 if ordered else float("nan")


def heartbeat_of(node_id: common.NodeId) -> server.NodeHeartbeatRequest:
    """Return the heartbeat of a healthy node that uses nothing."""
    request = server.NodeHeartbeatRequest()
    status = request.node_status
    status.node_id.CopyFrom(node_id)
    status.nodeHealthStatus.is_node_healthy = True
    status.nodeHealthStatus.health_report = ""
    status.nodeHealthStatus.last_health_report_time = int(time.time() * 1000)
    for utilization in (status.containers_utilization, status.node_utilization):
        utilization.pmem = utilization.vmem = 0
        utilization.cpu = 0.0
    return request


class SimulatedNode:
    """One NodeManager as its ResourceManager sees it."""

    def __init__(self, client: RpcClient, host: str, port: int, memory_mb: int, vcores: int) -> None:
        self._client = client
        self.address = f"{host}:{port}"
        self.is_beating = False
        #: str(container id) -> its last status; complete ones are reported once
        self._containers: dict[bytes, common.ContainerStatus] = {}
        self._resource = common.Resource(memory=memory_mb, virtual_cores=vcores)
        self._node_id = common.NodeId(host=host, port=port)
        self._request = heartbeat_of(self._node_id)

    async def register(self) -> tuple[MasterKey, int]:
        """Register; return the key of NM tokens and the ResourceManager's identifier."""
        self._request.node_status.response_id = 0
        request = server.RegisterNodeManagerRequest(
            node_id=self._node_id,
            http_port=self._node_id.port + 1,
            resource=self._resource,
            physicalResource=self._resource,
            nm_version="3.4.2",
            nodeStatus=self._request.node_status,
        )
        response = await self._client.call(ResourceTracker.registerNodeManager, request)
        if response.nodeAction != NodeAction.NORMAL.value:
            raise RuntimeError(f"{self.address} was turned away: {response.diagnostics_message}")
        self._request.last_known_container_token_master_key.CopyFrom(response.container_token_master_key)
        self._request.last_known_nm_token_master_key.CopyFrom(response.nm_token_master_key)
        return MasterKey.from_pb(response.nm_token_master_key), response.rm_identifier

    async def beat(self) -> None:
        """Send one heartbeat and obey the answer."""
        status = self._request.node_status
        response = await self._client.call(ResourceTracker.nodeHeartbeat, self._request)
        if response.nodeAction != NodeAction.NORMAL.value:
            raise RuntimeError(f"{self.address} was told to {response.nodeAction}: {response.diagnostics_message}")
        status.response_id = response.response_id
        if self._containers:
            self._drop_reported()
        for container_id in response.containers_to_cleanup:
            self.end(container_id)

    def run(self, container_id: common.ContainerId, resource: common.Resource) -> None:
        status = common.ContainerStatus(
            container_id=container_id,
            state=common.C_RUNNING,
            exit_status=-1000,
            diagnostics="",
            capability=resource,
        )
        self._containers[container_id.SerializeToString()] = status
        self._report()

    def end(self, container_id: common.ContainerId) -> None:
        status = self._containers.get(container_id.SerializeToString())
        if status is not None:
            status.state = common.C_COMPLETE
            status.exit_status = 0
            self._report()

    def _report(self) -> None:
        statuses = self._request.node_status.containersStatuses
        del statuses[:]
        statuses.extend(self._containers.values())

    def _drop_reported(self) -> None:
        reported = {
            status.container_id.SerializeToString()
            for status in self._request.node_status.containersStatuses
            if status.state == common.C_COMPLETE
        }
        if reported:
            self._containers = {key: value for key, value in self._containers.items() if key not in reported}
            self._report()


class NodeFleet:
    """All simulated nodes, their connections and their common server for containers."""

    def __init__(
        self,
        tracker: tuple[str, int],
        *,
        nodes: int,
        connections: int,
        memory_mb: int = 8192,
        vcores: int = 8,
        on_master: MasterStarted | None = None,
    ) -> None:
        self._tracker = tracker
        self._count = nodes
        self._connections = connections
        self._shape = (memory_mb, vcores)
        self._on_master = on_master
        self._keys = VerifierKeys()
        self._server = RpcServer(
            name="simulated nodes", host="0.0.0.0", token_secrets=NMTokenSecrets(self._keys), allow_simple=False
        )
        self._clients: list[RpcClient] = []
        self.nodes: list[SimulatedNode] = []
        self._by_address: dict[str, SimulatedNode] = {}

    async def start(self) -> None:
        """Listen for containers and register every node."""
        protocol = ContainerManagementProtocol
        self._server.register(protocol.startContainers, self._start_containers)
        self._server.register(protocol.stopContainers, self._stop_containers)
        await self._server.start()
        self._clients = [RpcClient(*self._tracker, user="yarn") for _ in range(self._connections)]
        self.nodes = [
            SimulatedNode(self._clients[i % self._connections], _host(i), self._server.port, *self._shape)
            for i in range(self._count)
        ]
        self._by_address = {node.address: node for node in self.nodes}
        for at in range(0, self._count, _REGISTER_AT_ONCE):
            batch = self.nodes[at : at + _REGISTER_AT_ONCE]
            for key, _ in await asyncio.gather(*(node.register() for node in batch)):
                self._keys.set_current(key)

    async def stop(self) -> None:
        await asyncio.gather(*(client.close() for client in self._clients))
        await self._server.stop()

    async def beat_paced(self, rate: float, seconds: float) -> Beats:
        """Send `rate` heartbeats per second, spread evenly over the nodes and the time."""
        beats, loop, running = Beats(), asyncio.get_running_loop(), set[asyncio.Task[None]]()
        start, sent = loop.time(), 0
        while (now := loop.time()) < start + seconds:
            while sent < (now - start) * rate:
                node = self.nodes[sent % self._count]
                due = start + sent / rate
                sent += 1
                if node.is_beating:
                    beats.skipped += 1
                    continue
                task = loop.create_task(self._timed_beat(node, due, beats))
                running.add(task)
                task.add_done_callback(running.discard)
            await asyncio.sleep(_TICK_S)
        if running:
            await asyncio.wait(running, timeout=10)
        beats.elapsed_s = loop.time() - start
        return beats

    async def beat_flat_out(self, seconds: float, in_flight: int) -> Beats:
        """Keep `in_flight` heartbeats under way all the time, each node's turn as soon as its answer is there."""
        beats, loop = Beats(), asyncio.get_running_loop()
        in_flight = min(in_flight, self._count)
        start = loop.time()

        async def worker(nodes: Sequence[SimulatedNode]) -> None:
            at = 0
            while (now := loop.time()) < start + seconds:
                await self._timed_beat(nodes[at], now, beats)
                at = (at + 1) % len(nodes)

        await asyncio.gather(*(worker(self.nodes[i::in_flight]) for i in range(in_flight)))
        beats.elapsed_s = loop.time() - start
        return beats

    @staticmethod
    async def _timed_beat(node: SimulatedNode, due: float, beats: Beats) -> None:
        node.is_beating = True
        try:
            await node.beat()
        except Exception as error:
            beats.errors += 1
            beats.first_error = beats.first_error or f"{node.address}: {error}"
        else:
            beats.count += 1
            beats.latencies_s.append(asyncio.get_running_loop().time() - due)
        finally:
            node.is_beating = False

    def _start_containers(
        self, request: service.StartContainersRequest, caller: Caller
    ) -> service.StartContainersResponse:
        response = service.StartContainersResponse()
        for start in request.start_container_request:
            identifier = server.ContainerTokenIdentifier.FromString(start.container_token.identifier)
            self._by_address[identifier.nmHostAddr].run(identifier.containerId, identifier.resource)
            response.succeeded_requests.add().CopyFrom(identifier.containerId)
            credentials = Credentials.read(start.container_launch_context.tokens)
            if self._on_master is not None:
                self._on_master(credentials, identifier)
        return response

    def _stop_containers(
        self, request: service.StopContainersRequest, caller: Caller
    ) -> service.StopContainersResponse:
        response = service.StopContainersResponse()
        for container_id in request.container_id:
            for node in self.nodes:
                node.end(container_id)
            response.succeeded_requests.add().CopyFrom(container_id)
        return response

    def end_container(self, address: str, container_id: common.ContainerId) -> None:
        """The container exits by itself."""
        self._by_address[address].end(container_id)


def _host(index: int) -> str:
    """A loopback address per node: 127.1.0.1, 127.1.0.2, ... none of which has a name."""
    return f"127.{1 + index // 62500}.{index // 250 % 250}.{index % 250 + 1}"


def token_of(credentials: Credentials, kind: str) -> Token:
    """The token of a kind that a container was given."""
    token = credentials.token_of_kind(kind)
    if token is None:
        raise RuntimeError(f"a container was started without a token of kind {kind}")
    return token
