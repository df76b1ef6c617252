"""The job machine: scenarios, and random clusters that lie, lose and crash."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.tez_adapter.tez_driver import SMALL, Driver, commands, mapreduce
from tests.tez_adapter.tez_random_cluster import RandomCluster
from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId, DagSpec, EdgeSpec, VertexSpec
from tez_adapter.core.demand import Ask
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.states import JobState
from tez_adapter.master.left import WorkLeft
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, Resource
from yaqd.policies.queueing.left import StageLeft
from yaqd.proto import convert


def test_one_map_one_reduce_in_the_same_container() -> None:
    drive = Driver(mapreduce(1, 1))
    assert drive.machine.asks() == [Ask(10, "*", 1, SMALL)]
    m, r = AttemptId(0, 0, 0), AttemptId(1, 0, 0)
    assert drive.allocate("c1") == [ev.Launch("c1", "h1:1", m)]
    assert drive.machine.asks() == []
    assert drive(ev.TaskRequested("c1")) == [ev.GiveTask("c1", m)]
    # the same request again (the answer was lost) gets the same answer
    assert drive(ev.TaskRequested("c1")) == [ev.GiveTask("c1", m)]
    # the map's end makes the reduce ready, and the idle process gets it before any ask goes out
    assert drive(ev.AttemptSucceeded(m)) == [ev.GiveTask("c1", r)]
    assert drive(ev.TaskRequested("c1")) == [ev.GiveTask("c1", r)]
    assert drive(ev.CommitRequested(r)) == [ev.AnswerCommit(r, True)]
    assert drive(ev.AttemptSucceeded(r)) == [ev.GiveExit("c1"), ev.Finish(JobState.SUCCEEDED, "")]
    assert drive.machine.anomalies == []


def test_what_is_left_is_told_stage_by_stage() -> None:
    drive = Driver(mapreduce(3, 2))
    later = StageLeft(20, 2, after=(10,), name="reduce")
    assert drive.machine.left(0.0) == (StageLeft(10, 3, name="map"), later), "nobody has seen a task end"
    for number in range(2):
        drive.allocate(f"c{number}")
        drive(ev.TaskRequested(f"c{number}"))
    drive.now = 8.0
    drive(ev.AttemptSucceeded(AttemptId(0, 0, 0)))  # its container goes on with the third map
    maps = StageLeft(10, 2, 8.0, 7.0, 7.0, running=2, name="map")
    assert drive.machine.left(9.0) == (maps, later)
    overrun = replace(maps, work_s=0.0, longest_s=0.0)
    assert drive.machine.left(1e9)[0] == overrun, "what has overrun is about to end"
    drive(ev.AttemptSucceeded(AttemptId(0, 1, 0)))
    drive(ev.AttemptSucceeded(AttemptId(0, 2, 0)))
    assert [stage.priority for stage in drive.machine.left(9.0)] == [20]
    drive(ev.KillRequested("enough"))
    assert drive.machine.left(9.0) == ()


def test_containers_that_never_had_a_task_are_told_once_to_the_resource_manager() -> None:
    drive = Driver(mapreduce(3, 0))
    now, attempt = [0.0], ApplicationAttemptId(ApplicationId(1, 1), 1)
    ids = {f"c{number}": ContainerId(attempt, number) for number in range(3)}
    work = WorkLeft(drive.machine, lambda: now[0], ids.get)

    def told() -> list[ContainerId] | None:
        news = work.news()
        return None if news is None else [convert.container_id(one) for one in news.without_task]

    for number in range(3):
        drive.allocate(f"c{number}")
    drive(ev.TaskRequested("c0"))
    assert told() == []
    for task in (0, 1):  # the one that came up does the work of those that wait at their nodes
        drive(ev.AttemptSucceeded(AttemptId(0, task, 0)))
    assert drive(ev.TaskRequested("c1")) == [ev.GiveExit("c1")]
    assert told() == [ids["c1"]], "at once, however lately it was told what is left"
    assert told() is None and not work.latest().without_task
    work.forget()
    assert told() == [ids["c1"]], "it may not have heard it"
    now[0] += 1.0
    assert told() is None


def test_a_container_that_had_a_task_when_it_came_up_or_later_is_none_of_those() -> None:
    drive = Driver(mapreduce(1, 0))
    drive.allocate("c0")
    drive(ev.TaskRequested("c0"))
    assert drive(ev.AttemptSucceeded(AttemptId(0, 0, 0)))[0] == ev.GiveExit("c0")
    assert drive.machine.held.take_without_task() == []

    drive = Driver(mapreduce(2, 1, slow_start=1.0))
    drive.allocate("c0")
    drive.allocate("c1")
    drive(ev.TaskRequested("c0"))
    assert drive(ev.AttemptSucceeded(AttemptId(0, 0, 0))) == [ev.GiveTask("c0", AttemptId(0, 1, 0))], "c1's"
    assert drive(ev.TaskRequested("c1")) == [], "it has nothing to do yet"
    reduce = AttemptId(1, 0, 0)
    assert drive(ev.AttemptSucceeded(AttemptId(0, 1, 0))) == [ev.GiveTask("c1", reduce), ev.GiveExit("c0")]
    assert ev.GiveExit("c1") in drive(ev.AttemptSucceeded(reduce))
    assert drive.machine.held.take_without_task() == []


@pytest.mark.parametrize(("headroom_mb", "goes_back"), [(0, True), (1024, False)])
def test_container_held_for_long_goes_back_where_the_cluster_is_full(headroom_mb: int, goes_back: bool) -> None:
    drive = Driver(mapreduce(3, 0))
    first, second, third = (AttemptId(0, number, 0) for number in range(3))
    drive(ev.ClusterSeen(Resource(headroom_mb, 9), 2))
    drive.allocate("c1")
    drive(ev.TaskRequested("c1"))
    drive.now = 5.0
    assert drive(ev.AttemptSucceeded(first)) == [ev.GiveTask("c1", second)]
    drive.now = 16.0
    after = [ev.GiveExit("c1")] if goes_back else [ev.GiveTask("c1", third)]
    assert drive(ev.AttemptSucceeded(second)) == after
    assert sum(drive.machine.wanted()) == (1 if goes_back else 0)


def test_a_task_runs_where_its_input_is() -> None:
    drive = Driver(mapreduce(3, 0, hosts=(("h1",), ("h2",), ("h2", "h3"))))
    assert drive.machine.asks() == [
        Ask(10, "h1", 1, SMALL),
        Ask(10, "h2", 2, SMALL),
        Ask(10, "h3", 1, SMALL),
        Ask(10, "/default-rack", 3, SMALL),
        Ask(10, "*", 3, SMALL),
    ]
    assert drive.allocate("c1", "h3") == [ev.Launch("c1", "h3:1", AttemptId(0, 2, 0))]
    assert drive.allocate("c2", "h2") == [ev.Launch("c2", "h2:1", AttemptId(0, 1, 0))]
    # nothing is left for h9's disks: the first in order, from afar
    assert drive.allocate("c3", "h9") == [ev.Launch("c3", "h9:1", AttemptId(0, 0, 0))]
    assert drive.allocate("c4", "h1") == [ev.Release("c4")]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_share_of_the_maps_may_use_what_others_leave_idle(share: float) -> None:
    maps = VertexSpec("map", 5, SMALL, 10, hosts=(("h1",),) * 5, opportunistic=share)
    asks = Driver(DagSpec((maps,))).machine.asks()
    spare = {a.name: a.count for a in asks if a.opportunistic}
    others = {a.name: a.count for a in asks if not a.opportunistic}
    everywhere = {"h1": 5, "/default-rack": 5, "*": 5}
    assert (spare, others) == {0.0: ({}, everywhere), 0.5: ({"*": 2}, {"*": 3}), 1.0: (everywhere, {})}[share]


def test_reduces_do_not_run_in_containers_that_others_may_end() -> None:
    maps, reduces = VertexSpec("map", 1, SMALL, 10, opportunistic=1.0), VertexSpec("reduce", 1, SMALL, 20)
    drive = Driver(DagSpec((maps, reduces), (EdgeSpec(0, 1, 1.0),)))
    drive.allocate("spare")
    drive(ev.TaskRequested("spare"))
    assert drive(ev.AttemptSucceeded(AttemptId(0, 0, 0))) == [ev.GiveExit("spare")]
    assert drive.machine.asks() == [Ask(20, "*", 1, SMALL)]
    assert drive.allocate("more") == [ev.Release("more")]
    assert drive.allocate("firm", priority=20) == [ev.Launch("firm", "h1:1", AttemptId(1, 0, 0))]


def test_tasks_bound_to_hosts_are_asked_for_there_and_nowhere_else() -> None:
    drive = Driver(mapreduce(3, 0, hosts=(("h1",), ("h2",), ("h1",)), only_on_hosts=True))
    assert drive.machine.asks() == [
        Ask(10, "h1", 2, SMALL),
        Ask(10, "h2", 1, SMALL),
        Ask(10, "/default-rack", 3, SMALL, relax=False),
        Ask(10, "*", 3, SMALL, relax=False),
    ]
    assert drive.allocate("c1", "h2") == [ev.Launch("c1", "h2:1", AttemptId(0, 1, 0))]


def test_commands_end_with_their_containers_and_are_not_tried_again() -> None:
    drive = Driver(commands(2))
    drive.allocate("c1")
    drive.allocate("c2")
    assert drive(ev.ContainerCompleted("c1", 0)) == []
    out = drive(ev.ContainerCompleted("c2", 3, "no such file"))
    assert isinstance(out[-1], ev.Finish) and out[-1].state is JobState.FAILED
    assert [t.attempts[0].exit_status for t in drive.machine.vertices[0].tasks] == [0, 3]


@pytest.mark.parametrize(
    ("ran_s", "began"), [(4.0, 26.0), (None, None), (0.0, None), (-5.0, None), (1e12, 10.0)], ids=str
)
def test_a_command_began_when_its_node_says_that_it_did(ran_s: float | None, began: float | None) -> None:
    drive = Driver(commands(1))
    drive.now = 10.0
    drive.allocate("c1")
    drive.now = 30.0
    drive(ev.ContainerCompleted("c1", 0, ran_s=ran_s))
    [attempt] = drive.machine.vertices[0].tasks[0].attempts
    assert (attempt.started, attempt.began, attempt.finished) == (10.0, began, 30.0)


def test_reduces_start_slowly() -> None:
    drive = Driver(mapreduce(4, 2, slow_start=0.5))
    for i in range(4):
        drive.allocate(f"c{i}")
        drive(ev.TaskRequested(f"c{i}"))
    assert drive(ev.AttemptSucceeded(AttemptId(0, 0, 0))) == []
    assert drive.machine.asks() == []
    # half of the maps are done: both idle processes get a reduce
    out = drive(ev.AttemptSucceeded(AttemptId(0, 1, 0)))
    assert out == [ev.GiveTask("c0", AttemptId(1, 0, 0)), ev.GiveTask("c1", AttemptId(1, 1, 0))]


def test_reduces_do_not_starve_maps_that_wait() -> None:
    drive = Driver(mapreduce(100, 10, slow_start=0.0))
    # no map is done: however many wait, none of the containers asked for is for a reduce
    assert drive.machine.asks() == [Ask(10, "*", 100, SMALL)]
    for i in range(8):
        drive.allocate(f"c{i}")
        drive(ev.TaskRequested(f"c{i}"))
    for i in range(50):
        attempt = drive.machine.containers[f"c{i % 8}"].attempt
        assert attempt is not None and attempt.id.vertex == 0
        drive(ev.AttemptSucceeded(attempt.id))
    # half the maps are done: of 8 containers at most a quarter (ramp-up 0.5) may be asked for reduces
    assert [a.count for a in drive.machine.asks() if a.priority == 20] == [2]


def test_a_map_whose_container_waits_at_its_node_runs_where_a_container_is_free() -> None:
    drive = Driver(mapreduce(2, 1))
    first, waiting, reduce = AttemptId(0, 0, 0), AttemptId(0, 1, 0), AttemptId(1, 0, 0)
    drive.allocate("c1", "h1")
    drive.allocate("c2", "h2")  # no slot is free there: it comes up when another's task ends, or never
    drive(ev.TaskRequested("c1"))
    drive.now = 3.0
    assert drive(ev.AttemptSucceeded(first)) == [ev.GiveTask("c1", waiting)], "not the reduce, which needs that map"
    moved = drive.machine.attempt(waiting)
    assert moved is not None and (moved.host, moved.began) == ("h1", 3.0)
    # the one that waited comes up after all, and helps where it can
    assert drive(ev.TaskRequested("c2")) == [ev.GiveTask("c2", reduce)]
    assert drive(ev.ContainerCompleted("c2", -100, "")) == []
    assert drive.machine.attempt(waiting) is moved and moved.live, "it is not that container's any more"
    drive(ev.AttemptSucceeded(waiting))
    assert drive.machine.anomalies == []


def test_a_task_is_not_to_blame_for_waiting_in_its_nodes_queue() -> None:
    drive = Driver(mapreduce(2, 0, timeout_s=10.0))
    drive.allocate("c1")
    drive.allocate("c2")
    drive(ev.TaskRequested("c2"))
    for quarter in range(1, 21):
        drive.now = 2.6 * quarter
        drive(ev.AttemptReported(AttemptId(0, 1, 0), 0.5, True))
        # only of the one that has not been heard, and once until it was due again
        assert drive(ev.Tick()) == [ev.AskNode("c1", "h1:1")]
        assert drive(ev.Tick()) == []
        drive(ev.ContainerWaits("c1"))
    # the node says so no longer: from then on it counts, and the node is asked all the same
    seen = [ev.AskNode("c1", "h1:1")]
    for after in (2.6, 5.2, 7.8):
        drive.now = 52.0 + after
        drive(ev.AttemptReported(AttemptId(0, 1, 0), 0.5, True))
        assert drive(ev.Tick()) == seen
    drive.now = 62.1
    assert drive(ev.Tick()) == [ev.Stop("c1", "h1:1", "its task hangs")]
    # what is said of it after its end, or of nobody, changes nothing
    assert drive(ev.ContainerWaits("c1")) == drive(ev.ContainerWaits("c9")) == []
    assert drive.machine.vertices[0].tasks[0].failures == 1


def stuck_behind_reduces(drive: Driver) -> AttemptId:
    """Two reduces run, on h1 and h2, and the map that has lost its output is to run in c3 on h2."""
    for name, host in (("c1", "h1"), ("c2", "h2")):
        drive.allocate(name, host)
        drive(ev.TaskRequested(name))
    for index in range(2):
        drive(ev.AttemptSucceeded(AttemptId(0, index, 0)))
        drive(ev.TaskRequested(f"c{index + 1}"))
    drive(ev.ClusterSeen(Resource(0, 0), 2))
    for reduce in (AttemptId(1, 0, 0), AttemptId(1, 1, 0)):
        drive(ev.FetchReported(reduce, (AttemptId(0, 0, 0),)))
    drive.allocate("c3", "h2")
    return AttemptId(0, 0, 1)


def test_a_map_that_waits_at_a_node_takes_the_room_of_a_reduce_there() -> None:
    drive = Driver(mapreduce(2, 2))
    drive.now = 10.0
    assert drive.machine.attempt(stuck_behind_reduces(drive)) is not None
    asked = [ev.AskNode("c3", "h2:1")]
    assert drive(ev.Tick()) == asked
    drive(ev.ContainerWaits("c3"))
    assert drive(ev.Tick()) == []
    drive.now = 11.0
    assert drive(ev.Tick()) == [*asked, ev.Stop("c2", "h2:1", "map tasks need its room")], "not the reduce on h1"
    assert [task.failures for task in drive.machine.vertices[1].tasks] == [0, 0]


def test_a_map_whose_process_is_only_slow_to_start_ends_no_reduce() -> None:
    drive = Driver(mapreduce(2, 2))
    drive.now = 10.0
    stuck_behind_reduces(drive)
    for second in range(20):
        drive.now = 10.0 + second
        assert drive(ev.Tick()) == [ev.AskNode("c3", "h2:1")], "the node does not say that it waits"
    drive(ev.TaskRequested("c3"))
    drive.now = 40.0
    assert drive(ev.Tick()) == []


def test_waiting_maps_take_the_room_of_a_reduce() -> None:
    drive = Driver(mapreduce(1, 1))
    drive.allocate("c1")
    drive(ev.TaskRequested("c1"))
    drive(ev.AttemptSucceeded(AttemptId(0, 0, 0)))
    drive(ev.TaskRequested("c1"))
    drive(ev.ClusterSeen(Resource(0, 0), 1))
    drive(ev.FetchReported(AttemptId(1, 0, 0), (AttemptId(0, 0, 0),)))
    assert drive.machine.asks() == [Ask(10, "*", 1, SMALL)]
    drive(ev.Tick())
    drive.now = 1.5
    assert drive(ev.Tick()) == [ev.Stop("c1", "h1:1", "map tasks need its room")]
    assert drive.machine.vertices[1].tasks[0].failures == 0


def test_kill_stops_everything() -> None:
    drive = Driver(mapreduce(2, 1))
    drive.allocate("c1")
    assert drive(ev.KillRequested("by alice")) == [
        ev.Stop("c1", "h1:1", "the job is over: KILLED"),
        ev.Finish(JobState.KILLED, "by alice"),
    ]
    assert drive.allocate("late") == [ev.Release("late")]
    assert drive(ev.TaskRequested("c1")) == [ev.GiveExit("c1")]


def test_a_job_without_tasks_succeeds_at_the_first_event() -> None:
    assert Driver(mapreduce(0, 0))(ev.Tick()) == [ev.Finish(JobState.SUCCEEDED, "")]


def test_reduces_of_a_job_without_maps_still_write_their_empty_parts() -> None:
    drive = Driver(mapreduce(0, 2))
    assert drive.machine.asks() == [Ask(20, "*", 2, SMALL)]


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), maps=st.integers(0, 12), reduces=st.integers(0, 5), slots=st.integers(1, 6))
@settings(max_examples=examples(150), deadline=None)
def test_any_order_of_faults_keeps_the_invariants_and_ends(seed: int, maps: int, reduces: int, slots: int) -> None:
    rng = random.Random(seed)
    slow_start = rng.choice([0.0, 0.05, 0.5, 1.0])
    hosts = tuple(tuple(rng.sample(["h0", "h1", "h2"], rng.randint(0, 2))) for _ in range(maps))
    spec = mapreduce(maps, reduces, slow_start=slow_start, hosts=hosts, timeout_s=30.0)
    cluster = RandomCluster(JobMachine(spec), rng, slots=slots, faults=200)
    cluster.run_to_the_end()
    cluster.check_end()


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(40), deadline=None)
def test_without_faults_every_task_runs_once(seed: int) -> None:
    rng = random.Random(seed)
    cluster = RandomCluster(JobMachine(mapreduce(7, 3)), rng, slots=3, faults=0)
    cluster.run_to_the_end()
    assert [len(t.attempts) for v in cluster.machine.vertices for t in v.tasks] == [1] * 10
    assert cluster.machine.anomalies == []
