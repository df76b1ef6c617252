"""Two backlogged queues in the shape of the live benchmark: what runs is shared out as configured."""

from dataclasses import replace

import numpy as np
import pytest

from yaqd.sim.simulation import ClusterShape, System, simulate
from yaqd.sim.workload import SimJob, SimStage, SimTask, Workload

SHAPE = ClusterShape(nodes=4, slots=8, queues=(("a", 70.0), ("b", 30.0)))
#: as the daemons are configured when nothing is
DEFAULTS = System(
    "yaq-c",
    bound_target=0.9,
    estimates="learned",
    default_estimate_s=None,
    free_min=0.1,
    starve_s=60.0,
    job_order="srjf",
    max_wait_s=60.0,
    at_asks=True,
)
WARM_S, SPAN_S, UNTIL_S = 13, 60, 133


def backlogs(first: str, gap_s: float) -> Workload:
    tasks = tuple(SimTask(5.0, priority=20) for _ in range(1000))
    second = "b" if first == "a" else "a"
    jobs = [(first, 0.0), (second, gap_s)]
    return Workload(tuple(SimJob(q, (SimStage("work", tasks),), queue=q, arrival_s=at) for q, at in jobs))


def furthest_off(first: str, gap_s: float, seed: int) -> tuple[float, float]:
    """Points, over any minute; and the utilization."""
    result = simulate(SHAPE, backlogs(first, gap_s), DEFAULTS, seed, horizon_s=UNTIL_S + 1.0)
    held = result.shares(1.0)
    in_a, all_of_it = held["a"], held["a"] + held["b"]
    spans = [slice(at, at + SPAN_S) for at in range(WARM_S, UNTIL_S - SPAN_S)]
    off = max(abs(100 * np.sum(in_a[span]) / np.sum(all_of_it[span]) - 70) for span in spans)
    return float(off), result.utilization_between(WARM_S, UNTIL_S)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "gap_s"), [("a", 0.3), ("b", 0.3), ("a", 1.5), ("b", 1.5)])
def test_any_minute_is_within_four_points_of_the_shares_by_default(first: str, gap_s: float) -> None:
    found = [furthest_off(first, gap_s, seed) for seed in range(6)]
    assert max(off for off, _ in found) <= 4.0
    assert np.mean([utilization for _, utilization in found]) >= 0.97


@pytest.mark.parametrize("name", ["yaq-c", "yaq-d"])
@pytest.mark.parametrize("place", ["wait", "length", "length-per-slot", "two-choices", "random"])
def test_every_way_of_placing_is_simulated(name: str, place: str) -> None:
    job = SimJob("job", (SimStage("work", tuple(SimTask(2.0) for _ in range(60))),))
    system = System(name, bound=3, place=place, interference=1.0)
    result = simulate(ClusterShape(nodes=4, slots=4), Workload((job,)), system, 1)
    assert result.tasks == 60 and not result.unfinished


def test_a_way_of_placing_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="there is none; known: wait"):
        System("yaq-c", place="best")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_on_a_large_cluster_no_deviation_outlasts_the_threshold_of_starvation(seed: int) -> None:
    starve_s = 10.0
    stage = SimStage("work", tuple(SimTask(5.0, priority=20) for _ in range(1500)))
    jobs = tuple(SimJob(f"{q}{n}", (stage,), queue=q, arrival_s=0.1 * n) for n in range(8) for q in ("a", "b"))
    shape = ClusterShape(nodes=80, slots=10, queues=SHAPE.queues)
    system = replace(DEFAULTS, starve_s=starve_s, default_estimate_s=10.0)
    held = simulate(shape, Workload(jobs), system, seed, horizon_s=91.0).shares(1.0)
    in_a = held["a"][WARM_S:90] / (held["a"] + held["b"])[WARM_S:90]
    longest = lasting = 0
    for is_off in abs(100 * in_a - 70) > 5.0:
        lasting = lasting + 1 if is_off else 0
        longest = max(longest, lasting)
    assert longest <= starve_s


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_without_estimates_no_deviation_outlasts_it_either(seed: int) -> None:
    """The first whose end becomes known does not take all places that were kept free."""
    stage = SimStage("work", tuple(SimTask(5.0, priority=20) for _ in range(1500)))
    jobs = tuple(SimJob(f"{q}{n}", (stage,), queue=q, arrival_s=0.1 * n) for n in range(8) for q in ("a", "b"))
    shape = ClusterShape(nodes=80, slots=10, queues=SHAPE.queues)
    held = simulate(shape, Workload(jobs), replace(DEFAULTS, starve_s=10.0), seed, horizon_s=91.0).shares(1.0)
    in_a = 100 * (held["a"] / (held["a"] + held["b"]))[WARM_S:90]
    longest = max(len(run) for run in "".join("x" if one else " " for one in abs(in_a - 70.0) > 5.0).split(" "))
    assert longest <= 10
