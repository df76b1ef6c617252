"""The live benchmark's load: jobs whose masters run in the benchmark itself, the same for every side.

A job submits itself as an application without a master container, registers, and then calls `allocate` once in a
stated interval and no sooner, as MapReduce's and distributed shell's masters do. What it is given it starts at the
nodes at once. It hears of ends from the ResourceManager alone. A container that did not end well is counted and its
task asked for again.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from yaqd.ipc import RemoteException, RpcClient
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol, ApplicationMasterProtocol, ContainerManagementProtocol
from yaqd.security import Token

from .live_tasks import StartLog, Task

SLOT_MB = 512
_SETTLE_S = 0.05
_TRIES = 600
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where clients submit, where masters register, and the ResourceManager's REST interface."""

    client: tuple[str, int]
    scheduler: tuple[str, int]
    web: tuple[str, int]
    user: str


@dataclass(slots=True)
class Stage:
    """Tasks that are asked for together, once the stages before are over."""

    priority: int
    tasks: list[Task]
    waiting: deque[Task] = field(default_factory=deque)
    left: int = 0
    is_asked: bool = False


@dataclass(slots=True)
class Failures:
    """Containers that did not end with exit status 0, by status, and start requests that a node turned down."""

    by_status: dict[int, int] = field(default_factory=dict)
    refused_starts: int = 0
    #: the first of them, in the system's words
    first: str = ""

    def add(self, other: "Failures") -> None:
        for status, count in other.by_status.items():
            self.by_status[status] = self.by_status.get(status, 0) + count
        self.refused_starts += other.refused_starts
        self.first = self.first or other.first

    @property
    def count(self) -> int:
        return sum(self.by_status.values()) + self.refused_starts


