"""A stock ResourceManager and ours with `yaq.compat=stock`, driven alike: nodes and masters speak Hadoop RPC, and do
nothing but what the test says, one thing after the other. So time plays no part.
"""

import asyncio
import json
import threading
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.conf import write_site
from benchmarks.stock.daemons import StockYarn
from benchmarks.unmanaged_master import await_value
from rm.daemon import ResourceManager
from yaqd.config import Configuration
from yaqd.ipc import BlockingRpcClient
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import ApplicationMasterProtocol as Masters
from yaqd.proto.protocols import ResourceTracker
from yaqd.security import Token

Address = tuple[str, int]
#: of a slow machine
_PATIENCE_S = 120.0
_PORT = 45454
_ENDED = (common.FINISHED, common.FAILED, common.KILLED)
_JMX = "jmx?qry=Hadoop:service=ResourceManager,name=CapacitySchedulerMetrics"


class Given(NamedTuple):
    """A container as its master got it, without its id, which two managers need not give alike."""

    application: str
    priority: int
    request_id: int
    memory_mb: int
    node: str


@dataclass(frozen=True, slots=True)
class Row:
    """Part of what a master asks for: `count` containers at a place, `*` for any."""

    count: int
    place: str = "*"
    priority: int = 1
    memory_mb: int = 1024
    vcores: int = 1
    relax: bool = True
    request_id: int = -1

    def to_pb(self) -> common.ResourceRequest:
        row = common.ResourceRequest(
            resource_name=self.place,
            num_containers=self.count,
            relax_locality=self.relax,
            allocation_request_id=self.request_id,
        )
        row.priority.priority = self.priority
        row.capability.memory, row.capability.virtual_cores = self.memory_mb, self.vcores
        return row


class Addresses(Protocol):
    """Where a ResourceManager listens."""

    @property
    def rm_address(self) -> Address: ...
    @property
    def scheduler_address(self) -> Address: ...
    @property
    def tracker_address(self) -> Address: ...

    def await_heartbeat(self) -> None:
        """Return when the scheduler has taken in the heartbeat that was answered last."""


class StockManager(StockYarn):
    """A stock ResourceManager without nodes, which counts the heartbeats that its scheduler has taken in."""

    def __init__(
        self, jars: HadoopJars, directory: Path, site: Mapping[str, object], queues: Mapping[str, object]
    ) -> None:
        super().__init__(jars, directory, nodes=0, history=False, site=site, queues=queues)
        self._beats = 0

    def start(self) -> None:
        self.conf_dir.mkdir(parents=True)
        # else the counter is read anew every ten seconds
        (self.conf_dir / "hadoop-metrics2.properties").write_text("*.periodMillis=1\n")
        super().start()

    def await_heartbeat(self) -> None:
        self._beats += 1
        await_value("a heartbeat's turn", lambda: (self._count() >= self._beats) or None, _PATIENCE_S)

    def _count(self) -> int:
        host = self.web.removesuffix("/ws/v1/cluster")
        with urllib.request.urlopen(f"{host}/{_JMX}", timeout=_PATIENCE_S) as answer:
            beans = json.load(answer)["beans"]
        return int(beans[0].get("NodeUpdateNumOps", 0)) if beans else 0


class OurManager:
    """Our ResourceManager on an event loop of its own; it takes a heartbeat in before it answers."""

    def __init__(self, directory: Path, site: Mapping[str, object], queues: Mapping[str, object]) -> None:
        directory.mkdir(parents=True)
        services = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
        own = {f"yarn.resourcemanager.{name}": "127.0.0.1:0" for name in services}
        own |= {"yarn.resourcemanager.hostname": "127.0.0.1", "yaq.rm.state-store.path": "memory"}
        write_site(directory / "yarn-site.xml", own | dict(site) | {"yaq.compat": "stock"})
        write_site(directory / "capacity-scheduler.xml", queues)
        self._conf = Configuration.load(directory, environ={})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="our ResourceManager")
        self.manager = ResourceManager(self._conf)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.manager.start(), self._loop).result(_PATIENCE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self.manager.stop(), self._loop).result(_PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE_S)
        self._loop.close()

    @property
    def rm_address(self) -> Address:
        return "127.0.0.1", self.manager.servers.client.port

    @property
    def scheduler_address(self) -> Address:
        return "127.0.0.1", self.manager.servers.masters.port

    @property
    def tracker_address(self) -> Address:
        return "127.0.0.1", self.manager.servers.tracker.port

    def await_heartbeat(self) -> None:
        """It has been taken in."""

    def validate(self) -> None:
        """Assert all that must be true of the scheduler."""

        async def check() -> None:
            self.manager.scheduler.validate()

        asyncio.run_coroutine_threadsafe(check(), self._loop).result(_PATIENCE_S)


