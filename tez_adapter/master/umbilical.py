"""What the job manager answers to its tasks and to its client.

Calls become events; what the machine decides about the caller is its answer. A process that asks for a task while there
is none is held for a moment, never longer than it asked for; so is a reduce that waits for map outputs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.records import Completion
from tez_adapter.core.states import AttemptState, JobState
from tez_adapter.master.access import JobAccess, for_tasks
from tez_adapter.protocol import JobClientProtocol, TaskUmbilicalProtocol
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import IllegalArgument
from yaqd.model.endings import without_middle
from yaqd.proto import job_pb2 as pb
from yaqd.proto.protocols import Method

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_WAIT_MAX_S = 10.0
_EVENTS_PER_CALL = 2000
_ERROR_CHARS_MAX = 16_000
_NOTE_CHARS_MAX = 1000


class JobView(Protocol):
    """What the answers need from the application master."""

    machine: JobMachine
    access: JobAccess

    @property
    def state(self) -> JobState: ...
    def dispatch(self, event: ev.Event) -> list[ev.Decision]: ...
    def describe(self, attempt: AttemptId) -> pb.TaskDescription: ...
    def output_of(self, attempt: AttemptId, node: str, host: str) -> tuple[str, str, int]: ...
    def note_counters(self, attempt: AttemptId, counters: list[tuple[str, str, int]]) -> None: ...
    def note_phases(self, attempt: AttemptId, phases: dict[str, int]) -> None: ...
    def note_input(self, lines: list[str]) -> None: ...
    def counters(self) -> list[tuple[str, str, int]]: ...
    def exit_code(self) -> int: ...
    def diagnostics(self) -> str: ...
    def notices(self) -> tuple[list[str], int]: ...


class Umbilical:
    def __init__(
        self, server: RpcServer, job: JobView, outputs: Callable[[int], Sequence[Completion]] | None = None
    ) -> None:
        """`outputs`: what a vertex may read, in the order it came and went; by default as the machine has it."""
        self._job = job
        self._outputs = outputs or (lambda vertex: job.machine.outputs_for(vertex))
        #: container -> its request that waits for an answer
        self._waiting: dict[str, asyncio.Future[pb.GetTaskResponse]] = {}
        self._outputs_seen = 0
        #: set and made anew whenever map outputs come or go
        self._outputs_changed = asyncio.Event()
        handlers: tuple[tuple[Method[Any, Any], Callable[[Any], Any]], ...] = (
            (TaskUmbilicalProtocol.getTask, self._get_task),
            (TaskUmbilicalProtocol.statusUpdate, self._status_update),
            (TaskUmbilicalProtocol.taskDone, self._task_done),
            (TaskUmbilicalProtocol.taskFailed, self._task_failed),
            (TaskUmbilicalProtocol.canCommit, self._can_commit),
            (TaskUmbilicalProtocol.getMapCompletionEvents, self._completion_events),
            (TaskUmbilicalProtocol.fetchFailed, self._fetch_failed),
        )
        for method, handler in handlers:
            server.register(method, for_tasks(handler))
        server.register(JobClientProtocol.getJobStatus, self._job_status)
        server.register(JobClientProtocol.killJob, self._kill_job)

    # ---- decisions that are answers

    def give_task(self, container: str, attempt: AttemptId) -> None:
        self._answer(container, pb.GetTaskResponse(action=pb.GetTaskResponse.RUN, task=self._job.describe(attempt)))

    def give_exit(self, container: str) -> None:
        self._answer(container, pb.GetTaskResponse(action=pb.GetTaskResponse.EXIT))

    def _answer(self, container: str, response: pb.GetTaskResponse) -> None:
        waiting = self._waiting.get(container)
        if waiting is not None and not waiting.done():
            waiting.set_result(response)

    def outputs_may_have_changed(self) -> None:
        """Wake the reduces that wait for map outputs when there is news. Called after every event."""
        seen = sum(len(self._outputs(v.index)) for v in self._job.machine.vertices)
        if seen != self._outputs_seen:
            self._outputs_seen = seen
            self._outputs_changed.set()
            self._outputs_changed = asyncio.Event()

    # ---- tasks

    def _get_task(self, request: pb.GetTaskRequest) -> pb.GetTaskResponse | Awaitable[pb.GetTaskResponse]:
        container = request.container_id
        future: asyncio.Future[pb.GetTaskResponse] = asyncio.get_running_loop().create_future()
        former = self._waiting.get(container)
        if former is not None and not former.done():
            former.set_result(_WAIT)
        self._waiting[container] = future
        self._job.dispatch(ev.TaskRequested(container))
        if future.done() or not request.wait_ms:
            self._waiting.pop(container, None)
            return future.result() if future.done() else _WAIT
        return self._held(container, future, min(_WAIT_MAX_S, request.wait_ms / 1000))

    async def _held(
        self, container: str, future: "asyncio.Future[pb.GetTaskResponse]", wait_s: float
    ) -> pb.GetTaskResponse:
        try:
            async with asyncio.timeout(wait_s):
                return await future
        except TimeoutError:
            return _WAIT
        finally:
            if self._waiting.get(container) is future:
                del self._waiting[container]

    def _status_update(self, request: pb.StatusUpdateRequest) -> pb.StatusUpdateResponse:
        attempt = _attempt_id(request.attempt)
        self._job.dispatch(ev.AttemptReported(attempt, request.progress, request.moved))
        if request.counters:
            self._job.note_counters(attempt, _counters(request.counters))
        return pb.StatusUpdateResponse(stop=self._is_unwanted(attempt))

    def _is_unwanted(self, attempt: AttemptId) -> bool:
        record = self._job.machine.attempt(attempt)
        return record is None or not record.live

    def _task_done(self, request: pb.TaskDoneRequest) -> pb.TaskDoneResponse:
        attempt = _attempt_id(request.attempt)
        record = self._job.machine.attempt(attempt)
        if record is None:
            raise IllegalArgument(f"this job has no attempt {attempt}")
        if record.state is not AttemptState.SUCCEEDED:
            self._job.note_counters(attempt, _counters(request.counters))
            self._job.note_phases(attempt, {p.name: p.ms for p in request.phases})
            self._job.note_input([line[:_NOTE_CHARS_MAX] for line in request.notes])
            self._job.dispatch(ev.AttemptSucceeded(attempt))
        return pb.TaskDoneResponse()

    def _task_failed(self, request: pb.TaskFailedRequest) -> pb.TaskFailedResponse:
        error = without_middle(request.error, _ERROR_CHARS_MAX)
        self._job.dispatch(ev.AttemptFailed(_attempt_id(request.attempt), error, request.fatal))
        return pb.TaskFailedResponse()

    def _can_commit(self, request: pb.CanCommitRequest) -> pb.CanCommitResponse:
        attempt = _attempt_id(request.attempt)
        decisions = self._job.dispatch(ev.CommitRequested(attempt))
        granted = any(isinstance(d, ev.AnswerCommit) and d.granted for d in decisions)
        return pb.CanCommitResponse(granted=granted)

    def _completion_events(
        self, request: pb.GetMapCompletionEventsRequest
    ) -> pb.GetMapCompletionEventsResponse | Awaitable[pb.GetMapCompletionEventsResponse]:
        response = self._events_from(request)
        if response.events or response.stop or not request.wait_ms:
            return response
        return self._later_events(request, min(_WAIT_MAX_S, request.wait_ms / 1000))

    async def _later_events(
        self, request: pb.GetMapCompletionEventsRequest, wait_s: float
    ) -> pb.GetMapCompletionEventsResponse:
        try:
            async with asyncio.timeout(wait_s):
                await self._outputs_changed.wait()
        except TimeoutError:
            pass
        return self._events_from(request)

    def _events_from(self, request: pb.GetMapCompletionEventsRequest) -> pb.GetMapCompletionEventsResponse:
        attempt = _attempt_id(request.attempt)
        response = pb.GetMapCompletionEventsResponse(stop=self._is_unwanted(attempt))
        if response.stop:
            return response
        response.given_up.extend(self._job.machine.given_up_for(attempt.vertex))
        entries = self._outputs(attempt.vertex)
        start = max(0, getattr(request, "from"))
        for entry in entries[start : start + _EVENTS_PER_CALL]:
            name, host, port = self._job.output_of(entry.attempt, entry.node, entry.host)
            response.events.add(
                attempt=_attempt_pb(entry.attempt),
                attempt_id=name,
                host=host,
                port=port,
                node=entry.node,
                available=entry.available,
                merged=entry.merged,
                channel=entry.channel,
            )
        return response

    def _fetch_failed(self, request: pb.FetchFailedRequest) -> pb.FetchFailedResponse:
        sources = tuple(_attempt_id(s) for s in request.sources)
        self._job.dispatch(ev.FetchReported(_attempt_id(request.attempt), sources))
        return pb.FetchFailedResponse()

    # ---- clients

    def _job_status(self, request: pb.GetJobStatusRequest, caller: Caller) -> pb.GetJobStatusResponse:
        self._job.access.check_view(caller)
        machine = self._job.machine
        response = pb.GetJobStatusResponse(
            state=self._job.state.value,
            progress=machine.progress(),
            diagnostics=self._job.diagnostics(),
            exit_code=self._job.exit_code(),
        )
        for vertex in machine.vertices:
            response.vertices.add(
                name=vertex.spec.name,
                tasks=vertex.spec.tasks,
                pending=len(vertex.pending),
                running=len(vertex.running),
                done=vertex.done,
                failed=vertex.ended[AttemptState.FAILED],
                killed=vertex.ended[AttemptState.KILLED],
                progress=vertex.progress(),
            )
        latest, response.notices_total = self._job.notices()
        response.notices.extend(latest)
        if request.with_counters:
            for group, name, value in self._job.counters():
                # each task's counters fit, and yet their sum may not
                response.counters.add(group=group, name=name, value=max(_INT64_MIN, min(value, _INT64_MAX)))
        return response

    def _kill_job(self, request: pb.KillJobRequest, caller: Caller) -> pb.KillJobResponse:
        self._job.access.check_kill(caller)
        if self._job.machine.state is JobState.RUNNING:
            self._job.dispatch(ev.KillRequested(request.reason or f"killed by {caller.user}"))
        return pb.KillJobResponse()


_WAIT = pb.GetTaskResponse(action=pb.GetTaskResponse.WAIT)


def _attempt_id(message: pb.AttemptRef) -> AttemptId:
    return AttemptId(message.vertex, message.index, message.number)


def _attempt_pb(attempt: AttemptId) -> pb.AttemptRef:
    return pb.AttemptRef(vertex=attempt.vertex, index=attempt.task, number=attempt.number)


def _counters(messages: Iterable[pb.Counter]) -> list[tuple[str, str, int]]:
    return [(c.group, c.name, c.value) for c in messages]
