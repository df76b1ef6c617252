"""Node queues of a simulated cluster: how long they get, who starts first, and what goes elsewhere."""

import math
import random
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from nm.distributed import Place
from nm.node_queue import Arrived
from rm.scheduler.decisions import Allocate, Outcome
from tests.sim.sim_jobs import stage
from yaqd.policies.queueing.bounds import poisson_bound, utilization
from yaqd.sim.distributed import Distributed
from yaqd.sim.jobs import ContainerRun, JobRun
from yaqd.sim.model import Model
from yaqd.sim.simulation import ClusterShape, NodeFailure, System, host_name, simulate
from yaqd.sim.workload import SimJob, SimStage, SimTask, Workload
from yaqd.sim.yaq_c import YaqC


@pytest.mark.slow
@pytest.mark.parametrize(("slots", "bound", "mean"), [(8, 0, 10.0), (8, 4, 5.0), (10, 2, 10.0), (4, 6, 5.0)])
def test_queues_of_a_bound_are_as_busy_as_the_formula_says(slots: int, bound: int, mean: float) -> None:
    """Proposition 2, corrected: exponential tasks, filled up at each heartbeat, with nothing else between."""
    drawn = random.Random(5)
    jobs = (SimJob("job", (SimStage("task", tuple(SimTask(drawn.expovariate(1 / mean)) for _ in range(2500))),)),)
    shape = ClusterShape(nodes=5, slots=slots, am_poll_s=0.0, network_s=0.0, start_gap_s=0.0)
    system = System("yaq-c" if bound else "yarn", bound=bound or None, order="fifo", free_min=1.0)
    result = simulate(shape, Workload(jobs), system, 1)
    end = 0.8 * result.makespan
    assert result.utilization_between(20.0, end) == pytest.approx(utilization(slots, mean, 3.0, bound), abs=0.02)


def test_the_exact_bound_keeps_slots_busy_in_as_many_intervals_as_it_promises() -> None:
    slots, mean = 10, 10.0
    bound = poisson_bound(slots, mean, 3.0, 0.05)
    assert bound == 6
    found = utilization(slots, mean, 3.0, bound)
    assert found > 0.995


def test_queues_put_short_jobs_first_and_starve_nobody() -> None:
    long = SimJob("long", (stage(120, 10.0),))
    short = tuple(SimJob(f"short{i}", (stage(6, 1.0),), arrival_s=5.0 + 4.0 * i) for i in range(12))
    shape = ClusterShape(nodes=4, slots=4)
    by_arrival, by_work = (
        simulate(shape, Workload((long, *short)), System("yaq-d", order=order, starve_s=100.0), 1)
        for order in ("fifo", "srjf")
    )
    waits = [np.median([job.from_submission for job in r.jobs if job.name != "long"]) for r in (by_arrival, by_work)]
    assert waits[1] * 1.5 < waits[0]
    assert by_work.jobs[0].from_submission < by_arrival.jobs[0].from_submission * 1.25


def test_what_waits_too_long_goes_back_and_is_done_elsewhere() -> None:
    workload = Workload(tuple(SimJob(f"job{i}", (stage(60, 20.0),)) for i in range(2)))
    # twice as long as anybody believes, so that more is sent than can start in time
    system = System("yaq-c", bound=8, max_wait_s=5.0, estimate_error=2.0)
    result = simulate(ClusterShape(nodes=4, slots=4), workload, system, 3)
    assert result.counts["refused"] > 0
    assert result.tasks == workload.tasks
    assert np.max(result.queuing_delays) <= 5.0 + 0.1


