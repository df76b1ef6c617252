"""Many who refuse a node, because they insist on others or have it blacklisted, keep nobody behind them from it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rm.scheduler.assign import sweep, walk
from rm.scheduler.decisions import Allocate, Outcome
from rm.scheduler.events import Asked, ContainerEnded, NodeBeat
from rm.scheduler.node_queues.spec import QueueingSpec
from tests.examples import examples
from tests.rm.rm_busy import NOWHERE, QuickLife, strict_rows
from tests.rm.rm_life import Life, named
from tests.rm.rm_world import GB
from yaqd.model import ApplicationAttemptId, NodeId, Resource
from yaqd.policies.asks.placement import Placement
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.asks.table import Ask

HOSTS = ("a", "b", "c")


def refuse(life: Life, number: int, why: str) -> None:
    """So many applications that want something and will not have it at node a."""
    for _ in range(number):
        app, rows = life.app(), (AskRow(1, 0, "*", Resource(GB, 1), 1),)
        if why == "strict":
            life.tell(Asked(app, strict_rows("gone")))
        elif why == "blacklist":
            life.tell(Asked(app, rows, HOSTS))
        else:
            life.tell(Asked(app, (AskRow(1, 0, "*", Resource(GB, 1), 1, placement=Placement((), NOWHERE)),)))


def full(queueing: QueueingSpec, *hosts: str, kind: type[Life] = Life, wanted: int = 200) -> tuple[Life, list[Outcome]]:
    """Nodes full of what one application has asked for, which wants no more."""
    life = kind(queueing)
    for host in hosts:
        life.node(host)
    app = life.app()
    life.ask(app, wanted)
    return life, life.tell(Asked(app, (AskRow(1, -1, "*", Resource(GB, 1), 0),)))


@pytest.mark.parametrize("why", ["strict", "blacklist", "constraint"])
@pytest.mark.parametrize("has_master", [False, True])
def test_applications_that_refuse_a_node_keep_nobody_from_it(why: str, has_master: bool) -> None:
    life, _ = full(QueueingSpec(bound=0), "a")
    refuse(life, 40, why)
    last = life.app(has_master=has_master)
    if not has_master:
        assert life.ask(last, 1) == []
    given = life.end("a") + life.report(NodeId("a", 1)) + life.report(NodeId("a", 1))
    assert given == ["a"] and any(c.attempt_id == last for c in life.live)


@pytest.mark.parametrize("why", ["strict", "blacklist", "constraint"])
def test_nor_from_its_queue(why: str) -> None:
    life = Life(QueueingSpec(bound=2))
    node = life.node("a")
    life.ask(life.app(), 6)
    refuse(life, 40, why)
    last = life.app()
    assert life.ask(last, 1) == []
    given = life.end("a") + life.report(node) + life.report(node)
    assert given == ["a*"] and any(c.attempt_id == last for c in life.live)


@pytest.mark.parametrize("bound", [0, 2])
@pytest.mark.parametrize("number", [40, 600, 1100])
def test_asks_that_refuse_a_node_do_not_hide_those_of_their_application_that_take_it(bound: int, number: int) -> None:
    life, _ = full(QueueingSpec(bound=bound), "a", kind=QuickLife, wanted=4 + bound)
    app = life.app()
    rows = (row for request in range(number) for row in strict_rows("gone", request))
    assert named(life.tell(Asked(app, (*rows, AskRow(1, number, "*", Resource(GB, 1), 1))))) == []
    given = life.end("a")
    for _ in range(3):
        given += life.report(NodeId("a", 1))
    life.scheduler.validate()
    assert given == ["a*" if bound else "a"]


@pytest.mark.interpreted
@pytest.mark.slow
@pytest.mark.parametrize("why", ["strict", "blacklist"])
def test_a_heartbeat_looks_at_a_part_of_thousands_and_the_next_ones_at_the_others(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    life, _ = full(QueueingSpec(bound=0), "a", kind=QuickLife)
    refuse(life, 3000, why)
    first, second = life.app(), life.app()
    assert life.ask(first, 3) + life.ask(second, 3) == []
    for container_id in list(life.live)[:2]:
        life.tell(ContainerEnded(container_id))
    looks, looked_at = _counted(monkeypatch), 0
    given: list[Outcome] = []
    for _ in range(8):
        looks.clear()
        given += life.tell(NodeBeat(NodeId("a", 1)))
        assert len(looks) <= 4 * sweep.COST_MAX
        looked_at += len(looks)
    assert looked_at
    assert [d.container_id.attempt_id for d in given if isinstance(d, Allocate)] == [first, first], "still in turn"
    life.scheduler.validate()


def test_who_comes_first_is_looked_at_again_when_something_was_given() -> None:
    life, _ = full(QueueingSpec(bound=0), "a", kind=QuickLife)
    early = life.app()
    life.tell(Asked(early, tuple(row for n in range(600) for row in strict_rows("gone", n))))
    refuse(life, 1000, "strict")
    last = life.app()
    assert life.ask(last, 9) == []
    for _ in range(2):
        given = life.end("a")
        for _ in range(4):
            given = given or life.report(NodeId("a", 1))
        assert given == ["a"] and [c.attempt_id for c in life.live][-1] == last
    assert named(life.tell(Asked(early, (AskRow(1, 700, "*", Resource(GB, 1), 1),)))) == []
    assert life.end("a") == ["a"] and [c.attempt_id for c in life.live][-1] == early


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is looked at: asks that insist on other places, attempts with a blacklist."""
    from rm.scheduler.view.records import AttemptView

    looks: list[object] = []
    insists, is_pinned, accepts = Ask.insists_on_others, Ask.is_pinned, AttemptView.accepts
    monkeypatch.setattr(Ask, "is_pinned", lambda ask: (looks.append(ask), is_pinned(ask))[1])
    monkeypatch.setattr(Ask, "insists_on_others", lambda ask, *at: (looks.append(ask), insists(ask, *at))[1])
    monkeypatch.setattr(AttemptView, "accepts", lambda who, node: (looks.append(who), accepts(who, node))[1])
    return looks


