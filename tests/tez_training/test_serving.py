"""Tasks that serve others: they come and go, and the job does not wait for them."""

from tests.tez_adapter.tez_driver import SMALL, Driver
from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId, DagSpec, VertexSpec
from tez_adapter.core.demand import Ask
from tez_adapter.core.states import JobState

DRIVER = AttemptId(0, 0, 0)
OVER = ev.Stop


def training(workers: int) -> Driver:
    driver = VertexSpec("driver", 1, SMALL, 10, max_attempts=2, timeout_s=0)
    return Driver(DagSpec((driver, VertexSpec("worker", workers, SMALL, 20, 2, timeout_s=0, serves=True))))


def started(workers: int, limit: int) -> Driver:
    drive = training(workers)
    drive(ev.VertexLimited(1, limit))
    drive.allocate("d")
    drive(ev.TaskRequested("d"))
    for number in range(limit):
        drive.allocate(f"w{number}", priority=20)
        drive(ev.TaskRequested(f"w{number}"))
    return drive


def asked(drive: Driver) -> dict[int, int]:
    return {ask.priority: ask.count for ask in drive.machine.asks()}


def test_as_many_are_asked_for_as_may_run() -> None:
    drive = training(8)
    assert drive.machine.asks() == [Ask(10, "*", 1, SMALL), Ask(20, "*", 8, SMALL)]
    drive(ev.VertexLimited(1, 3))
    assert asked(drive) == {10: 1, 20: 3}
    drive.allocate("d")
    drive.allocate("w0", priority=20)
    assert asked(drive) == {20: 2}
    assert drive(ev.VertexLimited(1, 0)) == []  # those that run go on
    assert asked(drive) == {}
    assert drive.allocate("w1", priority=20) == [ev.Release("w1")]
    drive(ev.VertexLimited(1, 8))
    assert asked(drive) == {20: 7}


def test_one_that_is_given_back_is_no_failure_and_may_come_again() -> None:
    drive = started(4, 2)
    drive(ev.VertexLimited(1, 1))
    assert drive(ev.AttemptReturned(AttemptId(1, 1, 0))) == [ev.GiveExit("w1")]
    assert drive(ev.TaskRequested("w1")) == [ev.GiveExit("w1")]
    assert asked(drive) == {}
    drive(ev.ContainerCompleted("w1", 0))
    for _ in range(5):  # as often as one likes
        drive(ev.VertexLimited(1, 2))
        assert asked(drive) == {20: 1}
        (launch,) = drive.allocate("again", priority=20)
        assert isinstance(launch, ev.Launch) and launch.attempt.vertex == 1
        drive(ev.TaskRequested("again"))
        drive(ev.VertexLimited(1, 1))
        drive(ev.AttemptReturned(launch.attempt))
        drive(ev.ContainerCompleted("again", 0))
    assert drive.machine.state is JobState.RUNNING and drive.machine.anomalies == []
    drive(ev.AttemptReturned(AttemptId(1, 1, 0)))  # said twice
    assert drive.machine.anomalies == []


def test_the_job_ends_with_its_driver() -> None:
    drive = started(4, 2)
    out = drive(ev.AttemptSucceeded(DRIVER))
    assert [d for d in out if isinstance(d, OVER)] == [
        ev.Stop("w0", "h1:1", "the job is over: SUCCEEDED"),
        ev.Stop("w1", "h1:1", "the job is over: SUCCEEDED"),
    ]
    assert out[-1] == ev.Finish(JobState.SUCCEEDED, "")


def test_progress_is_the_drivers_and_what_is_left_is_what_may_run() -> None:
    drive = started(4, 2)
    drive(ev.AttemptReported(DRIVER, 0.25, True))
    assert drive.machine.progress() == 0.25
    assert [(stage.priority, stage.tasks) for stage in drive.machine.left(1.0)] == [(10, 1), (20, 2)]


def test_a_worker_that_dies_at_once_again_and_again_ends_the_job_and_one_that_served_does_not() -> None:
    drive = started(1, 1)
    for number in range(5):
        drive.now += 1000.0
        drive(ev.ContainerCompleted("w0", 137))
        drive.allocate("w0", host=f"h{number}", priority=20)
        drive(ev.TaskRequested("w0"))
    assert drive.machine.state is JobState.RUNNING
    drive.now += 1.0
    drive(ev.ContainerCompleted("w0", 137))
    assert drive.machine.state is JobState.FAILED
