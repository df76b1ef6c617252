"""Policies of others that fail: shipped ones answer in their place, and whoever has to live on is told once of each."""

import json
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from importlib import import_module
from math import fsum, inf
from pathlib import Path
from typing import Any

import pytest

from tests.policies.policy_facts import SLOT, facts, job_id, queued, running
from yaqd.model import NodeId, Resource
from yaqd.policies.guard import policy_fault, survive
from yaqd.policies.queueing.bounds import BOUNDS
from yaqd.policies.queueing.estimates import ESTIMATES, Estimator
from yaqd.policies.queueing.job_order import JOB_ORDERS, WaitingJob
from yaqd.policies.queueing.order import ORDERS, Ordering
from yaqd.policies.queueing.place import Placer
from yaqd.policies.queueing.place_scores import Load
from yaqd.policies.queueing.rebalance import REBALANCES, Move, NodeQueueLoad
from yaqd.policies.queueing.tuning import BoundTuner
from yaqd.policies.queueing.wait import WAITS
from yaqd.policies.registry import NUMBERS, UnknownPolicy

KINDS = ("order", "job_order", "bound", "estimate", "wait", "rebalance", "place")


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Has a package with faulty policies of every kind, under names that no other test has loaded; what is said."""
    module = f"faulty_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(
        "from yaqd.policies.queueing.place_scores import PlaceStrategy\n"
        "def raises(*args): raise KeyError('lost')\n"
        "def says(*args): return 'soon'\n"
        "def moody(task, job): return 1 / (3 - task.since)\n"
        "def nan(*args): return float('nan')\n"
        "def least(*args): return float('-inf')\n"
        "def most(*args): return float('inf')\n"
        "number = 7\n"
        "moved = []\n"
        "def moves(*args): return list(moved)\n"
        "place_raises, place_says = PlaceStrategy(raises), PlaceStrategy(says)\n"
        "many = PlaceStrategy(raises, draws='all')\n"
    )
    (tmp_path / f"{module}_quits.py").write_text("raise SystemExit(3)\n")
    info = tmp_path / f"{module}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
    lines = []
    for kind in KINDS:
        lines.append(f"[yaqd.{kind}]\nnumber-{module} = {module}:number")
        lines += [
            f"{what}-{module} = {module}:{'place_' if kind == 'place' else ''}{what}" for what in ("raises", "says")
        ]
        lines += [f"quits-{module} = {module}_quits:moody"] if kind == "order" else []
        lines += [f"moody-{module} = {module}:moody"] if kind == "order" else []
        lines += [f"{what}-{module} = {module}:{what}" for what in ("nan", "least", "most") if kind == "bound"]
        lines += [f"moves-{module} = {module}:moves"] if kind == "rebalance" else []
        lines += [f"many-{module} = {module}:many"] if kind == "place" else []
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    heard: list[str] = []
    survive(heard.append)
    yield heard
    survive(None)


def name_of(what: str, tmp_path: Path) -> str:
    return f"{what}-faulty_{tmp_path.name.replace('-', '_')}"


@pytest.mark.parametrize("what", ["raises", "says"])
def test_shipped_ones_answer_in_their_place(what: str, told: list[str], tmp_path: Path) -> None:
    name = name_of(what, tmp_path)
    line = [queued(n, facts(n), since=float(n)) for n in (2, 1, 3)]
    faulty, fifo = (Ordering(strategy, inf, inf) for strategy in (name, "fifo"))
    for _ in range(3):
        faulty.pick(line, {}, 5.0)
    assert faulty.pick(line, {}, 5.0) is line[1]
    assert faulty.sorted(line, {}, 5.0) == fifo.sorted(line, {}, 5.0) == [line[1], line[0], line[2]]
    job = WaitingJob(job_id(1), 3.0, 1.0)
    assert JOB_ORDERS[name](job) == JOB_ORDERS["ejf"](job) == 3.0
    assert BOUNDS[name](10, 5.0, 3.0, 0.05) == BOUNDS["utilization"](10, 5.0, 3.0, 0.05) > 0
    estimator = Estimator(policy=ESTIMATES[name])
    estimator.observe("run", 2.0)
    assert estimator.estimate("run") == 2.0
    held: Any = (SLOT, Resource(), [running(7, facts(7, estimate=4.0))], [], SLOT, 0.0)
    assert WAITS[name](*held) == WAITS["resources"](*held) == 4.0
    loads = [NodeQueueLoad(NodeId(h, 1), w, q, 2, 4.0, 9) for h, w, q in (("a", 40.0, 9), ("b", 0.0, 0))]
    assert REBALANCES[name](loads, 1.0) == REBALANCES["gain"](loads, 1.0) != []
    placer: Placer[str] = Placer(name)
    for node, waiting, wait_s in (("slow", 1, 3.0), ("quick", 8, 0.5)):
        placer.put(node, node, Load(waiting, wait_s, 4))
    assert placer.candidates(lambda node: True, 1) == ["quick"]
    assert len(told) == len(KINDS), "once of each"
    why = "KeyError: 'lost'" if what == "raises" else "ValueError"
    assert all(("gives way to " in text and why in text) or "moves" in text for text in told), told
    assert "in raises)" in told[0] or what == "says"
    assert "order policy" in told[0] and "gives way to fifo until a restart" in told[0]


def test_one_that_fails_for_some_tasks_alone_is_given_up_too(told: list[str], tmp_path: Path) -> None:
    line = [queued(n, facts(n), since=float(n)) for n in (1, 2, 3)]
    ordering = Ordering(name_of("moody", tmp_path), inf, inf)
    assert ordering.sorted(line[:2], {}, 5.0) == line[:2] and not told
    ordering.pick(line, {}, 5.0)
    assert ordering.sorted(line[::-1], {}, 5.0) == line and len(told) == 1


@pytest.mark.parametrize("what", ["nan", "least"])
def test_a_bound_that_is_no_number_of_tasks_is_not_taken_for_no_queue(
    what: str, told: list[str], tmp_path: Path
) -> None:
    tuner, shipped = (BoundTuner(policy=name) for name in (name_of(what, tmp_path), "utilization"))
    assert tuner.bound(10) == shipped.bound(10) > 0
    assert len(told) == 1 and "is no number of tasks" in told[0]


def test_a_bound_without_an_end_is_as_many_as_may_be(told: list[str], tmp_path: Path) -> None:
    assert BoundTuner(policy=name_of("most", tmp_path), most=50).bound(10) == 50 and not told


A, B = NodeId("a", 1), NodeId("b", 1)


@pytest.mark.parametrize(
    "wrong",
    [
        Move(["a"], None, 1, 0.0),  # type: ignore[arg-type]
        Move(NodeId(["a"], 1), B, 1, 0.0),  # type: ignore[arg-type]
        Move("a:1", B, 1, 0.0),  # type: ignore[arg-type]
        Move(A, None, 1, 0.0),  # type: ignore[arg-type]
        Move(A, B, 1.5, 0.0),  # type: ignore[arg-type]
        Move(A, B, 0, 0.0),
        Move(A, B, -3, 0.0),
        ("a", "b", 1),
    ],
)
def test_moves_that_no_queue_can_make_are_given_up(wrong: Move, told: list[str], tmp_path: Path) -> None:
    name = name_of("moves", tmp_path)
    policy, moved = REBALANCES[name], import_module(name.removeprefix("moves-")).moved
    loads = [NodeQueueLoad(node, w, q, 2, 4.0, 9) for node, w, q in ((A, 40.0, 9), (B, 0.0, 0))]
    moved.append(sound := Move(A, B, 1, 0.0))
    assert policy(loads, 1.0) == [sound] and not told
    moved.append(wrong)
    assert policy(loads, 1.0) == REBALANCES["gain"](loads, 1.0) != [] and len(told) == 1
    assert "rebalance policy" in told[0] and "gives way to gain until a restart" in told[0] and "moves" in told[0]


def test_what_is_no_policy_of_its_kind_is_no_policy(told: list[str], tmp_path: Path) -> None:
    for make in (ORDERS, JOB_ORDERS, BOUNDS, ESTIMATES, WAITS, REBALANCES):
        with pytest.raises(UnknownPolicy, match="cannot be called"):
            make[name_of("number", tmp_path)]
    for what, why in (("number", "no PlaceStrategy"), ("many", "draws no number")):
        with pytest.raises(UnknownPolicy, match=why):
            Placer(name_of(what, tmp_path))


def raising(error: BaseException) -> Callable[..., float]:
    def policy(*args: object) -> float:
        raise error

    return policy


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit("no more")])
def test_one_that_would_end_the_process_is_given_up_as_well(error: BaseException, told: list[str]) -> None:
    guarded = NUMBERS("faulty", raising(error), lambda *args: -5.0)
    assert [guarded(1), guarded(2)] == [-5.0, -5.0]
    assert len(told) == 1 and told[0].startswith(f"faulty: {type(error).__name__}: {error} (")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), CancelledError()])
def test_what_ends_the_one_who_calls_it_goes_through(error: BaseException, told: list[str]) -> None:
    guarded = NUMBERS("sound", raising(error), lambda *args: -5.0)
    with pytest.raises(type(error)):
        guarded(1)
    assert not told


def test_one_that_would_end_the_process_while_it_loads_is_no_policy(told: list[str], tmp_path: Path) -> None:
    with pytest.raises(UnknownPolicy, match=r"does not load: SystemExit\(3\)"):
        ORDERS[name_of("quits", tmp_path)]


def test_where_nobody_has_to_live_on_the_exception_surfaces(told: list[str], tmp_path: Path) -> None:
    survive(None)
    with pytest.raises(KeyError, match="lost") as surfaced:
        Ordering(name_of("raises", tmp_path), inf, inf).pick([queued(n, facts(n), since=0.0) for n in (1, 2)], {}, 5.0)
    name, module = name_of("raises", tmp_path), name_of("", tmp_path)[1:]
    policy = f"order policy '{name}' ({module}:raises)"
    assert policy_fault(surfaced.value) == f"{policy}: KeyError: 'lost' ({tmp_path / module}.py, line 2, in raises)"
    assert policy_fault(KeyError("lost")) is None


def test_the_place_that_is_said_is_in_the_policys_own_file(told: list[str]) -> None:
    """Not where what it called raised it, nor where what it returned was found to be no answer."""

    def calls_wrongly(*args: object) -> float:
        return fsum([1.0, "x"])  # type: ignore[list-item]

    def parses(*args: object) -> object:
        return json.loads("{")

    def says(*args: object) -> object:
        return "soon"

    for policy in (calls_wrongly, parses, says):
        NUMBERS(policy.__name__, policy, lambda *args: 0.0)(1)
    first = calls_wrongly.__code__.co_firstlineno
    assert f"({__file__}, line {first + 1}, in calls_wrongly)" in told[0]
    assert f"({__file__}, line {first + 4}, in parses)" in told[1]
    assert f"({__file__}, line {first + 6}, what says returned)" in told[2]
