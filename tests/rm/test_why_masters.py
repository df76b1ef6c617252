"""What keeps an application's master, as `yaq explain`, `yaq app status` and a command that waits say it."""

import pytest

from rm.scheduler.events import (
    Asked,
    AttemptEnded,
    AttemptStarted,
    ContainerEnded,
    NodeJoined,
    NodeLeft,
)
from rm.scheduler.why.masters import NO_NODES
from rm.scheduler.why.reasons import why_waits
from tests.rm.rm_commands import command
from tests.rm.rm_harness import cluster
from tests.rm.rm_users import Queue, spec
from tests.rm.rm_world import GB, given
from yaqd.model import ApplicationAttemptId, NodeId, Resource
from yaqd.policies.asks.rows import AskRow

DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
KEY = "(yarn.scheduler.capacity.maximum-am-resource-percent limits them)"
SMALL = {
    "resource_calculator": DOMINANT,
    "root__queues": "default,small",
    "root__default__capacity": "90",
    "root__small__capacity": "10",
    "root__small__maximum_capacity": "20",
}


def why(q: Queue, attempt_id: ApplicationAttemptId) -> str:
    attempt = q.scheduler.view.attempt(attempt_id)
    assert attempt is not None
    return why_waits(q.scheduler.view, attempt, next(iter(attempt.asks))).reason


def start(q: Queue, queue: str, user: str = "ann", gb: int = 1) -> ApplicationAttemptId:
    attempt_id = ApplicationAttemptId(q.submit(user, queue)[0], 1)
    q.tell(AttemptStarted(attempt_id, (AskRow(0, -1, "*", Resource(gb * GB, 1), 1),)))
    return attempt_id


def test_what_is_larger_than_its_queue_may_ever_be_is_said_to_be() -> None:
    q = Queue(spec(**SMALL), gb=0)
    for number in (2, 3):
        q.tell(NodeJoined(NodeId("n", number), "/r", Resource(10 * GB, 2)))
    q.tell(NodeLeft(NodeId("n", 1)))
    said = (
        "queue root.small may hold at most <memory:4096, vCores:0> of <memory:20480, vCores:4>, less than "
        "<memory:1024, vCores:1>: it can never run there unless yarn.scheduler.capacity.root.small.maximum-capacity is "
        "raised or nodes are added"
    )
    assert [why(q, start(q, "small")) for _ in range(2)] == [said] * 2, "the first is let start, the second is not"
    q.tell(NodeJoined(NodeId("n", 4), "/r", Resource(10 * GB, 2)))
    assert len(q.scheduler.view.containers) == 1, "as it says"


def test_the_queue_that_is_named_is_the_one_to_be_changed() -> None:
    nested = {"root__small__queues": "a", "root__small__a__capacity": "100", "root__small__a__maximum_capacity": "100"}
    q = Queue(spec(**SMALL, **nested), gb=4)
    assert "root.small.maximum-capacity is raised" in why(q, start(q, "a")), "as much for root.small.a changes nothing"


def test_where_no_node_is_no_application_is_said_to_run() -> None:
    q = Queue(spec())
    q.tell(NodeLeft(NodeId("n", 1)))
    first = start(q, "default")
    assert why(q, first) == NO_NODES
    q.tell(NodeJoined(NodeId("n", 2), "/r", Resource(12 * GB, 4)))
    assert len(q.scheduler.view.containers) == 1
    asked = AskRow(1, -1, "*", Resource(GB, 1), 1)
    q.tell(NodeLeft(NodeId("n", 2)))
    q.tell(Asked(first, (asked,)))
    assert why(q, first) == NO_NODES


def test_masters_that_hold_nothing_yet_are_not_said_to_run() -> None:
    q = Queue(spec(maximum_am_resource_percent="0.1", root__queues="default,b", root__b__capacity="0"), gb=12)
    other = q.app("bob", "b")
    held = q.ask(other, 12)
    assert len(held) == 12
    first, second = start(q, "default"), start(q, "default")
    of = f"the application masters of queue root.default may hold <memory:2048, vCores:7> together {KEY}: another of "
    assert "no node has room" in why(q, first)
    third = start(q, "default")
    assert why(q, third) == (
        f"{of}<memory:1024, vCores:1> cannot start before one of 2 has ended that were let start first; those of 2, "
        f"{first.application_id} first, hold nothing yet"
    )
    q.tell(ContainerEnded(held[0].container_id))
    assert f"one of 2 has ended that were let start first; that of {second.application_id} holds nothing yet" in why(
        q, third
    )
    q.tell(ContainerEnded(held[1].container_id))
    assert why(q, third) == f"{of}<memory:1024, vCores:1> cannot start before one of those that run has ended"
    big = start(q, "default", gb=3)
    assert why(q, big) == f"{of}<memory:3072, vCores:1> cannot start before all others of the queue have ended: " + (
        "the only one always may"
    )
    for ended in (third, first):
        q.tell(AttemptEnded(ended))
    assert "cannot start before all others" in why(q, big)
    assert len(given(q.tell(AttemptEnded(second)))) == 0, "three are not free"
    q.tell(ContainerEnded(held[2].container_id))
    assert "no node has room" in why(q, big), "it was let start"


def test_a_user_whose_masters_have_their_share_is_named() -> None:
    q = Queue(spec(maximum_am_resource_percent="0.5", minimum_user_limit_percent="25"))
    q.ask(start(q, "default", "bob"), 40)
    for _ in range(3):
        start(q, "default")
    said = why(q, start(q, "default"))
    assert said == (
        f"the application masters of ann in queue root.default may hold <memory:3072, vCores:16> together {KEY}: "
        "another of <memory:1024, vCores:1> cannot start before one of 3 has ended that were let start first; those of "
        "3, application_1_0002 first, hold nothing yet"
    )


def test_a_master_is_not_counted_twice_where_its_queue_is_full() -> None:
    q = Queue(spec(**SMALL, user_limit_factor="-1"), gb=20)
    first = start(q, "small", gb=1)
    assert len(q.ask(first, 9)) == 3
    second = start(q, "small", "bob", gb=2)
    assert why(q, second) == "queue root.small holds <memory:4096, vCores:4> of at most <memory:4096, vCores:12>"


@pytest.mark.parametrize("enabled", ["true", "false"])
async def test_explain_says_why_a_master_waits_where_there_is_no_node(enabled: str) -> None:
    async with cluster({"yaq.queue.enabled": enabled}) as rm:
        app_id = await rm.submit()
        assert NO_NODES in await command(rm, "explain", str(app_id))
