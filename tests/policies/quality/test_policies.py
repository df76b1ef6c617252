"""Quality policies: what holds for all of them, and what each is for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.quality.quality_cases import cores, training_jobs
from yaqd.policies.curves.drops import HORIZONS
from yaqd.policies.quality.facts import MILLI, Reason, Shares, bounded
from yaqd.policies.quality.policies import (
    QUALITY,
    QualityPolicy,
    fair,
    finish,
    goodput,
    las,
    slaq_maxmin,
    slaq_total,
    srpt,
)
from yaqd.policies.quality.worth import rates_of, worth_of

NAMES = QUALITY.names()


@given(
    name=st.sampled_from(NAMES),
    many=st.integers(0, 25),
    seed=st.integers(0, 500),
    total=st.integers(0, 200_000),
    unit=st.sampled_from([1000, 50, 1]),
    cap=st.integers(0, 90_000),
    floor=st.sampled_from([0, 50, 1000]),
    lost=st.booleans(),
)
def test_shares_are_units_that_fit(
    name: str, many: int, seed: int, total: int, unit: int, cap: int, floor: int, lost: bool
) -> None:
    left = {"left": np.full(many, np.inf)} if lost else {}
    jobs = training_jobs(many, seed, cap=np.full(many, cap), floor=np.full(many, floor), **left)
    shares = QUALITY[name](jobs, cores(total, unit))
    assert shares.milli.sum() <= total
    assert np.all(shares.milli >= 0)
    assert np.all(shares.milli <= jobs.cap)
    assert np.all(shares.milli % unit == 0)
    assert np.all(np.isfinite(shares.gains))
    assert np.all(shares.gains >= 0)
    assert set(shares.reasons.tolist()) <= {int(reason) for reason in Reason}
    # nothing is left while somebody could use it, but less than a floor where not everybody runs
    usable, floors = jobs.cap // unit, np.minimum(-(-jobs.floor // unit), jobs.cap // unit)
    if floors.sum() <= total // unit:
        assert shares.milli.sum() // unit == min(total // unit, usable.sum())


@pytest.mark.parametrize("name", NAMES)
def test_everybody_has_the_floor_where_there_is_enough(name: str) -> None:
    shares = QUALITY[name](training_jobs(20), cores(40 * MILLI))
    assert shares.milli.min() >= MILLI


@pytest.mark.parametrize("name", NAMES)
def test_no_job_changes_nothing_for_others(name: str) -> None:
    assert len(QUALITY[name](training_jobs(0), cores(5 * MILLI)).milli) == 0


def test_parts_of_a_twentieth_are_divided() -> None:
    jobs = training_jobs(18, floor=np.full(18, 50), cap=np.full(18, 2000), work_s=np.full(18, 0.12))
    shares = finish(jobs, cores(2 * MILLI, 50))
    assert shares.milli.sum() == 2000
    assert np.any(shares.milli % MILLI)
    assert shares.milli.min() == 50


def test_where_jobs_outnumber_cores_those_with_most_to_gain_run() -> None:
    jobs = training_jobs(30, work_s=np.full(30, 10.0))
    shares = slaq_total(jobs, cores(8 * MILLI))
    assert np.count_nonzero(shares.milli) == 8
    worth, rates = worth_of(jobs, jobs.largest), rates_of(jobs, 1.0)
    gains = worth.at(rates.done(np.ones((30, 1))))[:, 0]
    assert set(np.flatnonzero(shares.milli)) == set(np.argsort(-gains)[:8])
    assert set(shares.reasons[shares.milli == 0]) == {Reason.OUTNUMBERED}


@pytest.mark.parametrize("policy", [finish, slaq_total])
def test_a_core_moves_only_where_it_gains_more_than_the_move_costs(policy: QualityPolicy) -> None:
    """Two jobs alike, the second worth a little more: with moves that cost nothing it has a little more."""

    def shares(weight: float, *move_s: float, has: tuple[int, ...] = (10, 10)) -> Shares:
        jobs = training_jobs(
            2, drops=np.repeat(training_jobs(1).drops, 2, axis=0), work_s=np.full(2, 30.0), largest=np.ones(2),
            left=np.full(2, 50.0), fallen=np.ones(2), weight=np.array([1.0, weight]),
            current=np.array(has) * MILLI, move_s=np.array(move_s),
        )  # fmt: skip
        return policy(jobs, cores(20 * MILLI))

    free = shares(1.15, 0.0, 0.0)
    assert free.milli[1] > 10 * MILLI and Reason.KEPT not in free.reasons
    kept = shares(1.15, 2.0, 2.0)
    assert kept.milli.tolist() == [10 * MILLI] * 2 and kept.reasons.tolist() == [Reason.GAIN, Reason.KEPT]
    assert shares(1.15, 2.0, 0.0).milli.tolist() == free.milli.tolist(), "who gains it pays for the move"
    assert shares(2.0, 2.0, 2.0).milli[1] > 10 * MILLI, "worth the move"
    best = tuple(int(milli) // MILLI for milli in free.milli)
    assert Reason.KEPT not in shares(1.15, 2.0, 2.0, has=best).reasons, "nobody would have more of it for nothing"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "slaq-maxmin"])
def test_a_weight_brings_cores(name: str) -> None:
    light = training_jobs(20, 5, work_s=np.full(20, 100.0))
    weight = np.ones(20)
    weight[7] = 1000.0
    heavy = training_jobs(20, 5, work_s=np.full(20, 100.0), weight=weight)
    division = cores(100 * MILLI)
    before, after = QUALITY[name](light, division).milli[7], QUALITY[name](heavy, division).milli[7]
    assert after >= before
    assert after > before or before == 64 * MILLI or name in ("srpt", "las")


def test_equal_shares_leave_what_a_cap_forbids_to_the_others() -> None:
    cap = np.array([2, 64, 64, 64]) * MILLI
    shares = fair(training_jobs(4, cap=cap), cores(32 * MILLI))
    assert shares.milli.tolist() == [2000, 10_000, 10_000, 10_000]
    assert shares.reasons.tolist() == [Reason.CAP, Reason.SHARE, Reason.SHARE, Reason.SHARE]


def test_the_paper_s_total_is_above_the_equal_shares_() -> None:
    jobs, division = training_jobs(50), cores(640 * MILLI)
    worth, rates = worth_of(jobs, jobs.largest), rates_of(jobs, 1.0)

    def total(shares: Shares) -> float:
        return float(worth.at(rates.done(shares.milli[:, None] / MILLI)).sum())

    assert total(slaq_total(jobs, division)) > 1.2 * total(fair(jobs, division))


@pytest.mark.parametrize("name", NAMES)
def test_a_gain_is_a_part_of_the_whole_fall(name: str) -> None:
    jobs, heavy = training_jobs(20), training_jobs(20, weight=np.full(20, 50.0))
    for shares in (QUALITY[name](jobs, cores(900 * MILLI)), QUALITY[name](heavy, cores(900 * MILLI))):
        assert 0.0 < shares.gains.max() <= 1.0


def test_a_job_that_has_converged_gets_the_floor() -> None:
    drops = training_jobs(3).drops
    drops[1] = 0.0
    shares = slaq_total(training_jobs(3, drops=drops), cores(30 * MILLI))
    assert shares.milli[1] == MILLI
    assert shares.reasons[1] == Reason.FLOOR


def test_where_nobody_gains_cores_are_shared_equally() -> None:
    jobs = training_jobs(4, drops=np.zeros((4, len(HORIZONS))))
    assert slaq_total(jobs, cores(40 * MILLI)).milli.tolist() == [10_000] * 4


def _largest_loss(milli: np.ndarray, **changes: object) -> float:
    jobs = training_jobs(12, 3, **changes)
    worth = worth_of(jobs, jobs.largest)
    gains = worth.at(rates_of(jobs, 1.0).done(milli[:, None] / MILLI))[:, 0]
    return float((worth.worth[:, -1] - gains).max())


def test_maxmin_makes_the_largest_loss_smaller_than_any_other_policy_does() -> None:
    jobs, division = training_jobs(12, 3, work_s=np.full(12, 5.0)), cores(60 * MILLI)
    ours = _largest_loss(slaq_maxmin(jobs, division).milli, work_s=np.full(12, 5.0))
    for name in NAMES:
        other = _largest_loss(QUALITY[name](jobs, division).milli, work_s=np.full(12, 5.0))
        assert ours <= other + 1e-9


def test_the_end_is_worth_some_of_the_way_to_it() -> None:
    """Two jobs that have nothing to gain but one ends soon: the paper's greedy tells them not apart."""
    drops = np.zeros((2, len(HORIZONS)))
    jobs = training_jobs(2, drops=drops, left=np.array([50.0, 2.0]), work_s=np.full(2, 30.0))
    assert slaq_total(jobs, cores(40 * MILLI)).milli.tolist() == [20_000, 20_000]
    shares = finish(jobs, cores(40 * MILLI))
    assert shares.milli[1] > 30 * MILLI


