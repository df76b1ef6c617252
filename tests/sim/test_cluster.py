"""The simulated cluster: reproducible, complete, and as fast and as slow as it must be."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rm.scheduler.events import NodeQueueReported
from rm.scheduler.node_queues.table import NodeQueues
from rm.scheduler.view.node import NodeQueue
from tests.sim.sim_jobs import ALL, CENTRAL, map_reduce, mixed, same, stage
from yaqd.sim.model import YIELDS_AFTER_S
from yaqd.sim.simulation import SYSTEMS, ClusterShape, NodeFailure, Stuck, System, host_name, simulate
from yaqd.sim.workload import SLOT, SimJob, SimStage, SimTask, Workload


@pytest.mark.parametrize("name", ALL)
def test_same_seed_same_result_to_the_bit(name: str) -> None:
    shape = ClusterShape(nodes=5, slots=3, noise=0.4, failures=(NodeFailure(1, 4.0, 30.0),), expiry_s=9.0)
    first, second = (simulate(shape, mixed(12), System(name, bound=4), 7) for _ in range(2))
    assert same(first, second)
    assert first.counts == second.counts
    assert not same(first, simulate(shape, mixed(12), System(name, bound=4), 8))


@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from(ALL),
    seed=st.integers(0, 1000),
    at_asks=st.booleans(),
    out_of_turn=st.booleans(),
    gap=st.floats(0.0, 40.0),
)
def test_heartbeats_that_are_not_played_would_have_changed_nothing(
    name: str, seed: int, at_asks: bool, out_of_turn: bool, gap: float
) -> None:
    jobs = tuple(map_reduce(i, 4, 2, 2.0) for i in range(4))
    later = tuple(replace(job, arrival_s=job.arrival_s + gap) for job in jobs)
    system = System(name, bound=4, at_asks=at_asks, out_of_turn=out_of_turn)
    shape = ClusterShape(nodes=4, slots=2, noise=0.3, failures=(NodeFailure(0, 5.0, 12.0),), expiry_s=6.0)
    results = [simulate(shape, Workload(jobs + later), system, seed, skip_idle=skip) for skip in (True, False)]
    assert same(*results)
    assert results[0].counts["heartbeats"] <= results[1].counts["heartbeats"]


@settings(max_examples=15, deadline=None)
@given(name=st.sampled_from(ALL), seed=st.integers(0, 1000), fail_at=st.floats(0.0, 20.0), down=st.floats(0.1, 60.0))
def test_every_task_is_done_once_whatever_breaks(name: str, seed: int, fail_at: float, down: float) -> None:
    workload = mixed(8)
    failures = (NodeFailure(0, fail_at, down), NodeFailure(1, fail_at + 1.0))
    result = simulate(
        ClusterShape(nodes=4, slots=2, failures=failures, expiry_s=10.0), workload, System(name, bound=4), seed
    )
    assert result.unfinished == 0
    assert result.tasks == workload.tasks
    assert np.array_equal(np.bincount(result.job[result.done]), [job.tasks for job in workload])


def test_a_slot_idles_from_its_containers_end_to_the_next_heartbeat_and_poll() -> None:
    """The closed form: a task of 5 s with no poll and no gap takes up two heartbeats of 3 s."""
    shape = ClusterShape(nodes=20, slots=4, am_poll_s=0.0, network_s=0.0, start_gap_s=0.0)
    result = simulate(shape, Workload((SimJob("job", (stage(4000, 5.0),)),)), System("yarn"), 1)
    assert result.utilization_between(30.0, 200.0) == pytest.approx(5.0 / 6.0, abs=0.01)


def test_plain_yarn_wastes_what_was_measured() -> None:
    """Tasks of 5, 10 and 50 s at heartbeats of 3 s: 60.6, 78.4 and 92.4 % were measured (table 2.1)."""
    shape = ClusterShape(nodes=10, slots=4, noise=0.2, start_gap_s=1.0)
    found = []
    for seconds in (5.0, 10.0, 50.0):
        jobs = tuple(SimJob(f"job{i}", (stage(int(3000 / seconds), seconds),)) for i in range(8))
        result = simulate(shape, Workload(jobs), System("yarn"), 1)
        found.append(result.utilization_between(0.1 * result.makespan, 0.7 * result.makespan))
    assert found == pytest.approx([0.60, 0.78, 0.93], abs=0.06)


def test_what_is_queued_starts_at_once() -> None:
    shape = ClusterShape(nodes=10, slots=4, noise=0.2)
    workload = Workload(tuple(SimJob(f"job{i}", (stage(500, 5.0),)) for i in range(4)))
    plain, queued = (simulate(shape, workload, System(name), 1) for name in CENTRAL)
    assert queued.utilization_between(10.0, 150.0) > plain.utilization_between(10.0, 150.0) + 0.1
    assert queued.counts["refused"] > 0


def test_reduces_that_start_early_hold_their_slots_and_work_after_the_maps() -> None:
    shape = ClusterShape(nodes=2, slots=2, am_poll_s=0.1, heartbeat_s=0.5, start_gap_s=0.0)
    result = simulate(shape, Workload((map_reduce(0, 6, 1, 4.0, start_at=0.1),)), System("yarn"), 1)
    reduce = int(np.argmax(result.ended - result.started))
    assert result.started[reduce] < np.sort(result.ended)[-2]
    assert result.ended[reduce] == pytest.approx(np.sort(result.ended)[-2] + 4.0)


def test_reduces_that_fill_the_cluster_give_way_to_their_own_maps() -> None:
    """As MapReduce's master does; without it nothing would ever happen again."""
    tasks = tuple(SimTask(1.0, priority=1) for _ in range(2))
    reduces = SimStage("reduce", tasks, after=(0,), start_at=0.0)
    maps = SimStage("map", tuple(SimTask(1.0, priority=2) for _ in range(2)))
    shape = ClusterShape(nodes=1, slots=2)
    result = simulate(shape, Workload((SimJob("job", (maps, reduces)),)), System("yarn"), 1)
    assert result.tasks == 4
    assert result.counts["yielded"] == 2
    assert result.makespan < YIELDS_AFTER_S + 20.0


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_opportunistic_maps_behind_guaranteed_reduces_end(share: float, seed: int) -> None:
    jobs = tuple(map_reduce(i, 12, 6, 8.0, start_at=0.05) for i in range(6))
    shape = ClusterShape(nodes=3, slots=4, noise=0.3, speeds=(1.0, 0.5, 2.0))
    result = simulate(shape, Workload(jobs), System("yarn-opportunistic", opportunistic_share=share), seed)
    assert result.tasks == 6 * 18


