"""Reports on their way: bounded, never in the way of the program, complete where they can be."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tez_adapter.jobspec import Training
from tez_adapter.training.channel import JobManagerChannel
from yaqd.ipc import RpcConnectionError
from yaqd.ml import report, set_channel
from yaqd.proto import job_pb2
from yaqd.proto import job_training_pb2 as pb


class Manager:
    """A job manager's end, as a client's `call`."""

    def __init__(self) -> None:
        self.requests: list[pb.TrainingReportRequest] = []
        self.answer = pb.TrainingReportResponse(cores=2.0)
        self.is_away = False
        self.tries = 0

    def call(self, _: Any, request: pb.TrainingReportRequest, idempotent: bool) -> pb.TrainingReportResponse:
        assert idempotent
        self.tries += 1
        if self.is_away:
            raise RpcConnectionError("away")
        copy = pb.TrainingReportRequest()
        copy.CopyFrom(request)
        self.requests.append(copy)
        return self.answer

    def close(self) -> None:
        pass

    @property
    def points(self) -> list[pb.TrainingPoint]:
        return [point for request in self.requests for point in request.points]


@contextmanager
def channel(manager: Manager, terms: Training = Training(), **begun: Any) -> Iterator[JobManagerChannel]:
    made = JobManagerChannel(
        lambda: manager,  # type: ignore[arg-type, return-value]
        job_pb2.AttemptRef(vertex=0, index=0, number=0),
        pb.TrainingBeginResponse(cores=1.5, **begun),
        terms,
        checkpoint_bytes_max=100,
    )
    set_channel(made)
    try:
        yield made
        made.close()
    finally:
        set_channel(None)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_a_million_reports_end_in_a_short_queue() -> None:
    manager = Manager()
    with channel(manager) as made:
        for i in range(1_000_000):
            report(i, 1.0)
        assert len(made._points) <= 64
    iterations = [point.iteration for point in manager.points]
    assert iterations[0] == 0 and iterations[-1] == 999_999
    assert iterations == sorted(set(iterations))
    assert all(len(request.points) <= 65 for request in manager.requests)
    assert len(iterations) + manager.requests[-1].dropped == 1_000_000


def test_what_the_manager_says_is_said() -> None:
    manager = Manager()
    with channel(manager, checkpoint=b"before", checkpoint_iteration=4) as made:
        assert made.last_checkpoint() == b"before"
        said = report(5, 0.5)
        assert (said.cores, said.stop) == (1.5, False)
        until(lambda: report(5, 0.5).cores == 2.0)
        manager.answer = pb.TrainingReportResponse(cores=0.25, stop=True)
        until(lambda: report(5, 0.5).stop)
        assert report(5, 0.5).cores == 0.25


def test_a_checkpoint_is_made_when_it_is_wanted_alone() -> None:
    manager = Manager()
    made: list[int] = []

    def checkpoint() -> bytes:
        made.append(len(made))
        return b"state %d" % made[-1]

    with channel(manager):
        for i in range(50):
            report(i, 1.0, checkpoint)
        assert made == []
        manager.answer = pb.TrainingReportResponse(cores=1.0, wants_checkpoint=True)

        def arrived() -> bool:
            report(99, 1.0, checkpoint)
            return any(request.HasField("checkpoint") for request in manager.requests)

        until(arrived)
    first = next(request for request in manager.requests if request.HasField("checkpoint"))
    assert (first.checkpoint, first.checkpoint_iteration) == (b"state 0", 99)


@pytest.mark.parametrize("made, error", [(b"x" * 101, None), ("text", TypeError)])
def test_a_checkpoint_that_does_not_fit_is_not_sent(made: Any, error: type[Exception] | None, capfd: Any) -> None:
    manager = Manager()
    with channel(manager, Training(target=1.0)):
        if error is None:
            assert report(1, 1.0, lambda: made).stop
            assert "is not kept" in capfd.readouterr().err
        else:
            with pytest.raises(error):
                report(1, 1.0, lambda: made)
    assert not any(request.HasField("checkpoint") for request in manager.requests)


def test_where_a_job_ends_does_not_depend_on_when_its_reports_arrive() -> None:
    with channel(Manager(), Training(target=0.1)):
        assert [report(i, 1.0 / i).stop for i in range(1, 12)] == [False] * 9 + [True, True]
    with channel(Manager(), Training(iterations=3)):
        assert [report(i).stop for i in range(5)] == [False, False, False, True, True]
    with channel(Manager(), Training(target=0.1)):
        assert not any(report(i, loss).stop for i, loss in enumerate((float("nan"), float("inf"), 5.0)))


def test_losses_of_any_kind_are_carried() -> None:
    manager, losses = Manager(), [float("nan"), float("inf"), -float("inf"), -1.0, 1e300, 0.0]
    with channel(manager):
        for i, loss in enumerate(losses):
            report(i, loss)
        report(-(1 << 80), 1.0)
        report(1 << 80)
    assert [repr(point.loss) for point in manager.points[:6]] == list(map(repr, losses))
    assert [point.iteration for point in manager.points[6:]] == [-(2**63) + 1, 2**63 - 1]
    assert not manager.points[-1].HasField("loss")


def test_metrics_of_any_name_are_carried() -> None:
    manager = Manager()
    with channel(manager):
        metrics: dict[str, Any] = {"": 1.0, "a\nb": 2.0, "\ud800": 3.0, "x" * 1000: 4.0}
        report(1, 1.0, **metrics)
        until(lambda: manager.points)
        report(2, 0.5)
    assert [metric.name for metric in manager.points[0].metrics] == ["", "a\nb", "\\ud800", "x" * 100]
    assert [point.iteration for point in manager.points] == [1, 2]


@pytest.mark.parametrize("begun, first", (({}, 7), ({"checkpoint": b"", "checkpoint_iteration": 7}, 1)))
def test_iterations_that_go_back_are_said_once(begun: dict[str, Any], first: int, capfd: Any) -> None:
    with channel(Manager(), **begun):
        for iteration in (first, 3, 2):
            report(iteration, 1.0)
    back = 3 if not begun else 1
    assert capfd.readouterr().err == (f"yaqd.ml: iteration {back} follows 7: numbers must rise; others are left out\n")


def test_reports_outlive_a_manager_that_is_away_for_a_while() -> None:
    manager = Manager()
    manager.is_away = True
    with channel(manager):
        for i in range(10):
            report(i, 1.0)
        until(lambda: manager.tries > 1)
        manager.is_away = False
        until(lambda: manager.points)
    assert [point.iteration for point in manager.points] == list(range(10))
