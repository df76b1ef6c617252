"""The job manager's calls to NodeManagers: one connection per node, starts and stops collected per node.

What was decided in one turn of the event loop goes out in one startContainers call per node. Each connection
authenticates with the NMToken that the ResourceManager sent for that node. A node that refuses or cannot be
reached is reported per container through `on_failure`; stops are best effort, as the ResourceManager also cleans up.
"""

import asyncio
import logging
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from riffle_merger.merger.disk import DiskFacts
from tez_adapter.core.events import LaunchFailed
from tez_adapter.protocol import SHUFFLE_SERVICE
from yaqd.ipc import RetryPolicy, RpcClient
from yaqd.ipc.errors import NMNotYetReady, RemoteException, RpcError
from yaqd.ipc.tasks import TaskSet
from yaqd.model import ContainerId, NodeId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ContainerManagementProtocol as Protocol
from yaqd.security import Token

log = logging.getLogger(__name__)

MERGER_SERVICE = "riffle_merger"
DISK_SERVICE = "riffle_disk"
_TIMEOUT_S = 30.0
#: about two seconds: a node that is away for longer has lost its containers, and others can run the tasks
_RETRIES = RetryPolicy(attempts=5, first_delay_s=0.1, delay_max_s=1.0)


def _failure(container: ContainerId, reason: str, class_name: str | None) -> LaunchFailed:
    """`class_name`: the Java class of what the node answered; None: nothing."""
    not_now = class_name == NMNotYetReady.JAVA_CLASS
    return LaunchFailed(str(container), reason, refused=class_name is not None, not_now=not_now)


@dataclass(slots=True)
class _Node:
    id: NodeId
    client: RpcClient | None = None
    starts: list[tuple[ContainerId, pb.StartContainerRequest]] = field(default_factory=list)
    stops: list[ContainerId] = field(default_factory=list)
    questions: list[ContainerId] = field(default_factory=list)
    #: about its services, and it has not answered
    is_asked: bool = False


