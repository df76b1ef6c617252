"""Max-min shares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.policies.quality.levels import admitted, in_units, level, raised

_SHARES = st.lists(
    st.tuples(st.floats(0.1, 10), st.floats(0, 5), st.floats(0.01, 100), st.floats(0, 50)), min_size=1, max_size=20
)


@given(_SHARES, st.floats(0, 500))
def test_a_level_is_one_level_and_adds_up(jobs: list[tuple[float, float, float, float]], total: float) -> None:
    speeds, floors, more, starts = (np.array(column) for column in zip(*jobs, strict=True))
    caps = floors + more
    shares = level(speeds, floors, caps, total, starts)
    expected = min(max(total, float(floors.sum())), float(caps.sum()))
    assert shares.sum() == pytest.approx(expected, abs=1e-6)
    inside = (shares > floors + 1e-7) & (shares < caps - 1e-7)
    levels = (shares / speeds + starts)[inside]
    if levels.size:
        assert np.ptp(levels) < 1e-5
        assert np.all((shares / speeds + starts)[shares >= caps - 1e-7] <= levels.mean() + 1e-5)
        assert np.all((shares / speeds + starts)[shares <= floors + 1e-7] >= levels.mean() - 1e-5)


@given(st.lists(st.floats(0, 20), min_size=1, max_size=20))
def test_units_add_up_to_what_there_is(exact: list[float]) -> None:
    wanted = np.array(exact)
    caps = np.ceil(wanted).astype(np.int64)
    total = int(wanted.sum() + 1e-6)
    units = in_units(wanted, caps, total)
    assert units.sum() <= total
    assert np.all(units <= caps)
    assert np.all(np.abs(units - wanted) <= 1 + 1e-6)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.integers(0, 99))
def test_what_is_left_goes_to_those_with_least(units: list[int], free: int) -> None:
    had, caps = np.array(units), np.full(len(units), 10)
    has = raised(had, caps, free)
    assert has.sum() == min(had.sum() + free, caps.sum())
    assert np.all(has >= had)
    grew = has > had
    if grew.any() and (~grew).any():
        assert has[grew].max() <= max(had[~grew].min(), has[grew].min()) + 1


def test_where_floors_do_not_fit_the_first_run() -> None:
    floors, caps = admitted(np.array([2, 2, 2]), np.array([9, 9, 9]), np.array([2, 0, 1]), 4)
    assert floors.tolist() == [2, 0, 2]
    assert caps.tolist() == [9, 0, 9]
