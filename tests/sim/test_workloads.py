"""Workloads drawn from published statistics: they have those statistics, and the same seed gives the same jobs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from yaqd.sim.workload import Workload, check
from yaqd.sim.workloads import WORKLOADS, Arrivals, Drawn, WorkloadError, draw
from yaqd.sim.workloads.numbers import fitted, fitted_counts


def durations(workload: Workload) -> np.ndarray:
    return np.array([task.duration_s for job in workload for stage in job.stages for task in stage.tasks])


@pytest.mark.parametrize("seed", range(3))
def test_hive_ms_has_its_published_means(seed: int) -> None:
    workload = draw(Drawn("hive-ms", 185), 320, seed)
    every = durations(workload)
    assert every.mean() == pytest.approx(22.9)
    assert every.std() == pytest.approx(27.8, rel=1e-3)
    maps = sum(len(job.stages[0].tasks) for job in workload)
    reduces = sum(len(job.stages[1].tasks) for job in workload)
    assert (maps, reduces) == (round(57.9 * 185), round(1.5 * 185))
    assert all(job.stages[1].after == (0,) for job in workload)


def test_tasks_of_one_stage_are_more_alike_than_tasks_of_all() -> None:
    workload = draw(Drawn("gridmix-ms", 200), 800, 1)
    within = np.mean([np.std([t.duration_s for t in job.stages[0].tasks]) for job in workload])
    assert within < 0.7 * durations(workload).std()


def test_the_heavy_tail_adds_500_s_to_a_fifth() -> None:
    plain, heavy = (draw(Drawn(name, 50), 800, 1) for name in ("gridmix-ms", "heavy-tailed"))
    every = durations(heavy)
    assert np.mean(every > 500) == pytest.approx(0.2)
    assert every.max() == pytest.approx(durations(plain).max() + 500, rel=0.5)


def test_gridmix_jobs_of_any_size_have_a_hundred_tasks_in_the_mean() -> None:
    workload = draw(Drawn("gridmix-sizes", 80), 800, 2)
    sizes = np.array([len(job.stages[0].tasks) for job in workload])
    assert sizes.mean() == 100
    assert sizes.std() > 50
    assert durations(workload).mean() == pytest.approx(49.0)


def test_both_mixed_workloads_say_what_they_mix() -> None:
    jobs = draw(Drawn("mixed-5-50-jobs", 100), 800, 3)
    assert sum(job.stages[0].tasks[0].duration_s == 5.0 for job in jobs) == 80
    assert all(len({task.duration_s for task in job.stages[0].tasks}) == 1 for job in jobs)
    tasks = draw(Drawn("mixed-5-50-tasks", 10), 800, 3)
    assert all(sum(t.duration_s == 5.0 for t in job.stages[0].tasks) == 50 for job in tasks)


def test_a_fifth_of_the_jobs_of_two_sizes_is_half_of_the_work() -> None:
    workload = draw(Drawn("two-sizes", 200), 320, 1)
    work = dict.fromkeys((1, 4), 0.0)
    for job in workload:
        (width,) = {task.resource.vcores for task in job.stages[0].tasks}
        work[width] += width * job.work_s
    assert 0.3 < work[4] / (work[1] + work[4]) < 0.7


def test_every_stage_of_a_graph_but_the_last_is_read() -> None:
    for job in draw(Drawn("graphs", 60), 320, 2):
        read = {before for stage in job.stages for before in stage.after}
        assert read == set(range(len(job.stages) - 1))
        assert 3 <= len(job.stages) <= 10


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_is_one_that_a_cluster_can_run_and_is_its_seeds_alone(name: str) -> None:
    drawn = Drawn(name, 12, Arrivals("poisson", 0.7), queues=("a", "b"))
    workload = draw(drawn, 40, 5)
    check(workload)
    assert workload == draw(drawn, 40, 5)
    assert workload != draw(drawn, 40, 6)
    assert {job.queue for job in workload} == {"a", "b"}


@pytest.mark.slow
def test_poisson_arrivals_ask_for_their_part_of_the_slots() -> None:
    workload = draw(Drawn("5-sec", 2000, Arrivals("poisson", 0.9)), 320, 2)
    last = workload.jobs[-1].arrival_s
    assert durations(workload).sum() / (last * 320) == pytest.approx(0.9, rel=0.08)
    assert [job.arrival_s for job in workload] == sorted(job.arrival_s for job in workload)


def test_speedup_and_size() -> None:
    plain, fast = draw(Drawn("hive-ms", 20), 320, 1), draw(Drawn("hive-ms", 20, speedup=3.0), 320, 1)
    assert durations(fast) == pytest.approx(durations(plain) / 3)
    assert len(draw(Drawn("5-sec", 2, size=0.1), 320, 1).jobs[0].stages[0].tasks) == 10


@pytest.mark.parametrize(
    "drawn",
    [
        Drawn("no-such", 5),
        Drawn("hive-ms", 0),
        Drawn("hive-ms", 1 << 40),
        Drawn("hive-ms", 5, Arrivals("poisson", math.nan)),
        Drawn("hive-ms", 5, speedup=0.0),
        Drawn("hive-ms", 5, size=math.inf),
        Drawn("hive-ms", 5, queues=()),
    ],
)
def test_absurd_requests_are_refused(drawn: Drawn) -> None:
    with pytest.raises(WorkloadError, match=r"no-such|it must be above 0|no queue"):
        draw(drawn, 320, 1)


@settings(deadline=None, max_examples=examples(50))
@given(
    st.lists(st.floats(0.01, 1e4), min_size=2, max_size=200).filter(lambda xs: max(xs) > 1.2 * min(xs)),
    st.floats(0.1, 1e3),
)
def test_fitting_keeps_order_and_hits_the_mean(values: list[float], mean: float) -> None:
    fit = fitted(np.array(values), mean, mean * 0.3)
    assert fit.mean() == pytest.approx(mean)
    assert np.all(np.diff(fit[np.argsort(values, kind="stable")]) >= -1e-9 * mean)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=100), st.integers(0, 5000), st.integers(0, 3))
def test_counts_add_up(values: list[float], total: int, least: int) -> None:
    counts = fitted_counts(np.array(values), total, least)
    assert counts.sum() == max(total, least * len(values))
    assert counts.min() >= least
