"""Following a job from outside: its state from the ResourceManager, its progress from its job manager, its story
from the history file.

The ResourceManager's word decides when a job has ended. Polls come fast at first and slow down with the job's age (a
twentieth of it). So a short job is not kept waiting and a long one costs five calls a second.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tez_adapter.background import in_background
from tez_adapter.client.patience import Patience
from tez_adapter.client.rm_client import ApplicationReport, AttemptReport, RmClient, RmUnavailable
from tez_adapter.client.staging import Staging, SubmitError
from tez_adapter.history import NoHistory, read_history
from tez_adapter.jobspec import BadJobSpec, job_id_of
from tez_adapter.protocol import JobClientProtocol
from yaqd.config import Configuration
from yaqd.ipc import NO_RETRY, BlockingRpcClient, RemoteException, RpcError
from yaqd.model import ApplicationId, FinalApplicationStatus, YarnApplicationState
from yaqd.proto import job_pb2 as pb
from yaqd.proto.protocols import Method, Req, Resp
from yaqd.storage import StorageError

log = logging.getLogger(__name__)

_POLL_MIN_S = 0.02
_POLL_MAX_S = 0.2
_POLL_SHARE = 0.05
_STATUS_TIMEOUT_S = 2.0
#: how long after the job's end its job manager may take to leave
_KILL_TIMEOUT_S = 60.0
#: how long the end of a job that did not succeed waits for a file system
_FILES_S = 2.0

CounterGroups = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class VertexStatus:
    name: str
    tasks: int
    pending: int
    running: int
    done: int
    failed: int
    killed: int
    #: 0..1
    progress: float


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A moment of a job."""

    application_id: ApplicationId
    #: the ResourceManager's word
    state: YarnApplicationState
    #: 0..1
    progress: float
    vertices: tuple[VertexStatus, ...] = ()
    counters: CounterGroups = field(default_factory=dict)
    #: why it does not run yet, as the ResourceManager puts it
    waits_for: str = ""
    #: what happened to it on the cluster: the latest lines, of so many in all
    notices: tuple[str, ...] = ()
    notices_total: int = 0
    #: how many attempts were made, and what is known of them where that is more than one
    made: tuple[int, tuple[AttemptReport, ...]] = (1, ())


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended."""

    application_id: ApplicationId
    #: SUCCEEDED, FAILED or KILLED
    state: str
    diagnostics: str
    #: 0 for success; a command's first exit status that was not 0; else 1
    exit_code: int
    counters: CounterGroups
    #: epoch ms
    start_ms: int
    finish_ms: int
    #: what was odd about its input, and no error
    notes: tuple[str, ...] = ()

    @property
    def succeeded(self) -> bool:
        return self.state == "SUCCEEDED"


class SubmittedJob:
    """A job that the ResourceManager has accepted, now or earlier."""

    def __init__(self, conf: Configuration, application_id: ApplicationId, rm: RmClient | None = None) -> None:
        self.conf = conf
        self.application_id = application_id
        self.job_id = job_id_of(application_id)
        self._rm = rm or RmClient(conf)
        self._manager: BlockingRpcClient | None = None
        #: how many attempts were made, and those known then
        self._attempts: tuple[int, tuple[AttemptReport, ...]] = (1, ())

    def report(self) -> ApplicationReport:
        return self._rm.report(self.application_id)

    def status(self, report: ApplicationReport | None = None, *, with_counters: bool = False) -> JobStatus:
        """Return what the ResourceManager says, and what the job manager says where it answers."""
        report = report or self.report()
        response = self._ask(report, with_counters)
        if response is None:
            waits_for = "" if report.state.is_final else report.diagnostics
            return JobStatus(
                self.application_id, report.state, report.progress, waits_for=waits_for, made=self._made(report)
            )
        counters: dict[str, dict[str, int]] = {}
        for counter in response.counters:
            counters.setdefault(counter.group, {})[counter.name] = counter.value
        vertices = tuple(
            VertexStatus(v.name, v.tasks, v.pending, v.running, v.done, v.failed, v.killed, v.progress)
            for v in response.vertices
        )
        return JobStatus(
            self.application_id,
            report.state,
            response.progress,
            vertices,
            counters,
            notices=tuple(response.notices),
            notices_total=response.notices_total,
            # of a stock ResourceManager this is empty by now
            waits_for="" if any(v.done or v.running for v in vertices) else report.diagnostics,
            made=self._made(report),
        )

    def _made(self, report: ApplicationReport) -> tuple[int, tuple[AttemptReport, ...]]:
        """Asked for whenever another attempt was made."""
        number = report.attempt.attempt if report.attempt is not None else 1
        if number > self._attempts[0]:
            try:
                self._attempts = number, tuple(self._rm.attempts(self.application_id))
            except (RemoteException, RmUnavailable) as error:
                log.debug("%s: its attempts are asked for again: %s", self.application_id, error)
        return self._attempts

    def _ask(self, report: ApplicationReport, with_counters: bool) -> pb.GetJobStatusResponse | None:
        try:
            return self.ask(JobClientProtocol.getJobStatus, pb.GetJobStatusRequest(with_counters=with_counters), report)
        except RemoteException:
            self._forget_manager()  # not one of ours
            return None

    def ask(self, method: Method[Req, Resp], request: Req, report: ApplicationReport | None = None) -> Resp | None:
        """Ask the job manager; return None where there is none at present. Raises RemoteException, its refusal."""
        report = report or self.report()
        if report.state is not YarnApplicationState.RUNNING or not report.rpc_port:
            return None
        try:
            return self._manager_at(report).call(method, request)
        except RpcError:
            # between two attempts, or already leaving
            self._forget_manager()
            return None

    def _manager_at(self, report: ApplicationReport) -> BlockingRpcClient:
        address = (report.host, report.rpc_port)
        if self._manager is None or (self._manager.host, self._manager.port) != address:
            self._forget_manager()
            self._manager = BlockingRpcClient(
                *address, user=self._rm.user, timeout_s=_STATUS_TIMEOUT_S, connect_retries=NO_RETRY
            )
        return self._manager

    def _forget_manager(self) -> None:
        if self._manager is not None:
            self._manager.close()
            self._manager = None

    def wait(
        self,
        on_progress: Callable[[JobStatus], None] | None = None,
        *,
        progress_every_s: float = 0.5,
        timeout_s: float | None = None,
        on_silence: Callable[[str], None] | None = None,
    ) -> JobResult:
        """Block until the job has ended. TimeoutError after `timeout_s`; RmUnavailable when the RM was gone for too
        long, of which `on_silence` is told first."""
        started = time.monotonic()
        until = math.inf if timeout_s is None else started + timeout_s
        patience = Patience(self.conf, self.application_id, on_silence)
        shown = started - progress_every_s
        while True:
            report = patience.ask(self.report, until=until)
            if report.state.is_final:
                if on_progress is not None:
                    on_progress(JobStatus(self.application_id, report.state, report.progress))
                self._sweep(report)
                return self.result(report)
            now = time.monotonic()
            if on_progress is not None and now - shown >= progress_every_s:
                shown = now
                on_progress(self.status(report))
            if now > until:
                raise TimeoutError(f"{self.application_id} has not ended after {timeout_s:g} s")
            time.sleep(min(_POLL_MAX_S, max(_POLL_MIN_S, (now - started) * _POLL_SHARE)))

    def result(self, report: ApplicationReport | None = None) -> JobResult:
        """Return the result of a job that has ended: the ResourceManager's verdict with the history's details."""
        report = report or self.report()
        status = report.final_status
        state = status.name if status is not FinalApplicationStatus.UNDEFINED else report.state.name
        exit_code = 0 if status is FinalApplicationStatus.SUCCEEDED else 1
        counters: CounterGroups = {}
        notes: tuple[str, ...] = ()
        diagnostics = report.diagnostics
        history = in_background(lambda: read_history(self.conf, self.application_id))
        patience_s = None if status is FinalApplicationStatus.SUCCEEDED else _FILES_S
        try:
            end = history.result(patience_s).end
        except (NoHistory, StorageError, TimeoutError):
            end = {}
        if end.get("state") == state:
            counters = end.get("counters", {})
            notes = tuple(map(str, end.get("notes", ())))
            exit_code = int(end.get("exit_code", exit_code))
            if report.state is not YarnApplicationState.KILLED or not diagnostics:
                # of an application that the ResourceManager ended, the job manager knows only that it was told to end
                diagnostics = end.get("diagnostics") or diagnostics
        return JobResult(
            self.application_id, state, diagnostics, exit_code, counters, report.start_ms, report.finish_ms, notes
        )

    def _sweep(self, report: ApplicationReport) -> None:
        """Remove what a job manager that died could not: staging folder and half-made output of one's own job."""
        if report.user != self._rm.user:
            return
        sweeping = in_background(lambda: Staging(self.conf, report.user, self.job_id).sweep())
        try:
            sweeping.result(_FILES_S)
        except TimeoutError:
            again = f"`yaq app kill {self.application_id}` removes them when it does"
            log.warning("%s may have left files behind, the file system does not answer: %s", self.job_id, again)
        except (StorageError, BadJobSpec, SubmitError) as error:
            log.warning("%s left files behind: %s", self.job_id, error)

    def kill(self, reason: str = "") -> None:
        """Ask the job manager, which cleans up after itself; where it does not answer, the ResourceManager."""
        reason = reason or f"killed by user {self._rm.user}"
        report = self.report()
        if report.state.is_final:
            self._sweep(report)  # what the last kill, or the job manager, had to leave behind
            return
        if report.state is YarnApplicationState.RUNNING and report.rpc_port and self._kill_kindly(report, reason):
            return
        deadline = time.monotonic() + _KILL_TIMEOUT_S
        while not self._rm.kill(self.application_id, reason):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.application_id} has not ended {_KILL_TIMEOUT_S:g} s after it was killed")
            time.sleep(_POLL_MIN_S)
        self._sweep(report)

    def _kill_kindly(self, report: ApplicationReport, reason: str) -> bool:
        try:
            self._manager_at(report).call(JobClientProtocol.killJob, pb.KillJobRequest(reason=reason))
        except (RpcError, RemoteException):
            return False
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline:
            if self.report().state.is_final:
                return True
            time.sleep(_POLL_MIN_S)
        return False

    def close(self) -> None:
        self._forget_manager()
        self._rm.close()
