"""Scripts for two managers at once. Each returns what heartbeats gave, which is the same on both sides by then."""

from collections.abc import Callable
from typing import Final

from tests.interop.interop_plays import HOSTS, Both
from tests.interop.interop_two_managers import Given, Row

ONE, TWO, THREE, FAR, FARTHER = HOSTS[:5]
Told = list[int]
Scenario = Callable[[Both], Told]


def _beats(both: Both, host: str, times: int) -> Told:
    return [len(both.beat(host)) for _ in range(times)]


def _names(given: list[Given]) -> str:
    return " ".join(one.application for one in given)


def asks_that_prefer_no_place_get_one_a_heartbeat(both: Both) -> Told:
    both.node(ONE, 10240, 8)
    both.app("app1", "root.a")
    assert both.ask("app1", Row(3)) == [], "nothing is given when it is asked for"
    return _beats(both, ONE, 4)


def a_preferred_node_fills_at_once(both: Both) -> Told:
    both.node(ONE, 10240, 8)
    both.app("app1", "root.b.one")
    both.ask("app1", Row(4, ONE), Row(4, "/rack1"), Row(4))
    return _beats(both, ONE, 2)


def another_node_of_the_rack_waits_for_some_offers(both: Both) -> Told:
    for host in (ONE, TWO, FAR, FARTHER):
        both.node(host, 10240, 8)
    both.app("app1", "root.b.one")
    both.ask("app1", Row(8, ONE), Row(8, "/rack1"), Row(8))
    return _beats(both, TWO, 6)


def a_node_anywhere_waits_by_how_many_are_asked_for(both: Both) -> Told:
    for host in (ONE, TWO, FAR, FARTHER):
        both.node(host, 10240, 8)
    both.app("app1", "root.b.one")
    both.ask("app1", Row(3, ONE), Row(3, TWO), Row(3, "/rack1"), Row(6))
    return _beats(both, FAR, 6)


def a_strict_ask_takes_its_node_alone(both: Both) -> Told:
    both.node(ONE, 10240, 8)
    both.node(TWO, 10240, 8)
    both.app("app1", "root.a")
    both.ask("app1", Row(1, ONE), Row(1, "/rack1", relax=False), Row(1, relax=False))
    return [*_beats(both, TWO, 4), *_beats(both, ONE, 1)]


def the_queue_that_uses_least_of_its_guarantee_comes_first(both: Both) -> Told:
    both.node(ONE, 10240, 8)
    both.app("app1", "root.a")
    both.app("app2", "root.c", "bob")
    both.ask("app1", Row(4))
    both.ask("app2", Row(4))
    order = [_names(both.beat(ONE)) for _ in range(6)]
    assert {"app1", "app2"} == {*order[:2]}, order
    return [order.count("app1"), order.count("app2")]


def queues_below_a_queue_take_turns(both: Both) -> Told:
    both.node(ONE, 10240, 8)
    both.app("app1", "root.b.one")
    both.app("app2", "root.b.two", "bob")
    both.ask("app1", Row(6))
    both.ask("app2", Row(6))
    order = [_names(both.beat(ONE)) for _ in range(8)]
    return [order.count("app1"), order.count("app2")]


def applications_come_by_priority_then_by_submission(both: Both) -> Told:
    both.node(ONE, 10240, 8)
    for name, priority in (("app1", 0), ("app2", 5), ("app3", 5)):
        both.app(name, "root.a", priority=priority)
        both.ask(name, Row(1))
    order = [_names(both.beat(ONE)) for _ in range(3)]
    assert order == ["app2", "app3", "app1"]
    return [len(order)]


def who_holds_least_comes_first_where_the_order_is_fair(both: Both) -> Told:
    both.node(ONE, 10240, 8)
    both.app("app1", "root.c", "alice")
    both.app("app2", "root.c", "alice")
    both.ask("app1", Row(2, memory_mb=1024))
    both.ask("app2", Row(2, memory_mb=1024))
    order = [_names(both.beat(ONE)) for _ in range(4)]
    assert order[:2] == ["app1", "app2"]
    return [order.count("app1"), order.count("app2")]


