"""Containers smaller than was asked for: what the ResourceManager counts decides, and nothing goes on for ever."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tez_adapter.tez_driver import Driver
from tez_adapter.core import events as ev
from tez_adapter.core.counted import Counted
from tez_adapter.core.dag import AttemptId, DagSpec, EdgeSpec, Limits, VertexSpec
from tez_adapter.core.demand import Ask
from tez_adapter.core.mergers import OwnMergers
from tez_adapter.core.states import JobState
from tez_adapter.master.granted import Granted
from yaqd.model import Resource
from yaqd.proto import convert
from yaqd.proto import yarn_service_pb2 as pb

GPU = "yarn.io/gpu"
WANTED = Resource(1024, 2)
#: of that, where memory alone counts
PLAIN = Resource(1024, 1)


def dag(maps: int, reduces: int = 0, *, size: Resource = WANTED, slow_start: float = 0.05, **limits: Any) -> DagSpec:
    vertices = VertexSpec("map", maps, size, 10), VertexSpec("reduce", reduces, size, 20)
    return DagSpec(vertices, (EdgeSpec(0, 1, slow_start),), Limits(**limits))


def came(name: str, resource: Resource, host: str = "h1", priority: int = 10) -> ev.ContainerAllocated:
    return ev.ContainerAllocated(name, f"{host}:1", host, resource, priority)


def answer(*types: "pb.SchedulerResourceTypes") -> pb.RegisterApplicationMasterResponse:
    return pb.RegisterApplicationMasterResponse(scheduler_resource_types=types)


sizes = st.builds(
    Resource, st.integers(1, 4), st.integers(1, 4), st.dictionaries(st.just(GPU), st.integers(1, 2), max_size=1)
)


@given(sizes, sizes)
def test_more_than_memory_is_compared_where_it_counts_and_there_alone(need: Resource, room: Resource) -> None:
    counted = Counted()
    assert counted.fits(need, room) == need.fits_in(room)
    counted.cores = False
    assert counted.fits(need, room) == (need.memory_mb <= room.memory_mb)
    assert counted.fits(need, room) or not need.fits_in(room)


@pytest.mark.parametrize(
    ("registered", "cores"), [(answer(pb.MEMORY, pb.CPU), True), (answer(pb.MEMORY), False), (answer(), False)]
)
def test_the_registration_says_what_counts_before_anything_else_is_heard(
    registered: pb.RegisterApplicationMasterResponse, cores: bool
) -> None:
    granted = Granted()
    granted.registered(registered)
    response = pb.AllocateResponse(num_cluster_nodes=2)
    convert.put_resource(response.limit, PLAIN)
    assert list(granted.events(response)) == [ev.ResourcesCounted(cores), ev.ClusterSeen(PLAIN, 2)]
    assert list(granted.events(response)) == [ev.ClusterSeen(PLAIN, 2)], "once for each registration"


def test_a_container_of_one_core_is_taken_for_two_where_memory_alone_counts() -> None:
    drive = Driver(dag(1))
    drive(ev.ResourcesCounted(cores=False))
    assert drive.machine.asks() == [Ask(10, "*", 1, WANTED)], "asked for all the same"
    assert drive(came("c1", PLAIN)) == [ev.Launch("c1", "h1:1", AttemptId(0, 0, 0))]
    assert drive(came("c2", Resource(512, 2))) == [ev.Release("c2")], "too many, and too small"


def test_such_a_container_goes_on_with_what_else_there_is() -> None:
    drive = Driver(dag(2, 1))
    drive(ev.ResourcesCounted(cores=False))
    drive(came("c1", PLAIN))
    drive(came("c2", PLAIN))
    drive(ev.TaskRequested("c1"))
    # the map of the container that has not come up, then the reduce that is in sight
    assert drive(ev.AttemptSucceeded(AttemptId(0, 0, 0))) == [ev.GiveTask("c1", AttemptId(0, 1, 0))]
    assert drive(ev.TaskRequested("c2")) == [ev.GiveTask("c2", AttemptId(1, 0, 0))]


def test_such_a_container_is_kept_for_work_in_sight() -> None:
    drive = Driver(dag(2, 1, slow_start=1.0))
    drive(ev.ResourcesCounted(cores=False))
    for name in ("c1", "c2"):
        drive(came(name, PLAIN))
        drive(ev.TaskRequested(name))
    assert drive(ev.AttemptSucceeded(AttemptId(0, 0, 0))) == [], "its process waits for the reduce"


@pytest.mark.parametrize(("cores", "goes_back"), [(True, True), (False, False)])
def test_a_container_held_for_long_goes_back_where_what_counts_is_short(cores: bool, goes_back: bool) -> None:
    drive = Driver(dag(2, reuse_max_s=15.0))
    drive(ev.ResourcesCounted(cores))
    drive(ev.ClusterSeen(Resource(9999, 0), 1))
    drive(came("c1", WANTED))
    drive(ev.TaskRequested("c1"))
    drive.now = 20.0
    told = drive(ev.AttemptSucceeded(AttemptId(0, 0, 0)))
    assert told == [ev.GiveExit("c1") if goes_back else ev.GiveTask("c1", AttemptId(0, 1, 0))]


@pytest.mark.parametrize(("cores", "is_ended"), [(True, True), (False, False)])
def test_reduces_make_room_for_maps_only_where_what_counts_is_short(cores: bool, is_ended: bool) -> None:
    drive = Driver(dag(2, 1))
    drive(ev.ResourcesCounted(cores=cores))
    drive(ev.ClusterSeen(Resource(9999, 0), 1))
    drive(came("c0", WANTED))
    drive(ev.TaskRequested("c0"))
    drive(ev.AttemptSucceeded(AttemptId(0, 0, 0)))  # the container goes on with the other map
    drive(came("c1", WANTED, priority=20))
    drive(ev.ContainerCompleted("c0", -100))
    told = []
    for drive.now in (1.0, 2.5):
        told += drive(ev.Tick())
    assert (ev.Stop("c1", "h1:1", "map tasks need its room") in told) == is_ended


@pytest.mark.parametrize("cores", [True, False])
def test_the_jobs_own_mergers_see_a_full_cluster_by_what_counts(cores: bool) -> None:
    own = OwnMergers(PLAIN, wait_s=100)
    own.want(1)
    for event in (ev.ResourcesCounted(cores), ev.ClusterSeen(Resource(9999, 0), 1)):
        assert own.handle(event) is None, "the job's tasks hear it, too"
    (done,) = [v for v in Driver(dag(0)).machine.vertices if v.spec.name == "map"]
    for now in (0.0, 5.0):
        own.tick([done], now)
    assert own.trouble == ("the cluster had no room for them" if cores else "")


def test_a_job_whose_containers_are_all_too_small_ends_and_says_why() -> None:
    drive = Driver(dag(3, too_small_max=5))
    drive(ev.ResourcesCounted(cores=True))
    for number in range(4):
        assert drive(came(f"c{number}", PLAIN)) == [ev.Release(f"c{number}")]
    *released, finish = drive(came("c4", PLAIN))
    assert released == [ev.Release("c4")]
    assert isinstance(finish, ev.Finish) and finish.state is JobState.FAILED
    assert "gave 5 containers in a row that are too small for map tasks" in finish.diagnostics
    assert "<memory:1024, vCores:1>" in finish.diagnostics and "<memory:1024, vCores:2>" in finish.diagnostics
    assert "\n" not in finish.diagnostics
    assert drive.machine.asks() == []


def test_containers_too_many_or_too_small_now_and_then_end_no_job() -> None:
    drive = Driver(dag(3, too_small_max=2))
    for number in range(3):
        drive(came(f"small{number}", PLAIN))
        drive(came(f"right{number}", WANTED))
    for number in range(50):
        assert drive(came(f"surplus{number}", PLAIN)) == [ev.Release(f"surplus{number}")]
    assert drive.machine.state is JobState.RUNNING


def test_what_a_new_resource_manager_gives_is_judged_anew() -> None:
    drive = Driver(dag(3, too_small_max=2))
    drive(came("c0", PLAIN))
    drive(ev.ResourcesCounted(cores=True))
    drive(came("c1", PLAIN))
    assert drive.machine.state is JobState.RUNNING
    drive(came("c2", PLAIN))
    assert drive.machine.state is JobState.FAILED


def avoiding(**limits: Any) -> Driver:
    """A job of two maps that avoids h1, of four hosts."""
    drive = Driver(dag(2, size=PLAIN, **limits))
    drive(ev.ClusterSeen(Resource(9999, 9), 4))
    for number in range(3):
        drive(came(f"bad{number}", PLAIN))
        out = drive(ev.ContainerCompleted(f"bad{number}", 1))
        assert (ev.Blacklist(("h1",), ()) in out) == (number == 2)
    return drive


def test_a_host_that_the_resource_manager_does_not_avoid_is_used_in_the_end() -> None:
    drive = avoiding(avoided_max=4)
    for number in range(3):
        assert drive(came(f"c{number}", PLAIN)) == [ev.Release(f"c{number}")]
    removed, launched = drive(came("c3", PLAIN))
    assert removed == ev.Blacklist((), ("h1",)) and isinstance(launched, ev.Launch)
    assert drive.machine.notices.take() == [
        "host h1 is avoided no more: the ResourceManager gave 4 containers in a row there all the same"
    ]
    drive(came("c4", PLAIN))
    for name in ("c3", "c4"):
        assert ev.Blacklist(("h1",), ()) not in drive(ev.ContainerCompleted(name, 1)), "nor is that tried again"


def test_containers_of_an_avoided_host_between_others_change_nothing() -> None:
    drive = avoiding(avoided_max=2)
    for number in range(2):
        assert drive(came(f"c{number}", PLAIN)) == [ev.Release(f"c{number}")]
        assert isinstance(drive(came(f"good{number}", PLAIN, "h2"))[0], ev.Launch)
    for number in range(9):
        assert drive(came(f"surplus{number}", PLAIN)) == [ev.Release(f"surplus{number}")], "nothing is wanted"
