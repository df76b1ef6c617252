"""Policies and delays that a live key selects are selectable in the simulator by the same name, and change what they
should; unsaid, and said as they are unsaid, they change nothing."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner, Result

from nm.distributed import Place
from yaqd.cli.app import yaq
from yaqd.cli.simulation.commands import NETWORK_S
from yaqd.cli.simulation.systems import parse_system
from yaqd.policies.queueing.bounds import BOUNDS
from yaqd.policies.queueing.estimates import ESTIMATES, MEMORY
from yaqd.policies.queueing.rebalance import REBALANCES, Move
from yaqd.sim import shape as shapes
from yaqd.sim.distributed import Distributed
from yaqd.sim.estimates import Estimates
from yaqd.sim.jobs import JobRun, StageRun
from yaqd.sim.simulation import ClusterShape, SimResult, System, simulate
from yaqd.sim.workload import SLOT, SimJob, SimStage, SimTask, Workload
from yaqd.sim.yaq_c import YaqC


def job(name: str, seconds: Sequence[float], arrival_s: float = 0.0, slots: int = 1) -> SimJob:
    return SimJob(name, (SimStage("stage", tuple(SimTask(s, SLOT * slots) for s in seconds)),), arrival_s=arrival_s)


def same(one: SimResult, other: SimResult) -> bool:
    arrays = ("arrived", "started", "ended", "job", "done")
    return one.jobs == other.jobs and all(np.array_equal(getattr(one, n), getattr(other, n)) for n in arrays)


def waiting_most(result: SimResult, after_s: float) -> int:
    """Containers that wait at nodes at a time, from then on."""
    came, went = (np.sort(times[result.arrived > after_s]) for times in (result.arrived, result.started))
    return int(max(np.arange(1, len(came) + 1) - np.searchsorted(went, came, side="right")))


@pytest.mark.slow
def test_nodes_find_their_bound_by_the_formula_that_is_named() -> None:
    """For the same slots, tasks and gaps the formulas ask for queues of different length, and get them."""
    shape = ClusterShape(nodes=4, slots=8, heartbeat_s=3.0)
    workload = Workload(tuple(job(f"job{n}", [10.0] * 400) for n in range(4)))
    found, wanted = [], []
    for policy in ("utilization", "fixed", "poisson", "chernoff"):
        system = System("yaq-c", bound_target=0.95, bound_policy=policy, bound_least=1, free_min=0.0)
        found.append(waiting_most(simulate(shape, workload, system, 1), after_s=60.0))
        wanted.append(shape.nodes * BOUNDS[policy](8, 10.0, 3.5, 0.05))
    assert wanted == sorted(wanted) and len(set(wanted)) == 4
    assert found == sorted(found) and len(set(found)) == 4, (found, wanted)
    assert all(most >= asked for most, asked in zip(found, wanted, strict=True)), "each is filled to what is asked for"


def test_nodes_estimate_waits_by_the_policy_that_is_named() -> None:
    """Behind a task of four slots that waits for one of 200 s; as if any fitted in the place of any other, 30 s."""
    shape = ClusterShape(nodes=1, slots=4, heartbeat_s=1.0)
    jobs = (job("small", [30.0, 30.0, 30.0, 200.0]), job("large", [5.0], 5.0, slots=4), job("next", [3.0], 10.0))
    system = parse_system("yaq-c,bound_wait_s=40,estimates=task,max_wait_s=0")
    came = []
    for wait_estimate in ("resources", "slots"):
        result = simulate(shape, Workload(jobs), replace(system, wait_estimate=wait_estimate), 1)
        came.append(float(result.arrived[result.job == 2][0]))
    assert came[0] > 160.0, "it would wait for longer than 40 s by its node's word, and stays with the ResourceManager"
    assert came[1] < 15.0, "it waits at the node"


@pytest.mark.interpreted
def test_yaq_d_keeps_tasks_of_one_stage_apart() -> None:
    """Nodes differ in size, so that by wait alone a manager sends more to the same few."""

    class Watched(Distributed):
        sent: Counter[tuple[int, int]]

        def _carry(self, job: JobRun, place: Place, now: float) -> None:
            self.sent[job.index, self._by_host[place.node.node_id.host].index] += 1
            super()._carry(job, place, now)

    shape = ClusterShape(nodes=8, slots=2, heartbeat_s=1.0, sizes=(4.0, 1.0))
    workload = Workload(tuple(job(f"job{n}", [10.0] * 12, 0.5 * n) for n in range(24)))
    together = []
    for interference in (0, 5):
        model = Watched(shape, workload, parse_system(f"yaq-d,rebalance=off,interference={interference}"), 1)
        model.sent = Counter()
        model.run(horizon_s=math.inf, skip_idle=True)
        together.append(sum(max(n for (j, _), n in model.sent.items() if j == index) for index in range(24)) / 24)
    assert together[1] < 0.9 * together[0], together


@pytest.mark.slow
def test_yaq_d_moves_by_the_rule_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def stays(loads: object, least_gain_s: float) -> list[Move]:
        asked.append(least_gain_s)
        return []

    monkeypatch.setitem(REBALANCES._shipped, "stays", stays)
    shape = ClusterShape(nodes=8, slots=4, heartbeat_s=1.0, noise=0.5, speeds=(1.0, 0.4))
    workload = Workload(tuple(job(f"job{n}", [10.0] * 40, 3.0 * n) for n in range(12)))
    by_length, moved, named = (
        simulate(shape, workload, parse_system(f"yaq-d{more}"), 1)
        for more in ("", ",rebalance_gain_s=2", ",rebalance_gain_s=2,rebalance_policy=stays")
    )
    assert asked and set(asked) == {2.0}
    assert same(named, by_length) and not same(moved, by_length)


def test_a_job_that_was_given_nothing_goes_first_after_so_many_times_its_work() -> None:
    shape = ClusterShape(nodes=2, slots=4, heartbeat_s=1.0)
    short = [job(f"short{n}", [5.0] * 16, 8.0 * n) for n in range(30)]
    workload = Workload((job("long", [60.0] * 8, 0.5), *short))
    ends = []
    for ratio in ("inf", "0.05"):
        system = parse_system(f"yarn,job_order=srjf,job_starve_s=10000,job_starve_ratio={ratio}")
        (long,) = (one for one in simulate(shape, workload, system, 1).jobs if one.name == "long")
        ends.append(long.from_submission)
    assert ends[1] < 0.8 * ends[0]
    limits = YaqC(shape, Workload(()), parse_system("yaq-c,job_starve_ratio=3"), 1).limits()
    assert limits.job_starvation.starve_ratio == 3.0


def stage_of(tasks: int, error: float) -> StageRun:
    (stage,) = JobRun(0, job("job", [10.0] * tasks), [[10.0] * tasks]).stages
    stage.error = error
    return stage


@pytest.mark.parametrize(("name", "after_one"), [("blended", 32.5), ("observed", 10.0), ("earlier", 40.0)])
def test_estimates_are_made_by_the_policy_that_is_named(name: str, after_one: float) -> None:
    stage, estimates = stage_of(MEMORY + 1, 4.0), Estimates(name)
    estimates.begin(stage)
    assert stage.estimate == 40.0, "what earlier runs say"
    estimates.ended(stage, 10.0)
    assert stage.estimate == pytest.approx(after_one)
    assert estimates.is_news(stage) == (name != "earlier") and not estimates.is_news(stage)
    for _ in range(MEMORY):
        estimates.ended(stage, 10.0)
    assert stage.estimate == (40.0 if name == "earlier" else 10.0)


@pytest.mark.parametrize("system", ["yaq-c", pytest.param("yaq-d", marks=pytest.mark.slow), "yarn,job_order=srjf"])
def test_policies_of_estimates_go_by_what_earlier_runs_say(system: str) -> None:
    """What never changes is what `stage` is; what learns comes to another order where that was wrong."""
    shape = ClusterShape(nodes=2, slots=4, heartbeat_s=1.0)
    workload = Workload(tuple(job(f"job{n}", [4.0 + n] * 30, 1.0 * n) for n in range(10)))
    stage, earlier, blended = (
        simulate(shape, workload, parse_system(f"{system},estimate_error=8,estimates={name}"), 1)
        for name in ("stage", "earlier", "blended")
    )
    assert same(stage, earlier) and not same(stage, blended)


def test_a_policy_of_estimates_that_others_brought_along_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ESTIMATES._shipped, "five", lambda seen, before: 5.0)
    stage, estimates = stage_of(3, 1.0), Estimates(parse_system("yaq-c,estimates=five").estimates)
    estimates.begin(stage)
    assert stage.estimate == 5.0


def test_what_is_said_as_it_is_unsaid_changes_nothing() -> None:
    shape = ClusterShape(nodes=4, slots=4, heartbeat_s=1.0, noise=0.2, sizes=(1.0, 2.0))
    workload = Workload(tuple(job(f"job{n}", [3.0 + n % 5] * 12, 1.5 * n) for n in range(15)))
    said = {
        "yaq-c": "bound_policy=utilization,wait_estimate=resources,job_starve_ratio=10",
        "yaq-d": "wait_estimate=resources,interference=0,rebalance_policy=gain",
    }
    for system, more in said.items():
        same_system = parse_system(f"{system},{more}")
        assert same(simulate(shape, workload, same_system, 1), simulate(shape, workload, parse_system(system), 1))


def compare(*words: str) -> Result:
    return CliRunner().invoke(yaq, ["sim", "compare", "--workload", "5-sec", "--jobs", "2", "--nodes", "4", *words])


def test_the_network_is_as_slow_as_it_is_said_to_be() -> None:
    assert NETWORK_S == shapes.NETWORK_S == ClusterShape().network_s
    words = ("--seeds", "1", "--system", "yarn", "--json")
    fast, said, slow = (
        json.loads(compare(*words, *more).stdout) for more in ((), ("--network", str(NETWORK_S)), ("--network", "1.5"))
    )
    assert said["runs"] == fast["runs"]
    assert slow["runs"][0]["metrics"]["makespan"] > fast["runs"][0]["metrics"]["makespan"] + 3.0
    assert not any("network" in line for line in fast["conditions"])
    assert any(line.endswith(", network 1.5 s") for line in slow["conditions"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--system", "yaq-c,bound_policy=best"), "bound policy 'best': there is none; known: utilization, poisson"),
        (
            ("--system", "yaq-c,bound=4,bound_policy=fixed"),
            "bound_policy changes nothing while bound_target is 0",
        ),
        (("--system", "yaq-d,wait_estimate=long"), "wait policy 'long': there is none; known: resources, slots"),
        (("--system", "yarn,wait_estimate=slots"), "none of yarn's parameters"),
        (("--system", "yaq-d,rebalance_policy=steal"), "rebalance policy 'steal': there is none; known: gain"),
        (("--system", "yaq-c,estimates=guess"), "there are task, stage, learned, none, blended, observed, earlier"),
        (("--system", "yaq-d,interference=-1"), "must not be negative"),
        (("--system", "yaq-c,job_starve_ratio=often"), "not a number"),
        (("--system", "yarn", "--network", "-1"), "is not in the range 0<=x<=60"),
        (("--system", "yarn", "--network", "nan"), "nan is no finite number"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(words: tuple[str, ...], why: str) -> None:
    result = compare(*words)
    assert result.exit_code == 2 and why in " ".join(result.stderr.split()), result.output


def test_a_rule_for_moves_needs_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REBALANCES._shipped, "stays", lambda loads, gain: [])
    result = compare("--system", "yaq-d,rebalance_policy=stays")
    assert result.exit_code == 2 and "rebalance_policy changes nothing while rebalance_gain_s is 0" in result.stderr