class _Node:
    def __init__(self, tracker: BlockingRpcClient, host: str, memory_mb: int, vcores: int) -> None:
        self._tracker, self.host = tracker, host
        request = server.RegisterNodeManagerRequest(http_port=8042, nm_version="3.4.2")
        self._name(request.node_id)
        request.resource.memory, request.resource.virtual_cores = memory_mb, vcores
        request.nodeStatus.nodeHealthStatus.is_node_healthy = True
        self._keys = tracker.call(ResourceTracker.registerNodeManager, request)
        assert self._keys.nodeAction == server.NORMAL, self._keys.diagnostics_message
        self._response_id = 0

    def _name(self, node_id: common.NodeId) -> None:
        node_id.host, node_id.port = self.host, _PORT

    def beat(self, ended: list[common.ContainerId]) -> None:
        request = server.NodeHeartbeatRequest()
        status = request.node_status
        self._name(status.node_id)
        status.response_id = self._response_id
        status.nodeHealthStatus.is_node_healthy = True
        for container in ended:
            status.containersStatuses.add(
                container_id=container, state=common.C_COMPLETE, exit_status=0, diagnostics=""
            )
        request.last_known_container_token_master_key.CopyFrom(self._keys.container_token_master_key)
        request.last_known_nm_token_master_key.CopyFrom(self._keys.nm_token_master_key)
        answer = self._tracker.call(ResourceTracker.nodeHeartbeat, request)
        assert answer.nodeAction == server.NORMAL, answer.diagnostics_message
        self._response_id = answer.response_id

    def leave(self) -> None:
        request = server.UnRegisterNodeManagerRequest()
        self._name(request.node_id)
        self._tracker.call(ResourceTracker.unRegisterNodeManager, request)


class _Master:
    """An unmanaged application and its master."""

    def __init__(self, at: Addresses, name: str, queue: str, user: str, priority: int) -> None:
        self.name = name
        self._client = BlockingRpcClient(*at.rm_address, user=user)
        self._id = self._submit(queue, priority)
        token = await_value("the master's token", self._token, _PATIENCE_S)
        self._rpc = BlockingRpcClient(*at.scheduler_address, user=user, token=token)
        request = service.RegisterApplicationMasterRequest(host="127.0.0.1", rpc_port=0, tracking_url="")
        self._rpc.call(Masters.registerApplicationMaster, request)
        self._response_id = 0
        #: what it has, in the order in which it came
        self.held: list[tuple[Given, common.ContainerId]] = []

    def _submit(self, queue: str, priority: int) -> common.ApplicationId:
        made = self._client.call(Client.getNewApplication, service.GetNewApplicationRequest())
        request = service.SubmitApplicationRequest()
        context = request.application_submission_context
        context.application_id.CopyFrom(made.application_id)
        context.application_name, context.unmanaged_am, context.queue = self.name, True, queue
        context.priority.priority = priority
        context.am_container_spec.SetInParent()
        context.resource.memory, context.resource.virtual_cores = 128, 1
        self._client.call(Client.submitApplication, request)
        return made.application_id

    def _report(self) -> common.ApplicationReport:
        request = service.GetApplicationReportRequest(application_id=self._id)
        return self._client.call(Client.getApplicationReport, request).application_report

    def _token(self) -> Token | None:
        report = self._report()
        assert report.yarn_application_state not in _ENDED, report.diagnostics
        return Token.from_pb(report.am_rm_token) if report.HasField("am_rm_token") else None

    def call(self, request: service.AllocateRequest | None = None) -> list[Given]:
        request = request or service.AllocateRequest()
        request.response_id = self._response_id
        answer = self._rpc.call(Masters.allocate, request)
        self._response_id = answer.response_id
        for status in answer.completed_container_statuses:
            self.held = [(given, one) for given, one in self.held if one != status.container_id]
        found = [(self._given(one), one.id) for one in answer.allocated_containers]
        self.held += found
        return [given for given, _ in found]

    def _given(self, one: common.Container) -> Given:
        host = one.nodeId.host
        return Given(self.name, one.priority.priority, one.allocation_request_id, one.resource.memory, host)

    def end(self) -> None:
        """Have the application killed, and wait until it is."""
        request = service.KillApplicationRequest(application_id=self._id)
        await_value(
            "the application's end",
            lambda: self._client.call(Client.forceKillApplication, request).is_kill_completed or None,
            _PATIENCE_S,
        )
        await_value("its state", lambda: self._report().yarn_application_state in _ENDED or None, _PATIENCE_S)
        self._rpc.close()
        self._client.close()