class LiveJob:
    """One job, from its submission to its end."""

    def __init__(
        self,
        addresses: Addresses,
        log: StartLog,
        *,
        name: str,
        stages: Sequence[tuple[int, Sequence[float]]],
        poll_s: float,
        queue: str = "default",
        opportunistic: bool = False,
        tolerates_waiting: bool,
    ) -> None:
        """`stages`: priority and task durations of each, one after the other.

        `tolerates_waiting`: it says so where it registers. The masters of MapReduce, Tez and Spark do not, and their
        containers wait at nodes for `yaq.queue.max-wait-unaware` at most, which is not at all unless that is raised.
        """
        self.name, self.queue, self.poll_s = name, queue, poll_s
        self.tolerates_waiting = tolerates_waiting
        self.failures = Failures()
        self.submitted_at = 0.0
        self._addresses, self._log = addresses, log
        self._type = common.OPPORTUNISTIC if opportunistic else common.GUARANTEED
        self.stages = [Stage(priority, [log.task(s) for s in durations]) for priority, durations in stages]
        self._client = RpcClient(*addresses.client, user=addresses.user)
        self._master: RpcClient | None = None
        self._nodes: dict[str, RpcClient] = {}
        self._tokens: dict[str, Token] = {}
        self._application = common.ApplicationId()
        self._request = service.AllocateRequest(response_id=0, progress=0.5)
        self._running: dict[int, tuple[Stage, Task]] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._asks_anew = False

    @property
    def tasks(self) -> list[Task]:
        return [task for stage in self.stages for task in stage.tasks]

    @property
    def completion_s(self) -> float:
        """From submission to the end of the last task's process."""
        return max(task.ended_at for task in self.tasks) - self.submitted_at

    @property
    def from_start_s(self) -> float:
        """From the first task's start to the end of the last one."""
        tasks = self.tasks
        return max(task.ended_at for task in tasks) - min(task.started_at or 0.0 for task in tasks)

    # Life -------------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Submits, runs every task, finishes."""
        await self.open()
        for stage in self.stages:
            await self.run_stage(stage)
        await self.finish()

    async def open(self) -> None:
        """Submits and registers."""
        self.submitted_at = time.monotonic()
        await self._submit()
        self._master = RpcClient(
            *self._addresses.scheduler, user=self._addresses.user, token=await _await(self._master_token)
        )
        await self._master.call(ApplicationMasterProtocol.registerApplicationMaster, self.registration())

    def registration(self) -> service.RegisterApplicationMasterRequest:
        """What it registers with; an extension of ours only where it tolerates waiting."""
        request = service.RegisterApplicationMasterRequest(host="127.0.0.1", rpc_port=0, tracking_url="")
        if self.tolerates_waiting:
            request.yaq_tolerates_waiting = True
        return request

    async def run_stage(self, stage: Stage, *, until: float | None = None) -> None:
        """Asks for its containers and calls every `poll_s` until all have run, or until that moment."""
        loop = asyncio.get_running_loop()
        stage.waiting.extend(stage.tasks)
        stage.left = len(stage.tasks)
        stage.is_asked = True
        for task in stage.tasks:
            task.asked_at = time.monotonic()
        self._asks_anew = True
        due = loop.time()
        while stage.left and (until is None or time.monotonic() < until):
            await self._allocate(stage)
            due = max(due + self.poll_s, loop.time())
            if stage.left:
                await asyncio.sleep(due - loop.time())

    async def finish(self) -> None:
        """Unregisters and closes every connection."""
        assert self._master is not None
        request = service.FinishApplicationMasterRequest(
            final_application_status=common.APP_SUCCEEDED, diagnostics="", tracking_url=""
        )
        master = self._master

        async def unregistered() -> bool | None:
            answer = await master.call(ApplicationMasterProtocol.finishApplicationMaster, request)
            return answer.isUnregistered or None

        await _await(unregistered)
        await self.close()

    async def kill(self) -> None:
        """Ends the application with whatever it still runs."""
        request = service.KillApplicationRequest(application_id=self._application)

        async def killed() -> bool | None:
            answer = await self._client.call(ApplicationClientProtocol.forceKillApplication, request)
            return answer.is_kill_completed or None

        await _await(killed)
        await self.close()

    async def close(self) -> None:
        await asyncio.gather(*self._calls, return_exceptions=True)
        for client in (self._client, self._master, *self._nodes.values()):
            if client is not None:
                await client.close()

    # Allocation -------------------------------------------------------------------------------------------------------

    def _ask(self, stage: Stage) -> None:
        """The next call says how many containers are still wanted."""
        ask = self._request.ask.add(
            resource_name="*", num_containers=len(stage.waiting), relax_locality=True, allocation_request_id=-1
        )
        ask.priority.priority = stage.priority
        ask.capability.memory = SLOT_MB
        ask.capability.virtual_cores = 1
        ask.execution_type_request.execution_type = self._type
        ask.execution_type_request.enforce_execution_type = True

    async def _allocate(self, stage: Stage) -> None:
        assert self._master is not None
        if self._asks_anew:
            self._asks_anew = False
            self._ask(stage)
        answer = await self._master.call(ApplicationMasterProtocol.allocate, self._request)
        self._request.response_id = answer.response_id
        del self._request.ask[:]
        del self._request.release[:]
        for token in answer.nm_tokens:
            self._tokens[f"{token.nodeId.host}:{token.nodeId.port}"] = Token.from_pb(token.token)
        self._completed(answer, stage)
        self._allocated(answer.allocated_containers, stage)

    def _completed(self, answer: service.AllocateResponse, stage: Stage) -> None:
        now = time.monotonic()
        for status in answer.completed_container_statuses:
            found = self._running.pop(status.container_id.id, None)
            if found is None:
                continue
            of, task = found
            if status.exit_status == 0:
                task.told_at = now
                of.left -= 1
                continue
            failures = self.failures
            failures.by_status[status.exit_status] = failures.by_status.get(status.exit_status, 0) + 1
            failures.first = failures.first or status.diagnostics[:500]
            self._again(of, task)

    def _again(self, stage: Stage, task: Task) -> None:
        task.started_at = None
        stage.waiting.append(task)
        self._asks_anew = True

    def _allocated(self, containers: Sequence[common.Container], stage: Stage) -> None:
        by_node: dict[str, list[tuple[common.Container, Task]]] = {}
        for container in containers:
            if not stage.waiting:
                self._request.release.append(container.id)
                continue
            task = stage.waiting.popleft()
            task.given_at = time.monotonic()
            task.node = f"{container.nodeId.host}:{container.nodeId.port}"
            self._running[container.id.id] = (stage, task)
            by_node.setdefault(task.node, []).append((container, task))
        for node, started in by_node.items():
            call = asyncio.get_running_loop().create_task(self._start(node, started, stage))
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)

    async def _start(self, node: str, started: list[tuple[common.Container, Task]], stage: Stage) -> None:
        client = self._nodes.get(node)
        if client is None:
            host, port = node.rsplit(":", 1)
            client = RpcClient(host, int(port), user=self._addresses.user, token=self._tokens[node])
            self._nodes[node] = client
        request = service.StartContainersRequest()
        for container, task in started:
            item = request.start_container_request.add()
            item.container_token.CopyFrom(container.container_token)
            item.container_launch_context.command.append(self._log.command(task))
        answer = await client.call(ContainerManagementProtocol.startContainers, request)
        for failed in answer.failed_requests:
            self.failures.refused_starts += 1
            self.failures.first = self.failures.first or failed.exception.message[:500]
            found = self._running.pop(failed.container_id.id, None)
            if found is not None:
                self._again(*found)

    # Submission -------------------------------------------------------------------------------------------------------

    async def _submit(self) -> None:
        made = await self._client.call(ApplicationClientProtocol.getNewApplication, service.GetNewApplicationRequest())
        self._application = made.application_id
        request = service.SubmitApplicationRequest()
        context = request.application_submission_context
        context.application_id.CopyFrom(made.application_id)
        context.application_name = self.name
        context.unmanaged_am = True
        context.queue = self.queue
        context.am_container_spec.SetInParent()
        context.resource.memory = 128
        context.resource.virtual_cores = 1
        await self._client.call(ApplicationClientProtocol.submitApplication, request)

    async def _master_token(self) -> Token | None:
        request = service.GetApplicationReportRequest(application_id=self._application)
        try:
            answer = await self._client.call(ApplicationClientProtocol.getApplicationReport, request)
        except RemoteException:
            return None
        report = answer.application_report
        return Token.from_pb(report.am_rm_token) if report.HasField("am_rm_token") else None


async def _await(get: Callable[[], Awaitable[Found | None]]) -> Found:
    """Asks until there is an answer."""
    for _ in range(_TRIES):
        found = await get()
        if found is not None:
            return found
        await asyncio.sleep(_SETTLE_S)
    raise TimeoutError(f"{getattr(get, '__name__', 'an answer')} did not come")
