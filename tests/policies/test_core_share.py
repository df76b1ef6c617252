"""Queues live on what the ResourceManager's core has left."""

from hypothesis import given
from hypothesis import strategies as st

from yaqd.policies.queueing.core_share import CoreShare

_PARTS = st.floats(0.0, 1.0)


def _looked(*parts: float) -> CoreShare:
    core = CoreShare()
    for part in parts:
        core.look(part, none_work)
    return core


def none_work() -> float:
    return 0.0


def test_all_nodes_may_have_queues_while_the_core_has_time() -> None:
    core = _looked(0.0, 0.5, 0.92, 1.0, 0.9, 1.0)  # one full look after another is needed
    assert core.share == 1.0
    assert all(core.admits(number) for number in range(1000))


def test_most_of_them_lose_theirs_at_each_further_look_at_a_full_core() -> None:
    assert _looked(1.0, 1.0).share == 0.25
    assert _looked(1.0, 1.0, 1.0).share == 0.0625
    assert _looked(*[1.0] * 20).share == 0.0


def test_a_full_core_takes_none_where_the_slots_work() -> None:
    core = CoreShare()
    for _ in range(20):
        core.look(1.0, lambda: 0.9)
    assert core.share == 1.0
    core.look(1.0, none_work)
    assert core.share == 0.25


def test_they_come_back_as_the_core_has_time() -> None:
    core = _looked(*[1.0] * 20)
    shares = []
    for _ in range(21):
        core.look(0.5, none_work)
        shares.append(core.share)
    assert shares == sorted(shares)
    assert shares[0] > 0.0
    assert shares[-1] == 1.0


def test_it_rests_where_the_core_is_used_and_not_full() -> None:
    core = _looked(1.0, 1.0)
    for _ in range(50):
        core.look(0.9, none_work)
    assert core.share == 0.25


@given(st.lists(_PARTS, max_size=60), st.integers(1, 5000))
def test_the_share_is_what_is_admitted_and_nobody_loses_by_more_time(parts: list[float], nodes: int) -> None:
    core = _looked(*parts)
    assert 0.0 <= core.share <= 1.0
    admitted = {number for number in range(nodes) if core.admits(number)}
    assert abs(len(admitted) - core.share * nodes) <= 6  # as evenly as the golden ratio divides
    core.look(0.0, none_work)
    assert admitted <= {number for number in range(nodes) if core.admits(number)}


@given(st.floats(0.05, 3.0), st.floats(0.05, 3.0))
def test_it_comes_to_rest_or_to_an_end(without: float, queues: float) -> None:
    """The core's load is what there is without queues, and more by their share: no part of it swings for ever."""
    core, seen = CoreShare(), []
    for _ in range(400):
        core.look(min(1.0, without + queues * core.share), none_work)
        seen.append(core.share)
    last = seen[-100:]
    if without <= 0.85 and queues <= 1.0:
        assert max(last) == min(last)
        assert without + queues * last[-1] >= 0.85 or last[-1] == 1.0
    if without >= 0.93:
        assert max(last) == 0.0
