"""Nodes that are kept for masters that take what they have started for running, where all queues are long."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rm.scheduler.decisions import Allocate
from rm.scheduler.events import (
    Asked,
    AttemptEnded,
    BoundWish,
    NodeDraining,
    NodeJoined,
    NodeLeft,
    NodeSilent,
    QueueingChanged,
    SchedulerEvent,
)
from tests.examples import examples
from tests.rm.rm_kept_nodes import ONE, SPARE, STARVE_S, Life
from yaqd.model import NodeId, Resource
from yaqd.policies.asks.rows import AskRow


@pytest.mark.parametrize("by_proxy", [False, True])
def test_a_node_is_kept_only_where_one_of_them_fits(by_proxy: bool) -> None:
    life = Life(3)
    large = NodeId("large", 1)
    life.tell(NodeJoined(large, "/r", ONE * 4))
    life.report(large, queued=9, wait_s=100.0, running=4)
    attempt = life.app()
    for _ in range(3):
        if by_proxy:
            life.want(attempt, 2, sizes=frozenset((ONE * 3, ONE * 5)))
        else:
            life.ask(attempt, 1, ONE * 3)
        life.now += STARVE_S
    assert life.held(attempt) == [large], "the other queues are shorter"


def insisting(number: int, *places: str, size: Resource | None = ONE) -> BoundWish:
    return BoundWish(number, size, frozenset(places))


@pytest.mark.parametrize("by_proxy", [False, True])
@pytest.mark.parametrize(("place", "expected"), [("n2", "n2"), ("/far", "far"), ("elsewhere", None)])
def test_for_what_insists_on_places_one_of_these_is_kept(place: str, expected: str | None, by_proxy: bool) -> None:
    life = Life(3)
    far = NodeId("far", 1)
    life.tell(NodeJoined(far, "/far", ONE * 2))
    life.report(far, queued=9, wait_s=100.0)
    attempt = life.app()
    for _ in range(3):
        if by_proxy:
            life.want(attempt, 2, bound=(insisting(2, place),))
        else:
            names = ((place, True), ("*", False))
            rows = tuple(AskRow(1, -1, name, ONE, 2, relaxed, SPARE) for name, relaxed in names)
            assert not any(isinstance(d, Allocate) for d in life.tell(Asked(attempt, rows)))
        life.now += STARVE_S
    kept = [node.host for node in life.held(attempt)]
    assert kept == ([expected] if expected else []), "the other queues are shorter"


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ((insisting(2, "n2"),), ["n2"]),
        ((insisting(1, "n2"),), ["n0"]),
        ((insisting(2, "n2", size=ONE * 3),), []),
        ((insisting(2, "n2", size=None),), ["n2"]),
        ((insisting(1, "n2"), insisting(1, "n1", "/none")), ["n1"]),
        ((insisting(2),), []),
        ((insisting(10**9, "n1"), insisting(1)), ["n1"]),
    ],
)
def test_what_takes_any_place_is_told_apart_from_what_does_not(
    bound: tuple[BoundWish, ...], expected: list[str]
) -> None:
    """Two are wanted in all; the shortest queue is the first node's."""
    life = Life(3)
    attempt = life.app()
    for _ in range(3):
        life.want(attempt, 2, sizes=frozenset((ONE,)), bound=bound, after_s=STARVE_S / 2 + 0.1)
    assert [node.host for node in life.held(attempt)] == expected


def test_a_queue_that_does_not_get_short_is_the_others_again_for_as_long_as_the_threshold() -> None:
    life = Life(1)
    attempt = life.app()
    kept_s = 0
    for _ in range(600):
        life.want(attempt, 1, after_s=1.0)
        life.report(life.nodes[0], queued=5, wait_s=10.0)
        kept_s += len(life.held(attempt))
    assert 600 * 0.5 < kept_s < 600 * 0.75, "it is tried again and again, and others have their part"


def test_after_the_threshold_the_shortest_queue_is_kept_for_as_many_as_run_there() -> None:
    life = Life(12)
    aware, unaware = life.app(tolerates_waiting=True), life.app()
    first, *others = life.nodes
    life.want(unaware, 5)
    life.want(unaware, 5, after_s=STARVE_S - 1)
    assert life.published(aware) == life.published(unaware) and len(life.published(aware)) == 10, "not yet"
    assert life.place(aware, first)
    life.report(first, queued=5, wait_s=10.0)
    life.want(unaware, 5, after_s=1.0)
    assert first not in life.published(aware) and not life.place(aware, first)
    assert len(life.published(aware)) == 10, "as many as ever"
    assert life.ask(aware, 1) == [others[0]], "the ResourceManager goes by it as well"
    assert first in life.published(unaware) and not life.place(unaware, first), "it is full as yet"
    life.end(first, 2)
    life.report(first, queued=0, wait_s=0.0, running=1)
    assert not life.place(aware, first) and life.place(unaware, first)
    assert not life.place(unaware, first), "it is full"
    life.report(first, queued=0, wait_s=1.0)
    assert life.place(unaware, first), "for a moment only"
    assert first in life.published(aware), "two run there at once"
    life.want(unaware, 3, after_s=STARVE_S - 1)
    assert first in life.published(aware), "given something a moment ago"
    life.want(unaware, 3, after_s=1.0)
    assert life.held(unaware)


