"""Idle containers of a job whose stages a ResourceManager decides about: they ask, wait, go on, or are given back."""

import pytest

from tests.tez_adapter.tez_driver import SMALL, Driver, mapreduce
from tests.tez_adapter.tez_stages import Ordered, after, stages
from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId, DagSpec, VertexSpec
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.states import ContainerState, JobState
from tez_adapter.master.granted import Granted
from tez_adapter.master.left import WorkLeft
from yaqd.model import Resource
from yaqd.model.stages import StagesOrder
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.stages import stages_order_pb

Shares = tuple[tuple[int, int], ...]


def given_to(name: str, vertex: int, task: int = 0) -> ev.GiveTask:
    return ev.GiveTask(name, AttemptId(vertex, task, 0))


# ---- without orders


@pytest.mark.parametrize("said", [False, True], ids=["nothing was said", "it says that it does not decide"])
def test_where_nobody_decides_containers_go_on_by_themselves(said: bool) -> None:
    drive = Ordered(stages(1, 1), 1, decides=False)
    if said:
        assert drive.order((10, 5), limit=0, decides=False) == []
    assert drive.done("c0") == [given_to("c0", 1)]
    assert drive.undecided == 0


def test_what_waits_goes_on_once_the_queue_decides_no_more() -> None:
    drive = Ordered(stages(1, 1), 1)
    assert drive.done("c0") == []
    assert drive.order(decides=False) == [given_to("c0", 1)]


def test_another_resource_manager_begins_without_orders() -> None:
    drive = Ordered(stages(2, 2, 1, edges=(after(0, 2),)), 2)
    drive.done("c0")
    assert drive.order((30, 1)) == [] and drive.undecided == 0, "meant for a stage that has not opened"
    assert drive(ev.ResourcesCounted(cores=True)) == [given_to("c0", 1)]


# ---- with orders


def test_a_container_goes_on_with_its_own_stage_and_asks_for_any_other() -> None:
    drive = Ordered(stages(2, 1), 1)
    assert drive.done("c0") == [given_to("c0", 0, 1)]
    assert drive.done("c0") == []
    assert drive.undecided == 1
    assert drive.machine.containers["c0"].state is ContainerState.IDLE
    assert drive.order((20, 1)) == [given_to("c0", 1)]
    assert drive.undecided == 0
    assert ev.Finish(JobState.SUCCEEDED, "") in drive.done("c0")


def test_shares_are_served_in_turn_and_no_further_than_there_are_tasks() -> None:
    drive = Ordered(stages(4, 1, 3, 1), 4)
    assert drive.done("c0", "c1", "c2", "c3") == []
    assert drive.undecided == 4
    assert drive.order((30, 1), (20, 2), (99, 1)) == [given_to("c0", 2), given_to("c1", 1)]
    assert drive.undecided == 2, "these ask again"
    assert drive.order((30, 1_000_000)) == [given_to("c2", 2, 1), given_to("c3", 2, 2)]


def test_a_container_for_a_stage_that_has_not_opened_stays_for_it() -> None:
    drive = Ordered(stages(2, 1, 1, edges=(after(0, 1),)), 2)
    assert drive.done("c0") == []
    assert drive.order((20, 1)) == []
    assert drive.undecided == 0, "it is decided"
    assert drive.order((30, 1), limit=0) == [], "and neither another order nor a limit changes that"
    assert drive.done("c1") == [given_to("c0", 1)]
    assert drive.undecided == 1


def test_a_container_whose_own_stage_opens_again_serves_it_first() -> None:
    drive = Ordered(stages(2, 1, 1, edges=(after(0, 1), after(1, 2))))
    drive.start("c0")
    drive.allocate("c1", "h2")
    drive(ev.TaskRequested("c1"))
    drive.done("c0")
    assert drive.order((30, 1)) == []
    drive.now += 1
    drive.done("c1")
    assert drive(ev.NodeLost("h2:1"))[-1] == ev.GiveTask("c0", AttemptId(0, 1, 1)), "what was lost is needed again"
    assert drive.machine.containers["c0"].meant_for is None


def test_a_container_whose_stage_wants_it_no_more_asks_again() -> None:
    drive = Ordered(stages(2, 1, 1, edges=(after(0, 1), after(0, 2))), 2)
    drive.done("c0")
    drive.order((20, 1))
    assert drive.undecided == 0
    drive(ev.VertexLimited(1, 0))
    assert drive.undecided == 1
    assert drive.order((30, 1)) == []
    assert drive.done("c1") == [given_to("c0", 2)]


def test_idle_containers_beyond_the_limit_are_given_back_and_none_that_runs() -> None:
    drive = Ordered(stages(4, 9, edges=(after(0, 1),)), 4)
    assert drive.done("c0", "c1", "c2") == []
    assert drive.order(limit=4) == []
    assert drive.order(limit=2) == [ev.GiveExit("c0"), ev.GiveExit("c1")]
    assert drive.undecided == 1
    assert drive.order(limit=2) == [], "what is told to end is not held any more"
    assert drive.order(limit=0) == [ev.GiveExit("c2")]
    assert drive.machine.containers["c3"].state is ContainerState.BUSY


