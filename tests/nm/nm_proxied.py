"""The ResourceManager's scheduler service as a proxy sees it, and a master whose calls go through the proxy."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from tests.nm.nm_cluster import Master, attempt, container_id, launch_context
from yaqd.ipc import Caller, RpcClient, RpcServer
from yaqd.model import NodeId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationMasterProtocol, DistributedSchedulingAMProtocol
from yaqd.security import AM_RM_TOKEN, AMRMTokenSecrets, Credentials, RollingKeys, Token

Protocol = DistributedSchedulingAMProtocol


class FakeScheduler:
    """Numbers its answers as Hadoop does and repeats the last one; books what proxies place, each container once."""

    def __init__(self) -> None:
        self.keys = RollingKeys(now=0.0, random=os.urandom)
        self.tokens = AMRMTokenSecrets(self.keys)
        self.rpc = RpcServer(name="scheduler", host="127.0.0.1", token_secrets=self.tokens, allow_simple=False)
        self.rpc.register(Protocol.registerApplicationMasterForDistributedScheduling, self._register)
        self.rpc.register(Protocol.allocateForDistributedScheduling, self._allocate)
        self.rpc.register(Protocol.finishApplicationMaster, self._finish)
        self.rpc.register(ApplicationMasterProtocol.registerApplicationMaster, self._register_plain)
        self.rpc.register(ApplicationMasterProtocol.allocate, self._allocate_plain)
        self.id_start = 0
        #: how long containers of the master may wait, as every answer says; None: they say nothing
        self.most_wait_ms: int | None = None
        #: containers that are not booked
        self.refuses: set[int] = set()
        #: published from the next answer on
        self.nodes: list[pb.RemoteNode] = []
        self.registrations = 0
        #: as it was said at the last registration
        self.tolerates_waiting = False
        self.finishes = 0
        self.requests: list[pb.DistributedSchedulingAllocateRequest] = []
        self.plain: list[pb.AllocateRequest] = []
        #: every container that a proxy placed, in order of its booking
        self.booked: list[int] = []
        #: goes into the next answer
        self.news = pb.AllocateResponse()
        #: set: answers are made and not sent
        self.holds = False
        self.held = asyncio.Event()
        self._response_id = 0
        self._last: pb.DistributedSchedulingAllocateResponse | None = None

    def publish(self, *nodes: NodeId) -> None:
        """As a stock ResourceManager does."""
        self.nodes = [
            pb.RemoteNode(node_id=convert.node_id_pb(node), http_address=f"{node.host}:8042", rack_name="/default-rack")
            for node in nodes
        ]

    def _register(
        self, request: pb.RegisterApplicationMasterRequest, caller: Caller
    ) -> pb.RegisterDistributedSchedulingAMResponse:
        self.registrations += 1
        self.tolerates_waiting = request.yaq_tolerates_waiting
        self._response_id, self._last = 0, None
        response = pb.RegisterDistributedSchedulingAMResponse(
            container_token_expiry_interval=600_000, container_id_start=self.id_start, nodes_for_scheduling=self.nodes
        )
        response.register_response.queue = "root.default"
        response.max_container_resource.memory, response.max_container_resource.virtual_cores = 8192, 8
        response.min_container_resource.memory, response.min_container_resource.virtual_cores = 128, 1
        if self.most_wait_ms is not None:
            response.yaq_most_wait_ms = self.most_wait_ms
        return response

    async def _allocate(
        self, request: pb.DistributedSchedulingAllocateRequest, caller: Caller
    ) -> pb.DistributedSchedulingAllocateResponse:
        self.requests.append(request)
        booked = [c.id.id for c in request.allocated_containers if c.id.id not in self.refuses]
        self.booked += [number for number in booked if number not in self.booked]
        if request.allocate_request.response_id == self._response_id - 1 and self._last is not None:
            return self._last
        assert request.allocate_request.response_id == self._response_id
        self._response_id += 1
        response = pb.DistributedSchedulingAllocateResponse(nodes_for_scheduling=self.nodes)
        response.allocate_response.CopyFrom(self.news)
        if self.most_wait_ms is not None:
            response.yaq_most_wait_ms = self.most_wait_ms
        self.news = pb.AllocateResponse()
        response.allocate_response.response_id = self._response_id
        response.yaq_not_booked.extend(c.id for c in request.allocated_containers if c.id.id in self.refuses)
        self._last = response
        if self.holds:
            self.held.set()
            await asyncio.Event().wait()
        return response

    def _finish(self, request: pb.FinishApplicationMasterRequest, caller: Caller) -> pb.FinishApplicationMasterResponse:
        self.finishes += 1
        return pb.FinishApplicationMasterResponse(isUnregistered=True)

    def _register_plain(
        self, request: pb.RegisterApplicationMasterRequest, caller: Caller
    ) -> pb.RegisterApplicationMasterResponse:
        self.registrations += 1
        return pb.RegisterApplicationMasterResponse(queue="plain")

    def _allocate_plain(self, request: pb.AllocateRequest, caller: Caller) -> pb.AllocateResponse:
        self.plain.append(request)
        return pb.AllocateResponse(response_id=request.response_id + 1)


class ProxiedMaster:
    """Its container sleeps on the node and shows what it was given; the test makes its calls."""

    def __init__(self, token: Token, address: str) -> None:
        self.token = token
        host, _, port = address.rpartition(":")
        self.address = (host, int(port))
        self.rpc = RpcClient(*self.address, user="ignored", token=token)
        self.response_id = 0

    @classmethod
    async def launch(cls, node: Master, scheduler: FakeScheduler, folder: Path) -> "ProxiedMaster":
        """Starts the master's container as the ResourceManager does."""
        shown = folder / "shown"
        command = (
            f"cp $HADOOP_TOKEN_FILE_LOCATION {folder}/tokens; "
            f"echo $YAQ_SCHEDULER_ADDRESS > {shown}.new; mv {shown}.new {shown}; sleep 1000"
        )
        other = Token(b"other", b"pw", "OTHER", "elsewhere")
        held = Credentials({"": scheduler.tokens.mint(attempt()), "other": other}, {"secret": b"x"})
        environment = {"APP_SUBMIT_TIME_ENV": "1700000000123"}
        context = launch_context(command, tokens=held.write(), environment=environment)
        await node.run(container_id(1), context, containerType=common.APPLICATION_MASTER)
        await node.rm.until(shown.exists)
        credentials = Credentials.load(folder / "tokens")
        assert credentials.tokens["other"] == other and credentials.secrets == {"secret": b"x"}
        token = credentials.token_of_kind(AM_RM_TOKEN)
        assert token is not None and len(credentials.tokens) == 2
        return cls(token, shown.read_text().strip())

    async def register(self) -> pb.RegisterApplicationMasterResponse:
        self.response_id = 0
        request = pb.RegisterApplicationMasterRequest(host="am", rpc_port=1, yaq_tolerates_waiting=True)
        return await self.rpc.call(ApplicationMasterProtocol.registerApplicationMaster, request)

    async def allocate(
        self, *asks: common.ResourceRequest, release: tuple[common.ContainerId, ...] = ()
    ) -> pb.AllocateResponse:
        request = pb.AllocateRequest(ask=asks, release=release, response_id=self.response_id, progress=0.5)
        response = await self.rpc.call(ApplicationMasterProtocol.allocate, request)
        self.response_id = response.response_id
        if response.HasField("am_rm_token"):
            await self.reconnect(Token.from_pb(response.am_rm_token))
        return response

    async def reconnect(self, token: Token | None = None) -> None:
        self.token = token or self.token
        await self.rpc.close()
        self.rpc = RpcClient(*self.address, user="ignored", token=self.token)


def ask(
    count: int, *, kind: "common.ExecutionType" = common.OPPORTUNISTIC, name: str = "*", memory_mb: int = 256
) -> common.ResourceRequest:
    message = common.ResourceRequest(resource_name=name, num_containers=count, allocation_request_id=-1)
    message.priority.priority = 19
    message.capability.memory, message.capability.virtual_cores = memory_mb, 1
    message.execution_type_request.execution_type = kind
    message.execution_type_request.enforce_execution_type = True
    return message


def proxy_settings(scheduler: FakeScheduler, port: int = 0) -> Mapping[str, str]:
    return {
        "yarn.nodemanager.distributed-scheduling.enabled": "true",
        "yarn.nodemanager.amrmproxy.address": f"127.0.0.1:{port}",
        "yarn.resourcemanager.scheduler.address": f"127.0.0.1:{scheduler.rpc.port}",
        "yarn.nodemanager.opportunistic-containers-max-queue-length": "20",
    }


def numbers(response: pb.AllocateResponse) -> list[int]:
    return [c.id.id for c in response.allocated_containers]
