"""An exploration as its job manager serves it: to its slots, to the trials in them, and to clients.

No code of the user's runs here. What an event leads to is carried out once its records are on storage.
"""

import asyncio
import json
import logging
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any, Final

from tez_adapter.background import in_background
from tez_adapter.core import events as job_events
from tez_adapter.core.dag import AttemptId
from tez_adapter.core.exploration import events as ev
from tez_adapter.core.exploration.machine import ExplorationMachine
from tez_adapter.core.exploration.runs import NO_ITERATION, Run, TrialPhase
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.states import AttemptState, JobState
from tez_adapter.exploration.beginnings import Beginning, CannotBegin, begin
from tez_adapter.exploration.budget import CheckpointBudget
from tez_adapter.exploration.proposals import Proposals
from tez_adapter.exploration.reports import Together, event_of
from tez_adapter.exploration.settings import ExplorationSettings
from tez_adapter.exploration.slots import SlotLinks
from tez_adapter.exploration.status import begins_anew, best_line, status_of
from tez_adapter.exploration.store import Commits
from tez_adapter.jobspec import JobKind, JobSpec
from tez_adapter.kinds.exploration import terms_of
from tez_adapter.master.access import JobAccess, for_tasks
from tez_adapter.master.ended import JobEnd
from tez_adapter.protocol import ExplorationProtocol, JobClientProtocol
from tez_adapter.training.curve import Curve
from tez_adapter.training.keeper import Keeper
from yaqd.config import Configuration
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import IllegalArgument
from yaqd.ipc.tasks import TaskSet
from yaqd.proto import convert, job_pb2
from yaqd.proto import job_exploration_pb2 as pb
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import Method
from yaqd.storage import StorageError

log = logging.getLogger(__name__)

_ERROR_CHARS_MAX: Final = 4000
_PROGRESS_STEP: Final = 0.005
_TICK_S: Final = 1.0
#: changes within a second are fewer
_VERSION_BITS: Final = 24
_ORDERS: Final = {
    ev.Order.CONTINUE: pb.TrialReportResponse.CONTINUE,
    ev.Order.SUSPEND: pb.TrialReportResponse.SUSPEND,
    ev.Order.FREEZE: pb.TrialReportResponse.FREEZE,
    ev.Order.STOP: pb.TrialReportResponse.STOP,
    ev.Order.LEAVE: pb.TrialReportResponse.LEAVE,
}


