"""What the ResourceManager is told of a training job, and what it orders."""

import math

import pytest

from tests.tez_training.training_jobs import order
from tez_adapter.jobspec import Training
from tez_adapter.training.curve import Curve, Point
from tez_adapter.training.rm_reports import RmReports
from yaqd.model.training import ConvergenceClass, TrainingReport
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.training import training_report
from yaqd.proto.words import TRAINING

TERMS = Training(curve="sublinear", target=0.5, weight=2.0, min_cores=0.5, max_cores=4, iterations=100, partitions=8)


def understood(terms: Training = TERMS) -> RmReports:
    reports = RmReports(terms)
    reports.registered(pb.RegisterApplicationMasterResponse(yaq_understands=[TRAINING, "more"]))
    return reports


def news(reports: RmReports) -> TrainingReport | None:
    message = reports.news()
    return None if message is None else training_report(message.training)


def test_a_stock_resource_manager_is_told_nothing() -> None:
    reports = RmReports(TERMS)
    reports.registered(pb.RegisterApplicationMasterResponse())
    reports.note(1, 0.5)
    assert reports.news() is None and not reports.waits


def test_wishes_come_first_and_once() -> None:
    reports = understood()
    told = news(reports)
    assert told is not None and told.losses == ()
    assert (told.convergence, told.target, told.weight) == (ConvergenceClass.SUBLINEAR, 0.5, 2.0)
    assert (told.min_milli, told.max_milli, told.iterations_expected, told.partitions) == (500, 4000, 100, 8)
    assert news(reports) is None
    reports.note(0, 9.0)
    later = news(reports)
    assert later is not None and later.weight is None and later.sequence == told.sequence + 1


def test_losses_have_their_iterations() -> None:
    reports = understood()
    for iteration, loss in ((3, 9.0), (4, 8.0), (7, 7.0)):
        reports.note(iteration, loss)
    reports.note(8, None)
    reports.note_cpu(100.0)
    reports.note_cpu(200.0)
    told = news(reports)
    assert told is not None and told.first_iteration == 3
    assert [math.isnan(loss) for loss in told.losses] == [False, False, True, True, False]
    assert (told.losses[0], told.losses[1], told.losses[-1], told.cpu_ms_per_iteration) == (9.0, 8.0, 7.0, 120.0)


def test_what_may_not_have_been_heard_is_told_again() -> None:
    reports = understood()
    reports.note(0, 9.0)
    first = news(reports)
    reports.note(1, 8.0)
    reports.forget()
    again = news(reports)
    assert first is not None and again is not None
    assert again.losses == (9.0, 8.0) and again.weight == 2.0 and again.sequence == first.sequence + 1


def test_a_flood_is_cut_to_the_last_ones() -> None:
    reports = understood()
    for iteration in range(0, 100_000, 1):
        reports.note(iteration, 1.0)
    first, told = news(reports), news(reports)
    assert first is not None and (first.first_iteration, first.losses) == (0, (1.0,))
    assert told is not None and (told.first_iteration, len(told.losses)) == (99_940, 60)
    for iteration in (200_000, 300_000, 300_001):
        reports.note(iteration, 1.0)
    told = news(reports)
    assert told is not None and (told.first_iteration, told.losses) == (300_000, (1.0, 1.0))


def test_orders_count_once_and_in_their_order() -> None:
    reports = understood()
    assert reports.waits
    assert reports.hear(order(5, 2500)) and reports.cores == 2.5
    assert not reports.waits
    assert not reports.hear(order(5, 1000)) and not reports.hear(order(4, 1000)) and reports.cores == 2.5
    assert not reports.hear(order(6, 2500)) and not reports.hear(pb.AllocateResponse())
    assert reports.hear(order(7, None)) and reports.cores is None
    # another ResourceManager counts from its own beginning
    reports.registered(pb.RegisterApplicationMasterResponse(yaq_understands=[TRAINING]))
    assert reports.hear(order(1, 500)) and reports.cores == 0.5


@pytest.mark.parametrize("curve", ["auto", "sublinear", "superlinear"])
def test_each_class_has_its_number(curve: str) -> None:
    told = news(understood(Training(curve=curve)))
    assert told is not None and told.convergence is not None and told.convergence.name.lower() == curve


def test_another_attempt_tells_where_the_losses_began_and_then_the_latest() -> None:
    reports = understood()
    curve = Curve.of(Point(iteration, 100.0 / (1 + iteration), 0, 1.0) for iteration in range(200))
    reports.recall(curve.landmarks(), curve.latest())
    lost = news(reports)
    reports.forget()
    first, latest = news(reports), news(reports)
    assert lost is not None and first is not None and lost.losses == first.losses, "also where the answer did not come"
    assert first is not None and latest is not None
    assert (first.first_iteration, first.losses, first.weight) == (0, (100.0, 50.0), 2.0)
    assert latest.losses[-1] == 100.0 / 200 and len(latest.losses) == 40
    assert latest.sequence == first.sequence + 1 and news(reports) is None
    reports.note(200, 0.4)
    later = news(reports)
    assert later is not None and later.first_iteration == 200
