"""Training jobs in simulated time: exact where it can be worked out by hand, and the same for the same seed."""

import json

import numpy as np
import pytest

from yaqd.policies.curves.mix import SUBLINEAR
from yaqd.policies.quality.policies import QUALITY
from yaqd.sim.training import TrainingSystem, simulate_training
from yaqd.sim.workloads import WorkloadError
from yaqd.sim.workloads.training import (
    ITERATIONS,
    LIVE,
    LossCurve,
    TrainingDrawn,
    TrainingJob,
    draw_training,
    parse_curves,
)

_HALVES = tuple(0.5**k for k in range(ITERATIONS + 1))
_LINE = tuple(float(ITERATIONS - k) for k in range(ITERATIONS + 1))


def _curve(losses: tuple[float, ...]) -> LossCurve:
    return LossCurve("made", SUBLINEAR, "", losses)


def _job(losses: tuple[float, ...] = _HALVES, work_s: float = 4.0, arrival_s: float = 0.0, cap: int = 8) -> TrainingJob:
    return TrainingJob(arrival_s, _curve(losses), work_s, 0.5, cap)


def _curves() -> tuple[LossCurve, ...]:
    k = np.arange(ITERATIONS + 1.0)
    slow, fast = tuple(1 / (1 + 0.1 * k)), tuple(0.7**k)
    return (_curve(slow), LossCurve("other", 0, "", fast))


@pytest.mark.slow
@pytest.mark.parametrize("policy", QUALITY.names())
def test_a_job_alone_has_all_it_can_use(policy: str) -> None:
    """8 cores: an iteration takes 4 / 8 + 0.5 = 1 s; 90 % of the fall is there after four, 95 % after five."""
    result = simulate_training((_job(),), 20, TrainingSystem(policy))
    assert (result.t90[0], result.t95[0], result.t100[0]) == pytest.approx((4.0, 5.0, 100.0))
    assert result.loss_s[0] == pytest.approx(2.0)
    assert result.epochs == 100


def test_two_jobs_with_equal_shares() -> None:
    """4 cores each: 1.5 s an iteration."""
    result = simulate_training((_job(), _job(_LINE)), 8, TrainingSystem("fair"))
    assert result.t90.tolist() == pytest.approx([6.0, 135.0])
    assert result.t100.tolist() == pytest.approx([150.0, 150.0])
    assert result.loss_s[1] == pytest.approx(150 * 0.505)


def test_a_job_waits_for_the_next_epoch_and_the_wait_counts() -> None:
    result = simulate_training((_job(), _job(arrival_s=200.25)), 8, TrainingSystem("fair"))
    assert result.t90[1] == pytest.approx(4.0 + 0.75)
    assert result.loss_s[1] == pytest.approx(2.0 + 0.75)


@pytest.mark.slow
def test_a_policy_that_knows_what_moves_cost_moves_less_and_loses_less() -> None:
    drawn = TrainingDrawn(jobs=40, gap_s=8.0, cores=160, mean_core_s=6000.0)
    jobs = draw_training(drawn, _curves(), 3)
    unaware, aware = (
        simulate_training(jobs, drawn.cores, TrainingSystem(move_s=1.0, heeds_moves=heeds)) for heeds in (False, True)
    )
    free = simulate_training(jobs, drawn.cores, TrainingSystem())
    assert aware.cores_moved < 0.9 * unaware.cores_moved
    assert free.t100.mean() < aware.t100.mean() < unaware.t100.mean()


def test_what_one_job_gets_less_the_other_gets_more() -> None:
    """The new job falls fast, the other has converged: the paper's greedy gives that one a core."""
    jobs = (_job(), _job(arrival_s=60.0))
    result = simulate_training(jobs, 8, TrainingSystem("slaq-total"))
    equal = simulate_training(jobs, 8, TrainingSystem("fair"))
    assert result.t90[1] < 0.8 * equal.t90[1]
    assert result.t100[0] > equal.t100[0]


def test_the_same_seed_is_the_same_workload() -> None:
    drawn = TrainingDrawn(jobs=30)
    assert draw_training(drawn, _curves(), 3) == draw_training(drawn, _curves(), 3)
    assert draw_training(drawn, _curves(), 3) != draw_training(drawn, _curves(), 4)


def test_a_workload_has_its_means() -> None:
    jobs = draw_training(TrainingDrawn(jobs=4000), _curves(), 1)
    assert jobs[-1].arrival_s / 4000 == pytest.approx(15.0, rel=0.05)
    assert np.mean([job.work_s for job in jobs]) * ITERATIONS == pytest.approx(11_700, rel=0.1)
    assert np.std(np.log([job.work_s for job in jobs])) == pytest.approx(1.0, abs=0.05)
    assert {job.curve.algorithm for job in jobs} == {"made", "other"}


def test_a_balanced_workload_has_every_algorithm_equally_often() -> None:
    names = [job.curve.algorithm for job in draw_training(LIVE, _curves(), 5)]
    assert names.count("made") == names.count("other") == 9


@pytest.mark.parametrize("prediction", ["mixed", "repeated", "perfect"])
def test_all_jobs_end_whatever_is_predicted_and_reported(prediction: str) -> None:
    jobs = draw_training(TrainingDrawn(jobs=12, cores=64, mean_core_s=500.0, gap_s=3.0), _curves(), 2)
    for policy in ("finish", "slaq-total"):
        system = TrainingSystem(policy, prediction, noise=0.02)  # type: ignore[arg-type]
        result = simulate_training(jobs, 64, system, seed=2)
        assert np.all(result.t90 <= result.t95)
        assert np.all(result.t95 <= result.t100)
        assert 0 < result.lower_half < result.top_quarter + result.lower_half <= 1 + 1e-9
        assert np.all(result.mean_losses <= 1.0)


def test_no_job_is_no_trouble() -> None:
    result = simulate_training((), 8, TrainingSystem())
    assert result.epochs == 0
    assert not result.t90.size


def test_curves_of_a_file_are_read() -> None:
    text = json.dumps({"curves": [{"algorithm": "svm", "class": "sublinear", "config": "c", "losses": _HALVES}]})
    assert parse_curves(text, "x.json") == (LossCurve("svm", SUBLINEAR, "c", _HALVES),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"curves": []}',
        '{"curves": [{"algorithm": "svm"}]}',
        '{"curves": [{"algorithm": "svm", "class": "odd", "losses": [1]}]}',
        json.dumps({"curves": [{"algorithm": "svm", "losses": [2.0, 1.0]}]}),
        json.dumps({"curves": [{"algorithm": "svm", "losses": [1.0] * 101}]}),
        json.dumps({"curves": [{"algorithm": "svm", "losses": [2.0, float("nan")] + [1.0] * 99}]}),
        json.dumps({"curves": [{"algorithm": "svm", "losses": ["a"] * 101}]}),
    ],
)
def test_a_file_without_curves_is_refused_by_name(text: str) -> None:
    with pytest.raises(WorkloadError, match=r"^x\.json: "):
        parse_curves(text, "x.json")
