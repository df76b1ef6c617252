"""Windows of losses: what is taken in, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.model.training import LOSS_MAX
from yaqd.policies.curves.losses import LossWindows, numbers
from yaqd.policies.curves.samples import WINDOW_MAX


def test_the_newest_losses_are_kept() -> None:
    windows = LossWindows(4)
    row = windows.add()
    assert windows.report(row, 0, [9.0, 7.0]) == 2
    assert windows.report(row, 2, [6.0, 5.0, 4.5]) == 3
    assert windows.losses[row].tolist() == [7.0, 6.0, 5.0, 4.5]
    assert windows.iterations[row].tolist() == [1, 2, 3, 4]
    assert (windows.first[row], windows.largest[row], windows.counts[row]) == (9.0, 2.0, 4)


def test_a_batch_that_comes_twice_counts_once() -> None:
    windows = LossWindows(8)
    row = windows.add()
    windows.report(row, 0, [3.0, 2.0])
    before = windows.losses.copy()
    assert windows.report(row, 0, [3.0, 2.0]) == 0
    assert windows.report(row, 1, [2.0, 1.0]) == 1
    assert windows.losses[row, -3:].tolist() == [3.0, 2.0, 1.0]
    assert before[row, -2:].tolist() == [3.0, 2.0]


def test_what_is_no_loss_is_left_out() -> None:
    windows = LossWindows(8)
    row = windows.add()
    mixed = ["x", None, float("nan"), float("inf"), -float("inf"), 2 * LOSS_MAX, 10**400, "3", 2.0]
    assert windows.report(row, 0, mixed) == 2
    assert windows.losses[row, -2:].tolist() == [3.0, 2.0]
    assert windows.iterations[row, -2:].tolist() == [7, 8]


@given(st.lists(st.tuples(st.floats(), st.lists(st.floats(), max_size=9)), max_size=20))
def test_iterations_only_grow_and_losses_are_finite(batches: list[tuple[float, list[float]]]) -> None:
    windows = LossWindows(10)
    row = windows.add()
    for first, losses in batches:
        windows.report(row, first, losses)
    many = int(windows.counts[row])
    assert np.all(np.isfinite(windows.losses))
    if many:
        assert np.all(np.diff(windows.iterations[row, 10 - many :]) > 0)
    assert windows.largest[row] >= 0


def test_of_a_long_batch_the_newest_are_read() -> None:
    windows = LossWindows(5)
    row = windows.add()
    assert windows.report(row, 0, np.arange(1000.0, 0.0, -1.0)) == 5
    assert windows.losses[row].tolist() == [5, 4, 3, 2, 1]
    assert windows.newest(row) == 999
    assert len(numbers(list(range(500)))) == WINDOW_MAX


def test_iterations_left_out_are_read_at_even_steps() -> None:
    windows = LossWindows(6)
    row = windows.add()
    for iteration in (0, 2, 4, 10):
        windows.report(row, iteration, [10.0 - iteration])
    found = windows.sample(np.array([row]))
    assert found.steps[0] == pytest.approx(10 / 3)
    assert (found.values * found.scale[:, None])[0, -4:] == pytest.approx([10, 20 / 3, 10 / 3, 0])


def test_a_row_is_used_again_and_remembers_nothing() -> None:
    windows = LossWindows(4)
    row = windows.add()
    windows.report(row, 5, [3.0, 1.0])
    windows.forget(row)
    assert windows.add() == row
    assert (windows.counts[row], windows.newest(row), windows.largest[row]) == (0, -1.0, 0.0)
    assert windows.report(row, 0, [8.0]) == 1
    assert windows.first[row] == 8.0


def test_rows_grow_as_they_are_wanted() -> None:
    windows = LossWindows(4)
    rows = [windows.add() for _ in range(100)]
    assert len(set(rows)) == 100
    assert len(windows) >= 100
    assert not windows.has_losses(np.array(rows)).any()


@pytest.mark.parametrize("window", [0, 1, WINDOW_MAX + 1])
def test_a_window_has_bounds(window: int) -> None:
    with pytest.raises(ValueError, match="window"):
        LossWindows(window)
