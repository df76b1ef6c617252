"""Limits of users and of masters in a leaf queue, as Hadoop's CapacityScheduler has them."""

import pytest

from rm.scheduler.decisions import RefuseApplication
from rm.scheduler.events import (
    ApplicationEnded,
    AttemptEnded,
    ContainerEnded,
    NodeBeat,
    QueuesRefreshed,
)
from rm.scheduler.queues.admission import QUEUE_MASTERS_EXCEEDED, USER_MASTERS_EXCEEDED
from rm.scheduler.queues.user_limits import user_limit
from tests.rm.rm_users import NODE, Queue, spec
from tests.rm.rm_world import GB, given
from yaqd.model import ApplicationAttemptId, ApplicationId


def test_one_user_gets_the_queues_capacity_times_the_factor_and_one_container_more() -> None:
    two = {"root__queues": "a,b", "root__a__capacity": "50", "root__b__capacity": "50"}
    assert len(Queue(spec(**two)).ask(app := ApplicationAttemptId(ApplicationId(1, 1), 1), 12)) == 0
    for factor, most in (("1", 7), ("0.5", 4), ("1.5", 10), ("2", 12), ("-1", 12)):
        q = Queue(spec(**two, root__a__user_limit_factor=factor))
        assert len(q.ask(q.app("ann", "a"), 12)) == most, factor
    assert app.attempt == 1


