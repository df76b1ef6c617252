"""The distributed scheduler alone: where it places, what it keeps, and what never happens whatever it is told."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nm.distributed import (
    Asked,
    ContainerOver,
    DistributedLimits,
    DistributedScheduler,
    NodeOffer,
    NodesPublished,
    NotBooked,
    Place,
    StageEstimated,
    WaitLimited,
    wanted_at,
)
from yaqd.model import ANY_HOST, ApplicationAttemptId, ApplicationId, NodeId, Resource
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.asks.table import TooManyAsks
from yaqd.policies.queueing.place_scores import Affinity

ATTEMPT = ApplicationAttemptId(ApplicationId(1_700_000_000_000, 7), 1)
GB = 1024
ONE = Resource(GB, 1)


def rows_of(life: DistributedScheduler) -> list[AskRow]:
    return [row for ask in life.asks for row in ask.rows()]


def scheduler(id_start: int = 0, **limits: float | str) -> DistributedScheduler:
    most = Resource(8 * GB, 8)
    return DistributedScheduler(
        ATTEMPT,
        DistributedLimits(**limits),  # type: ignore[arg-type]
        least=Resource(GB, 1),
        most=most,
        id_start=id_start,
    )


def offer(host: str, *, free: int | None = 0, rack: str = "/r", **said: float | bool | str | None) -> NodeOffer:
    """`free` in GB."""
    room = None if free is None else Resource(free * GB, free)
    return NodeOffer(NodeId(host, 1), f"{host}:8042", rack, free=room, **said)  # type: ignore[arg-type]


def stock(*hosts: str) -> NodesPublished:
    return NodesPublished(tuple(offer(host, free=None) for host in hosts))


def ask(count: int, *names: str, priority: int = 19, relax: bool = True, size: Resource = ONE) -> Asked:
    rows = tuple(AskRow(priority, -1, name, size, count) for name in names)
    return Asked((*rows, AskRow(priority, -1, ANY_HOST, size, count, relax)))


def hosts(places: list[Place]) -> list[str]:
    return [place.node.node_id.host for place in places]


def test_ids_count_down_from_the_start_of_the_range() -> None:
    life = scheduler(1 << 40)
    life.handle(NodesPublished((offer("a", free=8),)), 0.0)
    assert [p.container_id.id for p in life.handle(ask(3), 0.0)] == [(1 << 40) - 1, (1 << 40) - 2, (1 << 40) - 3]
    again = scheduler(life.lowest_id)
    again.handle(NodesPublished((offer("a", free=8),)), 0.0)
    assert [p.container_id.id for p in again.handle(ask(1), 0.0)] == [(1 << 40) - 4]


def test_fills_what_is_free_before_it_lets_anything_wait() -> None:
    life = scheduler()
    life.handle(NodesPublished((offer("idle", free=2), offer("busy", wait_s=3.0), offer("busier", wait_s=5.0))), 0.0)
    placed = life.handle(ask(4), 0.0)
    assert hosts(placed) == ["idle", "idle", "busy", "busier"], "what was placed counts at once"
    assert [p.wait_s for p in placed[2:]] == [pytest.approx(3, abs=0.01), pytest.approx(5, abs=0.01)]
    assert [p.rule for p in placed[:2]] == ["it had room as far as the job's proxy knew"] * 2
    best = "nothing is free; of the 3 nodes that the job's proxy knows it is the best by wait"
    assert [p.rule for p in placed[2:]] == [best] * 2


def test_short_tasks_make_a_queue_less_longer_than_long_ones() -> None:
    nodes = NodesPublished((offer("a", wait_s=1.0), offer("b", wait_s=4.0)))
    for estimate, given_to in ((0.5, ["a"] * 4), (60.0, ["a", "b", "a", "b"])):
        life = scheduler()
        life.handle(StageEstimated(19, estimate), 0.0)
        life.handle(nodes, 0.0)
        places = life.handle(ask(4), 0.0)
        assert hosts(places) == given_to and {p.estimate_s for p in places} == {estimate}


def test_slots_shorten_a_queue_and_what_is_expected_behind_what_was_placed() -> None:
    nodes = NodesPublished(
        (offer("small", wait_s=5.0, queued=3, slots=2), offer("large", wait_s=5.0, queued=4, slots=16))
    )
    for placement, given_to in (("length", "small"), ("length-per-slot", "large")):
        life = scheduler(placement=placement)
        life.handle(nodes, 0.0)
        assert hosts(life.handle(ask(1), 0.0)) == [given_to], placement
    for slots, added_s in ((0, 10.0), (1, 10.0), (10, 1.0)):
        life = scheduler()
        life.handle(StageEstimated(19, 10.0), 0.0)
        life.handle(NodesPublished((offer("a", wait_s=5.0, slots=slots), offer("b", wait_s=30.0))), 0.0)
        places = life.handle(ask(4), 0.0)
        assert hosts(places) == ["a", "a", "a", "b"], "when a node is looked for all of a task's time counts"
        assert [place.wait_s for place in places[:3]] == [pytest.approx(5.0 + number * added_s) for number in range(3)]


def test_a_wanted_host_is_worth_some_waiting_not_any() -> None:
    for local_wait, expected in ((1.9, "wanted"), (2.1, "other")):
        life = scheduler()
        life.handle(NodesPublished((offer("other", rack="/s", wait_s=1.0), offer("wanted", wait_s=local_wait))), 0.0)
        assert hosts(life.handle(ask(1, "wanted", "/r"), 0.0)) == [expected]


@pytest.mark.parametrize("hopeless", [1000, 2500])
def test_asks_that_insist_on_a_place_that_takes_nothing_hide_no_others(hopeless: int) -> None:
    life = scheduler()
    life.handle(NodesPublished((offer("b", free=8),)), 0.0)
    rows = [AskRow(1, n, *named) for n in range(hopeless) for named in (("a", ONE, 1), (ANY_HOST, ONE, 1, False))]
    asked: list[Asked] = [Asked((*rows, AskRow(1, hopeless, ANY_HOST, ONE, 5))), ask(1, priority=0)]
    for one, count in zip(asked, (5, 1), strict=True):
        beats = [hosts(life.handle(event, 0.0)) for event in (one, *[Asked(())] * math.ceil(hopeless / 1000))]
        assert [given for given in beats if given] == [["b"] * count], "once all were looked at"


def test_likes_avoid_each_other_where_they_fight_for_the_same_resource() -> None:
    nodes = NodesPublished((offer("a", wait_s=1.0, slots=2), offer("b", wait_s=1.6, slots=2)))
    for interference, given_to in ((0.0, ["a", "a"]), (2.0, ["a", "b"])):
        life = scheduler(affinity=Affinity(interference=interference))  # type: ignore[arg-type]
        life.handle(StageEstimated(19, 0.001), 0.0)
        life.handle(nodes, 0.0)
        first, second = life.handle(ask(2), 0.0)
        assert hosts([first, second]) == given_to
        life.validate()
        life.handle(ContainerOver((first.container_id,)), 1.0)
        life.handle(nodes, 1.0)
        assert hosts(life.handle(ask(1), 1.0)) == ["a"], "it is alone there again, or has been all the time"


def test_strict_asks_go_nowhere_else() -> None:
    life = scheduler()
    life.handle(NodesPublished((offer("a", free=4), offer("b", free=4))), 0.0)
    assert hosts(life.handle(ask(1, "b", relax=False), 0.0)) == ["b"]
    assert life.handle(ask(1, "c", relax=False), 0.0) == []
    assert life.asks.pending == 1


def test_what_insists_on_places_is_told_with_them() -> None:
    life = scheduler()
    strict = tuple(AskRow(3, -1, name, ONE, 2, name in ("c", "/open")) for name in ("c", "d", "/r", "/open", ANY_HOST))
    for one in (ask(4, "a"), ask(2, "b", priority=1, relax=False), ask(1, "b", priority=2, relax=False), Asked(strict)):
        life.handle(one, 0.0)
    assert wanted_at(life.asks) == {(ONE, ("b",)): 3, (ONE, ("/open", "c", "d")): 2}


def test_of_very_many_that_insist_on_places_the_rest_are_told_without() -> None:
    life = scheduler()
    for priority in range(250):
        life.handle(ask(2, f"h{priority}", priority=priority, relax=False), 0.0)
    life.handle(ask(1, *(f"i{number:03}" for number in range(150)), priority=0, relax=False), 0.0)
    told = wanted_at(life.asks)
    assert len(told) == 201 and sum(told.values()) == 499 and told[ONE, ()] == 100
    assert max(len(places) for _, places in told) == 100


def test_nothing_waits_for_ever_or_longer_than_the_limit_and_is_kept() -> None:
    life = scheduler(wait_max_s=9.0)
    life.handle(NodesPublished((offer("stuck", wait_s=math.inf), offer("slow", wait_s=30.0))), 0.0)
    assert life.handle(ask(2), 0.0) == []
    life.handle(NodesPublished((offer("stuck", free=1, wait_s=0.0), offer("slow", wait_s=math.inf))), 1.0)
    assert hosts(life.handle(Asked(), 1.0)) == ["stuck"] and life.asks.pending == 1


def test_what_its_master_takes_for_running_goes_where_it_starts_soon_and_is_kept_else() -> None:
    nodes = (
        offer("long", wait_s=5.0),
        offer("short", wait_s=1.5),
        offer("at the limit", wait_s=2.0),
        offer("said when it had room", wait_s=0.0),
        offer("says nothing", queued=0),
        offer("free", free=1, wait_s=0.0),
    )
    for most_s, given_to in ((2.0, ["free", "short"]), (0.0, ["free"]), (None, ["free", "said when it had room"])):
        life = scheduler()
        life.handle(WaitLimited(most_s), 0.0)
        life.handle(NodesPublished(nodes), 0.0)
        places = life.handle(ask(4), 0.0)
        assert hosts(places)[:2] == given_to and {p.most_wait_s for p in places} == {
            math.inf if most_s is None else most_s
        }
        assert life.asks.pending == 4 - len(places) and (most_s is None) == (not life.asks.pending)
    life = scheduler()
    life.handle(WaitLimited(2.0), 0.0)
    life.handle(NodesPublished(nodes[1:2]), 0.0)
    assert hosts(life.handle(ask(3), 0.0)) == ["short"], "the next one would wait for the first one as well"
    life.handle(NodesPublished(nodes[1:2]), 1.0)
    assert hosts(life.handle(Asked(), 1.0)) == ["short"] and life.asks.pending == 1


def test_what_is_not_booked_is_wanted_as_before() -> None:
    life = scheduler(tasks_max=2)
    life.handle(NodesPublished((offer("a", free=9),)), 0.0)
    rows = tuple(AskRow(19, -1, name, ONE, 2, name != ANY_HOST) for name in ("a", "/r", ANY_HOST))
    before = Asked(rows)
    first, second = life.handle(before, 0.0)
    assert not rows_of(life)
    back = tuple((p.container_id, (AskRow(19, -1, ANY_HOST, ONE, 1),)) for p in (first, second))
    life.handle(NotBooked(back), 0.0)
    assert sorted(rows_of(life), key=lambda row: row.resource_name) == sorted(rows, key=lambda row: row.resource_name)
    life.validate()
    assert hosts(life.handle(Asked(), 0.0)) == ["a", "a"] and not life.asks.pending
    later = scheduler(life.lowest_id)
    later.handle(NotBooked(back[:1]), 0.0)
    assert tuple(rows_of(later)) == back[0][1], "also what was placed before it began"


def test_what_came_back_late_waits_nowhere_for_as_long_again() -> None:
    life = scheduler()
    life.handle(WaitLimited(2.0), 0.0)
    short, room = NodesPublished((offer("a", wait_s=1.0),)), NodesPublished((offer("b", free=1),))

    def comes_back(place: Place, at: float) -> None:
        life.handle(ContainerOver((place.container_id,), frozenset((place.container_id,))), at)
        life.handle(short, at)

    life.handle(short, 0.0)
    (first,) = life.handle(ask(1), 0.0)
    comes_back(first, 6.0)
    assert life.handle(ask(1), 6.0) == [] == life.handle(Asked(), 11.9)
    (second,) = life.handle(Asked(), 12.0)
    assert second.waited_s == 12.0
    comes_back(second, 18.0)
    assert life.handle(ask(1), 35.9) == [], "it has waited for 18 seconds"
    life.handle(room, 35.9)
    assert hosts(life.handle(Asked(), 35.9)) == ["b"], "it starts at once"
    life.handle(short, 36.0)
    assert len(life.handle(ask(1), 36.0)) == 1, "another task has not waited"


def test_full_queues_and_avoided_nodes_get_nothing() -> None:
    life = scheduler()
    nodes = (offer("full", queued=3, queue_max=5, wait_s=0.1), offer("b", wait_s=50.0), offer("c", rack="/no", free=9))
    life.handle(NodesPublished(nodes), 0.0)
    placed = life.handle(Asked(ask(4).rows, blacklist_additions=("/no",)), 0.0)
    assert sorted(hosts(placed)) == ["b", "b", "full", "full"]
    assert hosts(life.handle(Asked(ask(1).rows, blacklist_removals=("/no",)), 0.0)) == ["c"]


def test_a_stock_list_gives_each_node_one_container_a_heartbeat_as_hadoop_does() -> None:
    life = scheduler()
    life.handle(stock("a", "b"), 0.0)
    assert hosts(life.handle(ask(5), 0.0)) == ["a", "b"]
    life.handle(stock("b", "a"), 1.0)
    assert hosts(life.handle(Asked(), 1.0)) == ["b", "a"]
    life.handle(stock("a", "b"), 2.0)
    assert hosts(life.handle(ask(3, "b"), 2.0)) == ["b"] * 3, "any number where they are wanted"


def test_as_many_under_way_as_the_job_may_have() -> None:
    life = scheduler(tasks_max=2, per_beat=5)
    life.handle(NodesPublished((offer("a", free=8),)), 0.0)
    first = life.handle(ask(4), 0.0)
    assert len(first) == 2 and life.handle(Asked(), 0.0) == []
    life.handle(ContainerOver((first[0].container_id,)), 1.0)
    assert len(life.handle(Asked(), 1.0)) == 1


def test_sizes_are_whole_steps_up_to_the_largest() -> None:
    life = scheduler()
    life.handle(NodesPublished((offer("a", free=8),)), 0.0)
    sizes = [Resource(1, 0), Resource(GB + 1, 3), Resource(99 * GB, 99)]
    got = [life.handle(ask(1, size=size), 0.0)[0].resource for size in sizes]
    assert got == [Resource(GB, 1), Resource(2 * GB, 3), Resource(8 * GB, 8)]


def test_estimates_that_are_none_are_taken_for_none() -> None:
    life = scheduler()
    life.handle(NodesPublished((offer("a", free=8),)), 0.0)
    for nonsense in (math.inf, math.nan, -1.0, None, 1e300):
        life.handle(StageEstimated(19, nonsense), 0.0)
        assert life.handle(ask(1), 0.0)[0].estimate_s is None


def test_a_hundred_thousand_at_once_come_a_thousand_at_a_time() -> None:
    life = scheduler()
    life.handle(NodesPublished(tuple(offer(f"n{i}", wait_s=1.0) for i in range(10))), 0.0)
    assert [len(life.handle(event, 0.0)) for event in (ask(100_000), Asked())] == [1000, 1000]
    assert life.asks.pending == 98_000


def test_asks_that_no_node_takes_do_not_make_a_heartbeat_long() -> None:
    life = scheduler()
    life.handle(NodesPublished((offer("a", free=8),)), 0.0)
    rows = tuple(AskRow(1, number, name, ONE, 1, False) for number in range(2000) for name in ("gone", ANY_HOST))
    assert life.handle(Asked((*rows, AskRow(1, 5000, ANY_HOST, ONE, 1))), 0.0) == []
    assert len(life.handle(Asked(tuple(replace(row, count=0) for row in rows[:2500])), 0.0)) == 1


def test_a_storm_of_asks_is_refused_with_nothing_changed() -> None:
    life = scheduler(ask_rows_max=10)
    life.handle(ask(1), 0.0)
    with pytest.raises(TooManyAsks):
        life.handle(ask(1, *(f"h{i}" for i in range(10))), 0.0)
    assert rows_of(life) == list(ask(1).rows)


HOSTS = ["a", "b", "c", "d"]
WAITS = st.one_of(st.none(), st.just(math.inf), st.floats(0, 100))
OFFERS = st.builds(
    offer,
    st.sampled_from(HOSTS),
    free=st.one_of(st.none(), st.integers(0, 4)),
    wait_s=WAITS,
    queued=st.one_of(st.none(), st.integers(0, 5)),
    queue_max=st.one_of(st.none(), st.integers(0, 6)),
)
ROWS = st.builds(
    AskRow,
    st.integers(1, 2),
    st.just(-1),
    st.sampled_from([*HOSTS, "/r", ANY_HOST, ANY_HOST]),
    st.just(ONE),
    st.integers(0, 6),
    st.booleans(),
)
EVENTS = st.one_of(
    st.builds(NodesPublished, st.lists(OFFERS, max_size=4, unique_by=lambda o: o.node_id).map(tuple)),
    st.builds(Asked, st.lists(ROWS, max_size=4).map(tuple), st.sets(st.sampled_from(HOSTS), max_size=1).map(tuple)),
    st.builds(StageEstimated, st.integers(1, 2), WAITS),
    st.builds(WaitLimited, WAITS),
    st.sampled_from(["end the oldest"]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=25), st.integers(-1, 6), st.integers(-1, 4))
def test_whatever_it_is_told(events: list[object], tasks_max: int, per_beat: int) -> None:
    life = scheduler(tasks_max=tasks_max, per_beat=per_beat)
    lowest, avoided, offered = 0, set[str](), dict[NodeId, NodeOffer]()
    sent: dict[NodeId, int] = {}
    most_s = math.inf
    for event in events:
        if isinstance(event, WaitLimited):
            most_s = math.inf if event.most_s is None else event.most_s
        if isinstance(event, str):
            life.handle(ContainerOver(tuple(list(life.live)[:1])), 0.0)
            continue
        if isinstance(event, NodesPublished):
            offered, sent = {o.node_id: o for o in event.nodes}, {}
        wanted_before = life.asks.pending
        places = life.handle(event, 0.0)  # type: ignore[arg-type]
        if isinstance(event, Asked):
            avoided |= set(event.blacklist_additions)
            assert per_beat < 0 or len(places) <= per_beat
        else:
            assert not places and life.asks.pending == wanted_before
        for place in places:
            assert place.container_id.id == lowest - 1
            lowest -= 1
            node = place.node
            assert offered[node.node_id] == node and node.node_id.host not in avoided
            assert node.wait_s != math.inf or (node.free is not None and ONE.fits_in(node.free))
            sent[node.node_id] = sent.get(node.node_id, 0) + 1
            if most_s < math.inf and not place.rule.startswith(("it had room", "the ResourceManager")):
                assert place.wait_s is not None and place.wait_s < most_s == place.most_wait_s
            if node.queued is not None and node.queue_max is not None:
                assert node.queued + sent[node.node_id] <= node.queue_max
        assert tasks_max < 0 or len(life.live) <= tasks_max
        life.validate()


def test_what_lost_its_place_takes_its_wait_along() -> None:
    life = scheduler()
    busy = NodesPublished((offer("a", wait_s=3.0), offer("b", wait_s=3.0)))
    life.handle(busy, 0.0)
    first, second = life.handle(ask(2), 0.0)
    assert first.waited_s == second.waited_s == 0.0
    life.handle(ContainerOver((first.container_id,), frozenset((first.container_id,))), 8.0)
    life.handle(ContainerOver((second.container_id,)), 8.0)  # it ran
    moved, new = life.handle(ask(2), 10.0)
    assert (moved.waited_s, new.waited_s) == (10.0, 0.0)
    life.handle(ContainerOver((moved.container_id,), frozenset((moved.container_id,))), 15.0)
    (again,) = life.handle(ask(1), 16.0)
    assert again.waited_s == 16.0, "from when it was queued first, however often it was moved"
    life.validate()


def test_another_stage_has_not_waited() -> None:
    life = scheduler()
    life.handle(NodesPublished((offer("a", wait_s=3.0),)), 0.0)
    (first,) = life.handle(ask(1, priority=19), 0.0)
    life.handle(ContainerOver((first.container_id,), frozenset((first.container_id,))), 5.0)
    assert [p.waited_s for p in life.handle(ask(1, priority=20), 6.0)] == [0.0]
    assert [p.waited_s for p in life.handle(ask(1, priority=19), 6.0)] == [6.0]
