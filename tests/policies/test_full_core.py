"""Where the ResourceManager's core is full, queues stay where more slots work with them than without."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.policies.queueing.full_core import LOOK_S, FullCore

_PARTS = st.floats(0.0, 1.0)


def look(core: FullCore, busy: float, working: float) -> None:
    """One look at which so many containers have worked since the last one."""
    core.ran(LOOK_S * working)
    core.look(busy)


def looks(core: FullCore, number: int, *, with_queues: float, without: float, busy: float = 1.0) -> Iterator[bool]:
    """Whether queues may form at each look, where so many slots work in either way."""
    for _ in range(number):
        look(core, busy, with_queues if core.admits else without)
        yield core.admits


def test_queues_form_while_the_core_has_time() -> None:
    core = FullCore()
    for busy in (0.0, 0.5, 0.92, 1.0, 0.9, 1.0, 0.2):  # one full look after another is needed
        core.look(busy)
        assert core.admits


def test_some_looks_at_a_full_core_come_before_a_trial_which_ends() -> None:
    assert [*looks(FullCore(), 14, with_queues=0.5, without=0.5)] == 5 * [True] + 7 * [False] + 2 * [True]


def test_queues_go_where_more_works_without_and_stay_where_less_does() -> None:
    better = [*looks(FullCore(), 1000, with_queues=0.5, without=0.7)]
    assert not any(better[10:40]), "rather than tried again at once"
    assert sum(better) < 0.06 * len(better)
    worse = [*looks(FullCore(), 1000, with_queues=0.7, without=0.5)]
    assert sum(worse) > 0.96 * len(worse)


@pytest.mark.parametrize("hours", [0, 1])
def test_they_come_back_once_the_core_has_had_time_for_a_minute(hours: int) -> None:
    core = FullCore()
    assert not [*looks(core, 14 + 1200 * hours, with_queues=0.5, without=0.7)][-1]
    assert [*looks(core, 21, with_queues=0.9, without=0.7, busy=0.5)] == 19 * [False] + 2 * [True]


def test_a_trial_lasts_until_what_ran_is_over() -> None:
    for tasks_s, lasts in ((0.0, 6), (1.0, 7), (10.0, 10), (3600.0, 16)):
        core = FullCore()
        for number in range(6 + lasts):
            if tasks_s:
                core.ran(tasks_s)
            changes = core.look(1.0)
            assert core.admits is (number < 5 or number == 5 + lasts), (tasks_s, number)
            assert changes is (number in (5, 5 + lasts))


@given(st.lists(st.tuples(_PARTS, _PARTS), max_size=300))
def test_nothing_changes_within_a_rest(seen: list[tuple[float, float]]) -> None:
    core, admitted = FullCore(), []
    for busy, working in seen:
        look(core, busy, working)
        admitted.append(core.admits)
    changes = [at for at in range(1, len(admitted)) if admitted[at] != admitted[at - 1]]
    for first, second, third in zip(changes, changes[1:], changes[2:], strict=False):
        assert third - first > 4, (first, second, third)  # a trial and its end may be near, and no third


@pytest.mark.parametrize("load", [0.5, 1.0, 2.0])
@given(first=st.floats(0.2, 1.0), second=st.floats(0.2, 1.0))
def test_over_an_hour_next_to_nothing_is_lost_to_the_better_way(first: float, second: float, load: float) -> None:
    """Without time of the core enough, slots work as these say; `load`: of the core, by what waits at nodes."""
    core, used, looked = FullCore(), 0.0, 1200
    for _ in range(looked):
        look(core, min(1.0, load), first if core.admits else second)
        used += first if core.admits else second
    best = max(first, second) if load >= 1.0 else first
    assert used >= 0.94 * best * looked
