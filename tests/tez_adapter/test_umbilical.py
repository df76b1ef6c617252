"""The umbilical over real RPC: who may call, what waits, what wakes it."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId, DagSpec, EdgeSpec, VertexSpec
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.states import JobState
from tez_adapter.master.access import JobAccess
from tez_adapter.master.umbilical import Umbilical
from tez_adapter.protocol import JobClientProtocol, TaskUmbilicalProtocol
from yaqd.config import Configuration
from yaqd.ipc import RemoteException, RpcClient, RpcServer
from yaqd.ipc.errors import InvalidToken, SaslFailure
from yaqd.model import ApplicationAttemptId, ApplicationId, NodeId, Resource
from yaqd.proto import job_pb2 as pb
from yaqd.security import AMRMTokenSecrets, JobTokenSecrets, NMTokenSecrets, RollingKeys, Token

SMALL = Resource(1024, 1)
DAG = DagSpec((VertexSpec("map", 2, SMALL, 10), VertexSpec("reduce", 1, SMALL, 20)), (EdgeSpec(0, 1, 1.0),))
JOB = "job_1_0001"


class Job:
    """The application master without its daemons: dispatches into a real machine, answers through a real server."""

    def __init__(self) -> None:
        self.machine = JobMachine(DAG)
        self.access = JobAccess(Configuration.load(None, environ={}), "alice")
        self.state = JobState.RUNNING
        self.noted: list[tuple[str, str, int]] = []
        self.umbilical: Umbilical

    def dispatch(self, event: ev.Event) -> list[ev.Decision]:
        decisions = self.machine.handle(event, 0.0)
        for decision in decisions:
            match decision:
                case ev.GiveTask():
                    self.umbilical.give_task(decision.container, decision.attempt)
                case ev.GiveExit():
                    self.umbilical.give_exit(decision.container)
                case ev.Finish():
                    self.state = decision.state
        self.umbilical.outputs_may_have_changed()
        return decisions

    def describe(self, attempt: AttemptId) -> pb.TaskDescription:
        ref = pb.AttemptRef(vertex=attempt.vertex, index=attempt.task, number=attempt.number)
        return pb.TaskDescription(attempt=ref, attempt_id=str(tuple(attempt)), kind=pb.TaskDescription.MAP)

    def output_of(self, attempt: AttemptId, node: str, host: str) -> tuple[str, str, int]:
        return f"out{attempt.task}", host, 13562

    def note_counters(self, attempt: AttemptId, counters: list[tuple[str, str, int]]) -> None:
        self.noted = counters

    def note_phases(self, attempt: AttemptId, phases: dict[str, int]) -> None:
        pass

    def note_input(self, lines: list[str]) -> None:
        pass

    def counters(self) -> list[tuple[str, str, int]]:
        return self.noted

    def exit_code(self) -> int:
        return 0

    def diagnostics(self) -> str:
        return ""

    def notices(self) -> tuple[list[str], int]:
        return ["node h:1 was lost"], 3


@pytest.fixture
async def served() -> AsyncIterator[tuple[Job, Callable[..., RpcClient]]]:
    tokens = JobTokenSecrets(secrets.token_bytes)
    token = tokens.mint(JOB)
    server = RpcServer(name="job manager", host="127.0.0.1", token_secrets=tokens)
    job = Job()
    job.umbilical = Umbilical(server, job)
    await server.start()
    clients: list[RpcClient] = []

    def connect(user: str = "alice", *, is_task: bool = True) -> RpcClient:
        clients.append(RpcClient(*server.address, user=user, token=token if is_task else None, timeout_s=10))
        return clients[-1]

    yield job, connect
    for client in clients:
        await client.close()
    await server.stop()


def ref(attempt: AttemptId) -> pb.AttemptRef:
    return pb.AttemptRef(vertex=attempt.vertex, index=attempt.task, number=attempt.number)


def allocate(job: Job, name: str) -> None:
    job.dispatch(ev.ContainerAllocated(name, "h:1", "h", SMALL, 10))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 (the server gives no event to wait for)
            await asyncio.sleep(0)


def get_task(client: RpcClient, container: str, wait_ms: int = 0) -> Awaitable[pb.GetTaskResponse]:
    return client.call(TaskUmbilicalProtocol.getTask, pb.GetTaskRequest(container_id=container, wait_ms=wait_ms))


async def test_whoever_has_no_job_token_is_no_task(served: tuple[Job, Callable[..., RpcClient]]) -> None:
    job, connect = served
    allocate(job, "c1")
    with pytest.raises(RemoteException, match="no token"):
        await get_task(connect("mallory", is_task=False), "c1")
    assert job.machine.containers["c1"].attempt is not None


async def test_tokens_of_other_jobs_and_kinds_open_nothing(served: tuple[Job, Callable[..., RpcClient]]) -> None:
    job, connect = served
    allocate(job, "c1")
    door = connect()
    assert isinstance(door._token, Token)
    real = door._token
    keys = RollingKeys(now=0.0, random=secrets.token_bytes)
    attempt = ApplicationAttemptId(ApplicationId(1, 1), 1)
    wrong = [
        Token(real.identifier, bytes(20), real.kind, real.service),
        JobTokenSecrets(secrets.token_bytes).mint(JOB),  # the same job, made by somebody else
        JobTokenSecrets(secrets.token_bytes).mint("job_1_0002"),
        Token(real.identifier + b"x", real.password, real.kind, real.service),
        AMRMTokenSecrets(keys).mint(attempt),
        NMTokenSecrets(keys).mint(attempt, NodeId("127.0.0.1", 1), "alice"),
        Token(b"", b"", "", ""),
    ]
    for token in wrong:
        client = RpcClient(door.host, door.port, user="alice", token=token, timeout_s=10)
        with pytest.raises((InvalidToken, SaslFailure)):
            await get_task(client, "c1")
        await client.close()
    assert job.machine.containers["c1"].attempt is not None


async def test_a_job_from_its_first_task_to_its_end(served: tuple[Job, Callable[..., RpcClient]]) -> None:
    job, connect = served
    client = connect()
    allocate(job, "c1")
    for expected in ((0, 0), (0, 1), (1, 0)):
        response = await get_task(client, "c1")
        assert response.action == pb.GetTaskResponse.RUN
        attempt = response.task.attempt
        assert (attempt.vertex, attempt.index) == expected
        assert (await client.call(TaskUmbilicalProtocol.canCommit, pb.CanCommitRequest(attempt=attempt))).granted
        counters = [pb.Counter(group="g", name="n", value=7)]
        await client.call(TaskUmbilicalProtocol.taskDone, pb.TaskDoneRequest(attempt=attempt, counters=counters))
        # the answer was lost and the task says it again
        await client.call(TaskUmbilicalProtocol.taskDone, pb.TaskDoneRequest(attempt=attempt))
    assert (await get_task(client, "c1")).action == pb.GetTaskResponse.EXIT
    assert job.state is JobState.SUCCEEDED
    assert job.noted == [("g", "n", 7)]


async def test_an_idle_process_is_held_until_there_is_work(served: tuple[Job, Callable[..., RpcClient]]) -> None:
    job, connect = served
    one, two = connect(), connect()
    allocate(job, "c1")
    allocate(job, "c2")
    first = (await get_task(one, "c1")).task.attempt
    second = (await get_task(two, "c2")).task.attempt
    await one.call(TaskUmbilicalProtocol.taskDone, pb.TaskDoneRequest(attempt=first))
    held = asyncio.ensure_future(get_task(one, "c1", wait_ms=9000))
    await until(lambda: "c1" in job.umbilical._waiting)
    assert not held.done()
    await two.call(TaskUmbilicalProtocol.taskDone, pb.TaskDoneRequest(attempt=second))
    response = await held
    assert (response.action, response.task.attempt.vertex) == (pb.GetTaskResponse.RUN, 1)


async def test_a_process_that_asks_twice_gets_one_answer(served: tuple[Job, Callable[..., RpcClient]]) -> None:
    job, connect = served
    client = connect()
    allocate(job, "c1")
    allocate(job, "c2")
    await get_task(client, "c2")
    await client.call(
        TaskUmbilicalProtocol.taskDone, pb.TaskDoneRequest(attempt=(await get_task(client, "c1")).task.attempt)
    )
    held = asyncio.ensure_future(get_task(client, "c1", wait_ms=9000))
    await until(lambda: "c1" in job.umbilical._waiting)
    # its connection broke, it asks again: the first request is let go
    assert (await get_task(client, "c1")).action == pb.GetTaskResponse.WAIT
    assert (await held).action == pb.GetTaskResponse.WAIT


async def test_a_reduce_hears_of_outputs_as_they_come_and_go(served: tuple[Job, Callable[..., RpcClient]]) -> None:
    job, connect = served
    client = connect()
    allocate(job, "c1")
    for _ in range(2):
        attempt = (await get_task(client, "c1")).task.attempt
        await client.call(TaskUmbilicalProtocol.taskDone, pb.TaskDoneRequest(attempt=attempt))
    reduce_attempt = next(iter(job.machine.vertices[1].running))

    def events(seen: int, wait_ms: int = 0) -> Awaitable[pb.GetMapCompletionEventsResponse]:
        request = pb.GetMapCompletionEventsRequest(attempt=ref(reduce_attempt), wait_ms=wait_ms)
        setattr(request, "from", seen)
        return client.call(TaskUmbilicalProtocol.getMapCompletionEvents, request)

    assert [(e.attempt_id, e.host, e.port, e.available) for e in (await events(0)).events] == [
        ("out0", "h", 13562, True),
        ("out1", "h", 13562, True),
    ]
    assert not (await events(2)).events
    waiting = asyncio.ensure_future(events(2, wait_ms=9000))
    await client.call(
        TaskUmbilicalProtocol.fetchFailed,
        pb.FetchFailedRequest(attempt=ref(reduce_attempt), sources=[ref(AttemptId(0, 0, 0))]),
    )
    assert [(e.attempt_id, e.available) for e in (await waiting).events] == [("out0", False)]


async def test_an_attempt_that_was_replaced_is_told_to_stop(served: tuple[Job, Callable[..., RpcClient]]) -> None:
    job, connect = served
    client = connect()
    allocate(job, "c1")
    attempt = (await get_task(client, "c1")).task.attempt
    failed = pb.TaskFailedRequest(attempt=attempt, error="boom")
    await client.call(TaskUmbilicalProtocol.taskFailed, failed)
    status = await client.call(TaskUmbilicalProtocol.statusUpdate, pb.StatusUpdateRequest(attempt=attempt))
    assert status.stop
    assert not (await client.call(TaskUmbilicalProtocol.canCommit, pb.CanCommitRequest(attempt=attempt))).granted
    request = pb.GetMapCompletionEventsRequest(attempt=attempt)
    setattr(request, "from", 0)
    assert (await client.call(TaskUmbilicalProtocol.getMapCompletionEvents, request)).stop


async def test_a_long_error_keeps_its_beginning_and_its_end(served: tuple[Job, Callable[..., RpcClient]]) -> None:
    job, connect = served
    client = connect()
    allocate(job, "c1")
    attempt = (await get_task(client, "c1")).task.attempt
    failed = pb.TaskFailedRequest(attempt=attempt, error="what " + "x" * 20_000 + " why")
    await client.call(TaskUmbilicalProtocol.taskFailed, failed)
    error = job.machine.vertices[0].tasks[0].attempts[0].error
    assert error.startswith("what x") and error.endswith("x why") and " ... " in error and len(error) == 16_000


async def test_attempts_that_never_were_are_refused(served: tuple[Job, Callable[..., RpcClient]]) -> None:
    _, connect = served
    nonsense = pb.AttemptRef(vertex=-1, index=10**6, number=3)
    with pytest.raises(RemoteException, match="no attempt"):
        await connect().call(TaskUmbilicalProtocol.taskDone, pb.TaskDoneRequest(attempt=nonsense))


async def test_anybody_sees_the_status_and_the_owner_kills(served: tuple[Job, Callable[..., RpcClient]]) -> None:
    job, connect = served
    other, owner = connect("bob", is_task=False), connect("alice", is_task=False)
    status = await other.call(JobClientProtocol.getJobStatus, pb.GetJobStatusRequest(with_counters=True))
    assert [(v.name, v.tasks, v.pending) for v in status.vertices] == [("map", 2, 2), ("reduce", 1, 0)]
    with pytest.raises(RemoteException, match="may not kill"):
        await other.call(JobClientProtocol.killJob, pb.KillJobRequest())
    assert job.machine.state is JobState.RUNNING
    await owner.call(JobClientProtocol.killJob, pb.KillJobRequest(reason="enough"))
    assert job.state is JobState.KILLED


async def test_access_lists_tell_who_sees_and_who_kills(served: tuple[Job, Callable[..., RpcClient]]) -> None:
    job, connect = served
    lists = {
        "yarn.acl.enable": "true",
        "yarn.admin.acl": "root-like wheel",
        "mapreduce.job.acl-view-job": "bob staff",
        "mapreduce.job.acl-modify-job": "mo",
        "hadoop.user.group.static.mapping.overrides": "wanda=wheel;stella=staff;mallory=others",
    }
    job.access = JobAccess(Configuration.load(None, overrides=lists, environ={}), "alice")
    job.noted = [("g", "n", 7)]
    for user in ("alice", "bob", "stella", "wanda", "root-like"):
        request = pb.GetJobStatusRequest(with_counters=True)
        status = await connect(user, is_task=False).call(JobClientProtocol.getJobStatus, request)
        assert [counter.value for counter in status.counters] == [7], user
    for user in ("mo", "mallory", "user-unknown-to-this-machine"):
        with pytest.raises(RemoteException, match="may not see the job of alice"):
            await connect(user, is_task=False).call(JobClientProtocol.getJobStatus, pb.GetJobStatusRequest())
    for user in ("bob", "stella", "mallory"):
        with pytest.raises(RemoteException, match="may not kill the job of alice"):
            await connect(user, is_task=False).call(JobClientProtocol.killJob, pb.KillJobRequest())
    assert job.machine.state is JobState.RUNNING
    await connect("mo", is_task=False).call(JobClientProtocol.killJob, pb.KillJobRequest())
    assert job.state is JobState.KILLED


async def test_counters_whose_sum_is_beyond_the_wire(served: tuple[Job, Callable[..., RpcClient]]) -> None:
    job, connect = served
    job.noted = [("g", "up", 2**64), ("g", "down", -(2**64)), ("g", "n", 7)]
    request = pb.GetJobStatusRequest(with_counters=True)
    status = await connect("alice", is_task=False).call(JobClientProtocol.getJobStatus, request)
    assert [counter.value for counter in status.counters] == [2**63 - 1, -(2**63), 7]
