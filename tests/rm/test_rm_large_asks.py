"""Large asks among small ones that come without end: a node is kept for each of them, whatever stands before it."""

import random
from collections.abc import Callable

import pytest

from rm.scheduler.decisions import Allocate, Decision, Reserve, Unreserve
from rm.scheduler.events import (
    Asked,
    AskRow,
    ContainerEnded,
    NodeBeat,
    NodeDraining,
    NodeQueueReported,
    SchedulerEvent,
    WaitingTolerated,
)
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.view.placement import Placement
from tests.rm.rm_life import GB
from tests.rm.test_rm_sweeps import NOWHERE, QuickLife, strict_rows
from yaqd.model import ApplicationAttemptId, ContainerId, Resource

HOSTS = ("a", "b", "c")
LARGE = Resource(4 * GB, 1)


class Busy(QuickLife):
    """Three nodes of four slots, all full of small containers, more of which are asked for than ever end."""

    def __init__(self, queueing: QueueingSpec, *, sizes: tuple[int, int, int] = (4, 4, 4)) -> None:
        super().__init__(queueing)
        self.kept: list[str] = []
        self.given_up = 0
        self.served: set[ApplicationAttemptId] = set()
        self.nodes = [self.node(host, gb=gb) for host, gb in zip(HOSTS, sizes, strict=True)]
        small = self.app()
        self.tell(WaitingTolerated(small))
        self.ask(small, 100_000)

    def tell(self, event: SchedulerEvent) -> list[Decision]:
        decisions = super().tell(event)
        self.kept += [d.node_id.host for d in decisions if isinstance(d, Reserve)]
        self.given_up += sum(isinstance(d, Unreserve) for d in decisions)
        self.served |= {d.container_id.attempt_id for d in decisions if isinstance(d, Allocate)}
        return decisions

    def second(self, *, wait_s: float = 1.0, ends: Callable[[str], bool] = lambda _: True) -> None:
        """A container ends at each node where one may, and all send their heartbeats."""
        self.now += 1.0
        for node in self.nodes:
            if ends(node.host):
                self.end(node.host)
            self.tell(NodeQueueReported(node, 4, 0, wait_s))
            self.tell(NodeBeat(node))

    def start_of(self, who: ApplicationAttemptId, within_s: int, **how: object) -> int | None:
        """After how many seconds it is given something."""
        for number in range(within_s):
            self.second(**how)  # type: ignore[arg-type]
            if who in self.served:
                self.scheduler.validate()
                return number + 1
        return None

    def large(
        self, *rows: AskRow, blacklist: tuple[str, ...] = (), estimate: float | None = None
    ) -> ApplicationAttemptId:
        app = self.app(estimate=estimate)
        self.tell(Asked(app, rows or (AskRow(1, -1, "*", LARGE, 1),), blacklist))
        return app


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
                del life.live[container_id]
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