def test_two_who_want_everything_get_half_each_and_a_third_gets_what_becomes_free() -> None:
    q = Queue(spec(minimum_user_limit_percent="25"))
    ann, bob = q.app("ann"), q.app("bob")
    anns = q.ask(ann, 20)
    assert len(anns) == 12, "alone she gets all of it"
    q.ask(bob, 20)
    for container in anns[:6]:
        q.tell(ContainerEnded(container.container_id))
    used = {name: user.used.memory_mb // GB for name, user in q.scheduler.view.queues["root.default"].users.items()}
    assert used == {"ann": 7, "bob": 5}, "at its limit a user still gets one"
    cyd = q.app("cyd")
    q.ask(cyd, 2)
    (freed,) = given(q.tell(ContainerEnded(anns[6].container_id)))
    assert freed.container_id.attempt_id == cyd, "the others are above a third"


def test_a_user_with_many_applications_at_its_limit_keeps_nobody_back() -> None:
    q = Queue(spec(minimum_user_limit_percent="50"), gb=4)
    q.ask(q.app("ann"), 3)
    q.ask(q.app("bob"), 1)
    for _ in range(60):
        q.ask(q.app("ann"), 1)
    bob = q.app("bob")
    q.ask(bob, 1)
    view = q.scheduler.view
    held = next(c for c, h in view.containers.items() if h.application.user == "bob")
    (freed,) = given(q.tell(ContainerEnded(held)))
    assert freed.container_id.attempt_id == bob


def test_limit_counts_only_users_who_want_something() -> None:
    q = Queue(spec(minimum_user_limit_percent="10"))
    leaf = q.scheduler.view.queues["root.default"]
    ann, bob = q.app("ann"), q.app("bob")
    q.ask(ann, 5)
    assert leaf.active_users == 0, "served: nobody waits"
    held = q.ask(bob, 20)
    assert (len(held), leaf.active_users) == (7, 1)
    assert user_limit(q.scheduler.view, leaf).memory_mb == 8 * GB, "what the active one has and a container more"
    q.ask(ann, 20)
    assert user_limit(q.scheduler.view, leaf).memory_mb == 7 * GB, "(12 + 1) / 2, in whole containers"


def test_headroom_is_what_the_user_may_still_get() -> None:
    two = {"root__queues": "a,b", "root__a__capacity": "50", "root__b__capacity": "50"}
    q = Queue(spec(**two))
    app = q.app("ann", "a")
    q.ask(app, 2)
    attempt = q.scheduler.view.attempt(app)
    assert attempt is not None
    assert q.scheduler.view.headroom(attempt).memory_mb == 4 * GB


def test_a_number_of_applications_below_0_says_nothing() -> None:
    own, everywhere = spec(root__default__maximum_applications="-1"), spec(maximum_applications="-1")
    assert [one.root.children[0].maximum_applications for one in (own, everywhere, spec())] == [10_000] * 3
    assert everywhere.maximum_applications == 10_000


def test_number_of_applications_of_a_queue_of_a_user_and_of_all() -> None:
    q = Queue(spec(root__default__maximum_applications="4", minimum_user_limit_percent="50"))
    q.submit("ann")
    q.submit("ann")
    _, third = q.submit("ann")
    assert third == RefuseApplication(
        ApplicationId(1, 3),
        "Queue root.default already has 2 applications from user ann cannot accept submission of application: "
        "application_1_0003",
    )
    q.submit("bob")
    last, _ = q.submit("bob")
    _, refused = q.submit("cyd")
    assert refused == RefuseApplication(
        ApplicationId(1, 6),
        "Queue root.default already has 4 applications, cannot accept submission of application: application_1_0006",
    )
    q.tell(ApplicationEnded(last))
    assert not isinstance(q.submit("cyd")[1], RefuseApplication)
    q.tell(QueuesRefreshed(spec(maximum_applications="4", root__default__maximum_applications="100")))
    _, refused = q.submit("dan")
    assert isinstance(refused, RefuseApplication)
    assert refused.reason.startswith("Maximum system application limit reached,cannot accept submission")


def test_masters_of_one_user_have_a_share_of_the_queues_and_pass_nobody_by() -> None:
    q = Queue(spec(maximum_am_resource_percent="0.5", minimum_user_limit_percent="25"))
    bob, _ = q.start("bob")
    q.ask(bob, 40)
    anns = [q.start("ann")[0] for _ in range(5)]
    assert [q.why(a) for a in anns] == [None, None, None, USER_MASTERS_EXCEEDED, USER_MASTERS_EXCEEDED], "6 GB / 2"
    late, _ = q.start("cyd")
    assert q.why(late) is None, "a user below its share is not kept back by those before it"
    assert [q.why(q.start("dan")[0]), q.why(q.start("dan")[0])] == [None, QUEUE_MASTERS_EXCEEDED]
    q.tell(AttemptEnded(late))
    q.tell(AttemptEnded(anns[0]))
    assert q.why(anns[3]) == USER_MASTERS_EXCEEDED, "three of them want something: 2 GB each"
    q.tell(AttemptEnded(anns[1]))
    assert [q.why(a) for a in anns[3:]] == [None, USER_MASTERS_EXCEEDED], "in order"


def test_waiting_applications_start_by_priority_and_then_in_order() -> None:
    q = Queue(spec(maximum_am_resource_percent="0.1", user_limit_factor="-1"))
    first, started = q.start("ann", gb=8)
    assert started, "one always may, though masters have 2 GB in all"
    big, _ = q.start("ann", gb=2)
    small, _ = q.start("ann")
    urgent, _ = q.start("ann", priority=9)
    assert {q.why(a) for a in (big, small, urgent)} == {QUEUE_MASTERS_EXCEEDED}
    assert [m.container_id.attempt_id for m in given(q.tell(AttemptEnded(first)))] == [urgent, small]
    assert given(q.tell(AttemptEnded(urgent))) == []
    assert [m.container_id.attempt_id for m in given(q.tell(AttemptEnded(small)))] == [big]


@pytest.mark.parametrize("ordering", ["fifo", "fair"])
def test_long_and_short_jobs_of_one_queue_take_turns_by_its_ordering(ordering: str) -> None:
    """Two applications with the same asks, the first far ahead: fifo lets it go on, fair lets the other catch up."""
    q = Queue(spec(root__default__ordering_policy=ordering))
    first, second = q.app("ann"), q.app("bob")
    held = q.ask(first, 30)
    q.ask(second, 30)
    for container in held:
        q.tell(ContainerEnded(container.container_id))
        q.tell(NodeBeat(NODE))
    used = {app.id.id: app.containers for app in q.scheduler.view.applications.values()}
    assert used == ({1: 12, 2: 0} if ordering == "fifo" else {1: 6, 2: 6})