def test_shares_come_before_the_limit() -> None:
    drive = Ordered(stages(4, 1, 9, edges=(after(0, 2),)), 4)
    drive.done("c0", "c1", "c2")
    assert drive.order((20, 1), (30, 1), limit=0) == [ev.GiveExit("c2"), given_to("c0", 1)]
    assert drive.machine.containers["c1"].state is ContainerState.IDLE
    assert drive.undecided == 0


def test_a_container_that_no_stage_can_use_ends_without_a_question() -> None:
    drive = Ordered(stages(2), 2)
    assert drive.done("c0") == [ev.GiveExit("c0")]
    assert drive.undecided == 0


def test_only_what_fits_is_given() -> None:
    large = DagSpec(
        (
            VertexSpec("small", 1, SMALL, 10),
            VertexSpec("large", 1, Resource(4096, 1), 20),
            VertexSpec("alone", 1, SMALL, 30, reusable=False),
            VertexSpec("last", 1, SMALL, 40),
        ),
        (after(0, 3),),
    )
    drive = Ordered(large, 1)
    assert drive.done("c0") == []
    assert drive.order((20, 1), (30, 1)) == [] and drive.undecided == 1
    assert drive.order((40, 1)) == [given_to("c0", 3)]


def test_a_new_container_goes_to_the_stage_that_it_came_for() -> None:
    drive = Ordered(stages(2, 1))
    assert drive.allocate("c0", priority=20) == [ev.Launch("c0", "h1:1", AttemptId(1, 0, 0))]
    # where that wants none, the first that does
    assert drive.allocate("c1", priority=20) == [ev.Launch("c1", "h1:1", AttemptId(0, 0, 0))]
    without = Driver(stages(2, 1))
    assert without.allocate("c0", priority=20) == [ev.Launch("c0", "h1:1", AttemptId(0, 0, 0))]


def test_a_container_does_the_work_of_its_own_stage_that_waits_at_nodes_alone() -> None:
    drive = Ordered(stages(2, 2))
    drive.start("c0")
    drive.allocate("c1", priority=20)
    drive.allocate("c2", priority=10)
    assert drive.done("c0") == [given_to("c0", 0, 1)], "c2's"
    assert drive.done("c0") == [], "not c1's, which is another stage's"
    assert drive.undecided == 1
    # c2 comes up without work: it asks as well
    assert drive(ev.TaskRequested("c2")) == []
    assert drive.undecided == 2
    assert drive.order((20, 2)) == [given_to("c0", 1, 1), ev.GiveExit("c2")], "there is one task for two"


def test_a_container_held_for_long_stays_where_orders_decide() -> None:
    drive = Ordered(stages(3, 1))
    drive(ev.ClusterSeen(Resource(0, 0), 2))
    drive.start("c0")
    drive.now = 16.0
    assert drive.done("c0") == [given_to("c0", 0, 1)]


def test_a_container_on_a_host_to_avoid_is_given_back() -> None:
    drive = Ordered(stages(6, 9, edges=(after(0, 1),)))
    drive(ev.ClusterSeen(Resource(9999, 9), 9))
    for number in range(4):
        drive.start(f"c{number}")
    for number in range(3):
        drive(ev.AttemptFailed(drive.attempt_in(f"c{number}"), "error"))
    assert ev.GiveExit("c3") in drive.done("c3")


# ---- orders that do not come


def test_a_container_without_an_order_goes_on_by_itself() -> None:
    drive = Ordered(stages(1, 1), 1)
    assert drive.done("c0") == []
    drive.now = 0.9
    assert drive.order(limit=5) == [] and drive(ev.Tick()) == []
    drive.now = 1.8
    assert drive(ev.Tick()) == [], "the ResourceManager was heard meanwhile"
    drive.now = 1.95
    assert drive(ev.Tick()) == [given_to("c0", 1)]


def test_orders_that_place_nothing_are_waited_for_no_longer() -> None:
    drive = Ordered(stages(1, 1), 1)
    drive.done("c0")
    for now in (0.3, 0.6, 0.9):
        drive.now = now
        assert drive.order((99, 1)) == []
    drive.now = 1.05
    assert drive(ev.Tick()) == [given_to("c0", 1)]


@pytest.mark.parametrize("decided", [False, True], ids=["undecided", "decided"])
def test_a_container_that_rests_for_too_long_is_given_back(decided: bool) -> None:
    drive = Ordered(stages(2, 1, edges=(after(0, 1),)), 2)
    drive.done("c0")
    if decided:
        drive.order((20, 1))
    drive.now = 1.9
    assert drive(ev.Tick()) == []
    drive.now = 2.1
    assert drive(ev.Tick()) == [ev.GiveExit("c0")]
    assert drive.undecided == 0


