"""`yaq explain` goes by the scheduler's own checks: of a full capacity queue, and of the nodes' queues."""

from rm.scheduler.events import NodeDraining
from rm.scheduler.node_queues.spec import QueueingSpec, Tuning
from tests.rm.rm_life import Life


def test_what_waits_for_a_queue_at_nodes_counts_as_held() -> None:
    queues = {
        "root.queues": "small,large",
        "root.small.capacity": "50",
        "root.small.maximum-capacity": "75",
        "root.large.capacity": "50",
    }
    life = Life(QueueingSpec(bound=4), lines=queues)
    life.node("a")
    large, small = life.app("large"), life.app("small")
    assert life.ask(large, 3) == ["a", "a", "a"]
    assert life.ask(small, 4) == ["a", "a*", "a*"], "three quarters of four, running or waiting"
    said = life.why_waits(small)
    assert said == (
        "queue root.small holds <memory:3072, vCores:3>, with <memory:2048, vCores:2> that waits at nodes, of at most "
        "<memory:3072, vCores:3>"
    )


def test_nodes_where_nothing_waits_are_told_apart() -> None:
    life = Life(QueueingSpec(bound=2))
    first, second = life.node("a"), life.node("b")
    app = life.app()
    assert len(life.ask(app, 10)) == 10, "eight run, and one waits at each"
    life.report(first, queued=1)
    life.tell(NodeDraining(second))
    assert life.ask(app, 5) == ["a*"]
    said = life.why_waits(app)
    assert "1 of 2 queues at nodes are as long as their bounds" in said and "at 1 the node is drained" in said


def test_a_wait_that_gains_nothing_is_told() -> None:
    tuning = Tuning(policy="fixed", mean_s=10.0, heartbeat_s=1.0, poll_s=1.0)
    life = Life(QueueingSpec(bound=None, tuning=tuning))
    life.node("a", wait=7.0)
    app = life.app()
    assert life.ask(app, 5) == ["a"] * 4
    assert "at 1 it would wait for longer than is worth it (2.25 s)" in life.why_waits(app)