class Driven:
    """One of the two managers, with its nodes and masters."""

    def __init__(self, at: Addresses) -> None:
        self._at = at
        self._tracker = BlockingRpcClient(*at.tracker_address, user="nm")
        self._client = BlockingRpcClient(*at.rm_address, user="nm")
        self._nodes: dict[str, _Node] = {}
        self._masters: dict[str, _Master] = {}

    def node(self, host: str, memory_mb: int, vcores: int) -> list[Given]:
        """A node joins and sends its first heartbeat."""
        self._nodes[host] = _Node(self._tracker, host, memory_mb, vcores)
        return self.beat(host)

    def leave(self, host: str) -> list[Given]:
        """A node goes, and the manager has taken that in: one that registers before would have come back."""
        self._nodes.pop(host).leave()
        await_value("the node's going", lambda: host not in self._running() or None, _PATIENCE_S)
        return []

    def _running(self) -> set[str]:
        request = service.GetClusterNodesRequest(nodeStates=[common.NS_RUNNING])
        reports = self._client.call(Client.getClusterNodes, request).nodeReports
        return {report.nodeId.host for report in reports}

    def beat(self, host: str, ends: Mapping[str, tuple[int, ...]] = {}) -> list[Given]:
        """A heartbeat of the node, and what masters then have. `ends`: which of an application's containers have
        ended, by their places among those that it holds there."""
        ended = [one for name, places in ends.items() for one in self._held_at(name, host, places)]
        self._nodes[host].beat(ended)
        self._at.await_heartbeat()
        return [given for master in self._masters.values() for given in master.call()]

    def _held_at(self, name: str, host: str, places: tuple[int, ...]) -> list[common.ContainerId]:
        there = [one for given, one in self._masters[name].held if given.node == host]
        return [there[place] for place in places]

    def app(self, name: str, queue: str, user: str, priority: int) -> list[Given]:
        self._masters[name] = _Master(self._at, name, queue, user, priority)
        return []

    def end(self, name: str) -> list[Given]:
        self._masters.pop(name).end()
        return []

    def ask(self, name: str, *rows: Row) -> list[Given]:
        """Ask for containers; what is given at once is returned, which is nothing where all is right."""
        return self._masters[name].call(service.AllocateRequest(ask=[row.to_pb() for row in rows]))

    def release(self, name: str, *places: int) -> list[Given]:
        held = self._masters[name].held
        request = service.AllocateRequest(release=[held[place][1] for place in places])
        self._masters[name].held = [one for place, one in enumerate(held) if place not in places]
        return self._masters[name].call(request)

    def avoid(self, name: str, *hosts: str) -> list[Given]:
        """Have no more containers on these hosts."""
        request = service.AllocateRequest()
        request.blacklist_request.blacklist_additions.extend(hosts)
        return self._masters[name].call(request)

    def held_by(self, name: str, host: str | None) -> int:
        return sum(host in (None, given.node) for given, _ in self._masters[name].held)

    def clear(self) -> None:
        """End all applications, have all nodes leave, and hang up."""
        for name in list(self._masters):
            self.end(name)
        for host in list(self._nodes):
            self.leave(host)
        self._tracker.close()
        self._client.close()