@pytest.mark.parametrize("estimate_error", [1.0, 10.0])
def test_containers_of_masters_that_do_not_know_of_waiting_wait_less(estimate_error: float) -> None:
    workload = Workload(tuple(SimJob(f"job{i}", (stage(60, 10.0),)) for i in range(2)))
    shape = ClusterShape(nodes=4, slots=4, heartbeat_s=1.0)
    system = System("yaq-c", bound=8, max_wait_s=0.0, estimate_error=estimate_error)
    aware, unaware, never = (
        simulate(shape, workload, one, 3)
        for one in (system, replace(system, aware=False, max_wait_unaware_s=2.0), replace(system, aware=False))
    )
    assert aware.tasks == unaware.tasks == never.tasks == workload.tasks
    longest = [float(np.max(result.queuing_delays)) for result in (aware, unaware, never)]
    assert longest[0] > 9.0 and longest[1] <= 3 * 2.0 + 0.1 and longest[2] <= 0.1, longest
    assert max(unaware.queuing_delays) > 0.5, "some wait, as less is expected"
    refused = unaware.counts.get("refused", 0)
    if estimate_error == 1.0:
        assert refused == 0, "all were sent where they could stay"
    else:
        assert 0 < refused < workload.tasks / 2, "few were sent where they could not stay"


@pytest.mark.interpreted
@pytest.mark.parametrize("name", ["yaq-c", "yaq-d"])
def test_a_node_that_is_silent_is_sent_what_waits_for_some_heartbeats_and_no_longer(name: str) -> None:
    sent: list[tuple[float, str]] = []

    class Central(YaqC):
        def take(self, decisions: Iterable[Outcome], now: float) -> None:
            decisions = list(decisions)
            sent.extend((now, one.node_id.host) for one in decisions if isinstance(one, Allocate))
            super().take(decisions, now)

    class Direct(Distributed):
        def _carry(self, job: JobRun, place: Place, now: float) -> None:
            sent.append((now, place.node.node_id.host))
            super()._carry(job, place, now)

    late = [SimJob(f"at {at}", (stage(6, 1.0),), arrival_s=at) for at in (8.0, 40.0, 60.0)]
    workload = Workload((SimJob("long", (stage(4, 50.0),)), *late))
    shape = ClusterShape(nodes=2, slots=2, failures=(NodeFailure(0, 5.0),), expiry_s=300.0)
    model = Central if name == "yaq-c" else Direct
    result = model(shape, workload, System(name, bound=4, at_asks=True), 1).run(horizon_s=math.inf, skip_idle=True)
    assert result.tasks == workload.tasks
    gone = host_name(0)
    assert any(5.0 < at < 14.0 and host == gone for at, host in sent), "nobody knows yet"
    after = [host for at, host in sent if at >= 14.0]
    assert len(after) >= 4 and gone not in after, "it has missed three heartbeats"


@pytest.mark.interpreted
@pytest.mark.parametrize("cause", ["lost node", "shed", "time limit"])
def test_a_wait_goes_along_to_the_next_node(cause: str) -> None:
    seen: list[tuple[float, float]] = []

    def watched(base: type[Model]) -> type[Model]:
        class Watched(base):  # type: ignore[misc, valid-type]
            def newcomer(self, run: ContainerRun) -> Arrived:
                arrived = super().newcomer(run)
                assert arrived.facts is not None
                seen.append((run.arrived, arrived.facts.waited_s))
                return arrived

        return Watched

    workload = Workload((SimJob("job", (stage(60, 10.0),)),))
    shape = ClusterShape(nodes=3, slots=4, failures=(NodeFailure(1, 8.0),), expiry_s=3.0)
    if cause == "shed":  # the node that is slow has promised too much
        shape = ClusterShape(nodes=2, slots=4, speeds=(1.0, 0.05))
        system = System("yaq-d", bound=20, rebalance=True, rebalance_gain_s=1.0)
        result = watched(Distributed)(shape, workload, system, 1).run(horizon_s=math.inf, skip_idle=True)
    else:
        if cause == "time limit":
            shape = replace(shape, failures=())
        system = System("yaq-c", bound=8, max_wait_s=6.0 if cause == "time limit" else 0.0)
        result = watched(YaqC)(shape, workload, system, 1).run(horizon_s=math.inf, skip_idle=True)
    assert result.tasks == 60
    longest = max(waited for _, waited in seen)
    assert longest > 4.0
    assert all(waited <= at + 1e-9 for at, waited in seen), "nobody waited longer than there was time"