# ---- whatever is asked


@dataclass(frozen=True)
class Wish:
    """An ask for one container."""

    #: of those where it may be alone; empty: anywhere
    only: str
    gb: int


@dataclass(frozen=True)
class Wisher:
    blacklist: frozenset[str]
    wishes: tuple[Wish, ...]

    def may_have(self, wish: Wish, host: str) -> bool:
        return host not in self.blacklist and wish.only in ("", host)


WISHES = st.builds(Wish, st.sampled_from(["", "gone", "gone", *HOSTS]), st.sampled_from([1, 1, 1, 2]))
WISHERS = st.builds(
    Wisher, st.frozensets(st.sampled_from(HOSTS), max_size=3), st.lists(WISHES, min_size=1, max_size=40).map(tuple)
)


@contextmanager
def short_looks(are_short: bool) -> Iterator[None]:
    """So that looks end early among few."""
    values = {"COST_MAX": 7, "_ATTEMPTS_LEAST": 3, "_LINE_COST_MAX": 30} if are_short else {}
    before = [
        (module, name, getattr(module, name)) for module in (sweep, walk) for name in values if hasattr(module, name)
    ]
    for module, name, _ in before:
        setattr(module, name, values[name])
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


@pytest.mark.interpreted
@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(
    wishers=st.lists(WISHERS, min_size=5, max_size=40),
    ends=st.lists(st.sampled_from(HOSTS), min_size=1, max_size=12),
    are_short=st.booleans(),
)
def test_what_fits_somewhere_is_given_within_some_heartbeats(
    wishers: list[Wisher], ends: list[str], are_short: bool
) -> None:
    with short_looks(are_short):
        _check(wishers, ends, in_order=not are_short)


def _check(wishers: list[Wisher], ends: list[str], *, in_order: bool) -> None:
    life, _ = full(QueueingSpec(bound=0), *HOSTS, kind=QuickLife)
    pending: dict[tuple[ApplicationAttemptId, int], tuple[Wisher, Wish]] = {}
    for wisher in wishers:
        app = life.app()
        rows: list[AskRow] = []
        for number, wish in enumerate(wisher.wishes):
            pending[app, number] = (wisher, wish)
            names = [(wish.only, True), ("/r1", False), ("*", False)] if wish.only else [("*", True)]
            rows += [AskRow(1, number, name, Resource(wish.gb * GB, 1), 1, relax) for name, relax in names]
        assert life.tell(Asked(app, tuple(rows), tuple(sorted(wisher.blacklist)))) == []
    free = dict.fromkeys(HOSTS, 0)

    def take(decisions: list[Outcome]) -> None:
        for one in decisions:
            assert isinstance(one, Allocate)
            host, key = one.node_id.host, (one.container_id.attempt_id, one.allocation_request_id)
            wisher, wish = pending[key]
            assert wisher.may_have(wish, host) and wish.gb <= free[host]
            before = [k for k, (w, v) in pending.items() if k < key and w.may_have(v, host) and v.gb <= free[host]]
            assert not (in_order and before), "who comes first gets it"
            del pending[key]
            free[host] -= wish.gb

    for host in ends:
        found = next((c for c, g in life.live.items() if g.node_id.host == host), None)
        if found is not None:
            free[host] += life.live.pop(found).resource.memory_mb // GB
            take(life.tell(ContainerEnded(found)))
    for _ in range(sum(len(w.wishes) for w in wishers) if not in_order else 1):
        for host in HOSTS:
            take(life.tell(NodeBeat(NodeId(host, 1))))
    life.scheduler.validate()
    for wisher, wish in pending.values():
        assert not any(wisher.may_have(wish, host) and wish.gb <= free[host] for host in HOSTS)
