"""The machine with graphs of more than two vertices: what runs again when outputs are lost, and what is taken up."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.tez_adapter.tez_driver import SMALL, Driver
from tests.tez_adapter.tez_invariants import validate
from tests.tez_adapter.tez_random_cluster import RandomCluster
from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId, DagSpec, EdgeSpec, VertexSpec
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.restored import DoneAttempt
from tez_adapter.core.states import JobState, TaskState


def chain(*tasks: int) -> DagSpec:
    """Return vertices that read one from the other."""
    vertices = tuple(VertexSpec(f"v{at}", many, SMALL, 10 + 10 * at) for at, many in enumerate(tasks))
    return DagSpec(vertices, tuple(EdgeSpec(at, at + 1, 1.0) for at in range(len(tasks) - 1)))


def run_stage(drive: Driver, stage: int, hosts: str) -> None:
    """Run each task of a stage on one of these hosts, in processes of their own."""
    for at, host in enumerate(hosts):
        name = f"s{stage}-{at}-{drive.now}"
        drive.allocate(name, host, priority=10 + 10 * stage)
        drive(ev.TaskRequested(name))
        attempt = drive.machine.containers[name].attempt
        assert attempt is not None and attempt.id.vertex == stage
        drive.now += 1
        drive(ev.AttemptSucceeded(attempt.id))
        drive(ev.ContainerCompleted(name, 0, ""))


def pending(machine: JobMachine) -> list[int]:
    return [sum(task.state is TaskState.PENDING for task in vertex.tasks) for vertex in machine.vertices]


def test_a_lost_node_reruns_as_deep_as_needed_and_no_deeper() -> None:
    drive = Driver(chain(2, 2, 1))
    run_stage(drive, 0, "ab")
    assert pending(drive.machine) == [0, 2, 0]
    run_stage(drive, 1, "bc")
    # of b the first stage's second output and the second's first are gone; both are needed again
    drive(ev.NodeLost("b:1"))
    assert pending(drive.machine) == [1, 1, 1]


def test_what_nobody_needs_does_not_run_again() -> None:
    drive = Driver(chain(2, 2, 1))
    run_stage(drive, 0, "ab")
    run_stage(drive, 1, "cd")
    drive(ev.NodeLost("a:1"))
    assert pending(drive.machine) == [0, 0, 1]
    # now a task of the second stage is to run again, and reads what was lost before
    drive(ev.NodeLost("c:1"))
    assert pending(drive.machine) == [1, 1, 1]


def test_an_output_made_on_a_node_that_came_back_is_there() -> None:
    drive = Driver(chain(1, 1, 1))
    drive.now = 1
    drive(ev.NodeLost("a:1"))
    drive.now = 2
    run_stage(drive, 0, "a")
    run_stage(drive, 1, "b")
    drive(ev.NodeLost("b:1"))
    assert pending(drive.machine) == [0, 1, 1]


def test_a_vertex_with_several_sources_hears_of_all_of_them() -> None:
    spec = DagSpec(
        tuple(VertexSpec(f"v{at}", 2, SMALL, 10 + 10 * at) for at in range(3)),
        (EdgeSpec(0, 2, 1.0), EdgeSpec(1, 2, 1.0)),
    )
    drive = Driver(spec)
    run_stage(drive, 0, "ab")
    assert pending(drive.machine) == [0, 2, 0]
    run_stage(drive, 1, "cd")
    assert pending(drive.machine) == [0, 0, 2]
    heard = sorted((each.attempt.vertex, each.attempt.task) for each in drive.machine.outputs_for(2))
    assert heard == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert drive.machine.inputs(2) == 4


def test_what_a_former_manager_has_finished_is_not_run_again() -> None:
    done = [DoneAttempt(AttemptId(0, task, 0), f"{host}:1", host) for task, host in enumerate("ab")]
    machine = JobMachine(chain(2, 1), restored=done, first_number=1000)
    validate(machine)
    assert pending(machine) == [0, 1]
    assert [each.attempt for each in machine.outputs_for(1)] == [each.id for each in done]
    # what is lost later runs again, under a number that no former attempt has
    drive = Driver(chain(2, 1))
    drive.machine = machine
    drive.now = 5
    drive(ev.NodeLost("b:1"))
    assert pending(machine) == [1, 1]
    run_stage(drive, 0, "c")
    assert machine.vertices[0].tasks[1].attempts[-1].id.number == 1000
    run_stage(drive, 1, "c")
    assert machine.state is JobState.SUCCEEDED


@pytest.mark.parametrize(
    "done", [AttemptId(7, 0, 0), AttemptId(0, 9, 0), AttemptId(0, -1, 0)], ids=["no vertex", "no task", "negative"]
)
def test_what_the_job_does_not_have_is_not_restored(done: AttemptId) -> None:
    with pytest.raises(ValueError, match="the job has no task"):
        JobMachine(chain(2, 1), restored=[DoneAttempt(done, "a:1", "a")])


@given(seed=st.integers(0, 2**32), slots=st.integers(1, 6))
@settings(max_examples=examples(60), deadline=None)
def test_any_order_of_faults_in_any_graph_ends(seed: int, slots: int) -> None:
    rng = random.Random(seed)
    many = rng.randint(2, 6)
    vertices = tuple(VertexSpec(f"v{at}", rng.randint(0, 4), SMALL, 10 + at, timeout_s=30.0) for at in range(many))
    edges = {
        (source, target): EdgeSpec(source, target, rng.choice([0.0, 0.5, 1.0]))
        for target in range(1, many)
        for source in rng.sample(range(target), rng.randint(0, min(2, target)))
    }
    cluster = RandomCluster(JobMachine(DagSpec(vertices, tuple(edges.values()))), rng, slots=slots, faults=100)
    cluster.run_to_the_end()
    cluster.check_end()
