"""Training jobs as somebody who watches sees them: of the job manager while one runs, of what it left after that."""

from contextlib import suppress
from dataclasses import dataclass, field

from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.rm_client import ApplicationReport
from tez_adapter.client.training import folder_of
from tez_adapter.jobspec import BadJobSpec, Training
from tez_adapter.protocol import JobClientProtocol
from tez_adapter.training.curve import Curve, Point
from tez_adapter.training.keeper import read_curve, read_job, read_model_sum, read_stop
from yaqd.config import Configuration
from yaqd.ipc import RemoteException
from yaqd.proto import job_training_pb2 as pb
from yaqd.storage import StorageError


@dataclass(slots=True)
class TrainingView:
    """A job and its curve. What is not known is None."""

    report: ApplicationReport
    iteration: int | None = None
    #: the last one that is a number
    loss: float | None = None
    #: where the newest losses are no numbers: the first of them, and its iteration
    odd: tuple[float, int] | None = None
    #: 1 at the first loss, 0 at the least so far
    normalized: float | None = None
    cores: float | None = None
    workers: int | None = None
    #: by the cores that it may use
    workers_wanted: int | None = None
    #: nobody orders its cores
    is_alone: bool = False
    partitions: int | None = None
    iterations_expected: int | None = None
    checkpoint_iteration: int | None = None
    #: SHA-256 of the state that a data-parallel job ended with
    model_sha256: str | None = None
    #: who stopped it, and after which iteration
    stopped: tuple[str, int] | None = None
    points: list[Point] = field(default_factory=list)


class TrainingWatch:
    """Asks for a job again and again, each time for the points that are new."""

    def __init__(self, conf: Configuration, report: ApplicationReport) -> None:
        self._conf = conf
        self._job = SubmittedJob(conf, report.id)
        self._view = TrainingView(report)
        self._version = 0
        self._is_read = False

    def look(self, report: ApplicationReport | None = None) -> TrainingView:
        """Return how it stands. `report`: what the ResourceManager says now. Raises RmUnavailable."""
        report = self._view.report = report or self._job.report()
        if report.state.is_final:
            self._read(report)
            return self._view
        request = pb.TrainingStatusRequest(known=len(self._view.points), curve_version=self._version)
        try:
            status = self._job.ask(JobClientProtocol.getTrainingStatus, request, report)
        except RemoteException:
            status = None  # somebody else's, who does not let others look
        if status is not None:
            self._take(status)
        return self._view

    def _take(self, status: pb.TrainingStatusResponse) -> None:
        view = self._view
        if status.curve_version != self._version:
            self._version = status.curve_version
            view.points.clear()
        view.points += [
            Point(p.iteration, p.loss if p.HasField("loss") else None, p.at_ms, p.cores) for p in status.curve
        ]
        view.iteration = status.iteration if status.reports else None
        view.loss = status.loss if status.HasField("loss") else None
        view.odd = (status.odd_loss, status.odd_since) if status.HasField("odd_loss") else None
        view.normalized = status.normalized if status.HasField("normalized") else None
        view.cores, view.workers, view.partitions = status.cores, status.workers, status.partitions
        view.workers_wanted, view.is_alone = status.workers_wanted, status.is_alone
        view.iterations_expected = status.iterations_expected or None
        view.checkpoint_iteration = status.checkpoint_iteration if status.checkpoint_iteration >= 0 else None

    def _read(self, report: ApplicationReport) -> None:
        """Of a job that has ended; it does not change any more."""
        if self._is_read:
            return
        self._is_read = True
        try:
            curve = read_curve(self._conf, folder_of(self._conf, report.user, report.id))
        except (StorageError, ValueError):
            return  # it left none
        _show_curve(self._view, curve)
        with suppress(StorageError, BadJobSpec):
            spec = read_job(self._conf, folder_of(self._conf, report.user, report.id))
            self._view.iterations_expected = (spec.training or Training()).iterations or None
        with suppress(StorageError, ValueError):
            self._view.stopped = read_stop(self._conf, folder_of(self._conf, report.user, report.id))
        with suppress(StorageError, ValueError, KeyError):  # a program leaves no model
            self._view.model_sha256 = read_model_sum(self._conf, folder_of(self._conf, report.user, report.id))

    def close(self) -> None:
        self._job.close()


def _show_curve(view: TrainingView, curve: Curve) -> None:
    view.points = curve.with_last()
    view.normalized = curve.normalized()
    view.cores = view.workers = None
    if curve.last is not None:
        view.iteration, view.loss = curve.last.iteration, curve.loss
    if curve.odd is not None and curve.odd.loss is not None:
        view.odd = curve.odd.loss, curve.odd.iteration
