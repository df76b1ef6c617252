"""What an iteration costs is found from processor time that is told late, whole iterations and changing orders."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rm.scheduler.quality.cost import IterationCost

_STEP_S = 0.01


def _looks(work_s: float, fixed_s: float, cores: list[int], late_s: float) -> Iterator[tuple[float, float, int, int]]:
    """Yield every second when it is, the processor time told by then, the iteration, and what was ordered since."""
    used_s, in_iteration_s, rested_s, iteration, used = 0.0, 0.0, 0.0, 0, [0.0]
    for step in range(1, 12_000):
        milli = cores[((step - 1) // 500) % len(cores)]
        if in_iteration_s < work_s:
            in_iteration_s += _STEP_S * milli / 1000
            used_s += _STEP_S * milli / 1000
        elif rested_s < fixed_s:
            rested_s += _STEP_S
        if in_iteration_s >= work_s and rested_s >= fixed_s:
            in_iteration_s, rested_s, iteration = 0.0, 0.0, iteration + 1
        used.append(used_s)
        if step % 100 == 0:
            yield step * _STEP_S, used[max(0, step - round(late_s / _STEP_S))], iteration, milli


@pytest.mark.slow
@example(work_s=0.1015625, fixed_s=0.0, cores=[1000, 50], late_s=1.5)
@given(
    st.floats(0.1, 0.8),
    st.sampled_from([0.0, 0.03, 0.5]),
    st.lists(st.sampled_from([50, 300, 1000, 1950]), min_size=1, max_size=12),
    st.floats(0.0, 1.5),
)
def test_a_cost_is_found_though_news_is_late(work_s: float, fixed_s: float, cores: list[int], late_s: float) -> None:
    cost = IterationCost(0.0)
    for now, told_s, iteration, milli in _looks(work_s, fixed_s, cores, late_s):
        cost.ordered(milli, now)
        cost.look(told_s, iteration, 2.0, now)
    if iteration < 60:
        return  # too few to tell
    # an iteration, and its rest, is longer by a step at most
    longer_s = _STEP_S * max(cores) / 1000
    assert 0.7 * work_s <= cost.work_s <= 1.4 * (work_s + longer_s)
    if len(set(cores)) == 1:
        assert cost.fixed_s == pytest.approx(fixed_s, abs=0.3 * work_s * 1000 / cores[0] + 0.03)


def test_the_next_look_sets_right_what_one_saw_too_late() -> None:
    cost = IterationCost(0.0)
    # two cores for two seconds, which are told when a twentieth is ordered
    for now, told_s, iteration, milli in ((1.0, 0.0, 0, 2000), (2.9, 0.0, 3, 2000), (4.0, 3.5, 4, 50)):
        cost.ordered(milli, now)
        cost.look(told_s, iteration, 2.0, now)
    assert cost.work_s == pytest.approx(3.5)
    for second in range(5, 60):
        cost.ordered(1000, second)
        cost.look(3.5 + second - 5, second, 2.0, second)
    assert cost.work_s == pytest.approx(1.0, rel=0.1)
    assert cost.fixed_s < 0.1