class ExplorationService:
    """Made in the event loop. Call `follow` when the job's machine has moved, `tick` now and then."""

    #: an exploration asks for no cores of its own
    reports = None

    def __init__(
        self,
        spec: JobSpec,
        conf: Configuration,
        machine: JobMachine,
        server: RpcServer,
        access: JobAccess,
        *,
        dispatch: Callable[[job_events.Event], object],
        note: Callable[[str], None],
    ) -> None:
        self._spec, self._terms, self._conf = spec, terms_of(spec), conf
        self._settings = ExplorationSettings.read(conf)
        self._job, self._access, self._dispatch, self._note = machine, access, dispatch, note
        self._keeper = Keeper(spec, conf, self._settings.training, note=note)
        self._slots = SlotLinks()
        self._tasks = TaskSet()
        self._together = Together()
        self._stopped_by = ""
        #: what clients count changes by: later than all that an earlier attempt told
        self._versions_from = int(time.time()) << _VERSION_BITS
        self._ticked = 0.0
        #: attempts that were over when the slots were looked at last
        self._ended = 0
        #: that the job was told last
        self._progress = -1.0
        self._begun: Beginning | None = None
        self._loaded = asyncio.get_running_loop().create_task(self._load())
        for method, handler in self._of_tasks():
            server.register(method, for_tasks(handler))
        server.register(JobClientProtocol.getExplorationStatus, self._status)
        server.register(JobClientProtocol.stopExploration, self._stop)

    @classmethod
    def of(cls, spec: JobSpec, *arguments: Any, **more: Any) -> "ExplorationService | None":
        """Return None for another kind of job."""
        return cls(spec, *arguments, **more) if spec.kind is JobKind.EXPLORATION else None

    def _of_tasks(self) -> Iterable[tuple[Method[Any, Any], Callable[[Any], Any]]]:
        return (
            (ExplorationProtocol.slotTurn, self._slot_turn),
            (ExplorationProtocol.trialChanged, self._trial_changed),
            (ExplorationProtocol.begin, self._begin),
            (ExplorationProtocol.report, self._report),
            (ExplorationProtocol.keepCheckpoint, self._keep),
            (ExplorationProtocol.woken, self._woken),
        )

    async def _load(self) -> None:
        try:
            begun = await asyncio.wrap_future(
                in_background(lambda: begin(self._spec, self._terms, self._conf, self._settings, self._later_note))
            )
            await asyncio.wrap_future(in_background(self._keeper.keep_job))
        except (CannotBegin, StorageError) as error:
            self._dispatch(job_events.AbortRequested(str(error)))
            return
        self._commits = Commits(begun.records, note=self._note)
        self._proposals = Proposals(begun.generator)
        self._budget = CheckpointBudget(begun.checkpoints, self._settings.checkpoints_bytes_max)
        self._begun = begun
        over = begun.machine.over
        if over is not None:
            self._carry_out(ev.Outcome(decisions=[over]))

    def _later_note(self, line: str) -> None:
        """From another thread."""
        self._loaded.get_loop().call_soon_threadsafe(self._note, line)

    async def _machine(self) -> ExplorationMachine:
        await asyncio.wait((self._loaded,))
        if self._begun is None:
            raise IllegalArgument("this exploration cannot begin")
        return self._begun.machine

    def _now(self) -> float:
        return 0.0 if self._begun is None else max(0.0, time.time() - self._begun.started)

    # ---- events in, decisions out

    async def _do(self, event: ev.Event) -> ev.Outcome:
        """Return what follows from an event, once it is stored and carried out.

        What has no records waits for those before it: a report that is sent again has the answer of the first one.
        """
        outcome = (await self._machine()).handle(event, self._now())
        if outcome.records or (outcome.decisions and self._commits.is_behind):
            await self._commits.append(outcome.records)
        self._carry_out(outcome)
        return outcome

    def _carry_out(self, outcome: ev.Outcome) -> None:
        for decision in outcome.decisions:
            match decision:
                case ev.BeginTrial(slot, number, lap):
                    self._slots.order(slot, pb.SlotOrder.BEGIN, number, lap)
                case ev.ThawTrial(slot, number, lap):
                    self._slots.order(slot, pb.SlotOrder.THAW, number, lap)
                case ev.DumpTrial(slot, number, lap):
                    self._slots.order(slot, pb.SlotOrder.DUMP, number, lap)
                case ev.KillTrial(slot, number, lap):
                    self._slots.order(slot, pb.SlotOrder.KILL, number, lap)
                case ev.ReleaseSlot(slot):
                    self._release(slot)
                case ev.Propose(number):
                    self._tasks.start(self._propose(number))
                case ev.TellGenerator(number, value, is_final) if self._begun is not None:
                    self._proposals.told(number, self._begun.machine.run(number).params, value, is_final)
                case ev.Say(line):
                    self._note(line)
                case ev.EndExploration(True, text):
                    self._dispatch(job_events.JobCompleted(text))
                case ev.EndExploration(False, text):
                    self._dispatch(job_events.AbortRequested(text))
                # an answer: the handler of the report gives it

    async def _propose(self, number: int) -> None:
        try:
            params = await asyncio.wrap_future(self._proposals.propose(number))
        except Exception as error:
            self._note(f"the generator fails, so trials after {number} are left out: {error}")
            params = None
        await self._do(ev.ParamsCame(number, params))

    # ---- slots

    async def _slot_turn(self, request: pb.SlotTurnRequest) -> pb.SlotTurnResponse:
        attempt = _attempt(request.attempt)
        await self._machine()
        if not self._is_live(attempt):
            return pb.SlotTurnResponse(leave=True)
        name = _slot_name(attempt)
        if name not in self._slots:
            self._slots.add(name, attempt)
            await self._do(ev.SlotCame(name, request.host, request.can_dump, request.cannot_dump[:_ERROR_CHARS_MAX]))
        return await self._slots.turn(name, request.heard, request.wait_ms / 1000)

    async def _trial_changed(self, request: pb.TrialChangedRequest) -> pb.TrialChangedResponse:
        trial, error = request.trial, request.error[:_ERROR_CHARS_MAX]
        if request.change == pb.TrialChangedRequest.STOPPED:
            await self._do(ev.TrialStopped(trial.number, trial.lap, request.memory_mb, request.image_mb, error))
        else:
            await self._do(ev.TrialOver(trial.number, trial.lap, error, request.is_killed))
        return pb.TrialChangedResponse()

    # ---- trials

    async def _begin(self, request: pb.TrialBeginRequest) -> pb.TrialBeginResponse:
        run = self._run_of(await self._machine(), request.trial)
        if run is None:
            return pb.TrialBeginResponse(leave=True)
        response = pb.TrialBeginResponse(params=json.dumps(run.params), epochs=len(run.shown))
        if run.iteration != NO_ITERATION:
            response.iteration = run.iteration
        checkpoint = await self._checkpoint_of(run)
        if checkpoint is not None:
            response.checkpoint_iteration, response.checkpoint = checkpoint
            response.checkpoint_epoch = bisect_right(run.iterations, checkpoint[0])
        return response

    async def _checkpoint_of(self, run: Run) -> tuple[int, bytes] | None:
        iteration = run.checkpoint
        if iteration is None or self._begun is None:
            return None
        checkpoints = self._begun.checkpoints
        try:
            if iteration > run.iteration:
                raise StorageError("its checkpoint is later than its last report", path="")
            return iteration, await asyncio.wrap_future(in_background(lambda: checkpoints.load(run.number, iteration)))
        except StorageError as error:
            self._note(f"trial {run.number} begins anew: {error}")
            await self._do(ev.CheckpointLost(run.number))
            return None

    def _run_of(self, machine: ExplorationMachine, trial: pb.TrialRef) -> Run | None:
        """None: nobody wants this process any more."""
        run = machine.runs.get(trial.number)
        if run is None or run.lap != trial.lap or run.phase is TrialPhase.NONE or machine.over is not None:
            return None
        return run

    async def _report(self, request: pb.TrialReportRequest) -> pb.TrialReportResponse:
        event = event_of(request)
        if isinstance(event, ev.TrialReported):
            await self._together.foresee(await self._machine(), event)
        return _response((await self._do(event)).answer)

    async def _woken(self, request: pb.TrialWokenRequest) -> pb.TrialReportResponse:
        machine = await self._machine()
        return _response(machine.woken(request.trial.number, request.trial.lap))

    async def _keep(self, request: pb.KeepCheckpointRequest) -> pb.KeepCheckpointResponse:
        machine = await self._machine()
        run = self._run_of(machine, request.trial)
        if run is None or request.iteration != run.iteration:
            return pb.KeepCheckpointResponse(is_kept=False)
        size = len(request.checkpoint)
        async with self._budget.room(machine, run, size) as gone:
            if gone is None:
                self._note(f"a checkpoint of trial {run.number} is not kept: its {size} bytes do not fit")
                return pb.KeepCheckpointResponse(is_kept=False)
            return await self._kept(run, request, gone)

    async def _kept(
        self, run: Run, request: pb.KeepCheckpointRequest, gone: list[tuple[int, int]]
    ) -> pb.KeepCheckpointResponse:
        """Write a checkpoint in the place of others, and note it."""
        for number, _ in gone:
            await self._do(ev.CheckpointLost(number))
        try:
            size = await asyncio.wrap_future(
                in_background(lambda: self._budget.save(gone, run, request.iteration, request.checkpoint))
            )
        except StorageError as error:
            self._note(f"a checkpoint of trial {run.number} is not kept: {error}")
            return pb.KeepCheckpointResponse(is_kept=False)
        former = run.checkpoint
        await self._do(ev.CheckpointKept(run.number, request.iteration, size))
        if former is not None and former != request.iteration:
            # once the records name the later one: a job manager that is lost before that goes on from this
            in_background(lambda: self._budget.forget(run.number, former))
        return pb.KeepCheckpointResponse()

    # ---- what happens

    def registered(self, response: service.RegisterApplicationMasterResponse) -> None:
        """Take no notice: an exploration asks for containers alone."""

    def hear(self, response: service.AllocateResponse) -> None:
        """Have trials leave slots whose containers the ResourceManager wants back."""
        asked = response.preempt
        for wanted in (*asked.contract.container, *asked.strictContract.container):
            container = self._job.containers.get(str(convert.container_id(wanted.id)))
            name = "" if container is None or container.attempt is None else _slot_name(container.attempt.id)
            if name in self._slots:
                self._tasks.start(self._do(ev.SlotClosing(name)))

    def follow(self) -> None:
        """Slots whose attempts are over are lost. Looks at them only where an attempt has ended since."""
        before, self._ended = self._ended, sum(sum(vertex.ended.values()) for vertex in self._job.vertices)
        if self._ended == before:
            return
        for name, link in self._slots:
            if not self._is_live(link.attempt):
                self._slots.remove(name)
                if self._job.state is JobState.RUNNING:
                    self._tasks.start(self._do(ev.SlotGone(name, self._error_of(link.attempt))))

    def _error_of(self, attempt: AttemptId) -> str:
        record = self._job.attempt(attempt)
        is_at_fault = record is not None and record.state is AttemptState.FAILED
        return record.error[:_ERROR_CHARS_MAX] if record is not None and is_at_fault else ""

    def _release(self, name: str) -> None:
        for found, link in self._slots:
            if found == name and self._begun is not None:
                self._slots.remove(name)
                self._dispatch(job_events.VertexLimited(link.attempt.vertex, self._begun.machine.slots_wanted))
                self._dispatch(job_events.AttemptReturned(link.attempt))

    def _is_live(self, attempt: AttemptId) -> bool:
        record = self._job.attempt(attempt)
        return record is not None and record.live

    def tick(self) -> None:
        """Let time pass; the machine's waits are of seconds."""
        if self._begun is not None and self._begun.machine.over is None and self._now() - self._ticked >= _TICK_S:
            self._ticked = self._now()
            self._tasks.start(self._do(ev.ClockTicked()))
            progress = self._begun.machine.progress
            if abs(progress - self._progress) >= _PROGRESS_STEP:
                self._progress = progress
                self._dispatch(job_events.ProgressTold(progress))

    async def end(self) -> None:
        """Wait for what is being written."""
        await asyncio.wait((self._loaded,))
        if self._begun is not None:
            await self._commits.end()
            self._proposals.close()
        await self._tasks.end()

    def leave(self) -> None:
        """Write what stays of the job beside its records. Blocking."""
        self._keeper.leave(None, Curve(), None, self._stopped_by)

    def said(self, end: JobEnd) -> str:
        """Return what a user is told of the end: why, and which trial is the best."""
        if self._begun is None or end.state is not JobState.SUCCEEDED:
            return end.diagnostics
        line = best_line(self._begun.machine)
        return f"{end.diagnostics}; {line}" if line else end.diagnostics

    # ---- clients

    def _status(self, request: pb.ExplorationStatusRequest, caller: Caller) -> pb.ExplorationStatusResponse:
        self._access.check_view(caller)
        if self._begun is None:
            return pb.ExplorationStatusResponse(name=self._spec.name)
        response = status_of(self._begun.machine, max(0, request.version - self._versions_from), self._slot_index)
        response.version += self._versions_from
        response.started = self._begun.started
        response.name, response.now_s, response.slots = self._spec.name, self._now(), len(self._slots)
        if request.version < self._versions_from:
            response.terms = json.dumps(asdict(self._terms))
        return response

    def _slot_index(self, name: str) -> int | None:
        task = name.partition(".")[0]
        return int(task) if task else None

    async def _stop(self, _: pb.StopExplorationRequest, caller: Caller) -> pb.StopExplorationResponse:
        self._access.check_kill(caller)
        response = pb.StopExplorationResponse(begins_anew=begins_anew(await self._machine()))
        if not self._stopped_by:
            self._stopped_by = caller.user
            self._note(f"stopped by {caller.user}: trials that run end with their next report")
            await self._do(ev.StopAsked(f"stopped by {caller.user}"))
        return response


def _attempt(ref: job_pb2.AttemptRef) -> AttemptId:
    return AttemptId(ref.vertex, ref.index, ref.number)


def _slot_name(attempt: AttemptId) -> str:
    return f"{attempt.task}.{attempt.number}"


def _response(answer: ev.Answer) -> pb.TrialReportResponse:
    return pb.TrialReportResponse(order=_ORDERS[answer.order], wants_checkpoint=answer.wants_checkpoint)