# ---- orders of any kind


@pytest.mark.parametrize(
    ("shares", "limit"),
    [
        (((7, 3), (-1, 1)), None),
        (((20, 0), (20, -5)), None),
        (((20, 10**9), (20, 10**9), (10, 10**9)), 10**9),
        (((30, 1),), 0),
        ((), 0),
        ((), -1),
    ],
    ids=["unknown priorities", "none", "huge numbers", "limit 0", "nothing and limit 0", "a negative limit"],
)
def test_odd_orders_lose_no_container_and_no_job(shares: Shares, limit: int | None) -> None:
    drive = Ordered(stages(3, 2, 1, edges=(after(0, 1), after(1, 2))))
    assert drive.order(*shares, limit=limit) == [], "there is nothing to order yet"
    for number in range(40):
        drive.now += 0.3
        if drive.machine.asks():
            drive.start(f"c{number}", drive.machine.asks()[0].priority)
        for name, container in list(drive.machine.containers.items()):
            if container.state is ContainerState.BUSY:
                drive.done(name)
        drive.order(*shares, limit=limit)
        for name, container in list(drive.machine.containers.items()):
            if container.state is ContainerState.STOPPING:
                drive(ev.ContainerCompleted(name, 0))
    assert drive.machine.state is JobState.SUCCEEDED
    assert drive.machine.containers == {}
    drive.order((10, 1), limit=0)
    assert drive.machine.anomalies == []


def test_maps_go_before_reduces_until_the_share_of_these_has_grown() -> None:
    drive = Ordered(mapreduce(4, 2, slow_start=0.5), 2)
    assert drive.done("c0") == [given_to("c0", 0, 2)]
    assert drive.done("c1") == [given_to("c1", 0, 3)]
    # half of the maps are done and none waits: the first container without a map asks, and may reduce
    assert drive.done("c0") == [] and drive.undecided == 1
    assert drive.order((20, 1)) == [given_to("c0", 1)]
    assert drive.done("c1") == [] and drive.undecided == 1
    assert drive.order((20, 5)) == [given_to("c1", 1, 1)]


# ---- what is told, and heard


def test_containers_that_wait_are_told_at_once_and_after_each_order_that_leaves_some() -> None:
    drive = Ordered(stages(3, 1, 1, edges=(after(0, 2),)), 3)
    now = [0.0]
    work = WorkLeft(drive.machine, lambda: now[0], lambda _: None)

    def told() -> tuple[int, list[int]] | None:
        news = work.news()
        return None if news is None else (news.idle, [stage.running for stage in news.stages])

    assert told() == (0, [3, 0, 0])
    drive.done("c0")
    assert told() == (1, [2, 0, 0]), "at once"
    assert told() is None
    drive.done("c1")
    assert told() == (2, [1, 0, 0])
    drive.order((20, 1))
    assert told() == (1, [1, 1, 0])
    drive.order((20, 1))
    assert told() is None, "soon"
    now[0] += 0.2
    assert told() == (1, [1, 1, 0]), "it may think that the container has gone on"
    now[0] += 0.2
    assert told() is None
    work.forget()
    assert told() == (1, [1, 1, 0])


def test_what_the_user_says_of_tasks_counts_until_one_has_ended() -> None:
    drive = Ordered(stages(3, 1, task_s=5.0), 1)
    first, second = drive.machine.left(0.0)
    assert (first.task_s, first.work_s, first.longest_s, first.running) == (5.0, 15.0, 5.0, 1)
    assert (second.task_s, second.work_s, second.running) == (5.0, 5.0, 0)
    drive.now = 2.0
    drive.done("c0")
    assert [stage.task_s for stage in drive.machine.left(2.0)] == [2.0, 5.0]


def test_no_time_that_a_user_says_is_too_long_to_be_told() -> None:
    work = WorkLeft(JobMachine(stages(1_000, task_s=1e9)), lambda: 0.0, lambda _: None)
    assert [stage.work_ms for stage in work.latest().stages] == [10**12]


def test_orders_are_heard_once_and_anew_after_a_registration() -> None:
    granted = Granted()

    def heard(*sequences: int) -> list[int]:
        found: list[ev.Event] = []
        for sequence in sequences:
            response = pb.AllocateResponse()
            response.yaq_orders.stages.CopyFrom(stages_order_pb(StagesOrder(sequence, True, 3, ((20, 1),))))
            found += granted.events(response)
        orders = [event.order for event in found if isinstance(event, ev.StagesOrdered)]
        assert all(order == StagesOrder(order.sequence, True, 3, ((20, 1),)) for order in orders)
        return [order.sequence for order in orders]

    granted.registered(pb.RegisterApplicationMasterResponse())
    assert heard(1, 1, 3, 2, 4) == [1, 3, 4]
    assert list(granted.events(pb.AllocateResponse())) == []
    granted.registered(pb.RegisterApplicationMasterResponse())
    assert heard(1, 1) == [1]
