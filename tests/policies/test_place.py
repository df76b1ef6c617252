"""Placement: Algorithm 1 against a look at every node, those worth a look, the cost of a placement."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.policies.queueing.place import Placer, choose
from yaqd.policies.queueing.place_scores import Affinity, Load
from yaqd.policies.registry import UnknownPolicy

names = st.sampled_from(["wait", "length", "length-per-slot", "two-choices", "random"])
nodes = st.builds(Load, st.integers(0, 9), st.floats(0, 100) | st.sampled_from([nan, inf, -1.0]), st.integers(0, 9))
changes = st.lists(st.tuples(st.integers(0, 5), st.none() | nodes), max_size=40)


def anyone(node: int) -> bool:
    return True


@given(st.lists(st.tuples(st.sampled_from([1.0, 0.7, 0.5]), st.floats(0, 50), st.integers(0, 9)), max_size=8))
def test_the_highest_affinity_by_load_is_chosen(told: list[tuple[float, float, int]]) -> None:
    chosen = choose((number, *one) for number, one in enumerate(told))
    if chosen is None:
        assert not told
        return
    affinity, load, _ = told[chosen]
    scores = [one / other if other > 0 else inf for one, other, _ in told]
    assert (affinity / load if load > 0 else inf) == max(scores)


def test_a_node_without_load_comes_before_the_tasks_own_host() -> None:
    assert choose([("own", 1.0, 0.1, 1), ("idle", 0.5, 0.0, 0)]) == "idle"
    assert choose([("far", 0.5, 0.0, 0), ("own", 1.0, 0.0, 0)]) == "own"
    assert choose([("longer", 1.0, 2.0, 5), ("shorter", 1.0, 2.0, 4)]) == "shorter"


@pytest.mark.parametrize(("wait_s", "chosen"), [(1.9, "own"), (2.1, "far")])
def test_the_own_host_is_worth_twice_the_wait_elsewhere(wait_s: float, chosen: str) -> None:
    assert choose([("own", 1.0, wait_s, 1), ("far", Affinity().elsewhere, 1.0, 1)]) == chosen


@given(names, changes, st.integers(1, 4), st.sets(st.integers(0, 5)))
def test_candidates_are_there_and_accepted_and_the_least_loaded(
    name: str, told: list[tuple[int, Load | None]], most: int, refused: set[int]
) -> None:
    placer: Placer[int] = Placer(name)
    there: dict[int, Load] = {}
    for number, node in told:
        if node is None:
            placer.remove(number)
            there.pop(number, None)
        else:
            placer.put(number, str(number), node)
            there[number] = node
        placer.validate()
    found = placer.candidates(lambda number: number not in refused, most)
    usable = there.keys() - refused
    assert set(found) <= usable and len(found) == len(set(found))
    assert all((number in placer) == (number in there) for number in range(6))
    if name in ("two-choices", "random"):
        assert len(found) <= (2 if name == "two-choices" else 1)
        return
    loads = sorted(placer.load(there[number]) for number in usable)
    assert [placer.load(there[number]) for number in found] == loads[:most]


def test_length_goes_by_the_shorter_queue_however_long_its_tasks_are() -> None:
    for name, chosen in (("length", "short"), ("wait", "quick")):
        placer: Placer[str] = Placer(name)
        placer.put("short", "a", Load(2, 500.0, 8))
        placer.put("quick", "b", Load(4, 10.0, 8))
        assert placer.candidates(lambda node: True, 1) == [chosen]


def test_the_same_nodes_are_drawn_in_the_same_life() -> None:
    lives = []
    for _ in range(2):
        placer: Placer[int] = Placer("two-choices")
        for number in range(50):
            placer.put(number, str(number), Load(0, 0.0, 8))
        lives.append([tuple(placer.candidates(anyone, 1)) for _ in range(40)])
    assert lives[0] == lives[1]
    assert len({node for pair in lives[0] for node in pair}) > 30


def test_tasks_of_one_kind_avoid_each_other() -> None:
    affinity = Affinity(interference=4.0)
    chosen = choose(
        [("full", affinity.fought_for(1.0, 6, 8), 2.0, 1), ("other", affinity.fought_for(1.0, 0, 8), 2.0, 1)]
    )
    assert chosen == "other"
    assert Affinity().fought_for(0.7, 6, 8) == 0.7


def test_a_placement_costs_no_more_on_a_large_cluster() -> None:
    """Counted in nodes looked at, not in time."""
    costs = []
    for size in (100, 5000):
        placer: Placer[int] = Placer("wait")
        for number in range(size):
            placer.put(number, str(number), Load(1, 1.0 + number % 7, 8))
        looked: list[int] = []

        def accepts(number: int, looked: list[int] = looked) -> bool:
            looked.append(number)
            return number % 5 > 0

        for _ in range(50):
            (node,) = placer.candidates(accepts, 1)
            placer.put(node, str(node), Load(2, 9.0, 8))
        costs.append(len(looked))
    assert max(costs) <= 50 * 65


def test_a_name_that_is_none() -> None:
    with pytest.raises(UnknownPolicy, match=r"'best'.*wait, length"):
        Placer("best")