class NodeLinks:
    def __init__(
        self,
        user: str,
        *,
        on_failure: Callable[[LaunchFailed], object],
        on_started: Callable[[ContainerId], None],
        on_waiting: Callable[[ContainerId], None],
    ) -> None:
        """`on_waiting` hears of containers asked for that their node has not started yet."""
        self._user = user
        self._on_failure = on_failure
        self._on_started = on_started
        self._on_waiting = on_waiting
        self._tokens: dict[NodeId, Token] = {}
        self._nodes: dict[NodeId, _Node] = {}
        self._tasks = TaskSet()
        self._is_flush_due = False
        #: port of each node's shuffle service, as its answers to starts tell it
        self.shuffle_ports: dict[NodeId, int] = {}
        #: and of its merger, where it has one; 0 while that is being started
        self.merger_ports: dict[NodeId, int] = {}
        #: and what its merger found of its disk
        self.disks: dict[NodeId, DiskFacts] = {}

    def token(self, node: NodeId, token: Token) -> None:
        known = self._tokens.get(node)
        self._tokens[node] = token
        record = self._nodes.get(node)
        if record is not None and record.client is not None and known != token:
            # the next call connects with the new one
            self._tasks.start(record.client.close())
            record.client = None

    def start(
        self, node: NodeId, container: ContainerId, token: common.Token, context: common.ContainerLaunchContext
    ) -> None:
        request = pb.StartContainerRequest(container_launch_context=context, container_token=token)
        self._node(node).starts.append((container, request))
        self._schedule_flush()

    def stop(self, node: NodeId, container: ContainerId) -> None:
        self._node(node).stops.append(container)
        self._schedule_flush()

    def ask(self, node: NodeId, container: ContainerId) -> None:
        """Ask whether a container still waits there. No answer is as good as no."""
        self._node(node).questions.append(container)
        self._schedule_flush()

    def ask_services(self, node: NodeId) -> None:
        """Ask what the node's answer to a start says, without a start; one question at a time."""
        record = self._node(node)
        if not record.is_asked:
            record.is_asked = True
            self._tasks.start(self._ask_services(record))

    def _node(self, node: NodeId) -> _Node:
        return self._nodes.setdefault(node, _Node(node))

    def _schedule_flush(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        for record in self._nodes.values():
            if record.starts:
                starts, record.starts = record.starts, []
                self._tasks.start(self._start(record, starts))
            if record.stops:
                stops, record.stops = record.stops, []
                self._tasks.start(self._stop(record, stops))
            if record.questions:
                questions, record.questions = record.questions, []
                self._tasks.start(self._ask(record, questions))

    def _client(self, record: _Node) -> RpcClient:
        if record.client is None:
            token = self._tokens.get(record.id)
            if token is None:
                raise RpcError(f"no NMToken came for {record.id}")
            record.client = RpcClient(
                record.id.host,
                record.id.port,
                user=self._user,
                token=token,
                timeout_s=_TIMEOUT_S,
                connect_retries=_RETRIES,
            )
        return record.client

    async def _start(self, record: _Node, starts: list[tuple[ContainerId, pb.StartContainerRequest]]) -> None:
        request = pb.StartContainersRequest()
        request.start_container_request.extend(r for _, r in starts)
        try:
            response = await self._client(record).call(Protocol.startContainers, request)
        except (RpcError, RemoteException, OSError) as error:
            log.warning("node %s did not start %d containers: %s", record.id, len(starts), error)
            class_name = error.class_name if isinstance(error, RemoteException) else None
            for container, _ in starts:
                self._on_failure(_failure(container, str(error), class_name))
            return
        self._note_services(record.id, response)
        failed = {convert.container_id(f.container_id): f.exception for f in response.failed_requests}
        for container, _ in starts:
            if container in failed:
                answer = failed[container]
                reason = answer.message or answer.class_name
                log.warning("node %s refused container %s: %s", record.id, container, reason)
                self._on_failure(_failure(container, reason, answer.class_name))
            else:
                self._on_started(container)

    async def _ask_services(self, record: _Node) -> None:
        try:
            answer = await self._client(record).call(Protocol.startContainers, pb.StartContainersRequest())
            self._note_services(record.id, answer)
        except (RpcError, RemoteException, OSError) as error:
            log.warning("node %s does not tell its services: %s", record.id, error)
        finally:
            record.is_asked = False

    def _note_services(self, node: NodeId, response: pb.StartContainersResponse) -> None:
        ports = {
            entry.key: struct.unpack_from(">i", entry.value)[0]
            for entry in response.services_meta_data
            if entry.key in (SHUFFLE_SERVICE, MERGER_SERVICE) and len(entry.value) >= 4
        }
        if SHUFFLE_SERVICE in ports:
            self.shuffle_ports[node] = ports[SHUFFLE_SERVICE]
        if MERGER_SERVICE in ports:
            self.merger_ports[node] = ports[MERGER_SERVICE]
        for entry in response.services_meta_data:
            disk = DiskFacts.unpack(entry.value) if entry.key == DISK_SERVICE else None
            if disk is not None:
                self.disks[node] = disk

    async def _stop(self, record: _Node, stops: list[ContainerId]) -> None:
        request = pb.StopContainersRequest(container_id=[convert.container_id_pb(c) for c in stops])
        try:
            await self._client(record).call(Protocol.stopContainers, request)
        except (RpcError, RemoteException, OSError) as error:
            log.warning("node %s did not stop %d containers: %s", record.id, len(stops), error)

    async def _ask(self, record: _Node, questions: list[ContainerId]) -> None:
        request = pb.GetContainerStatusesRequest(container_id=[convert.container_id_pb(c) for c in questions])
        try:
            response = await self._client(record).call(Protocol.getContainerStatuses, request)
        except (RpcError, RemoteException, OSError) as error:
            log.warning("node %s does not say whether %d containers wait: %s", record.id, len(questions), error)
            return
        for status in response.status:
            if status.state == common.C_RUNNING and status.container_sub_state == common.CSS_SCHEDULED:
                self._on_waiting(convert.container_id(status.container_id))

    async def drain(self, timeout_s: float) -> None:
        """Wait for calls under way."""
        self._flush()
        await self._tasks.wait(timeout_s)

    async def close(self) -> None:
        await self._tasks.end()
        for record in self._nodes.values():
            if record.client is not None:
                await record.client.close()