def test_the_resource_manager_places_by_it_too() -> None:
    life = Life(2)
    aware, unaware = life.app(tolerates_waiting=True), life.app()
    assert life.ask(unaware, 2) == []
    life.now += STARVE_S
    assert life.ask(unaware, 2) == []
    assert life.ask(aware, 4) == [life.nodes[1]] * 4
    life.report(life.nodes[0], queued=0, wait_s=3.0)
    assert life.ask(unaware, 2) == [], "nobody waits there, and nothing is free"
    life.end(life.nodes[0], 2)
    life.report(life.nodes[0], queued=0, wait_s=0.0, running=0)
    assert life.ask(aware, 1) == [life.nodes[1]]
    assert life.ask(unaware, 2) == [life.nodes[0]] * 2
    life.report(life.nodes[0], queued=0, wait_s=3.0)
    assert life.ask(aware, 1) == [life.nodes[0]]


@pytest.mark.parametrize("nodes", [1, 9, 30])
def test_a_tenth_is_kept_at_most_in_the_order_of_the_waits(nodes: int) -> None:
    life = Life(nodes)
    apps = [life.app() for _ in range(4)]
    for app in apps:
        life.want(app, 100, after_s=1.0)
    life.now += STARVE_S
    for app in reversed(apps):
        life.want(app, 100)
    assert [len(life.held(app)) for app in apps] == [max(1, nodes // 10), 0, 0, 0]


def test_of_many_each_is_kept_as_many_as_it_wants() -> None:
    life = Life(40)
    one, two = life.app(), life.app()
    life.want(one, 3)
    life.want(two, 1)
    life.want(one, 3, after_s=STARVE_S)
    assert [len(life.held(app)) for app in (one, two)] == [2, 1]
    life.want(one, 0)
    assert not life.held(one), "it wants nothing"
    life.tell(AttemptEnded(two))
    assert not life.scheduler.view.holds.opportunistic


def test_nothing_is_kept_for_who_does_not_use_it_or_may_wait() -> None:
    life = Life(3)
    aware, unaware = life.app(tolerates_waiting=True), life.app()
    holds = life.scheduler.view.holds
    for app in (aware, unaware):
        life.want(app, 1)
    life.want(aware, 1, after_s=STARVE_S)
    assert life.held(unaware) == life.nodes[:1] and not life.held(aware)
    life.report(life.nodes[0], queued=0, wait_s=0.0, running=1)
    life.want(unaware, 1, after_s=1.0)
    life.want(unaware, 1, after_s=STARVE_S)
    assert life.held(unaware)
    life.want(unaware, 1, after_s=1.0)
    assert not holds.opportunistic, "there was room for a threshold, and it was not used"
    life.want(unaware, 1, after_s=STARVE_S - 1)
    assert not holds.opportunistic
    life.want(unaware, 1, after_s=1.0)
    assert holds.opportunistic


def test_where_nobody_knows_when_a_queue_is_empty_another_one_is_kept_in_the_end() -> None:
    life = Life(3)
    for node in life.nodes:
        life.report(node, queued=5, wait_s=math.inf)
    unaware = life.app()
    seen = []
    for _ in range(40):
        life.want(unaware, 1, after_s=STARVE_S)
        seen += [node for node in life.held(unaware) if node not in seen]
    assert seen == life.nodes


@pytest.mark.parametrize("change", ["left", "silent", "draining", "off"])
def test_a_node_that_takes_nothing_is_kept_no_longer(change: str) -> None:
    life = Life(3)
    unaware, first = life.app(), life.nodes[0]
    life.want(unaware, 1)
    life.want(unaware, 1, after_s=STARVE_S)
    assert life.held(unaware) == [first]
    events: dict[str, SchedulerEvent] = {
        "left": NodeLeft(first),
        "silent": NodeSilent(first),
        "draining": NodeDraining(first),
        "off": QueueingChanged(None),
    }
    life.tell(events[change])
    life.want(unaware, 1, after_s=1.0)
    assert life.held(unaware) == ([] if change == "off" else [life.nodes[1]])


EVENTS = st.lists(
    st.tuples(st.sampled_from(["want", "place", "ask", "report", "end", "leave", "join", "wait"]), st.integers(0, 50)),
    max_size=60,
)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(EVENTS)
def test_never_more_than_a_tenth_and_never_for_two(events: list[tuple[str, int]]) -> None:
    life = Life(5)
    apps = [life.app(tolerates_waiting=bool(number % 2)) for number in range(4)]
    for what, number in events:
        app, node = apps[number % 4], life.nodes[number % 5]
        if what == "want":
            life.want(app, number % 7)
        elif what == "place":
            life.place(app, node)
        elif what == "ask":
            life.ask(app, number % 7)
        elif what == "report":
            life.report(node, queued=number % 6, wait_s=float(number % 6), running=number % 3)
        elif what == "end":
            life.end(node, 1)
        elif what == "leave":
            life.end(node, 1000)
            life.tell(NodeLeft(node))
        elif what == "join":
            life.tell(NodeJoined(node, "/r", ONE * 2))
        life.now += number % 9
        kept = [one for app in apps for one in life.held(app)]
        assert len(kept) <= 1
        assert not any(life.held(app) for app in apps[1::2]), "they may wait"
