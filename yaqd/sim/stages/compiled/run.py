"""Runs a load under a policy, compiled."""

from math import inf

from yaqd.policies.curves.samples import Floats
from yaqd.sim.stages.compiled.heuristics import Knobs, choose, rank_jobs, refresh, refresh_all
from yaqd.sim.stages.compiled.jit import jit
from yaqd.sim.stages.compiled.network import (
    Mind,
    choose_learned,
    count_wanting,
    embed_cluster,
    embed_job,
    mind_of,
    set_limits,
)
from yaqd.sim.stages.compiled.state import (
    ACTIVE,
    DECISIONS,
    FREE,
    HEAP,
    LEFT,
    STARTED,
    TRACED,
    Live,
    Plan,
    live_of,
    plan_of,
)
from yaqd.sim.stages.compiled.world import arrive, come, end_task, give, pop
from yaqd.sim.stages.rules import DECIMA, Finished, Rules
from yaqd.sim.workloads.graphs import GraphLoad


@jit
def note(live: Live, source: int, stage: int, many: int) -> None:
    """Count a decision, and keep it where there is room."""
    live.counts[DECISIONS] += 1
    at = live.counts[TRACED]
    if at < len(live.trace):
        live.trace[at, 0] = source
        live.trace[at, 1] = stage
        live.trace[at, 2] = many
        live.counts[TRACED] = at + 1


@jit
def decide_source(plan: Plan, live: Live, kind: int, knobs: Knobs, source: int, now_s: float) -> None:
    """Give away the idle containers of one source."""
    while True:
        idle = live.counts[FREE] if source < 0 else live.jobs[source].idle
        if idle == 0:
            return
        rank_jobs(plan, live, kind, knobs)
        stage, many = choose(plan, live, kind, knobs, source, idle)
        if stage < 0:
            return
        note(live, source, stage, many)
        give(plan, live, source, stage, many, now_s)
        refresh(plan, live, plan.stages[stage].job)


@jit
def decide(plan: Plan, live: Live, kind: int, knobs: Knobs, now_s: float) -> None:
    """Give away all idle containers: first those that belong to nobody, then each job's."""
    refresh_all(plan, live)
    decide_source(plan, live, kind, knobs, -1, now_s)
    for at in range(live.counts[ACTIVE]):
        if live.jobs[live.active[at]].idle:
            decide_source(plan, live, kind, knobs, live.active[at], now_s)


@jit
def step(plan: Plan, live: Live, next_job: int) -> tuple[float, int, bool]:
    """Let everything happen that happens next at one time; return that time, the job to come, whether to decide.

    The time is inf where nothing happens any more.
    """
    now_s = inf
    if live.counts[HEAP]:
        now_s = live.heap[0].when_s
    if next_job < len(live.jobs) and plan.jobs[next_job].arrive_s <= now_s:
        now_s = plan.jobs[next_job].arrive_s
    asks = False
    if now_s == inf:
        return inf, next_job, asks
    while next_job < len(live.jobs) and plan.jobs[next_job].arrive_s == now_s:
        come(plan, live, next_job)
        next_job += 1
        asks = True
    while live.counts[HEAP] and live.heap[0].when_s == now_s:
        what = pop(live)
        if what % 2:
            asks = arrive(plan, live, what // 2, now_s) or asks
        else:
            asks = end_task(plan, live, what // 2, now_s) or asks
    return now_s, next_job, asks


@jit
def run_heuristic(plan: Plan, live: Live, kind: int, knobs: Knobs) -> None:
    """Run to the end under a heuristic."""
    next_job = 0
    while live.counts[LEFT]:
        now_s, next_job, asks = step(plan, live, next_job)
        if now_s == inf:
            return
        if asks:
            decide(plan, live, kind, knobs, now_s)


@jit
def look(plan: Plan, live: Live, mind: Mind) -> None:
    """Embed all jobs that changed, and the cluster."""
    for at in range(live.counts[ACTIVE]):
        job = live.active[at]
        if live.jobs[job].is_dirty:
            refresh(plan, live, job)
            if mind.has_graph:
                embed_job(plan, live, mind, job)
    mean_s = embed_cluster(plan, live, mind) if mind.has_graph else count_wanting(live)
    set_limits(plan, live, mind, mean_s)


@jit
def decide_learned(plan: Plan, live: Live, mind: Mind, source: int, now_s: float) -> None:
    """Give away the idle containers of one source as the network says."""
    while True:
        idle = live.counts[FREE] if source < 0 else live.jobs[source].idle
        if idle == 0:
            return
        look(plan, live, mind)
        stage, many = choose_learned(plan, live, mind, source, idle)
        if stage < 0:
            return
        note(live, source, stage, many)
        give(plan, live, source, stage, many, now_s)


@jit
def decide_all(plan: Plan, live: Live, mind: Mind, now_s: float) -> None:
    """Give away all idle containers as the network says."""
    decide_learned(plan, live, mind, -1, now_s)
    for at in range(live.counts[ACTIVE]):
        decide_learned(plan, live, mind, live.active[at], now_s)


@jit
def run_learned(plan: Plan, live: Live, mind: Mind, next_job: int) -> None:
    """Run to the end under the network, from where a run stands. `next_job`: the first that has not come.

    It has no default: with one numba compiles all of this twice, with a number given and without.
    """
    while live.counts[LEFT]:
        now_s, next_job, asks = step(plan, live, next_job)
        if now_s == inf:
            return
        if asks:
            decide_all(plan, live, mind, now_s)


def finished(plan: Plan, live: Live) -> Finished:
    """Return what came of it. Raises ValueError where the policy left jobs without containers for ever."""
    count = live.counts
    if count[LEFT]:
        raise ValueError(f"{count[LEFT]} jobs never end: the policy gives them no container")
    return Finished(
        live.jobs["done_s"] - plan.jobs["arrive_s"][:-1],
        float(live.jobs["done_s"].max()),
        int(count[DECISIONS]),
        int(count[STARTED]),
        live.trace[: count[TRACED]].copy(),
    )


def heuristic_run(
    load: GraphLoad, kind: int, knobs: Knobs = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0), rules: Rules = DECIMA, trace: int = 0
) -> Finished:
    """Run a load under a heuristic by number."""
    plan = plan_of(load, rules)
    live = live_of(plan, load, trace)
    run_heuristic(plan, live, kind, knobs)
    return finished(plan, live)


def learned_run(load: GraphLoad, weights: Floats, rules: Rules = DECIMA, trace: int = 0) -> Finished:
    """Run a load under the network with these weights, as one flat array."""
    plan = plan_of(load, rules)
    live = live_of(plan, load, trace)
    run_learned(plan, live, mind_of(weights, plan, skips=True), 0)
    return finished(plan, live)
