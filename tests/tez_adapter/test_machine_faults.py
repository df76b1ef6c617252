"""What goes wrong under a job, and whose fault it is: tasks that fail or fall silent, nodes lost, full or bad."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm.resources.memory_limit import MemoryLimits, excess
from nm.resources.process_scan import Usage
from tests.tez_adapter.tez_driver import SMALL, Driver, mapreduce
from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId
from tez_adapter.core.demand import Ask
from tez_adapter.core.states import EXIT_NO_ROOM, AttemptState, JobState, TaskState
from yaqd.cli.output import shortened_error
from yaqd.model import ExitStatus, Resource
from yaqd.model.endings import without_middle


def test_four_failures_of_one_task_fail_the_job_with_the_last_error() -> None:
    drive = Driver(mapreduce(2, 1))
    drive.allocate("c0")
    for number in range(4):
        attempt = AttemptId(0, 0, number)
        name = f"c{number}"
        if number:
            drive.allocate(name)
        drive(ev.TaskRequested(name))
        if number == 0:
            drive.allocate("other")
        out = drive(ev.AttemptFailed(attempt, f"ValueError: {number}"))
    assert out[-1] == ev.Finish(JobState.FAILED, "map task 0 failed 4 times, last on h1:1: ValueError: 3")
    assert ev.Stop("other", "h1:1", "the job is over: FAILED") in out
    assert drive.machine.asks() == []


@pytest.mark.parametrize("status", [-100, -102, -106, -108])
def test_ends_that_are_not_the_tasks_fault_do_not_count(status: int) -> None:
    drive = Driver(mapreduce(1, 0))
    for number in range(10):
        drive.allocate(f"c{number}")
        drive(ev.ContainerCompleted(f"c{number}", status))
    assert drive.machine.state is JobState.RUNNING
    assert drive.machine.vertices[0].tasks[0].failures == 0
    assert drive.machine.asks() == [Ask(10, "*", 1, SMALL)]


@pytest.mark.parametrize("status", [0, 1, 137, -103, -104, -1000])
def test_a_container_that_ends_without_done_is_a_failure(status: int) -> None:
    drive = Driver(mapreduce(1, 0))
    drive.allocate("c1")
    drive(ev.TaskRequested("c1"))
    drive(ev.ContainerCompleted("c1", status, "tail of stderr"))
    task = drive.machine.vertices[0].tasks[0]
    assert (task.failures, task.state) == (1, TaskState.PENDING)
    assert "tail of stderr" in task.attempts[0].error


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (137, "with exit status 137, killed by signal 9 (SIGKILL), often because the machine had no memory left: tail"),
        (143, "with exit status 143, killed by signal 15 (SIGTERM): tail"),
        (128 + 33, "with exit status 161, killed by signal 33: tail"),  # one without a name
        (128, "with exit status 128: tail"),
        (193, "with exit status 193: tail"),
        (-104, "with exit status -104, over its memory"),
    ],
)
def test_the_signal_that_ended_a_container_is_named(status: int, said: str) -> None:
    drive = Driver(mapreduce(1, 0))
    drive.allocate("c1")
    drive(ev.TaskRequested("c1"))
    drive(ev.ContainerCompleted("c1", status, "tail of stderr"))
    assert said in drive.machine.vertices[0].tasks[0].attempts[0].error


def test_a_task_over_its_memory_is_told_where_to_get_more() -> None:
    drive = Driver(mapreduce(1, 0, max_attempts=1))
    drive.allocate("c1")
    out = drive(ev.ContainerCompleted("c1", ExitStatus.KILLED_EXCEEDED_PMEM, "Container is running beyond limits"))
    finish = out[-1]
    assert isinstance(finish, ev.Finish)
    assert "over its memory (give it more: mapreduce.map.memory.mb" in finish.diagnostics
    assert "Container is running beyond limits" in finish.diagnostics


def test_a_task_over_its_address_space_is_told_what_helps_and_how_far_over_it_was() -> None:
    usage = Usage(150 << 20, 1500 << 20, 150 << 20, 1500 << 20)
    over = excess(usage, container_id="c1", leader=7, memory_mb=256, limits=MemoryLimits(True, True, 2.1))
    assert over is not None and over.status is ExitStatus.KILLED_EXCEEDED_VMEM
    drive = Driver(mapreduce(1, 0, max_attempts=1))
    drive.allocate("c1")
    finish = drive(ev.ContainerCompleted("c1", over.status, over.reason))[-1]
    assert isinstance(finish, ev.Finish)
    said = finish.diagnostics
    assert "over its memory" not in said and "hold less" not in said
    assert "more address space than its memory x yarn.nodemanager.vmem-pmem-ratio" in said
    assert "yarn.nodemanager.vmem-check-enabled=false on the nodes" in said and "mapreduce.map.memory.mb" in said
    shown = shortened_error(said, 400)
    assert len(shown) == 400 and shown.startswith(said[:190])
    assert shown.endswith("1.5 GB of 537.6 MB virtual memory used. Killing container.")


@given(st.text(), st.integers(7, 60))
def test_of_a_text_that_is_too_long_the_middle_goes(text: str, chars: int) -> None:
    cut = without_middle(text, chars)
    assert len(cut) <= chars
    if len(text) <= chars:
        assert cut == text
    else:
        first, gap, last = cut[: (chars - 4) // 2], cut[(chars - 4) // 2 :][:5], cut[(chars - 4) // 2 + 5 :]
        assert len(cut) == chars and gap == " ... " and text.startswith(first) and text.endswith(last)
        assert len(first) - len(last) in (0, 1)


def test_a_lost_map_output_is_made_again_and_announced() -> None:
    drive = Driver(mapreduce(2, 1))
    for i in range(2):
        drive.allocate(f"c{i}", f"h{i}")
        drive(ev.TaskRequested(f"c{i}"))
    drive(ev.AttemptSucceeded(AttemptId(0, 0, 0)))
    drive(ev.AttemptSucceeded(AttemptId(0, 1, 0)))
    reduce_attempt = next(iter(drive.machine.vertices[1].running))
    out = drive(ev.FetchReported(reduce_attempt, (AttemptId(0, 0, 0),)))
    # the one reducer there is cannot get it: that is enough, and the idle process makes it again
    assert out == [] or isinstance(out[0], ev.GiveTask)
    made = drive.machine.attempt(AttemptId(0, 0, 0))
    assert made is not None and made.state is AttemptState.FAILED
    assert [(c.attempt.task, c.available) for c in drive.machine.vertices[0].completions] == [
        (0, True),
        (1, True),
        (0, False),
    ]


def test_what_could_not_be_reached_was_killed_where_its_node_proves_lost() -> None:
    drive = Driver(mapreduce(2, 1, max_attempts=2))
    for i in range(2):
        drive.allocate(f"c{i}", f"h{i}")
        drive(ev.TaskRequested(f"c{i}"))
    drive(ev.AttemptSucceeded(AttemptId(0, 0, 0)))
    drive(ev.AttemptSucceeded(AttemptId(0, 1, 0)))
    maps = drive.machine.vertices[0]
    reduce_attempt = next(iter(drive.machine.vertices[1].running))
    # reducers notice sooner than the ResourceManager that the node is gone
    drive(ev.FetchReported(reduce_attempt, (AttemptId(0, 0, 0),)))
    assert (maps.tasks[0].failures, maps.ended[AttemptState.FAILED], maps.ended[AttemptState.KILLED]) == (1, 1, 0)
    drive(ev.NodeLost("elsewhere:1"))
    assert (maps.tasks[0].failures, maps.ended[AttemptState.FAILED]) == (1, 1)
    drive(ev.NodeLost("h0:1"))
    assert (maps.tasks[0].failures, maps.ended[AttemptState.FAILED], maps.ended[AttemptState.KILLED]) == (0, 0, 1)
    made = drive.machine.attempt(AttemptId(0, 0, 0))
    assert made is not None and made.state is AttemptState.KILLED
    assert made.error == "node h0:1 was lost: its output on h0:1 could not be fetched (1 reports)"
    drive(ev.NodeLost("h0:1"))  # once is enough
    assert (maps.tasks[0].failures, maps.ended[AttemptState.KILLED]) == (0, 1)
    assert drive.machine.anomalies == []


def test_a_lost_node_takes_its_outputs_along_while_somebody_needs_them() -> None:
    drive = Driver(mapreduce(2, 1, slow_start=1.0))
    for i in range(2):
        drive.allocate(f"c{i}", f"h{i}")
        drive(ev.TaskRequested(f"c{i}"))
    drive(ev.AttemptSucceeded(AttemptId(0, 0, 0)))
    drive(ev.NodeLost("h0:1"))
    assert drive.machine.vertices[0].tasks[0].state is TaskState.PENDING
    assert drive.machine.vertices[0].tasks[0].failures == 0
    made = drive.machine.attempt(AttemptId(0, 0, 0))
    assert made is not None and made.state is AttemptState.KILLED


def test_a_hanging_task_is_failed_and_its_process_stopped() -> None:
    drive = Driver(mapreduce(1, 0, timeout_s=10.0))
    drive.allocate("c1")
    drive(ev.TaskRequested("c1"))
    drive.now = 9.0
    drive(ev.AttemptReported(AttemptId(0, 0, 0), 0.5, True))
    drive.now = 18.0
    # alive but not moving does not help
    drive(ev.AttemptReported(AttemptId(0, 0, 0), 0.5, False))
    assert drive(ev.Tick()) == []
    drive.now = 19.1
    assert drive(ev.Tick()) == [ev.Stop("c1", "h1:1", "its task hangs")]
    assert drive.machine.vertices[0].tasks[0].failures == 1
    # what it says later changes nothing
    assert drive(ev.CommitRequested(AttemptId(0, 0, 0))) == [ev.AnswerCommit(AttemptId(0, 0, 0), False)]
    drive(ev.AttemptSucceeded(AttemptId(0, 0, 0)))
    assert drive.machine.vertices[0].done == 0


def test_a_process_that_falls_silent_is_lost() -> None:
    drive = Driver(mapreduce(1, 0))
    drive.allocate("c1")
    drive.now = 500.0
    # queued on its node: nobody expects a word of it yet
    assert drive(ev.Tick()) == [ev.AskNode("c1", "h1:1")]
    drive(ev.TaskRequested("c1"))
    drive.now = 550.0
    drive(ev.AttemptReported(AttemptId(0, 0, 0), 0.5, False))
    drive.now = 600.0
    assert drive(ev.Tick()) == []
    drive.now = 610.5
    assert drive(ev.Tick()) == [ev.Stop("c1", "h1:1", "its task hangs")]
    task = drive.machine.vertices[0].tasks[0]
    assert "not heard for 60 s" in task.attempts[0].error
    assert (task.failures, task.attempts[0].state) == (1, AttemptState.FAILED)
    drive(ev.NodeLost("h1:1"))
    assert (task.failures, task.attempts[0].state) == (0, AttemptState.KILLED)


@pytest.mark.parametrize(("refused", "failures"), [(True, 1), (False, 0)])
def test_an_unreachable_node_is_not_the_tasks_fault(refused: bool, failures: int) -> None:
    drive = Driver(mapreduce(1, 0))
    drive.allocate("c1")
    assert drive(ev.LaunchFailed("c1", "no answer", refused)) == [ev.Release("c1")]
    assert drive.machine.vertices[0].tasks[0].failures == failures


def test_a_node_that_takes_nothing_at_present_costs_no_attempt_until_it_goes_on_for_ever() -> None:
    drive = Driver(mapreduce(1, 0))
    task = drive.machine.vertices[0].tasks[0]
    for number in range(50):
        drive.allocate(f"c{number}", "busy")
        assert drive(ev.LaunchFailed(f"c{number}", "too many wait", not_now=True))[0] == ev.Release(f"c{number}")
        if drive.machine.state is not JobState.RUNNING:
            break
        assert task.failures == max(0, number + 1 - 20)
        assert drive.allocate(f"p{number}", "busy") == [], "it is left alone for a second"
        drive.now += 1.1
        assert drive(ev.Tick()) == [ev.Release(f"p{number}")]
        assert drive.machine.asks() == [Ask(10, "*", 1, SMALL)]
    assert (number, drive.machine.state) == (23, JobState.FAILED), "and it does not go on for ever"


def test_nodes_that_take_containers_now_and_then_cost_no_attempt() -> None:
    drive = Driver(mapreduce(1, 0))
    for number in range(60):
        drive.now += 1.1
        drive(ev.Tick())
        drive.allocate(f"c{number}")
        if number % 10:
            drive(ev.LaunchFailed(f"c{number}", "too many wait", not_now=True))
        else:
            drive(ev.TaskRequested(f"c{number}"))
            drive(ev.ContainerCompleted(f"c{number}", ExitStatus.PREEMPTED))
    assert (drive.machine.state, drive.machine.vertices[0].tasks[0].failures) == (JobState.RUNNING, 0)


def test_containers_on_a_node_that_does_not_answer_are_parked() -> None:
    drive = Driver(mapreduce(1, 0))
    drive.allocate("c1", "dead")
    drive(ev.LaunchFailed("c1", "no answer", refused=False))
    # given back, the container would come again at once: it stays where it is, and the ask stands
    assert drive.allocate("c2", "dead") == []
    assert drive.machine.asks() == [Ask(10, "*", 1, SMALL)]
    assert drive.allocate("c3", "alive") == [ev.Launch("c3", "alive:1", AttemptId(0, 0, 1))]
    drive.now = 31.0
    assert drive(ev.Tick()) == [ev.Release("c2")]
    drive(ev.TaskRequested("c3"))
    drive(ev.LaunchFailed("c9", "of another job", refused=False))
    assert drive(ev.AttemptSucceeded(AttemptId(0, 0, 1)))[-1] == ev.Finish(JobState.SUCCEEDED, "")


def test_parked_containers_go_with_the_job() -> None:
    drive = Driver(mapreduce(1, 0))
    drive.allocate("c1", "dead")
    drive(ev.LaunchFailed("c1", "no answer", refused=False))
    drive.allocate("c2", "dead")
    drive.allocate("c3", "dead")
    drive(ev.ContainerCompleted("c3", -100))
    assert drive(ev.KillRequested("x"))[:-1] == [ev.Release("c2")]


NO_ROOM = "[Errno 28] No space left on device: '/d'"


def test_a_node_without_room_on_its_disks_is_not_the_tasks_fault_and_others_are_tried() -> None:
    drive = Driver(mapreduce(1, 0))
    drive(ev.ClusterSeen(Resource(4096, 4), 2))
    drive.allocate("c1", "full")
    drive(ev.ContainerCompleted("c1", ExitStatus.DISKS_FAILED, NO_ROOM))
    task = drive.machine.vertices[0].tasks[0]
    assert (task.failures, task.attempts[0].state) == (0, AttemptState.KILLED)
    assert drive.allocate("c2", "full") == []  # parked: it would come again at once
    assert drive.allocate("c3", "other") == [ev.Launch("c3", "other:1", AttemptId(0, 0, 1))]
    drive.now = 5.5
    assert drive(ev.Tick()) == [ev.Release("c2")]
    # one full node of two never fails a job
    for number in range(10):
        drive(ev.ContainerCompleted(f"c{number + 3}", ExitStatus.ABORTED))
        drive.now += 6
        drive(ev.Tick())
        drive.allocate(f"f{number}", "full")
        drive(ev.ContainerCompleted(f"f{number}", ExitStatus.DISKS_FAILED, NO_ROOM))
        drive.allocate(f"c{number + 4}", "other")
        drive(ev.TaskRequested(f"c{number + 4}"))
    assert drive.machine.state is JobState.RUNNING and task.failures == 0


def test_a_job_ends_where_no_node_has_room() -> None:
    drive = Driver(mapreduce(1, 0))
    drive(ev.ClusterSeen(Resource(4096, 4), 1))
    for number in range(3):
        assert drive.machine.state is JobState.RUNNING
        drive.now += 6
        drive(ev.Tick())
        drive.allocate(f"c{number}")
        out = drive(ev.ContainerCompleted(f"c{number}", ExitStatus.DISKS_FAILED, NO_ROOM))
    why = f"no node has room on its disks for map task 0, last h1:1: {NO_ROOM}"
    assert out == [ev.Finish(JobState.FAILED, why)]


def test_room_that_comes_and_goes_is_room() -> None:
    drive = Driver(mapreduce(1, 0))
    for number in range(6):
        drive.now += 6
        drive(ev.Tick())
        drive.allocate(f"c{number}")
        if number % 2:
            drive(ev.ContainerCompleted(f"c{number}", ExitStatus.DISKS_FAILED, ""))
        else:
            drive(ev.TaskRequested(f"c{number}"))
            drive(ev.ContainerCompleted(f"c{number}", ExitStatus.ABORTED))
    assert drive.machine.state is JobState.RUNNING
    assert "the disks of node h1:1 are full or broken" in drive.machine.vertices[0].tasks[0].attempts[-1].error


def test_a_bad_host_is_avoided_while_others_are_left() -> None:
    drive = Driver(mapreduce(5, 0))
    drive(ev.ClusterSeen(Resource(9000, 9), 4))
    changes = []
    for i in range(3):
        drive.allocate(f"c{i}", "bad")
        changes += drive(ev.ContainerCompleted(f"c{i}", 1))
    assert changes == [ev.Blacklist(("bad",), ())]
    assert drive.allocate("c9", "bad") == [ev.Release("c9")]
    # the cluster shrinks to one node: there is no choice any more
    assert drive(ev.ClusterSeen(Resource(9000, 9), 1)) == [ev.Blacklist((), ("bad",))]


def test_containers_that_have_no_room_for_their_tasks_folder_end_the_job() -> None:
    drive = Driver(mapreduce(1, 0))
    drive(ev.ClusterSeen(Resource(4096, 4), 1))
    for number in range(3):
        drive.now += 20
        drive(ev.Tick())
        drive.allocate(f"c{number}", "full")
        drive(ev.TaskRequested(f"c{number}"))
        drive(ev.ContainerCompleted(f"c{number}", EXIT_NO_ROOM, ""))
    task = drive.machine.vertices[0].tasks[0]
    assert task.failures == 0 and {attempt.state for attempt in task.attempts} == {AttemptState.KILLED}
    assert drive.machine.state is JobState.FAILED
