"""Simulated application masters: submitted like any application, started on simulated nodes, always hungry.

Each keeps asking for `want` containers, counts what it is given and gives it back with its next call, so that the
scheduler never runs dry and never runs full.
"""

import asyncio
from dataclasses import dataclass, field

from benchmarks.load_client import NodeFleet, token_of
from yaqd.ipc import RemoteException, RpcClient
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol, ApplicationMasterProtocol
from yaqd.security import AM_RM_TOKEN, Credentials, Token

_CONTAINER_MB = 1024
_MASTER_MB = 1024
_FINISH_TRIES = 100


@dataclass(slots=True)
class Allocations:
    """What all masters together were given in a period."""

    count: int = 0
    elapsed_s: float = 0.0
    calls: int = 0
    latencies_s: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Containers allocated per second."""
        return self.count / self.elapsed_s if self.elapsed_s else 0.0


class SimulatedMaster:
    """One application master, from its registration to its end."""

    def __init__(self, scheduler: tuple[str, int], token: Token, container: server.ContainerTokenIdentifier) -> None:
        self.container = container
        self._client = RpcClient(*scheduler, user="nobody", token=token)
        self._request = service.AllocateRequest(response_id=0, progress=0.5)

    async def register(self) -> None:
        request = service.RegisterApplicationMasterRequest(host="127.0.0.1", rpc_port=-1, tracking_url="")
        await self._client.call(ApplicationMasterProtocol.registerApplicationMaster, request)

    async def allocate(self, want: int) -> int:
        """One call: ask for `want` containers in all, give back the last ones; return how many came."""
        request = self._request
        del request.ask[:]
        ask = request.ask.add(resource_name="*", num_containers=want, relax_locality=True)
        ask.priority.priority = 1
        ask.capability.memory = _CONTAINER_MB
        ask.capability.virtual_cores = 1
        ask.execution_type_request.execution_type = common.GUARANTEED
        response = await self._client.call(ApplicationMasterProtocol.allocate, request)
        request.response_id = response.response_id
        del request.release[:]
        request.release.extend(container.id for container in response.allocated_containers)
        return len(response.allocated_containers)

    async def finish(self) -> None:
        await self.allocate(0)
        await self.allocate(0)
        request = service.FinishApplicationMasterRequest(
            final_application_status=common.APP_SUCCEEDED, diagnostics="", tracking_url=""
        )
        for _ in range(_FINISH_TRIES):
            response = await self._client.call(ApplicationMasterProtocol.finishApplicationMaster, request)
            if response.isUnregistered:
                break
            await asyncio.sleep(0.05)
        await self._client.close()


class Masters:
    """Submits applications and plays their masters when the nodes are told to start them."""

    def __init__(self, client: tuple[str, int], scheduler: tuple[str, int]) -> None:
        self._client = RpcClient(*client, user="load")
        self._scheduler = scheduler
        self._started: asyncio.Queue[SimulatedMaster] = asyncio.Queue()
        self.masters: list[SimulatedMaster] = []

    def on_master(self, credentials: Credentials, container: server.ContainerTokenIdentifier) -> None:
        """Called by the node fleet for each container that the ResourceManager starts."""
        token = token_of(credentials, AM_RM_TOKEN)
        self._started.put_nowait(SimulatedMaster(self._scheduler, token, container))

    async def submit(self, count: int, timeout_s: float) -> None:
        """Submit applications and return when all their masters have registered. The nodes must be beating."""
        for _ in range(count):
            await self._submit_one()
        async with asyncio.timeout(timeout_s):
            for _ in range(count):
                master = await self._started.get()
                await master.register()
                self.masters.append(master)

    async def _submit_one(self) -> None:
        new = await self._client.call(ApplicationClientProtocol.getNewApplication, service.GetNewApplicationRequest())
        request = service.SubmitApplicationRequest()
        context = request.application_submission_context
        context.application_id.CopyFrom(new.application_id)
        context.application_name = "load"
        context.applicationType = "LOAD"
        context.queue = "default"
        context.priority.priority = 0
        context.maxAppAttempts = 1
        context.resource.memory = _MASTER_MB
        context.resource.virtual_cores = 1
        context.am_container_spec.command.append("true")
        await self._client.call(ApplicationClientProtocol.submitApplication, request)

    async def allocate_for(self, seconds: float, want: int, interval_s: float) -> Allocations:
        """Let every master call once per interval (or as fast as it is answered) and count containers."""
        total, loop = Allocations(), asyncio.get_running_loop()
        start = loop.time()

        async def work(master: SimulatedMaster) -> None:
            while (now := loop.time()) < start + seconds:
                given = await master.allocate(want)  # awaited before the sum is read: others add meanwhile
                total.count += given
                total.calls += 1
                took = loop.time() - now
                total.latencies_s.append(took)
                await asyncio.sleep(max(interval_s - took, 0))

        await asyncio.gather(*(work(master) for master in self.masters))
        total.elapsed_s = loop.time() - start
        return total

    async def finish(self, fleet: NodeFleet) -> None:
        """End every application cleanly."""
        for master in self.masters:
            try:
                await master.finish()
            except RemoteException:
                continue  # it was ended from the other side; the numbers are taken already
            fleet.end_container(master.container.nmHostAddr, master.container.containerId)
        await self._client.close()
