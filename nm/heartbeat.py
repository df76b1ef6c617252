"""ResourceTracker's client: registers this node, reports its containers, carries out what the ResourceManager says.

A completed container is reported in every heartbeat until one that carried it is answered. While the ResourceManager
is away the node works on and tries again for ever, with growing pauses; RESYNC registers anew with everything that
is here. At most one heartbeat is under way; what happens meanwhile goes into the next, which follows at once.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nm.containers.container import Container, ContainerGrant, wire_enum
from nm.containers.runtime import ContainerRuntime
from nm.logs.aggregation.reports import LogReports
from nm.node_queue import MastersExpected, NodeQueueSettings, SettingsChanged
from nm.node_queue_wire import NodeQueueCommands, opportunistic_pb, queue_pb, wait_ms
from nm.registration import NodeRegistration
from nm.settings import NodeSettings, NodeWays
from nm.throttle.words import CoresWords
from yaqd.ipc import NO_RETRY, RemoteException, RetryPolicy, RpcClient, RpcError
from yaqd.ipc.errors import InvalidToken
from yaqd.model import ContainerId, ExitStatus, Resource
from yaqd.policies.queueing.means import RecentMean
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ResourceTracker
from yaqd.proto.words import STOCK
from yaqd.security import ContainerTokenSecrets, MasterKey, check_container_password

log = logging.getLogger(__name__)

NM_VERSION = "3.4.1"
#: what the node understands beyond stock YARN, told in its registration
CAPABILITIES = ("warm-start", "out-of-turn-heartbeats")
#: said beside them by a node whose containers wait for their resources, and by a ResourceManager that fills node queues
YAQ_QUEUE = "yaq-queue"
#: said with it: nothing that waits starts in the room of masters that the ResourceManager says are to come
MASTER_ROOMS = "master-rooms"
#: what a ResourceManager says of itself when it schedules virtual cores; a stock one does not tell
_COUNTS_VCORES = "counts-vcores"
#: heartbeats whose answers are remembered
_ANSWERS = 16
_DEFAULT_INTERVAL_S = 1.0
_MAX_INTERVAL_S = 60.0
_INT32_MAX = (1 << 31) - 1
_SIGNALS = {1: 3, 2: 15, 3: 9}
_UNLIMITED_VCORES = 1 << 30
_BACK_OFF = RetryPolicy(attempts=1 << 30, first_delay_s=0.1, delay_max_s=5.0)


@dataclass(frozen=True, slots=True)
class NodeHealth:
    is_healthy: bool
    #: why not; empty when healthy
    report: str
    #: epoch ms
    checked_ms: int


@dataclass(frozen=True, slots=True)
class Utilization:
    """MiB of physical and virtual memory, cores."""

    physical_mb: int = 0
    virtual_mb: int = 0
    cores: float = 0.0

    def to_pb(self) -> common.ResourceUtilization:
        return common.ResourceUtilization(pmem=self.physical_mb, vmem=self.virtual_mb, cpu=self.cores)


@dataclass(frozen=True, slots=True)
class NodeReadings:
    """What the heartbeat asks of the rest of the node each time."""

    health: Callable[[], NodeHealth]
    node: Callable[[], Utilization]
    containers: Callable[[], Utilization]
    logs: LogReports


@dataclass(frozen=True, slots=True)
class HeartbeatNews:
    """What the rest of the node hears from the heartbeat."""

    #: when the ResourceManager read its files last, epoch ms: the node reads its own again
    files_read: Callable[[int], None]
    registered: Callable[[], Awaitable[None]]
    #: once, of the first attempt to register: why nothing came of it
    unanswered: Callable[[str], None]
    #: why the node must end
    shutdown: Callable[[str], None]
    #: how containers are started under the ResourceManager that the node has registered with
    ways: Callable[[NodeWays], None]


class Heartbeat:
    def __init__(
        self,
        client: RpcClient,
        runtime: ContainerRuntime,
        registration: NodeRegistration,
        settings: NodeSettings,
        *,
        web_port: int,
        readings: NodeReadings,
        news: HeartbeatNews,
        cores: CoresWords,
    ) -> None:
        self._client = client
        self._runtime = runtime
        self._registration = registration
        self._container_tokens = ContainerTokenSecrets(registration.container_keys)
        self._settings = settings
        self._web_port = web_port
        self._readings = readings
        self._news = news
        self._cores = cores
        #: as the ResourceManager told last
        self._resource = settings.resource
        self._queue_orders = NodeQueueCommands(max_length=settings.queue.max_length)
        #: under a ResourceManager that knows nothing of node queues
        self._own_queue_settings = settings.queue.settings
        #: as the ResourceManager that it has registered with wants it
        self._ways = settings.own_ways
        self._is_unanswered_told = False
        self._due = asyncio.Event()
        self._response_id = 0
        self._interval_s = _DEFAULT_INTERVAL_S
        #: how long the ResourceManager took to answer heartbeats of late, s
        self._answers = RecentMean(_ANSWERS)
        #: grown here and not yet told in an answered heartbeat, oldest first
        self._increased: list[ContainerId] = []

    def notify(self) -> None:
        """Notes that something happened that the ResourceManager waits for: the next heartbeat goes out now."""
        if self._ways.out_of_turn:
            self._due.set()

    def change_own_queue(self, settings: NodeQueueSettings) -> None:
        """Go by these where no ResourceManager says how the queue goes."""
        before, self._own_queue_settings = self._own_queue_settings, settings
        if self._runtime.queue_settings == before:
            self._runtime.order([SettingsChanged(settings)])

    async def run(self) -> None:
        """Sends heartbeats until cancelled, or until the ResourceManager tells the node to shut down."""
        while True:
            if not await self._register():
                return
            if not await self._beat():
                return

    async def unregister(self) -> None:
        """Tells the ResourceManager that this node goes, so that it need not wait for the node to expire."""
        request = server.UnRegisterNodeManagerRequest(node_id=convert.node_id_pb(self._registration.node_id))
        try:
            await self._client.call(ResourceTracker.unRegisterNodeManager, request, timeout_s=1.0)
        except (RpcError, RemoteException) as error:
            log.info("not unregistered: %s", error)

    # Registration -----------------------------------------------------------------------------------------------------

    async def _register(self) -> bool:
        """Returns when the node is registered; False when it must shut down."""
        delays = _BACK_OFF.delays(random.random)
        while True:
            try:
                response = await self._client.call(
                    ResourceTracker.registerNodeManager, self._registration_request(), idempotent=True
                )
            except (RpcError, RemoteException) as error:
                delay = next(delays)
                log.warning("cannot register with the ResourceManager, trying again in %.1f s: %s", delay, error)
                if not self._is_unanswered_told:
                    self._is_unanswered_told = True
                    self._news.unanswered(str(error))
                await asyncio.sleep(delay)
                continue
            if response.nodeAction == server.SHUTDOWN:
                self._news.shutdown(f"the ResourceManager refuses this node: {response.diagnostics_message}")
                return False
            self._is_unanswered_told = True
            self._registered(response)
            await self._news.registered()
            return True

    def _registration_request(self) -> server.RegisterNodeManagerRequest:
        request = server.RegisterNodeManagerRequest(
            node_id=convert.node_id_pb(self._registration.node_id),
            http_port=self._web_port,
            resource=convert.resource_pb(self._resource),
            nm_version=NM_VERSION,
            physicalResource=convert.resource_pb(self._resource),
        )
        request.container_statuses.extend(c.registration_pb() for c in self._runtime.containers.values())
        request.runningApplications.extend(map(convert.application_id_pb, self._runtime.applications))
        request.nodeStatus.CopyFrom(self._node_status([]))
        request.log_aggregation_reports_for_apps.extend(self._readings.logs.latest())
        request.yaq_capabilities.understands.extend(CAPABILITIES)
        if self._settings.queue.by_resources:
            request.yaq_capabilities.understands.extend((YAQ_QUEUE, MASTER_ROOMS))
            request.yaq_capabilities.queue_max = self._queue_orders.max_length
        self._cores.offer(request.yaq_capabilities)
        return request

    def _registered(self, response: server.RegisterNodeManagerResponse) -> None:
        self._take_keys(response)
        self._registration.rm_identifier = response.rm_identifier
        understood = response.yaq_capabilities.understands
        self._registration.counts_vcores = _COUNTS_VCORES in understood
        self._registration.fills_queues = self._settings.queue.by_resources and YAQ_QUEUE in understood
        self._ways = self._settings.stock_ways if STOCK in understood else self._settings.own_ways
        self._news.ways(self._ways)
        # another ResourceManager, or the same with other settings: it orders anew if it means to fill the queue
        self._runtime.order([SettingsChanged(self._own_queue_settings), MastersExpected()])
        self._cores.registered(response.yaq_capabilities)
        self._response_id = 0
        if response.HasField("resource"):
            self._resource = convert.resource(response.resource)
        self._tell_capacity()
        for container in self._runtime.containers.values():
            container.is_reported = False
        log.info("registered with the ResourceManager as %s with %s", self._registration.node_id, self._resource)

    def _tell_capacity(self) -> None:
        resource = self._resource
        if not self._registration.counts_vcores:
            # a stock scheduler may grant by memory alone: then no container waits for cores that were never counted
            resource = Resource(resource.memory_mb, _UNLIMITED_VCORES, resource.extras)
        self._runtime.set_capacity(resource)

    def _take_keys(self, response: server.RegisterNodeManagerResponse | server.NodeHeartbeatResponse) -> None:
        if response.HasField("container_token_master_key"):
            self._registration.container_keys.set_current(MasterKey.from_pb(response.container_token_master_key))
        if response.HasField("nm_token_master_key"):
            self._registration.nm_keys.set_current(MasterKey.from_pb(response.nm_token_master_key))

    # Heartbeats -------------------------------------------------------------------------------------------------------

    async def _beat(self) -> bool:
        """Heartbeats until the node must register again; False when it must shut down."""
        delays = _BACK_OFF.delays(random.random)
        while True:
            self._due.clear()
            increased = len(self._increased)
            ended = [c for c in self._runtime.containers.values() if c.is_done and not c.is_reported]
            logs = self._readings.logs.pending()
            request = self._request(ended)
            request.log_aggregation_reports_for_apps.extend(logs)
            sent_at = asyncio.get_running_loop().time()
            try:
                response = await self._client.call(ResourceTracker.nodeHeartbeat, request, idempotent=True)
            except (RpcError, RemoteException) as error:
                delay = next(delays)
                log.warning("heartbeat not answered, trying again in %.1f s: %s", delay, error)
                self._runtime.order([MastersExpected()])  # nobody knows whether they will come
                await asyncio.sleep(delay)
                continue
            self._answers.add(asyncio.get_running_loop().time() - sent_at)
            delays = _BACK_OFF.delays(random.random)
            if response.nodeAction == server.SHUTDOWN:
                self._news.shutdown(f"the ResourceManager shuts this node down: {response.diagnostics_message}")
                return False
            if response.nodeAction == server.RESYNC:
                log.warning("the ResourceManager asks for a new registration: %s", response.diagnostics_message)
                return True
            self._runtime.reported(c.id for c in ended)
            del self._increased[:increased]
            self._readings.logs.answered(logs)
            self._carry_out(response)
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._due.wait()
            except TimeoutError:
                pass

    def _request(self, ended: list[Container]) -> server.NodeHeartbeatRequest:
        request = server.NodeHeartbeatRequest(node_status=self._node_status(ended))
        if self._registration.container_keys.current is not None:
            request.last_known_container_token_master_key.CopyFrom(self._registration.container_keys.current.to_pb())
        if self._registration.nm_keys.current is not None:
            request.last_known_nm_token_master_key.CopyFrom(self._registration.nm_keys.current.to_pb())
        return request

    def _node_status(self, ended: list[Container]) -> server.NodeStatus:
        health = self._readings.health()
        status = server.NodeStatus(
            node_id=convert.node_id_pb(self._registration.node_id), response_id=self._response_id
        )
        running = [c for c in self._runtime.containers.values() if not c.is_done]
        times_at = asyncio.get_running_loop().time() if self._registration.fills_queues else None
        held = self._runtime.held_starts().left_s
        status.containersStatuses.extend(
            one.status_pb(times_at=times_at, starts_in_s=held.get(one.id)) for one in (*running, *ended)
        )
        status.nodeHealthStatus.is_node_healthy = health.is_healthy
        status.nodeHealthStatus.health_report = health.report
        status.nodeHealthStatus.last_health_report_time = health.checked_ms
        status.containers_utilization.CopyFrom(self._readings.containers().to_pb())
        status.node_utilization.CopyFrom(self._readings.node().to_pb())
        self._put_queue(status)
        self._cores.put(status)
        for container_id in self._increased:
            container = self._runtime.containers.get(container_id)
            if container is not None:
                status.increased_containers.append(self._container_pb(container))
        return status

    def _put_queue(self, status: server.NodeStatus) -> None:
        queue, waiting = self._runtime.queue_statistics(), self._runtime.queue_snapshot()
        message = queue_pb(waiting)
        if self._registration.fills_queues:
            message.tells_ends = self._ways.out_of_turn
            message.refill_ms = wait_ms(self._runtime.fetch_s + self._answers.mean)
            free = self._runtime.free_for_masters()
            if free is not None:
                convert.put_resource(message.free, free)
                message.room_ms = wait_ms(self._runtime.room_comes())
            status.yaq_queue.CopyFrom(message)
        status.opportunistic_containers_status.CopyFrom(opportunistic_pb(queue))
        # a ResourceManager that fills no queues takes "for ever" as a reason to leave the node out
        if message.wait_ms >= 0 or self._runtime.queue_settings.enabled:
            status.opportunistic_containers_status.estimated_queue_wait_time = min(message.wait_ms, _INT32_MAX)

    def _container_pb(self, container: Container) -> common.Container:
        return common.Container(
            id=convert.container_id_pb(container.id),
            nodeId=convert.node_id_pb(self._registration.node_id),
            resource=convert.resource_pb(container.grant.resource),
            priority=common.Priority(priority=container.grant.priority),
            execution_type=wire_enum(container.grant.execution_type),
            version=container.grant.version,
        )

    def updated(self, container_id: ContainerId) -> None:
        """Notes that a container's grant grew on this node: the next heartbeat says so."""
        self._increased.append(container_id)
        self.notify()

    def _carry_out(self, response: server.NodeHeartbeatResponse) -> None:
        self._response_id = response.response_id
        self._take_keys(response)
        interval_ms = response.nextHeartBeatInterval
        self._interval_s = min(interval_ms / 1000, _MAX_INTERVAL_S) if interval_ms > 0 else _DEFAULT_INTERVAL_S
        if response.HasField("resource"):
            self._resource = convert.resource(response.resource)
            self._tell_capacity()
        self._cores.answered(response)
        runtime = self._runtime
        if response.HasField("yaq_orders") and self._registration.fills_queues:
            runtime.order(self._queue_orders.events(response.yaq_orders))
            if runtime.free_for_masters() is not None and response.yaq_orders.HasField("masters"):
                self.notify()  # there may be room already
            if response.yaq_orders.HasField("files_read_ms"):
                self._news.files_read(response.yaq_orders.files_read_ms)
        if response.HasField("container_queuing_limit") and response.container_queuing_limit.max_queue_length >= 0:
            runtime.limit_opportunistic(response.container_queuing_limit.max_queue_length)
        for message in response.containers_to_cleanup:
            reason = "Container killed by the ResourceManager."
            runtime.kill(convert.container_id(message), ExitStatus.KILLED_BY_RESOURCEMANAGER, reason)
        for message in response.containers_to_be_removed_from_nm:
            runtime.remove(convert.container_id(message))
        for order in response.containers_to_signal:
            self._signal(order)
        for update in response.containers_to_update or response.containers_to_decrease:
            self._update(update)
        for application in response.applications_to_cleanup:
            runtime.end_application(convert.application_id(application))

    def _signal(self, order: service.SignalContainerRequest) -> None:
        self._runtime.signal(convert.container_id(order.container_id), _SIGNALS[order.command or 1])

    def _update(self, update: common.Container) -> None:
        """A change that the ResourceManager pushes; its token says what, as when an application master brings it."""
        address = str(self._registration.node_id)
        try:
            token = check_container_password(update.container_token, self._container_tokens, node_address=address)
        except InvalidToken as error:
            log.warning("update of %s ignored: %s", convert.container_id(update.id), error)
            return
        self._runtime.update(convert.container_id(token.containerId), ContainerGrant.from_pb(token))


def tracker_client(host: str, port: int, *, user: str, timeout_s: float) -> RpcClient:
    """Makes a client with one attempt to connect a call: the pauses between attempts are this module's."""
    return RpcClient(host, port, user=user, timeout_s=timeout_s, connect_retries=NO_RETRY)
