"""What must not wait at nodes is kept room for where something ends soon, and not where nothing does."""

import math

import pytest

from rm.scheduler.events import (
    ApplicationSubmitted,
    Asked,
    AttemptStarted,
    Estimated,
    WaitingTolerated,
)
from tests.rm.rm_newcomers import LONG_S, SLOTS, Cluster
from tests.rm.rm_world import SLOT
from yaqd.model import ApplicationAttemptId, ApplicationId, NodeId
from yaqd.policies.asks.rows import AskRow

PHASES = [0.0, 3.75, 4.25, 5.5]


def beside_a_slow_node(slow: str, seconds: float, *, is_known: bool) -> Cluster:
    """Tasks that take so long run in all slots of one of two nodes, and tasks of 6 s fill the other one's queue."""
    cluster = Cluster(keeps_room=True)
    app_id = ApplicationId(1, 99)
    cluster.tasks[app_id], cluster.accepted[app_id] = (SLOTS, seconds), 0.0
    attempt_id = ApplicationAttemptId(app_id, 1)
    cluster.tell(ApplicationSubmitted(app_id, "q", "ann", 0))
    cluster.tell(AttemptStarted(attempt_id, ()))
    if is_known:
        cluster.tell(Estimated(app_id, 1, seconds))
    cluster.tell(WaitingTolerated(attempt_id))
    cluster.tell(Asked(attempt_id, tuple(AskRow(1, -1, name, SLOT, SLOTS) for name in (slow, "/r", "*"))))
    cluster.run(1.0)
    assert len(cluster.running[NodeId(slow, 1)]) == SLOTS
    cluster.app(300, LONG_S, estimate=LONG_S, master=False)
    return cluster


@pytest.mark.parametrize("phase_s", PHASES)
@pytest.mark.parametrize(("seconds", "is_known"), [(1e6, False), (100.0, True)])
@pytest.mark.parametrize("slow", ["a", "b"])
def test_a_master_does_not_wait_for_what_ends_late(slow: str, seconds: float, is_known: bool, phase_s: float) -> None:
    cluster = beside_a_slow_node(slow, seconds, is_known=is_known)
    cluster.run(8.0 + phase_s)
    zeta = cluster.app(4, 2.0)
    cluster.run(30.0)
    assert cluster.masters.get(zeta, math.inf) <= LONG_S + 0.5, "as where nodes have no queues"


@pytest.mark.parametrize("phase_s", PHASES)
@pytest.mark.parametrize("slow", ["a", "b"])
def test_nor_does_a_task_of_which_nobody_knows_the_end(slow: str, phase_s: float) -> None:
    cluster = beside_a_slow_node(slow, 1e6, is_known=False)
    cluster.run(8.0 + phase_s)
    zeta = cluster.app(1, 2.0, master=False)
    cluster.run(60.0)
    assert cluster.started[zeta] and cluster.started[zeta][0] <= 2 * LONG_S + 0.5, "a queue of three has drained"


def test_where_nobody_knows_an_end_a_master_gets_what_ends_first() -> None:
    cluster = Cluster(keeps_room=True)
    for _ in "ab":
        cluster.app(SLOTS, 30.0, master=False)
    cluster.run(5.0)
    zeta = cluster.app(1, 2.0)
    cluster.run(60.0)
    assert cluster.masters[zeta] <= 25.5
