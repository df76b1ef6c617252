"""A training job as its job manager serves it: to its driver or script, to its workers, to clients, and on the way to
the ResourceManager. No code of the user's runs here."""

import asyncio
import hashlib
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from typing import Any, Final

from tez_adapter.background import in_background
from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.states import AttemptState, JobState
from tez_adapter.core.training import TrainingMachine
from tez_adapter.jobspec import JobKind, JobSpec
from tez_adapter.kinds.training import DRIVER, WORKERS, most_workers, terms_of
from tez_adapter.master.access import JobAccess, for_tasks
from tez_adapter.master.ended import JobEnd
from tez_adapter.protocol import JobClientProtocol, TrainingProtocol
from tez_adapter.training.curve import Curve, Point
from tez_adapter.training.evaluations import Evaluations
from tez_adapter.training.keeper import Keeper, Saved
from tez_adapter.training.rm_reports import RmReports
from tez_adapter.training.settings import TrainingSettings
from tez_adapter.training.steps import Steps
from yaqd.config import Configuration
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import IllegalArgument
from yaqd.proto import job_pb2
from yaqd.proto import job_training_pb2 as pb
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import Method

log = logging.getLogger(__name__)

#: stands in the line of a worker that could say where it failed
_PLACE: Final = " on partition "
_CURVE_POINTS_MAX: Final = 2000
_CORES_SLACK: Final = 1e-6