def test_a_task_that_fits_no_node_is_stuck_and_says_so() -> None:
    too_large = SimStage("map", (SimTask(1.0, resource=SLOT * 3),))
    with pytest.raises(Stuck, match="1 jobs are left"):
        simulate(ClusterShape(nodes=1, slots=2), Workload((SimJob("job", (too_large,)),)), System("yarn"), 1)


ALL_SYSTEMS = (*(System(name) for name in SYSTEMS), System("sparrow", late_binding=False))


@pytest.mark.parametrize("system", ALL_SYSTEMS, ids=lambda system: f"{system.name}-{system.late_binding}")
def test_where_every_node_is_lost_it_ends_and_says_so(system: System) -> None:
    jobs = Workload(tuple(SimJob(f"job {n}", (SimStage("map", (SimTask(5.0),) * 20),)) for n in range(3)))
    lost = tuple(NodeFailure(n, 1.0) for n in range(2))
    with pytest.raises(Stuck, match="nothing happens any more, and 3 jobs are left"):
        simulate(ClusterShape(nodes=2, slots=2, failures=lost), jobs, system, 1)
    back = (NodeFailure(0, 1.0, down_s=100.0), NodeFailure(1, 2.0))
    assert simulate(ClusterShape(nodes=2, slots=2, failures=back), jobs, system, 1).tasks == 60


