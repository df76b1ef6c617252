"""What `yaq explain` says of an ask that no node has room for, where its places are in the way."""

import pytest

from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.why.reasons import why_waits
from tests.rm.rm_busy import LARGE, NOWHERE, Busy
from tests.rm.rm_life import Life
from yaqd.model import ApplicationAttemptId
from yaqd.policies.asks.placement import Placement
from yaqd.policies.asks.rows import AskRow


def reason(life: Life, attempt_id: ApplicationAttemptId) -> str:
    attempt = life.scheduler.view.attempt(attempt_id)
    assert attempt is not None
    (ask,) = attempt.asks
    return why_waits(life.scheduler.view, attempt, ask).reason


@pytest.mark.parametrize(
    ("names", "relax", "said"),
    [
        (("a", "/r1", "*"), True, "it prefers a"),
        (("a", "b", "/r1", "*"), True, "it prefers a and 1 more"),
        (("gone", "/r1", "*"), False, "it insists on gone, of which none is in the cluster"),
    ],
)
def test_places_are_named(names: tuple[str, ...], relax: bool, said: str) -> None:
    life = Busy(QueueingSpec(bound=0))
    rows = (AskRow(1, -1, name, LARGE, 1, relax or name not in ("/r1", "*")) for name in names)
    assert f"{said}," in reason(life, life.large(*rows)) + ","


def test_constraint_and_bounds_of_nothing_are_named() -> None:
    life = Busy(QueueingSpec(bound=0))
    constrained = life.large(AskRow(1, 0, "*", LARGE, 1, placement=Placement((), NOWHERE)))
    assert "its placement constraint has to hold" in reason(life, constrained)
    assert "3 of 3 queues at nodes are as long as their bounds (of 3 the bound is 0" in reason(
        life, life.large(estimate=10.0)
    )


def test_a_users_limit_is_said_with_its_keys() -> None:
    queues = {"root.queues": "default", "root.default.capacity": "100", "root.default.user-limit-factor": "0.5"}
    life = Life(QueueingSpec(bound=0), lines=queues)
    life.node("a")
    app = life.app()
    assert life.ask(app, 4) == ["a", "a", "a"], "who is below it gets one more, as in Hadoop"
    said = reason(life, app)
    assert "user user holds <memory:3072, vCores:3> of queue root.default, and one user may hold <memory:2048" in said
    assert "user-limit-factor" in said