class TrainingService:
    """Made in the event loop. Call `follow` when the machine has moved, `tick` now and then."""

    def __init__(
        self,
        spec: JobSpec,
        conf: Configuration,
        machine: JobMachine,
        server: RpcServer,
        access: JobAccess,
        *,
        dispatch: Callable[[ev.Event], object],
        note: Callable[[str], None],
    ) -> None:
        self._spec, self._terms = spec, terms_of(spec)
        self._settings = TrainingSettings.read(conf)
        self._machine, self._access, self._dispatch, self._note = machine, access, dispatch, note
        self._keeper = Keeper(spec, conf, self._settings, note=note)
        self.reports = RmReports(self._terms)
        self._curve = Curve()
        #: what the program's own checkpoint gave last, and after which iteration
        self._program: tuple[int, bytes] | None = None
        #: of the checkpoint that it was handed when it began, until it has reported an earlier one
        self._goes_on_from = 0
        self._model: bytes | None = None
        self._model_sum = ""
        #: the user who has stopped the job; "": nobody has
        self._stopped_by = ""
        #: nobody divides cores, and the user has been told
        self._is_on_its_own = False
        self._started_ms = int(time.time() * 1000)
        self._reports = self._dropped = 0
        #: processor time and iteration of the driver's or script's process when it reported last, ms
        self._process_cpu: tuple[int, int] | None = None
        #: which worker failed last, and what it computed
        self._failed = ""
        #: calls of the user's code that took too long, in words
        self._late: set[str] = set()
        #: workers that have asked for work, by what they call themselves
        self._workers: dict[str, AttemptId] = {}
        self._steps: Steps | None = None
        #: what a job that resumes this one needs is being copied
        self._keeping: Future[None] | None = None
        self._loaded = asyncio.get_running_loop().create_task(self._load())
        for method, handler in self._of_tasks():
            server.register(method, for_tasks(handler))
        server.register(JobClientProtocol.getTrainingStatus, self._status)
        server.register(JobClientProtocol.stopTraining, self._stop)

    @classmethod
    def of(cls, spec: JobSpec, *arguments: Any, **more: Any) -> "TrainingService | None":
        """Return None for another kind of job."""
        return cls(spec, *arguments, **more) if spec.kind is JobKind.TRAINING else None

    def _of_tasks(self) -> Iterable[tuple[Method[Any, Any], Callable[[Any], Any]]]:
        return (
            (TrainingProtocol.begin, self._begin),
            (TrainingProtocol.report, self._report),
            (TrainingProtocol.evaluate, self._evaluate),
            (TrainingProtocol.trained, self._trained),
            (TrainingProtocol.work, self._work),
            (TrainingProtocol.pullState, self._pull_state),
        )

    async def _load(self) -> None:
        saved = await self._keeper.load()
        self._keeping = in_background(self._keeper.keep_job)
        if saved is not None:
            self._curve = saved.curve
            self.reports.recall(self._curve.landmarks(), self._curve.latest())
            self._program = None if saved.program is None else (saved.iteration, saved.program)
        if self._terms.partitions:
            known = () if saved is None else saved.evaluations
            half = self._settings.checkpoint_bytes_max // 2
            self._steps = Steps(
                TrainingMachine(self._terms.partitions, wanted=self._wanted(), gather_s=self._settings.gather_s),
                self._terms.partitions,
                Evaluations(half, known, note=self._other_course) if self._terms.by_run else None,
                bytes_max=self._settings.state_bytes_max,
                on_leave=self._leaves,
            )

    def _other_course(self, line: str) -> None:
        if self._program is None:  # one that goes on from its own checkpoint asks for later states
            self._note(line)

    async def _steps_of(self) -> Steps:
        await self._loaded
        if self._steps is None:
            raise IllegalArgument("this job has no partitions")
        return self._steps

    # ---- the driver, or a script

    async def _begin(self, request: pb.TrainingBeginRequest) -> pb.TrainingBeginResponse:
        self._check(request.attempt, DRIVER)
        await self._loaded
        self._process_cpu = None
        response = pb.TrainingBeginResponse(cores=self._cores())
        if self._program is not None:
            self._goes_on_from = self._program[0]
            response.checkpoint_iteration, response.checkpoint = self._program
        return response

    def _report(self, request: pb.TrainingReportRequest) -> pb.TrainingReportResponse:
        self._check(request.attempt, DRIVER)
        self._dropped = max(self._dropped, request.dropped)
        before = self._curve.last
        for point in request.points:
            self._take(point)
        last = self._curve.last
        if last is not None and last is not before:
            self._note_cpu(request.cpu_ms, last.iteration)
        if request.HasField("checkpoint"):
            self._program = request.checkpoint_iteration, request.checkpoint
            self._save()
        return pb.TrainingReportResponse(
            cores=self._cores(),
            stop=bool(self._stopped_by),
            wants_checkpoint=self._keeper.is_due or bool(self._stopped_by),
        )

    def _take(self, message: pb.TrainingPoint) -> None:
        self._reports += 1
        loss = message.loss if message.HasField("loss") else None
        metrics = {metric.name: metric.value for metric in message.metrics}
        if self._curve.add(Point(message.iteration, loss, message.at_ms, self._cores(), metrics)):
            self.reports.note(message.iteration, loss)
        elif 0 < message.iteration < self._goes_on_from:
            self._note(
                f"iteration {message.iteration} is reported by a program that goes on after iteration "
                f"{self._goes_on_from}: its reports are left out until they are later"
            )
            self._goes_on_from = 0

    def _note_cpu(self, cpu_ms: int, iteration: int) -> None:
        if self._process_cpu is not None and iteration > self._process_cpu[1]:
            own_ms = max(0, cpu_ms - self._process_cpu[0]) / (iteration - self._process_cpu[1])
            workers_ms = 0.0 if self._steps is None else self._steps.step_cpu_us / 1000
            self.reports.note_cpu(own_ms + workers_ms)
        self._process_cpu = cpu_ms, iteration

    async def _evaluate(self, request: pb.EvaluateRequest) -> pb.EvaluateResponse:
        self._check(request.attempt, DRIVER)
        steps = await self._steps_of()
        answer = steps.evaluate(request)
        response = await answer if isinstance(answer, Awaitable) else answer
        if response.is_done and self._terms.by_run and self._keeper.is_due:
            self._save()
        return response

    def _trained(self, request: pb.TrainedRequest) -> pb.TrainedResponse:
        self._check(request.attempt, DRIVER)
        self._model, self._model_sum = request.state, hashlib.sha256(request.state).hexdigest()
        log.info("trained, %d bytes with the SHA-256 %s", len(request.state), self._model_sum)
        return pb.TrainedResponse()

    def _check(self, ref: job_pb2.AttemptRef, vertex: int) -> AttemptId:
        """Raises IllegalArgument for an attempt that is no longer wanted."""
        attempt = AttemptId(ref.vertex, ref.index, ref.number)
        record = self._machine.attempt(attempt) if attempt.vertex == vertex else None
        if record is None or not record.live:
            raise IllegalArgument(f"{attempt} of this job is no longer wanted")
        return attempt

    # ---- checkpoints

    def _saved(self) -> Saved | None:
        """None: there is nothing to go on from."""
        evaluations = None if self._steps is None else self._steps.evaluations
        known = [] if evaluations is None else list(evaluations.known)
        if self._program is None and not known:
            return None
        iteration = 0 if self._curve.last is None else self._curve.last.iteration
        if self._program is None:
            return Saved(iteration, None, self._curve.copy(), known)
        return Saved(self._program[0], self._program[1], self._curve.copy(), known)

    def _save(self) -> None:
        saved = self._saved()
        if saved is not None:
            self._keeper.save(saved)

    # ---- workers

    async def _work(self, request: pb.WorkRequest) -> pb.WorkResponse:
        attempt = AttemptId(request.attempt.vertex, request.attempt.index, request.attempt.number)
        steps = await self._steps_of()
        record = self._machine.attempt(attempt) if attempt.vertex == WORKERS else None
        if record is None or not record.live:
            return pb.WorkResponse(action=pb.WorkResponse.LEAVE)
        if request.late:
            self._is_late(attempt, request.late)
            return pb.WorkResponse(action=pb.WorkResponse.LEAVE)
        self._workers[str(attempt)] = attempt
        answer = steps.work(str(attempt), request)
        return await answer if isinstance(answer, Awaitable) else answer

    def _is_late(self, attempt: AttemptId, line: str) -> None:
        """A call that took too long is made again, once: elsewhere it may return."""
        is_again = line in self._late
        self._late.add(line)
        if not is_again:
            self._note(line)
        self._dispatch(ev.AttemptFailed(attempt, line, is_again))

    async def _pull_state(self, request: pb.PullStateRequest) -> pb.PullStateResponse:
        return (await self._steps_of()).state(request.version)

    def _leaves(self, worker: str) -> None:
        attempt = self._workers.pop(worker, None)
        if attempt is not None:
            self._dispatch(ev.AttemptReturned(attempt))

    def _wanted(self) -> int:
        """Workers, by the cores that the job has."""
        return max(1, min(most_workers(self._terms), math.ceil(self._cores() - _CORES_SLACK)))

    def _limit_workers(self) -> None:
        self._dispatch(ev.VertexLimited(WORKERS, self._wanted()))

    def _cores(self) -> float:
        """That the job may use: as ordered, else all that it can. With a ResourceManager that orders cores, and has
        not yet, the least. An order of less than the least counts: not all jobs' least fit then."""
        terms = self._terms
        if self.reports.cores is None:
            return min(max(1.0, terms.min_cores), terms.max_cores) if self.reports.waits else terms.max_cores
        return min(self.reports.cores, terms.max_cores)

    # ---- what happens

    def registered(self, response: service.RegisterApplicationMasterResponse) -> None:
        self.reports.registered(response, self._curve.landmarks(), self._curve.latest())
        was_on_its_own, self._is_on_its_own = self._is_on_its_own, not self.reports.is_understood
        if self._is_on_its_own and not was_on_its_own:
            self._note("the ResourceManager divides no cores among training jobs: this one uses all that it may have")
        self._cores_changed()

    def hear(self, response: service.AllocateResponse) -> None:
        if self.reports.hear(response):
            self._cores_changed()

    def _cores_changed(self) -> None:
        if self._terms.partitions:
            self._limit_workers()
            if self._steps is not None:
                self._steps.want(self._wanted())

    def follow(self) -> None:
        """Workers whose attempts are over are lost."""
        if self._steps is None:
            return
        gone = [name for name, attempt in self._workers.items() if not self._is_live(attempt)]
        for name in gone:
            self._note_failed(self._workers.pop(name), self._steps.under_way(name))
            self._steps.lost(name)

    def _note_failed(self, attempt: AttemptId, under_way: str) -> None:
        record = self._machine.attempt(attempt)
        if record is None or record.state is not AttemptState.FAILED or not under_way or record.error in self._late:
            return
        self._failed = f"worker {attempt.task} failed with {under_way}"
        if self._machine.state is JobState.RUNNING:
            self._note(f"{self._failed}; it is computed again")

    def _is_live(self, attempt: AttemptId) -> bool:
        record = self._machine.attempt(attempt)
        return record is not None and record.live

    def tick(self) -> None:
        if self._steps is not None:
            self._steps.tick()

    async def end(self) -> None:
        """Wait for what is being written. What the job leaves is written by `leave`."""
        await asyncio.wait((self._loaded,))
        if self._keeping is not None:
            await asyncio.wrap_future(self._keeping)
        await self._keeper.written()

    def leave(self) -> None:
        """Write the last checkpoint, the curve and the model. Blocking."""
        # with its last model a job has nothing to go on from
        stopped_by = "" if self._is_complete else self._stopped_by
        saved = self._saved() if self._model is None or stopped_by else None
        self._keeper.leave(saved, self._curve, self._model, stopped_by)

    def said(self, end: JobEnd) -> str:
        """Return what a user is told of the job's end: of one that was stopped, from where it can go on; of a worker
        that failed and could not say where, what it computed."""
        if end.state is JobState.FAILED and self._failed and _PLACE not in end.diagnostics:
            return f"{end.diagnostics}\n{self._failed}"
        if end.state is not JobState.SUCCEEDED or not self._stopped_by or self._is_complete:
            return end.diagnostics
        last, keeper = self._curve.last, self._keeper
        when = "before its first report" if last is None else f"after iteration {last.iteration}"
        again = f"`yaq ml resume application_{self._spec.job_id.removeprefix('job_')}`"
        if not keeper.has_own:
            return f"stopped by {self._stopped_by} {when}; it kept no checkpoint, so {again} begins anew"
        return f"stopped by {self._stopped_by} {when}; {again} goes on after iteration {keeper.iteration}"

    @property
    def _is_complete(self) -> bool:
        """All that was asked for is done."""
        loss, target = self._curve.loss, self._terms.target
        is_reached = target is not None and loss is not None and loss <= target
        last = self._curve.last
        return is_reached or (last is not None and 0 < self._terms.iterations <= last.iteration)

    # ---- clients

    def _status(self, request: pb.TrainingStatusRequest, caller: Caller) -> pb.TrainingStatusResponse:
        self._access.check_view(caller)
        curve, last = self._curve, self._curve.last
        response = pb.TrainingStatusResponse(
            name=self._spec.name,
            iteration=0 if last is None else last.iteration,
            iterations_expected=self._terms.iterations,
            loss=curve.loss,
            normalized=curve.normalized(),
            cores=self._cores(),
            workers=len(self._workers),
            workers_wanted=self._wanted() if self._terms.partitions else 0,
            partitions=self._terms.partitions,
            checkpoint_iteration=self._keeper.iteration,
            state_sha256=self._model_sum,
            curve_version=curve.version,
            cpu_ms_per_iteration=self.reports.cpu_ms or 0.0,
            started_ms=self._started_ms,
            reports=self._reports,
            dropped=self._dropped,
            is_alone=self._is_on_its_own,
            odd_loss=None if curve.odd is None else curve.odd.loss,
            odd_since=None if curve.odd is None else curve.odd.iteration,
        )
        known = request.known if request.curve_version == curve.version else 0
        for point in curve.points[max(0, known) :][:_CURVE_POINTS_MAX]:
            response.curve.append(_point_pb(point))
        return response

    def _stop(self, request: pb.StopTrainingRequest, caller: Caller) -> pb.StopTrainingResponse:
        self._access.check_kill(caller)
        if not self._stopped_by:
            self._stopped_by = caller.user
            self._note(f"stopped by {caller.user}: it ends with its next report")
        return pb.StopTrainingResponse()


def _point_pb(point: Point) -> pb.TrainingPoint:
    message = pb.TrainingPoint(iteration=point.iteration, loss=point.loss, at_ms=point.at_ms, cores=point.cores)
    for name, value in point.metrics.items():
        message.metrics.add(name=name, value=value)
    return message