def test_the_least_served_are_served_until_they_are_even() -> None:
    jobs = training_jobs(3, attained_s=np.array([0.0, 5.0, 100.0]), floor=np.zeros(3, dtype=np.int64))
    assert las(jobs, cores(9 * MILLI)).milli.tolist() == [7000, 2000, 0]


def test_the_shortest_gets_what_it_can_use() -> None:
    jobs = training_jobs(3, left=np.array([9.0, 1.0, 5.0]), work_s=np.ones(3), cap=np.full(3, 6000))
    assert srpt(jobs, cores(10 * MILLI)).milli.tolist() == [1000, 6000, 3000]


def test_goodput_of_jobs_that_are_alike_is_the_equal_share() -> None:
    jobs = training_jobs(8, work_s=np.full(8, 50.0))
    assert goodput(jobs, cores(64 * MILLI)).milli.tolist() == [8000] * 8


def test_a_job_without_losses_is_taken_for_one_that_falls_fast() -> None:
    is_known = np.array([True, True, False])
    drops = training_jobs(3).drops * 1e-6
    drops[2] = 1.0 - 0.8**HORIZONS
    jobs = training_jobs(3, is_known=is_known, drops=drops, largest=np.ones(3), left=np.full(3, 50.0))
    shares = slaq_total(jobs, cores(30 * MILLI))
    assert shares.milli.argmax() == 2
    assert shares.reasons[2] == Reason.NEW


@given(st.lists(st.integers(-(10**6), 10**6), min_size=5, max_size=5), st.integers(0, 300_000))
def test_whatever_a_policy_of_others_says_it_fits(milli: list[int], total: int) -> None:
    division, jobs = cores(total, 50), training_jobs(5)
    found = bounded(Shares(np.array(milli), np.zeros(5), np.zeros(5, dtype=np.int64)), jobs, division)
    assert found.milli.sum() <= total
    assert np.all((found.milli >= 0) & (found.milli <= jobs.cap) & (found.milli % 50 == 0))