def asks_come_by_priority(both: Both) -> Told:
    both.node(ONE, 10240, 8)
    both.app("app1", "root.a")
    both.ask("app1", Row(1, priority=7), Row(1, priority=2, memory_mb=2048), Row(1, priority=5))
    return [one.priority for _ in range(3) for one in both.beat(ONE)]


def asks_of_one_priority_come_by_their_ids(both: Both) -> Told:
    both.node(ONE, 10240, 8)
    both.app("app1", "root.a")
    both.ask("app1", *(Row(1, request_id=number) for number in (9, 3, 4)))
    return [one.request_id for _ in range(3) for one in both.beat(ONE)]


def _reserved(both: Both) -> Told:
    """A node is reserved for a large ask of the second application, behind one that wants that node alone."""
    both.node(ONE, 4096, 8)
    both.node(FAR, 10240, 8)
    both.app("app1", "root.b.one")
    both.ask("app1", Row(3, ONE), Row(3, "/rack1", relax=False), Row(3, relax=False))
    found = _beats(both, ONE, 1)
    both.app("app2", "root.a", "bob")
    both.ask("app2", Row(1, memory_mb=3072))
    found += _beats(both, ONE, 1)
    return found


def a_node_is_reserved_at_once_for_who_comes_first(both: Both) -> Told:
    """Smaller asks of others wait as well, until the large one has its container."""
    found = _reserved(both)
    both.app("app3", "root.c", "carol")
    both.ask("app3", Row(1))
    found += _beats(both, ONE, 2)
    found.append(len(both.beat(ONE, {"app1": (0, 1, 2)})))
    return found + _beats(both, ONE, 2)


def a_reservation_ends_with_its_ask(both: Both) -> Told:
    found = _reserved(both)
    both.ask("app2", Row(0, memory_mb=3072))
    both.ask("app1", Row(1, priority=3))
    return found + _beats(both, ONE, 3)


def a_reservation_ends_where_room_was_found_elsewhere(both: Both) -> Told:
    found = _reserved(both)
    return found + _beats(both, FAR, 2) + _beats(both, ONE, 2)


def a_reservation_goes_with_its_application(both: Both) -> Told:
    both.node(ONE, 4096, 8)
    both.app("app1", "root.b.one")
    both.ask("app1", Row(3))
    found = _beats(both, ONE, 3)
    both.app("app2", "root.a", "bob")
    both.ask("app2", Row(1, memory_mb=3072))
    found += _beats(both, ONE, 1)
    both.end("app2")
    both.ask("app1", Row(1))
    return found + _beats(both, ONE, 2)


def a_reservation_goes_with_its_node(both: Both) -> Told:
    both.node(ONE, 4096, 8)
    both.node(TWO, 4096, 8)
    both.app("app1", "root.b.one")
    both.ask("app1", Row(3, ONE), Row(3, "/rack1", relax=False), Row(3, relax=False))
    found = _beats(both, ONE, 1)
    both.app("app2", "root.a", "bob")
    both.ask("app2", Row(1, memory_mb=2048))
    found += _beats(both, ONE, 1)
    both.leave(ONE)
    return found + _beats(both, TWO, 3)


def users_share_a_queue(both: Both) -> Told:
    both.node(ONE, 10240, 8)
    both.node(FAR, 10240, 8)
    for name, user in (("app1", "alice"), ("app2", "bob"), ("app3", "carol")):
        both.app(name, "root.a", user)
        both.ask(name, Row(9))
    order = [_names(both.beat(host)) for _ in range(9) for host in (ONE, FAR)]
    return [order.count(name) for name in ("app1", "app2", "app3")]


def one_user_stays_below_its_factor(both: Both) -> Told:
    both.node(ONE, 10240, 8)
    both.node(FAR, 10240, 8)
    both.app("app1", "root.c")
    both.ask("app1", Row(16))
    return [sum(_beats(both, host, 8)) for host in (ONE, FAR)]


def a_queue_stays_below_its_maximum_as_hadoop_rounds_it(both: Both) -> Told:
    """0.7 of 10,240 MB is 7,167 MB in 32 bits, which holds six containers of 1,024 MB and not seven."""
    both.node(ONE, 10240, 16)
    both.app("app1", "root.a", "alice")
    both.app("app2", "root.a", "bob")
    both.ask("app1", Row(9))
    both.ask("app2", Row(9))
    return [sum(_beats(both, ONE, 12))]


