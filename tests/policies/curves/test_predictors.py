"""Predictors: right on curves of their own family, and harmless on anything else."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.curves.curve_cases import one
from yaqd.policies.curves.drops import (
    CLASSES,
    HORIZONS,
    PREDICTORS,
    drops_at,
    predicted_drops,
)
from yaqd.policies.curves.losses import LossWindows
from yaqd.policies.curves.mix import SUBLINEAR, SUPERLINEAR
from yaqd.policies.curves.samples import Sample, product

ANY = st.floats(allow_nan=True, allow_infinity=True)
_AT_10 = int(np.flatnonzero(HORIZONS == 10)[0])


@given(
    losses=st.lists(ANY, max_size=80),
    first=st.floats(0, 1e16),
    name=st.sampled_from(sorted(PREDICTORS)),
    kind=st.sampled_from(sorted(CLASSES.values())),
)
def test_whatever_a_job_reports_drops_are_numbers_that_never_fall(
    losses: list[float], first: float, name: str, kind: int
) -> None:
    drops = predicted_drops(one(losses, first=first), np.array([kind]), name)[0]
    assert np.all(np.isfinite(drops))
    assert drops[0] == 0.0
    assert np.all(np.diff(drops) >= 0.0)


@given(losses=st.lists(st.floats(-1e6, 1e6), max_size=60))
def test_a_constant_loss_promises_nothing(losses: list[float]) -> None:
    constant = [losses[0] if losses else 1.0] * max(2, len(losses))
    for name in PREDICTORS:
        assert not predicted_drops(one(constant), predictor=name).any()


@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=50))
def test_a_growing_loss_promises_nothing(rises: list[float]) -> None:
    growing = np.cumsum(rises)
    for name in PREDICTORS:
        assert not predicted_drops(one(growing), predictor=name).any()


@pytest.mark.parametrize(("rate", "height", "end"), [(0.9, 5.0, 1.0), (0.5, 300.0, 0.0), (0.97, 1.0, -3.0)])
def test_an_exponential_is_predicted_by_its_family(rate: float, height: float, end: float) -> None:
    losses = height * rate ** np.arange(60.0) + end
    for name in ("exponential", "mixed", "damped"):
        drop = predicted_drops(one(losses[:21]), predictor=name)[0, _AT_10]
        assert drop == pytest.approx(losses[20] - losses[30], abs=0.02 * height)


@pytest.mark.parametrize(("a", "b", "d"), [(0.0, 0.2, 0.4), (0.01, 0.1, 1.0), (0.05, 0.0, 0.0)])
def test_a_sublinear_curve_is_predicted_by_its_family(a: float, b: float, d: float) -> None:
    k = np.arange(60.0)
    losses = 1.0 / (a * k**2 + b * k + 1.0) + d
    for name in ("sublinear", "mixed"):
        drop = predicted_drops(one(losses[:21]), predictor=name)[0, _AT_10]
        assert drop == pytest.approx(losses[20] - losses[30], abs=0.02)


def test_repeating_the_last_change_is_what_it_says() -> None:
    drops = predicted_drops(one([9.0, 5.0, 3.0]), predictor="repeated")[0]
    assert drops[_AT_10] == pytest.approx(20.0)


def test_noise_of_half_a_percent_does_not_upset_the_mixture() -> None:
    rng = np.random.default_rng(7)
    k = np.arange(60.0)
    true = 1.0 / (1.0 + 0.2 * k)
    errors: dict[str, list[float]] = {"mixed": [], "repeated": []}
    for _ in range(20):
        noisy = true + 0.005 * rng.normal(size=60)
        for name, found in errors.items():
            drop = predicted_drops(one(noisy[:31]), predictor=name)[0, _AT_10]
            found.append(abs(drop - (true[30] - true[40])))
    assert 2 * np.mean(errors["mixed"]) < np.mean(errors["repeated"])


def test_a_declared_class_leaves_the_other_family_out() -> None:
    k = np.arange(30.0)
    losses = one(1.0 / (1.0 + k))
    as_declared = predicted_drops(losses, np.array([SUBLINEAR]))[0, -1]
    against_it = predicted_drops(losses, np.array([SUPERLINEAR]))[0, -1]
    assert abs(as_declared - 1 / 30) < abs(against_it - 1 / 30)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40), st.integers(-20, 40))
def test_the_unit_of_the_loss_does_not_matter(losses: list[float], power: int) -> None:
    """By powers of two, which change no rounding: fits choose, and a choice may hang on the last bit."""
    plain = predicted_drops(one(losses))[0]
    scaled = predicted_drops(one(np.array(losses) * 2.0**power))[0]
    assert scaled == pytest.approx(plain * 2.0**power, rel=1e-9, abs=1e-250)


def test_jobs_do_not_see_each_other() -> None:
    """A batch predicts what each row alone predicts."""
    rng = np.random.default_rng(3)
    windows, rows = LossWindows(), []
    for many in (1, 2, 3, 5, 9, 30, 70):
        row = windows.add()
        rows.append(row)
        windows.report(row, 0, np.cumsum(-rng.random(many)))
    together = predicted_drops(windows.sample(np.array(rows)))
    for at, row in enumerate(rows):
        assert predicted_drops(windows.sample(np.array([row])))[0] == pytest.approx(together[at])


def test_between_horizons_a_drop_grows_in_a_straight_line() -> None:
    drops = np.array([HORIZONS * 2.0])
    assert drops_at(drops, np.array([[0.0, 0.5, 7.0, 45.0, 1e9, -1.0]]))[0] == pytest.approx([0, 1, 14, 90, 400, 0])


def test_a_sample_before_is_what_it_was() -> None:
    losses = np.array([9.0, 5.0, 3.0, 2.0, 1.5])
    earlier = one(losses, 10).before(np.array([2]))
    then: Sample = one(losses[:3], 10)
    assert earlier.counts[0] == 3
    assert earlier.values * earlier.scale[:, None] == pytest.approx(then.values * then.scale[:, None])


#: times its own CPU time, of one thread and of all, around refits of many jobs
_REFIT = """
import time
import subprocess
import sys

import numpy as np
from yaqd.policies.curves.drops import predicted_drops
from yaqd.policies.curves.samples import sample
losses = np.random.default_rng(1).random((4000, 40)).cumsum(axis=1)[:, ::-1]
windows = sample(np.broadcast_to(np.arange(40.0), losses.shape), losses, np.full(4000, 40))
for _ in range(8):  # those that BLAS makes when it is loaded wait busily too, for a while
    predicted_drops(windows)
of_all, of_one = time.process_time(), time.thread_time()
for _ in range(4):
    predicted_drops(windows)
print((time.process_time() - of_all) / (time.thread_time() - of_one))
"""


def test_a_refit_wakes_no_threads_that_wait_busily() -> None:
    ran = subprocess.run([sys.executable, "-c", _REFIT], check=True, capture_output=True, text=True)
    assert float(ran.stdout) < 1.02


@given(st.integers(0, 700), st.integers(1, 60), st.integers(1, 30))
def test_a_product_by_blocks_is_the_product(rows: int, columns: int, wide: int) -> None:
    rng = np.random.default_rng(rows)
    values, table = rng.normal(size=(rows, columns)), rng.normal(size=(columns, wide))
    np.testing.assert_allclose(product(values, table), values @ table, rtol=1e-9, atol=1e-12)
