"""Rows of jobs: who is refitted, and what a policy is told."""

import numpy as np
import pytest

from yaqd.policies.curves.drops import HORIZONS
from yaqd.policies.quality.forecasts import Forecasts, JobSpec

_LOSSES = 3.0 + 5.0 * 0.8 ** np.arange(40.0)


def test_only_jobs_that_reported_are_refitted() -> None:
    forecasts = Forecasts()
    rows = [forecasts.add(JobSpec(iterations=100)) for _ in range(5)]
    for row in rows:
        forecasts.report(row, 0, _LOSSES[:10])
    assert forecasts.refit() == 5
    assert forecasts.refit() == 0
    before = forecasts.drops.copy()
    forecasts.report(rows[2], 10, _LOSSES[10:20])
    assert forecasts.refit() == 1
    changed = np.flatnonzero((forecasts.drops != before).any(axis=1))
    assert changed.tolist() == [rows[2]]


def test_a_policy_is_told_what_jobs_said_and_did() -> None:
    forecasts = Forecasts()
    forecasts.add(JobSpec())
    row = forecasts.add(JobSpec(2.0, 50, 8000, 3.0, 0.1, iterations=30))
    forecasts.report(row, 0, _LOSSES[:11])
    forecasts.ran(np.array([row]), np.array([7.5]))
    forecasts.timed(row, 4.0, 0.2)
    forecasts.given(np.array([row]), np.array([1500]))
    forecasts.refit()
    jobs = forecasts.jobs(np.array([row]))
    assert (jobs.weight[0], jobs.floor[0], jobs.cap[0], jobs.current[0]) == (2.0, 50, 8000, 1500)
    assert (jobs.work_s[0], jobs.fixed_s[0], jobs.attained_s[0], jobs.left[0]) == (4.0, 0.2, 7.5, 20.0)
    assert jobs.largest[0] == pytest.approx(1.0)
    assert jobs.fallen[0] == pytest.approx(_LOSSES[0] - _LOSSES[10])
    assert jobs.is_known[0]


def test_a_new_job_falls_fast_until_it_has_two_losses() -> None:
    forecasts = Forecasts()
    row = forecasts.add(JobSpec())
    forecasts.report(row, 0, [3.0])
    assert forecasts.refit() == 0
    jobs = forecasts.jobs(np.array([row]))
    assert not jobs.is_known[0]
    assert jobs.drops[0, 1] == pytest.approx(1.0)
    forecasts.report(row, 1, [2.0])
    assert forecasts.refit() == 1
    assert forecasts.jobs(np.array([row])).is_known[0]


def test_a_job_beyond_what_it_said_is_half_way() -> None:
    forecasts = Forecasts()
    row = forecasts.add(JobSpec(iterations=10))
    forecasts.report(row, 0, _LOSSES[:31])
    assert forecasts.jobs(np.array([row])).left[0] == 30.0


def test_a_target_bounds_what_is_predicted_and_leads_through_a_plateau() -> None:
    forecasts = Forecasts()
    plain, hinted, reached = (forecasts.add(JobSpec(target=target)) for target in (None, 2.0, 4.0))
    plateau = np.concatenate((np.linspace(9.0, 4.0, 10), np.full(20, 4.0)))
    for row in (plain, hinted, reached):
        forecasts.report(row, 0, plateau)
    forecasts.refit()
    assert forecasts.drops[plain].max() < 0.1 * forecasts.drops[hinted].max()
    assert not forecasts.drops[reached].any()
    assert 0 < forecasts.drops[hinted, 1] < forecasts.drops[hinted, -1] <= 2.0


def test_a_row_that_is_used_again_starts_anew() -> None:
    forecasts = Forecasts()
    row = forecasts.add(JobSpec())
    forecasts.report(row, 0, _LOSSES)
    forecasts.refit()
    forecasts.report(row, 40, [1.0])
    forecasts.forget(row)
    assert forecasts.refit() == 0
    assert forecasts.add(JobSpec()) == row
    assert forecasts.drops[row] == pytest.approx((1 - 0.6**HORIZONS) / 0.4)
