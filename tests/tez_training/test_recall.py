"""What a ResourceManager that hears of a long job anew knows of it: the same as one that has heard all of it."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tez_adapter.jobspec import Training
from tez_adapter.training.curve import POINTS_MAX, Curve, Point
from tez_adapter.training.rm_reports import RmReports
from yaqd.policies.quality.forecasts import Forecasts, JobSpec
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.training import training_report
from yaqd.proto.words import TRAINING

UNDERSTOOD = pb.RegisterApplicationMasterResponse(yaq_understands=[TRAINING])
_AT_ONCE = 20


class Manager:
    """What a ResourceManager keeps of one job."""

    def __init__(self) -> None:
        self.forecasts = Forecasts()
        self.row = self.forecasts.add(JobSpec())
        self.messages = 0

    def hear(self, reports: RmReports) -> "Manager":
        while (message := reports.news()) is not None:
            report = training_report(message.training)
            self.messages += 1
            if report.losses:
                self.forecasts.report(self.row, float(report.first_iteration), report.losses)
        return self

    @property
    def known(self) -> tuple[float, ...]:
        """The first loss, the steepest fall, how far it has fallen, and the newest losses with their iterations."""
        windows, row = self.forecasts.windows, self.row
        jobs = self.forecasts.jobs(np.array([row]))
        return (
            float(windows.first[row]),
            float(jobs.largest[0]),
            float(jobs.fallen[0]),
            *windows.iterations[row].tolist(),
            *windows.losses[row].tolist(),
        )


def falls_at_first(iteration: int) -> float:
    return 2.0 if iteration == 0 else 1.4 / (1 + iteration) ** 0.5


def falls_late(iteration: int) -> float:
    return 3.0 / (1 + iteration) ** 0.1 - (2.5 if iteration >= 2217 else 0.0)


def undisturbed(count: int, loss_of: Callable[[int], float]) -> tuple[Curve, RmReports, Manager]:
    """Return a job of so many reports, and a ResourceManager that has heard all of them."""
    curve, reports, manager = Curve(), RmReports(Training()), Manager()
    reports.registered(UNDERSTOOD)
    for iteration in range(count):
        loss = loss_of(iteration)
        curve.add(Point(iteration, loss, 0, 1.0))
        reports.note(iteration, loss)
        if iteration % _AT_ONCE == 0:
            manager.hear(reports)
    return curve, reports, manager.hear(reports)


def anew(curve: Curve) -> RmReports:
    """Return the reports of another job manager."""
    reports = RmReports(Training())
    reports.recall(curve.landmarks(), curve.latest())
    reports.registered(UNDERSTOOD, curve.landmarks(), curve.latest())
    return reports


@pytest.mark.slow
@pytest.mark.parametrize("loss_of", [falls_at_first, falls_late])
@pytest.mark.parametrize("count", [1, 2, 30, 60, 3_000, 20_000])
def test_a_restart_takes_nothing_away(count: int, loss_of: Callable[[int], float]) -> None:
    curve, reports, manager = undisturbed(count, loss_of)
    for again in (curve, curve.copy(), Curve.parse(curve.dump()), Curve.parse(Curve.parse(curve.dump()).dump())):
        heard = Manager().hear(anew(again))
        assert heard.known == manager.known and heard.messages <= 3
    # another ResourceManager alone
    reports.registered(UNDERSTOOD, curve.landmarks(), curve.latest())
    assert Manager().hear(reports).known == manager.known


@pytest.mark.slow
def test_a_very_long_job_keeps_its_first_loss() -> None:
    curve, _, manager = undisturbed(700_000, falls_at_first)
    assert manager.known[0] == 2.0 and manager.known[1] > 0.6
    for again in (curve, Curve.parse(curve.dump())):
        assert Manager().hear(anew(again)).known == manager.known
        assert len(again.points) <= POINTS_MAX


def test_a_job_goes_on_after_a_restart_as_without() -> None:
    curve, reports, manager = undisturbed(9_000, falls_late)
    other = Curve.parse(curve.dump())
    after, heard = anew(other), Manager()
    heard.hear(after)
    for iteration in range(9_000, 9_700):
        for each in (curve, other):
            each.add(Point(iteration, falls_late(iteration), 0, 1.0))
        for told in (reports, after):
            told.note(iteration, falls_late(iteration))
        if iteration % _AT_ONCE == 0:
            manager.hear(reports)
            heard.hear(after)
    assert heard.hear(after).known == manager.hear(reports).known
    assert other.points == curve.points and other.version == curve.version
    assert (other.normalized(), other.last, other.odd) == (curve.normalized(), curve.last, curve.odd)
    assert list(other.lines()) == list(curve.lines())


def test_odd_and_missing_losses_hide_no_first_one() -> None:
    def loss_of(iteration: int) -> float:
        if iteration < 5_000:
            return (math.nan, 1e200, math.inf)[iteration % 3]
        return falls_at_first(iteration - 5_000)

    curve, _, manager = undisturbed(30_000, loss_of)
    assert manager.known[0] == 2.0
    for again in (curve, Curve.parse(curve.dump())):
        assert Manager().hear(anew(again)).known == manager.known


def test_a_loss_now_and_then_is_told_in_a_few_messages() -> None:
    curve = Curve.of(Point(i, falls_late(i) if i % 1000 == 0 else None, 0, 1.0) for i in range(100_000))
    for again in (curve, Curve.parse(curve.dump())):
        heard = Manager().hear(anew(again))
        assert heard.messages <= 7 and heard.known[0] == falls_late(0)
        assert heard.known[1] == pytest.approx((falls_late(2000) - falls_late(3000)) / 1000)
        assert heard.known[2] == falls_late(0) - falls_late(99_000)


def test_the_first_loss_is_told_in_a_flood_too() -> None:
    reports, manager = RmReports(Training()), Manager()
    reports.registered(UNDERSTOOD)
    for iteration in range(1000):
        reports.note(iteration, falls_at_first(iteration))
    manager.hear(reports)
    assert manager.messages == 2 and manager.known[0] == 2.0 and manager.known[2] == 2.0 - falls_at_first(999)


def test_curves_that_an_earlier_yaqd_wrote_are_read() -> None:
    lines = [b'{"iteration": %d, "at_ms": 1, "cores": 1.0, "loss": %d, "metrics": {}}\n' % (i, 9 - i) for i in range(3)]
    curve = Curve.parse(b"".join(lines))
    assert [point.loss for point in curve.points] == [9, 8, 7]
    for bad in (b"[]\n", b"3\n", b'{"stride": "x", "iteration": 0, "at_ms": 1, "cores": 1}\n'):
        with pytest.raises(ValueError):
            Curve.parse(bad)