def cores_count(both: Both) -> Told:
    both.node(ONE, 10240, 4)
    both.app("app1", "root.b.one")
    both.ask("app1", Row(4, vcores=2))
    return _beats(both, ONE, 4)


def a_node_that_is_avoided_gives_nothing(both: Both) -> Told:
    both.node(ONE, 10240, 8)
    both.node(TWO, 10240, 8)
    both.app("app1", "root.a")
    both.avoid("app1", ONE)
    both.ask("app1", Row(2))
    return [*_beats(both, ONE, 2), *_beats(both, TWO, 3)]


def what_is_released_is_given_with_the_next_heartbeat(both: Both) -> Told:
    both.node(ONE, 2048, 8)
    both.app("app1", "root.b.one")
    both.ask("app1", Row(3))
    found = _beats(both, ONE, 3)
    assert both.release("app1", 0) == []
    return found + _beats(both, ONE, 2)


def what_ended_is_given_with_the_heartbeat_that_tells_of_it(both: Both) -> Told:
    both.node(ONE, 2048, 8)
    both.app("app1", "root.b.one")
    both.ask("app1", Row(5))
    found = _beats(both, ONE, 3)
    found.append(len(both.beat(ONE, {"app1": (0, 1)})))
    return found + _beats(both, ONE, 2)


def an_ask_that_is_changed_counts_as_it_is_now(both: Both) -> Told:
    both.node(ONE, 10240, 8)
    both.node(FAR, 10240, 8)
    both.app("app1", "root.a")
    both.ask("app1", Row(5, FAR), Row(5, "/rack2"), Row(5))
    both.ask("app1", Row(1, FAR), Row(1, "/rack2"), Row(2))
    found = _beats(both, FAR, 1)
    both.ask("app1", Row(0))
    found += _beats(both, ONE, 3)
    both.ask("app1", Row(1))
    return found + _beats(both, ONE, 2)


#: what each gives, heartbeat by heartbeat where it says no more
SCENARIOS: Final[dict[Scenario, Told]] = {
    asks_that_prefer_no_place_get_one_a_heartbeat: [1, 1, 1, 0],
    a_preferred_node_fills_at_once: [4, 0],
    another_node_of_the_rack_waits_for_some_offers: [0, 0, 0, 1, 0, 0],
    a_node_anywhere_waits_by_how_many_are_asked_for: [0, 0, 0, 0, 1, 1],
    a_strict_ask_takes_its_node_alone: [0, 0, 0, 0, 1],
    the_queue_that_uses_least_of_its_guarantee_comes_first: [4, 2],
    queues_below_a_queue_take_turns: [5, 3],
    applications_come_by_priority_then_by_submission: [3],
    who_holds_least_comes_first_where_the_order_is_fair: [2, 2],
    asks_come_by_priority: [2, 5, 7],
    asks_of_one_priority_come_by_their_ids: [3, 4, 9],
    a_node_is_reserved_at_once_for_who_comes_first: [3, 0, 0, 0, 1, 1, 0],
    a_reservation_ends_with_its_ask: [3, 0, 0, 1, 0],
    a_reservation_ends_where_room_was_found_elsewhere: [3, 0, 1, 0, 0, 0],
    a_reservation_goes_with_its_application: [1, 1, 1, 0, 1, 0],
    a_reservation_goes_with_its_node: [3, 0, 1, 0, 0],
    users_share_a_queue: [5, 5, 1],
    one_user_stays_below_its_factor: [7, 0],
    a_queue_stays_below_its_maximum_as_hadoop_rounds_it: [6],
    cores_count: [1, 1, 0, 0],
    a_node_that_is_avoided_gives_nothing: [0, 0, 1, 1, 0],
    what_is_released_is_given_with_the_next_heartbeat: [1, 1, 0, 1, 0],
    what_ended_is_given_with_the_heartbeat_that_tells_of_it: [1, 1, 0, 1, 1, 0],
    an_ask_that_is_changed_counts_as_it_is_now: [2, 0, 0, 0, 1, 0],
}
