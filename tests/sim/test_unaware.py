"""Yaq-d of masters that take what they have started for running: by the live proxies, booking and queues."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rm.settings.queues import QueueSettings
from yaqd.cli.simulation.systems import parse_system
from yaqd.config import Configuration
from yaqd.sim.booking import limits
from yaqd.sim.simulation import ClusterShape, NodeFailure, SimResult, System, simulate
from yaqd.sim.workload import SimJob, SimStage, SimTask, Workload

#: s
LIMIT_S = 2.0
SHAPE = ClusterShape(nodes=4, slots=4, heartbeat_s=1.0)


def job(name: str, tasks: int, seconds: float, arrival_s: float = 0.0, *, is_aware: bool = True) -> SimJob:
    stage = SimStage("stage", tuple(SimTask(seconds) for _ in range(tasks)))
    return SimJob(name, (stage,), arrival_s=arrival_s, is_aware=is_aware)


def longest(result: SimResult) -> float:
    return float(np.max(result.queuing_delays))


def test_the_limits_are_those_of_a_cluster_that_configures_nothing() -> None:
    conf = Configuration.load(environ={})
    live = QueueSettings.read(conf)
    system = parse_system("yaq-d")
    booked = limits(ClusterShape(), system).queueing
    assert booked is not None and live.spec is not None
    assert (booked.unaware_wait_s, booked.starve_s) == (live.spec.unaware_wait_s, live.spec.starve_s)
    assert (booked.placement, booked.affinity) == (live.spec.placement, live.spec.affinity)
    assert system.booked, "the live ResourceManager books what proxies place"
    assert system.out_of_turn == conf.get_bool("yaq.nm.out-of-turn-heartbeats")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("estimate_error", [1.0, 10.0])
def test_nothing_is_sent_where_it_would_wait_for_long(estimate_error: float, seed: int) -> None:
    workload = Workload(tuple(job(f"job{number}", 60, 10.0) for number in range(3)))
    system = System("yaq-d", booked=True, estimate_error=estimate_error)
    aware, unaware, never = (
        simulate(SHAPE, workload, one, seed)
        for one in (system, replace(system, aware=False, max_wait_unaware_s=LIMIT_S), replace(system, aware=False))
    )
    assert aware.tasks == unaware.tasks == never.tasks == workload.tasks
    assert longest(aware) > 9.0 and longest(unaware) <= 3 * LIMIT_S + 0.1 and longest(never) <= 0.1
    if estimate_error == 1.0:
        assert max(unaware.queuing_delays) > 0.5, "some wait, as less is expected"
        assert unaware.counts.get("refused", 0) <= workload.tasks / 30, "few were sent where they could not stay"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_several_managers_chose_for_the_same_room_is_booked_for_one(seed: int) -> None:
    """They know nothing of each other: without the booking they send what waits for too long, and is given back."""
    jobs = tuple(job(f"job{number}", 10, 12.0, 0.3 * number) for number in range(12))
    result = simulate(SHAPE, Workload(jobs), System("yaq-d", aware=False), seed)
    assert result.counts["not_booked"] > 0
    assert result.counts.get("refused", 0) <= 4
    assert result.tasks == 120


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 1000),
    aware=st.booleans(),
    out_of_turn=st.booleans(),
    estimates=st.sampled_from(["stage", "none", "learned"]),
    starve_s=st.sampled_from([0.5, 5.0, math.inf]),
    gap=st.floats(0.0, 40.0),
)
def test_nothing_is_lost_and_skipped_heartbeats_change_nothing(
    seed: int, aware: bool, out_of_turn: bool, estimates: str, starve_s: float, gap: float
) -> None:
    shape = ClusterShape(nodes=4, slots=2, noise=0.3, failures=(NodeFailure(0, 5.0, 12.0),), expiry_s=6.0)
    jobs = tuple(job(f"job{n}", 6, 2.0, n * 0.7 + gap * (n > 3), is_aware=bool(n % 2)) for n in range(8))
    system = System(
        "yaq-d", aware=aware, booked=True, out_of_turn=out_of_turn, estimates=estimates, starve_s=starve_s, bound=4
    )
    one, other = (simulate(shape, Workload(jobs), system, seed, skip_idle=skip) for skip in (True, False))
    assert one.jobs == other.jobs and np.array_equal(one.ended, other.ended)
    assert one.tasks == 48


def stream() -> tuple[SimJob, ...]:
    """Twice of what 4 x 2 slots can do, so that all queues are long all the time."""
    return tuple(job(f"aware{number}", 40, 8.0, 20.0 * number) for number in range(40))


@pytest.mark.slow
@pytest.mark.parametrize(("estimates", "seed"), [("stage", 1), ("none", 2), ("none", 3)])
def test_jobs_that_keep_all_queues_long_do_not_starve_whose_containers_must_not_wait(estimates: str, seed: int) -> None:
    shape = replace(SHAPE, slots=2)
    workload = Workload((*stream(), job("unaware", 6, 8.0, 100.0, is_aware=False)))
    system = System("yaq-d", booked=True, out_of_turn=True, starve_s=20.0, estimates=estimates)
    result = simulate(shape, workload, system, seed, horizon_s=800.0)
    (found,) = [one for one in result.jobs if one.name == "unaware"]
    # the threshold, and the kept node's queue of 15 at most; and so again for each two of its tasks
    assert found.first_run - found.started <= 20.0 + 15 * 8.0 / 2 + 8.0 + 4.0
    assert found.ended - found.started <= 3 * (20.0 + 15 * 8.0 / 2 + 2 * 8.0 + 4.0)
    assert result.utilization > 0.95, "no node is kept for nothing"
