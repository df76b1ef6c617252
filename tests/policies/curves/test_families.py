"""Shapes drawn from the eleven families: from 0 to 1, rising, the same for a seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.policies.curves.families import FAMILIES, Family, drawn_shapes


@pytest.mark.slow
@given(st.integers(1, 60), st.integers(1, 300), st.floats(0.0, 1.0), st.integers(0, 5))
def test_shapes_rise_from_0_to_1(many: int, epochs: int, late: float, seed: int) -> None:
    shapes = drawn_shapes(many, late, np.random.default_rng(seed))
    table = shapes.table(epochs)
    assert table.shape == (many, epochs)
    assert (np.diff(table, axis=1) >= 0.0).all()
    assert table[:, -1] == pytest.approx(np.ones(many))
    if epochs > 1:
        assert table[:, 0] == pytest.approx(np.zeros(many))


def test_each_family_has_its_share() -> None:
    shapes = drawn_shapes(1000, 0.3, np.random.default_rng(1))
    assert sorted(np.bincount(shapes.family.astype(int)).tolist()) == [90] + [91] * 10
    assert len(FAMILIES) == 11


def test_late_shapes_wait_and_others_do_not() -> None:
    rng = np.random.default_rng(3)
    assert (drawn_shapes(100, 0.0, rng).late == 0.0).all()
    assert (drawn_shapes(100, 1.0, rng).late > 0.0).all()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_rises_where_its_fit_starts(family: Family) -> None:
    found = family(np.arange(1.0, 60.0), [np.array(start) for start in family.start])
    assert np.isfinite(found).all()
    assert found[-1] > found[0]


@pytest.mark.parametrize(
    ("name", "parameters", "at", "value"),
    [
        ("pow3", (0.9, 0.8, 1.0), 4.0, 0.7),
        ("hill3", (0.8, 2.0, 3.0), 3.0, 0.4),
        ("log-log linear", (1.0, 1.0), 1.0, 0.0),
        ("mmf", (0.9, 0.1, 0.25, 2.0), 4.0, 0.5),
        ("weibull", (1.0, 0.0, 0.5, 3.0), 2.0, 1.0 - np.exp(-1.0)),
        ("janoschek", (1.0, 0.0, 0.5, 1.0), 2.0, 1.0 - np.exp(-1.0)),
        ("exp4", (1.0, 0.5, 0.0, 1.0), 2.0, 1.0 - np.exp(-1.0)),
        ("pow4", (1.0, 1.0, 1.0, 1.0), 3.0, 0.75),
        ("log power", (0.8, np.log(5.0), -2.0), 5.0, 0.4),
        ("vapor pressure", (0.0, 1.0, 0.0), 2.0, np.exp(0.5)),
        ("ilog2", (1.0, np.log(3.0)), 2.0, 0.0),
    ],
)
def test_formulas_are_the_published_ones(name: str, parameters: tuple[float, ...], at: float, value: float) -> None:
    (family,) = (one for one in FAMILIES if one.name == name)
    assert family(np.array([at]), [np.array(one) for one in parameters])[0] == pytest.approx(value)
