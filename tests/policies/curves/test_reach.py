"""Predictions of rising curves: chances are chances, whatever a trial reports, and the closed form is the integral."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yaqd.policies.curves.families import drawn_shapes
from yaqd.policies.curves.library import posterior, shape_table
from yaqd.policies.curves.reach import (
    EPOCHS_MAX,
    REACH,
    DrawnOutlook,
    Level,
    LibraryReach,
    Outlook,
    Reach,
    Temper,
    WalkersReach,
)
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.guard import survive
from yaqd.policies.registry import UnknownPolicy

LIBRARY = LibraryReach(shapes=200, samples=100)
#: few steps: what the walkers find is another test's matter
WALKERS = WalkersReach(walkers=20, samples=10)
#: what trials report, sound or not
_VALUES = st.one_of(
    st.floats(-0.1, 1.1), st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1e300, -1e300, 1e-300, 5.0])
)
_TARGETS = st.one_of(st.floats(-1.0, 2.0), st.sampled_from([math.inf, -math.inf, math.nan]))


def _asked(predictor: Reach, rows: list[list[float]], epochs: int) -> Outlook:
    wide = max(map(len, rows), default=0)
    values = np.array([row + [math.nan] * (wide - len(row)) for row in rows]).reshape(len(rows), wide)
    return predictor.outlook(values, np.array([len(row) for row in rows], dtype=np.int64), epochs)


def _risen(epochs: int, last: float, speed: float) -> list[float]:
    at = np.arange(epochs)
    return list(0.1 + (last - 0.1) * (1 - np.exp(-at / speed)) / (1 - math.exp(-(epochs - 1) / speed)))


def _holds(outlook: Outlook, rows: list[list[float]], epochs: int, target: float) -> None:
    reached = outlook.reached(target)
    assert reached.shape == (len(rows), epochs)
    assert ((reached >= 0.0) & (reached <= 1.0)).all()
    assert (np.diff(reached, axis=1) >= 0.0).all()
    for row, chances in zip(rows, reached, strict=True):
        seen = [value for value in row[:epochs] if math.isfinite(value)]
        if seen and max(seen) >= target:
            assert chances[min(len(row), epochs) - 1] == 1.0
        elif len(seen) == len(row[:epochs]):
            assert (chances[: len(row)] == 0.0).all()
    for epoch in {1, (epochs + 1) // 2, epochs}:
        at = outlook.at(epoch, target)
        assert ((at >= 0.0) & (at <= 1.0)).all()
        low, high = outlook.interval(epoch, 0.9)
        assert np.isfinite(low).all()
        assert np.isfinite(high).all()
        assert (low <= high).all()
    assert np.isfinite(outlook.spread()).all()
    assert (outlook.spread() >= 0.0).all()


@given(st.lists(st.lists(_VALUES, max_size=12), max_size=4), st.integers(1, 14), _TARGETS)
def test_chances_of_anything_are_chances(rows: list[list[float]], epochs: int, target: float) -> None:
    _holds(_asked(LIBRARY, rows, epochs), rows, epochs, target)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.lists(_VALUES, max_size=6), max_size=2), st.integers(1, 8), _TARGETS)
def test_chances_of_anything_are_chances_to_walkers(rows: list[list[float]], epochs: int, target: float) -> None:
    _holds(_asked(WALKERS, rows, epochs), rows, epochs, target)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_higher_target_is_less_likely(row: list[float], one: float, other: float) -> None:
    outlook = _asked(LIBRARY, [row], 30)
    low, high = sorted((one, other))
    assert (outlook.reached(low) >= outlook.reached(high)).all()
    assert outlook.at(30, low) >= outlook.at(30, high)


@given(st.lists(st.lists(st.floats(0.0, 1.0), max_size=20), min_size=1, max_size=80), st.integers(0, 79))
def test_curves_do_not_see_each_other(rows: list[list[float]], number: int) -> None:
    """Rounding in products of other sizes may move a draw to the next shape, not more."""
    chosen = number % len(rows)
    together, alone = _asked(LIBRARY, rows, 20), _asked(LIBRARY, [rows[chosen]], 20)
    assert together.reached(0.5)[chosen] == pytest.approx(alone.reached(0.5)[0], abs=0.021)
    assert together.spread()[chosen] == pytest.approx(alone.spread()[0], rel=0.02, abs=1e-6)


@pytest.mark.parametrize("predictor", [LIBRARY, WALKERS])
def test_the_same_question_has_the_same_answer(predictor: Reach) -> None:
    rows = [_risen(20, 0.6, 8.0)[:7], []]
    first, second = (_asked(predictor, rows, 20).reached(0.5) for _ in range(2))
    assert (first == second).all()


@pytest.mark.parametrize("predictor", [LIBRARY, WALKERS])
def test_a_row_without_numbers_is_like_an_empty_one(predictor: Reach) -> None:
    outlook = _asked(predictor, [[math.nan] * 5, [], [math.inf, -math.inf]], 20)
    for target in (0.2, 0.5):
        chances = outlook.reached(target)
        assert (chances[0] == chances[1]).all()
        assert (chances[2] == chances[1]).all()
    assert 0.0 < outlook.at(20, 0.2)[1] < 1.0


def test_what_is_beyond_the_count_is_ignored() -> None:
    values = np.array([[0.1, 0.2, 0.9, math.nan], [0.1, 0.2, 0.3, 0.4]])
    counts = np.array([2, 2])
    chances = LIBRARY.outlook(values, counts, 20).reached(0.6)
    assert (chances[0] == chances[1]).all()


def test_a_value_that_is_no_number_counts_as_the_one_before_it() -> None:
    outlook = _asked(LIBRARY, [[0.1, 0.2, math.nan, 0.3], [0.1, 0.2, 0.2, 0.3]], 20)
    assert outlook.spread()[0] == outlook.spread()[1]


def test_a_rising_curve_promises_more_than_a_flat_one() -> None:
    chances = _asked(LIBRARY, [_risen(50, 0.8, 15.0)[:15], [0.1] * 15], 50).reached(0.6)[:, -1]
    assert chances[0] > 0.8
    assert chances[1] < 0.2


@given(st.floats(0.3, 1.0), st.floats(2.0, 20.0), st.integers(15, 40))
def test_the_last_value_of_a_plain_curve_is_in_the_interval(last: float, speed: float, known: int) -> None:
    low, high = _asked(LIBRARY, [_risen(50, last, speed)[:known]], 50).interval(50, 0.98)
    # the families have no such curve exactly: up to 0.012 beside the bounds were seen on a grid of 2,600
    assert low[0] - 0.05 <= last <= high[0] + 0.05
    assert high[0] - low[0] < 1.0


def test_a_curve_that_ended_is_a_fact() -> None:
    outlook = _asked(LIBRARY, [_risen(20, 0.6, 8.0)], 20)
    assert outlook.spread()[0] == 0.0
    assert outlook.at(20, 0.59)[0] == 1.0
    assert outlook.at(20, 0.61)[0] == 0.0
    assert outlook.reached(0.61)[0, -1] == 0.0


def test_reached_is_what_the_drawn_curves_do() -> None:
    """The bisection of shapes finds what a look at each draw at each epoch finds."""
    rows = [_risen(30, 0.7, 9.0)[:9], [0.5, 0.4, 0.3], [0.1] * 12, []]
    outlook = LIBRARY.outlook(np.array([row + [0.0] * (12 - len(row)) for row in rows]), np.array([9, 3, 12, 0]), 30)
    drawn = np.stack([outlook.drawn(epoch) for epoch in range(1, 31)], axis=2)
    for target in (0.05, 0.2, 0.35, 0.6):
        plain = DrawnOutlook(drawn, outlook.seen).reached(target)
        assert outlook.reached(target) == pytest.approx(plain, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0, 1, 2])
def test_the_closed_form_is_the_integral(shape: int) -> None:
    """Level, rise, noise and evidence against sums over a fine grid of all three."""
    level = Level(0.1, 0.1, 0.3, 0.3, 0.05, 8.0)
    table = shape_table(drawn_shapes(2, 0.0, np.random.default_rng(4)), 0.2, 8, level, Temper(0.6, 0.9, 0.1))
    values = np.zeros((1, 8))
    values[0, :4] = (0.1, 0.15, 0.24, 0.26)
    found = posterior(values, np.array([4]), table)
    grids = [_integral(values[0, :4], table.table[row, :4], table.weights[4, :4], level) for row in range(3)]
    evidence = np.array([grid[0] for grid in grids]) * np.exp(table.log_prior)
    assert found.weights[0] == pytest.approx(evidence / evidence.sum(), rel=0.01)
    _, start, rise, variance, rise_sd = grids[shape]
    assert found.start[0, shape] == pytest.approx(start, abs=2e-3)
    assert found.rise[0, shape] == pytest.approx(rise, abs=2e-3)
    mean = found.scale[0, shape] / (found.shape[0] - 1.0)
    assert mean == pytest.approx(variance, rel=0.02)
    assert np.sqrt(mean * table.rise[4, shape]) == pytest.approx(rise_sd, rel=0.02)


def _integral(values: Floats, shape: Floats, weights: Floats, level: Level) -> tuple[float, float, float, float, float]:
    """Return evidence and the means of start, rise and noise variance, and the rise's deviation."""
    log_variance = np.linspace(np.log(level.noise**2) - 5.0, np.log(level.noise**2) + 7.0, 121)[:, None, None]
    variance = np.exp(log_variance)
    start = np.linspace(-0.5, 0.7, 121)[None, :, None]
    rise = np.linspace(-2.0, 2.6, 231)[None, None, :]
    half = level.strength / 2.0
    # inverse-gamma over the logarithm of the variance
    density = -half * log_variance - half * level.noise**2 / variance
    for at, middle, sd in ((start, level.start, level.start_sd), (rise, level.rise, level.rise_sd)):
        own = variance * (sd / level.noise) ** 2
        density = density - 0.5 * np.log(own) - 0.5 * (at - middle) ** 2 / own
    for value, height, weight in zip(values, shape, weights, strict=True):
        density = density - weight * 0.5 * (log_variance + (value - start - rise * height) ** 2 / variance)
    mass = np.exp(density)
    total = float(mass.sum())
    mean_rise = float((mass * rise).sum()) / total
    deviation = math.sqrt(float((mass * (rise - mean_rise) ** 2).sum()) / total)
    return total, float((mass * start).sum()) / total, mean_rise, float((mass * variance).sum()) / total, deviation


