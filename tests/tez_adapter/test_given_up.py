"""Jobs that may do without some of their tasks (failures.maxpercent): who is left out, and what is made of the rest."""

from tests.tez_adapter.tez_driver import Driver, mapreduce
from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId
from tez_adapter.core.states import JobState
from tez_adapter.data.fetchplan import FetchPlan, FetchSettings, MapLocation


def run_maps(drive: Driver, count: int, failing: set[int]) -> list[ev.Decision]:
    """Each in a container of its own; what the last one led to."""
    out: list[ev.Decision] = []
    for task in range(count):
        drive.allocate(f"c{task}", f"h{task}")
        drive(ev.TaskRequested(f"c{task}"))
    for task in range(count):
        attempt = AttemptId(0, task, 0)
        failed = ev.AttemptFailed(attempt, f"boom {task}", fatal=True)
        out = drive(failed if task in failing else ev.AttemptSucceeded(attempt))
    return out


def test_reduces_begin_without_the_maps_that_failed() -> None:
    drive = Driver(mapreduce(4, 1, slow_start=1.0, failures_max_percent=50))
    run_maps(drive, 4, {1, 3})
    machine = drive.machine
    assert machine.state is JobState.RUNNING and machine.given_up_for(1) == [1, 3]
    reduce = AttemptId(1, 0, 0)
    assert drive.allocate("r1", "h9", 20) or machine.attempt(reduce) is not None
    for container in list(machine.containers):
        drive(ev.TaskRequested(container))
    out = drive(ev.AttemptSucceeded(reduce))
    text = "2 of 4 map tasks failed and were left out (mapreduce.map.failures.maxpercent)"
    assert out[-1] == ev.Finish(JobState.SUCCEEDED, text)
    assert machine.progress() == 1.0


def test_one_failure_too_many_fails_the_job() -> None:
    drive = Driver(mapreduce(4, 1, failures_max_percent=49))
    out = run_maps(drive, 4, {1, 2})
    assert drive.machine.state is JobState.FAILED
    assert not any(isinstance(decision, ev.GiveTask) for decision in out)


def test_reduces_may_be_left_out_too() -> None:
    drive = Driver(mapreduce(1, 2, failures_max_percent=50))
    run_maps(drive, 1, set())
    drive.allocate("r1", "h8", 20)
    drive.allocate("r2", "h9", 20)
    for container in list(drive.machine.containers):
        drive(ev.TaskRequested(container))
    drive(ev.AttemptFailed(AttemptId(1, 0, 0), "boom", fatal=True))
    drive(ev.AttemptSucceeded(AttemptId(1, 1, 0)))
    assert drive.machine.state is JobState.SUCCEEDED


def test_a_fetch_is_complete_without_the_maps_that_are_skipped() -> None:
    plan = FetchPlan(3, FetchSettings())
    for index in (0, 1):
        plan.add(MapLocation(index, f"a{index}", "h", 1))
    plan.skip(1)
    plan.skip(2)
    batch = plan.next_batch(0.0)
    assert batch is not None and [location.map_index for location in batch.locations] == [0]
    assert not plan.is_complete
    assert plan.succeeded(batch.locations[0]) and plan.is_complete
