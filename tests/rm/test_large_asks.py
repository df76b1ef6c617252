"""Large asks among small ones that come without end: a node is kept for each of them, whatever stands before it."""

import random

import pytest

from rm.scheduler.events import ContainerEnded, NodeDraining, WaitingTolerated
from rm.scheduler.node_queues.spec import QueueingSpec
from tests.rm.rm_busy import LARGE, NOWHERE, Busy, strict_rows
from yaqd.model import ContainerId
from yaqd.policies.asks.placement import Placement
from yaqd.policies.asks.rows import AskRow


@pytest.mark.parametrize(
    ("queueing", "wait_s"),
    [(QueueingSpec(bound=0), 1.0), (QueueingSpec(bound=2, unaware_wait_s=2.0), 5.0)],
    ids=["no place anywhere", "waits too long for its master"],
)
def test_what_may_wait_but_where_no_queue_takes_it_has_a_node_kept(queueing: QueueingSpec, wait_s: float) -> None:
    life = Busy(queueing)
    assert life.start_of(life.large(estimate=10.0), 60, wait_s=wait_s) is not None
    assert life.kept


def test_what_may_wait_is_left_to_queues_that_take_it() -> None:
    life = Busy(QueueingSpec(bound=2))
    app = life.large(estimate=10.0)
    life.tell(WaitingTolerated(app))
    life.start_of(app, 25)
    assert not life.kept, "yet"
    assert life.start_of(app, 60) is not None, "it was too large for any of them for long enough"


@pytest.mark.parametrize("bound", [0, 2])
@pytest.mark.parametrize("why", ["constraint", "pinned", "applications"])
def test_who_is_first_and_never_takes_a_node_hides_nobody(bound: int, why: str) -> None:
    life = Busy(QueueingSpec(bound=bound))
    if why == "constraint":
        life.large(AskRow(1, 0, "*", LARGE, 1, placement=Placement((), NOWHERE)))
    elif why == "pinned":
        life.large(*(large(row) for request in range(3000) for row in strict_rows("gone", request)))
    else:
        for _ in range(1000):
            life.large(*map(large, strict_rows("gone")))
    assert life.start_of(life.large(), 30) is not None


def large(row: AskRow) -> AskRow:
    return AskRow(row.priority, row.allocation_request_id, row.resource_name, LARGE, row.count, row.relax_locality)


PREFERS_A = tuple(AskRow(1, -1, name, LARGE, 1) for name in ("a", "/r1", "*"))


@pytest.mark.parametrize("bound", [0, 2])
@pytest.mark.parametrize("why", ["too small", "drained", "blacklisted", "nothing ends there"])
def test_a_preferred_host_that_never_has_room_is_not_waited_for(bound: int, why: str) -> None:
    life = Busy(QueueingSpec(bound=bound), sizes=(2, 4, 4) if why == "too small" else (4, 4, 4))
    first = life.large(*PREFERS_A, blacklist=("a",) if why == "blacklisted" else ())
    if why == "drained":
        life.tell(NodeDraining(life.nodes[0]))
    second = life.large()

    def ends(host: str) -> bool:
        return host != "a"

    assert life.start_of(first, 300, ends=ends) is not None
    assert life.start_of(second, 300, ends=ends) is not None


def test_a_node_is_kept_as_long_as_containers_end_there() -> None:
    """Each takes five minutes, and reservations last two."""
    life, drawn = Busy(QueueingSpec(bound=0)), random.Random(1)
    until: dict[ContainerId, float] = {}
    who = life.large()
    for _ in range(3000):
        life.now += 1.0
        for container_id in list(life.live):
            if until.setdefault(container_id, life.now + drawn.expovariate(1 / 300)) <= life.now:
                life.tell(ContainerEnded(container_id))
        for node in life.nodes:
            life.report(node)
        if who in life.served:
            break
    assert who in life.served and len(life.kept) <= 4


def test_a_node_kept_in_vain_is_left_for_another() -> None:
    life = Busy(QueueingSpec(bound=0))
    who = life.large()

    def none_ends(_: str) -> bool:
        return False

    assert life.start_of(who, 600, ends=none_ends) is None
    assert len(set(life.kept)) == 3 and life.given_up >= 3