def test_walkers_recover_a_curve_of_the_families() -> None:
    epochs = np.arange(1.0, 51.0)
    curve = 0.8 - 0.7 * epochs**-0.6
    noisy = curve + np.random.default_rng(2).normal(0.0, 0.004, 50)
    outlook = WalkersReach(samples=200).outlook(noisy[None, :20], np.array([20]), 50)
    low, high = outlook.interval(50, 0.98)
    assert low[0] <= curve[-1] <= high[0]
    assert high[0] - low[0] < 0.3
    assert np.median(outlook.draws[0, :, -1]) == pytest.approx(curve[-1], abs=0.06)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: LibraryReach(shapes=0), "0 shapes"),
        (lambda: WalkersReach(walkers=7), "7 walkers"),
        (lambda: Level(rise_sd=0.0), "above 0"),
        (lambda: LIBRARY.outlook(np.zeros((1, 3)), np.array([3]), EPOCHS_MAX + 1), "every n-th epoch"),
        (lambda: LIBRARY.outlook(np.zeros((2, 3)), np.array([3]), 9), "one row for each count"),
        (lambda: LIBRARY.outlook(np.zeros((1, 3)), np.array([3]), 9).at(10, 0.5), "epochs 1 to 9"),
    ],
)
def test_what_cannot_be_asked_is_said(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_predictors_have_names() -> None:
    assert REACH.names()[:2] == ["library", "walkers"]
    page = (Path(__file__).parents[3] / "docs" / "policies-reference.md").read_text()
    assert all(f"- `{name}`: " in page for name in REACH.names())
    values: Floats = np.array([[0.1, 0.2]])
    counts: Ints = np.array([2])
    assert REACH["library"].outlook(values, counts, 9).at(9, 0.1)[0] > 0.5


def test_a_predictor_of_others_that_fails_gives_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault of its own: it raises, has no such method, or says what is no chance."""
    module = f"foreign_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(
        "class Raises:\n    def outlook(self, *args): raise KeyError('lost')\n"
        "class Says:\n    def outlook(self, *args): return 'soon'\n"
        "class Odd:\n    def outlook(self, *args): return self\n"
        "    def reached(self, target): return [[2.0]]\n"
        "    at = interval = spread = reached\n"
        "raises, says, odd, number = Raises(), Says(), Odd(), 7\n"
    )
    info = tmp_path / f"{module}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
    names = ("raises", "says", "odd", "number")
    entries = "".join(f"{name}-{module} = {module}:{name}\n" for name in names)
    (info / "entry_points.txt").write_text(f"[yaqd.reach]\n{entries}")
    monkeypatch.syspath_prepend(tmp_path)
    told: list[str] = []
    survive(told.append)
    try:
        for name in ("raises", "says", "odd"):
            found = _asked(REACH[f"{name}-{module}"], [[0.1, 0.2]], 9).reached(0.15)
            assert found[0].tolist() == [0.0] + [1.0] * 8
    finally:
        survive(None)
    assert [said.partition(": ")[2].partition(":")[0] for said in told] == ["KeyError", "TypeError", "ValueError"]
    with pytest.raises(UnknownPolicy, match="it has no method outlook"):
        REACH[f"number-{module}"].outlook(np.zeros((0, 0)), np.zeros(0, dtype=np.int64), 9)