@pytest.mark.parametrize("late_binding", [True, False])
def test_tasks_go_anywhere_where_no_node_is_asked(late_binding: bool) -> None:
    jobs = Workload(tuple(SimJob(f"job {n}", (SimStage("map", (SimTask(2.0),) * 9),)) for n in range(3)))
    shape = ClusterShape(nodes=3, slots=2, failures=(NodeFailure(0, 1.0, down_s=5.0),))
    result = simulate(shape, jobs, System("sparrow", probes=0.0, late_binding=late_binding), 1)
    assert result.tasks == 27 and "probes" not in result.counts


def test_tasks_run_where_their_input_is_and_faster_nodes_are_faster() -> None:
    hosts = tuple(SimTask(2.0, hosts=(host_name(i % 4),)) for i in range(8))
    shape = ClusterShape(nodes=4, slots=2, am_poll_s=0.1, start_gap_s=0.0, speeds=(1.0, 2.0))
    result = simulate(shape, Workload((SimJob("job", (SimStage("map", hosts),)),)), System("yarn"), 1)
    assert sorted(np.round(result.ended - result.started, 6)) == [1.0] * 4 + [2.0] * 4


def test_shares_of_queues_add_up_to_what_ran() -> None:
    shape = ClusterShape(nodes=4, slots=5, queues=(("a", 70.0), ("b", 30.0)))
    jobs = tuple(SimJob(f"job{i}", (stage(200, 3.0),), queue="ab"[i % 2]) for i in range(2))
    result = simulate(shape, Workload(jobs), System("yarn"), 1)
    shares = result.shares(7.0)
    held = sum(float(np.sum(part)) * 7.0 * result.slots for part in shares.values())
    assert held == pytest.approx(float(np.sum(result.ended - result.started)))
    middle = slice(1, 6)
    ratio = np.sum(shares["a"][middle]) / np.sum(shares["b"][middle])
    assert ratio == pytest.approx(7 / 3, rel=0.1)


def test_few_jobs_at_once_wait_in_line_and_their_time_counts_from_both_ends() -> None:
    jobs = tuple(SimJob(f"job{i}", (stage(2, 3.0),)) for i in range(3))
    result = simulate(ClusterShape(nodes=4), Workload(jobs), System("yarn", jobs_at_once=1), 1)
    for before, after in zip(result.jobs, result.jobs[1:], strict=False):
        assert after.started == before.ended
    assert result.jobs[2].from_submission > 2 * result.jobs[2].from_start


def test_the_horizon_ends_what_is_not_over() -> None:
    jobs = tuple(SimJob(f"job{i}", (stage(2, 30.0),), arrival_s=i * 40.0) for i in range(3))
    result = simulate(ClusterShape(nodes=4), Workload(jobs), System("yarn"), 1, horizon_s=60.0)
    assert (len(result.jobs), result.unfinished, result.makespan) == (1, 2, 60.0)


@pytest.mark.parametrize(
    "job",
    [
        SimJob("none", (SimStage("empty", ()),)),
        SimJob("before", (stage(1, 1.0, after=(0,)),)),
        SimJob("endless", (stage(1, math.inf),)),
        SimJob("negative", (stage(1, -1.0),)),
        SimJob("nan", (stage(1, math.nan),)),
        SimJob("late", (stage(1, 1.0),), arrival_s=math.inf),
        SimJob("part", (stage(1, 1.0, start_at=1.5),)),
    ],
)
def test_what_no_cluster_could_run_is_refused(job: SimJob) -> None:
    with pytest.raises(ValueError, match=f"job {job.name}"):
        simulate(ClusterShape(), Workload((job,)), System(), 1)


def test_an_unknown_system_is_named() -> None:
    with pytest.raises(ValueError, match="no system is called 'mesos'"):
        System("mesos")


