"""What a user hears of nodes that die, fall silent or are full while the job runs."""

from tez_adapter.client.follow import JobStatus, VertexStatus
from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId, DagSpec, EdgeSpec, VertexSpec
from tez_adapter.core.machine import JobMachine
from yaqd.cli.applications.following import line_printer
from yaqd.model import ApplicationId, ExitStatus, Resource, YarnApplicationState

SMALL = Resource(1024, 1)


class Driver:
    def __init__(self, maps: int) -> None:
        vertices = (VertexSpec("map", maps, SMALL, 10), VertexSpec("reduce", 1, SMALL, 20))
        self.machine = JobMachine(DagSpec(vertices, (EdgeSpec(0, 1, 1.0),)))
        self.now = 0.0

    def __call__(self, *events: ev.Event) -> list[str]:
        for event in events:
            self.machine.handle(event, self.now)
        return self.machine.notices.take()

    def start(self, container: str, node: str) -> list[str]:
        allocated = ev.ContainerAllocated(container, f"{node}:1", node, SMALL, 10)
        return self(allocated, ev.TaskRequested(container))


def test_a_lost_node_is_named_with_what_goes_with_it() -> None:
    drive = Driver(4)
    for container, node in (("c1", "a"), ("c2", "a"), ("c3", "b")):
        assert drive.start(container, node) == []
    assert drive(ev.AttemptSucceeded(AttemptId(0, 0, 0))) == []  # the process goes on with task 3
    assert drive(ev.NodeLost("a:1")) == [
        "node a:1 was lost with 2 running tasks and the output of 1 finished task: they run again"
    ]
    assert drive(ev.NodeLost("b:1")) == ["node b:1 was lost with 1 running task: it runs again"]
    assert drive(ev.NodeLost("a:1"), ev.NodeLost("elsewhere:1")) == []


def test_silence_is_said_before_the_node_is_given_up_and_once() -> None:
    drive = Driver(3)
    drive.start("c1", "a")
    drive.start("c2", "a")
    drive.start("c3", "b")
    drive.now = 3.0
    drive(ev.AttemptReported(AttemptId(0, 1, 0), 0.5, True), ev.AttemptReported(AttemptId(0, 2, 0), 0.5, True))
    drive.now = 5.5
    assert drive(ev.AttemptReported(AttemptId(0, 2, 0), 0.5, False), ev.Tick()) == []  # one task of a was heard
    drive.now = 8.5
    silent = "nothing was heard for 5 s from node a:1, which runs 2 tasks"
    assert drive(ev.AttemptReported(AttemptId(0, 2, 0), 0.5, False), ev.Tick(), ev.Tick()) == [silent]
    assert drive(ev.AttemptReported(AttemptId(0, 0, 0), 0.5, True), ev.Tick()) == ["node a:1 is heard again"]


def test_nodes_that_cannot_start_containers_are_named_until_they_can() -> None:
    drive = Driver(4)
    allocated = [ev.ContainerAllocated(f"c{n}", "a:1", "a", SMALL, 10) for n in range(2)]
    refused = [ev.LaunchFailed(f"c{n}", "cannot connect\n to a:1", refused=False) for n in range(2)]
    unreachable = "node a:1 does not answer, its tasks go elsewhere: cannot connect to a:1"
    assert drive(*allocated, *refused) == [unreachable]
    drive.now = 31.0
    drive(ev.Tick())
    assert drive.start("c3", "a") == []
    full = ev.ContainerCompleted("c4", ExitStatus.DISKS_FAILED, "no space")
    said = drive(ev.ContainerAllocated("c4", "a:1", "a", SMALL, 10), full)
    assert said == ["node a:1 has no room on its disks, its tasks wait or go elsewhere: no space"]


def test_a_client_prints_each_line_once_and_those_of_the_next_job_manager_too() -> None:
    lines: list[str] = []
    show = line_printer(lines.append)

    def status(total: int, *notices: str) -> JobStatus:
        map_vertex = VertexStatus("map", 2, 0, 2, 0, 0, 0, 0.0)
        application = ApplicationId(1, 1)
        state = YarnApplicationState.RUNNING
        return JobStatus(application, state, 0.0, (map_vertex,), notices=notices, notices_total=total)

    show(status(0))
    show(status(2, "one", "two"))
    show(JobStatus(ApplicationId(1, 1), YarnApplicationState.RUNNING, 0.0))  # its job manager did not answer
    show(status(3, "one", "two", "three"))
    show(status(9, "eight", "nine"))  # more than are kept
    show(status(1, "anew"))
    assert lines == ["map   0% (0/2 tasks)", "one", "two", "three", "eight", "nine", "anew"]