@pytest.mark.parametrize("system", [System("mercury"), System("sparrow"), System("sparrow", late_binding=False)])
def test_managers_that_know_few_nodes_all_send_to_those(system: System) -> None:
    """A job of as many tasks as there are slots finds them all, or waits at the one node that it knows."""
    workload = Workload((SimJob("job", (stage(32, 10.0),)),))
    few, all_of_them = (
        simulate(ClusterShape(nodes=8, slots=4), workload, replace(system, published=known), 1) for known in (1, 8)
    )
    assert all_of_them.jobs[0].from_start < 25.0
    assert few.jobs[0].from_start > 50.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"bound": 0},
        {"bound": -1},
        {"bound": 1_000_001},
        {"bound_target": math.nan},
        {"bound_target": 1.0},
        {"free_min": 1.5},
        {"opportunistic_share": -0.1},
        {"published": 0},
        {"place": "nowhere"},
    ],
)
def test_absurd_systems_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong)) if "place" not in wrong else "nowhere"):
        System("yaq-c", **wrong)


@pytest.mark.parametrize("name", ["yaq-c", "yaq-d"])
@pytest.mark.parametrize(("estimates", "error"), [("none", 1.0), ("learned", 1.0), ("stage", 10.0)])
def test_bad_estimates_lose_nothing(name: str, estimates: str, error: float) -> None:
    workload = mixed(20)
    system = System(name, bound=4, estimates=estimates, estimate_error=error)
    result = simulate(ClusterShape(nodes=4, slots=3, noise=0.5), workload, system, 3)
    assert result.tasks == workload.tasks


@pytest.mark.parametrize("name", ["yarn", "yaq-c"])
@pytest.mark.parametrize("order", ["srjf", "lrtf", "ejf", "sjf"])
def test_jobs_take_turns_at_the_resource_manager(name: str, order: str) -> None:
    long = SimJob("long", (stage(200, 5.0),))
    short = tuple(SimJob(f"short{i}", (stage(4, 5.0),), arrival_s=2.0) for i in range(3))
    system = System(name, bound=4, job_order=order, job_starve_s=math.inf, order="fifo")
    result = simulate(ClusterShape(nodes=4, slots=4), Workload((long, *short)), system, 1)
    first = [job.name for job in sorted(result.jobs, key=lambda job: job.ended)]
    assert (first[-1] == "long") is (order != "ejf")


@pytest.mark.parametrize("failures", [(), (NodeFailure(2, 5.0, 40.0), NodeFailure(0, 9.0))])
def test_sparrow_asks_for_no_more_places_than_it_needs(failures: tuple[NodeFailure, ...]) -> None:
    workload = mixed(15)
    shape = ClusterShape(nodes=6, slots=2, failures=failures, expiry_s=5.0)
    result = simulate(shape, workload, System("sparrow", probes=2.0, bound=1), 3)
    assert result.tasks == workload.tasks
    assert "refused" not in result.counts
    lost = result.counts.get("lost", 0)
    assert 2 * workload.tasks <= result.counts["probes"] <= 2 * (workload.tasks + 4 * lost)


@pytest.mark.interpreted
@pytest.mark.parametrize("first", [(), (SimJob("first", (stage(1, 5.0),)),)])
def test_the_time_that_nodes_idle_is_no_gap_between_their_heartbeats(
    monkeypatch: pytest.MonkeyPatch, first: tuple[SimJob, ...]
) -> None:
    """What finds its own bound would take it for one, and send hundreds to wait."""
    bounds = []
    reported = NodeQueues.reported

    def noted(queues: NodeQueues, queue: NodeQueue, event: NodeQueueReported, now: float) -> None:
        reported(queues, queue, event, now)
        bounds.append(queue.bound)

    monkeypatch.setattr(NodeQueues, "reported", noted)
    shape = ClusterShape(nodes=4, slots=8, heartbeat_s=3.0, am_poll_s=1.0)
    system = System("yaq-c", out_of_turn=True, at_asks=True, bound_target=0.9)
    simulate(shape, Workload((*first, SimJob("later", (stage(400, 20.0),), arrival_s=3600.0))), system, 1)
    assert 0 < max(bounds) <= 12
