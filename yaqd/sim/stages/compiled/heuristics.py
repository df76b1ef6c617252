"""The heuristics of `yaqd.policies.clotho.heuristics`, compiled: values and limits of jobs, values of stages."""

from math import ceil, inf

from yaqd.sim.stages.compiled.jit import jit
from yaqd.sim.stages.compiled.state import ACTIVE, Live, Plan

#: coefficient, exponent, worth of staying, whether containers wait for stages, leave above the limit, spill
Knobs = tuple[float, float, float, float, float, float]
_OPEN_FIRST = 1e9
FIFO, SHORTEST, FAIR, WEIGHTED, PACKING, TROUBLE, CAPPED = range(7)


@jit
def refresh(plan: Plan, live: Live, job: int) -> None:
    """Work out what is left of a job: work, chains, and tasks that nobody has claimed."""
    own = live.jobs[job]
    begin, end = plan.jobs[job].first, plan.jobs[job + 1].first
    own.work_s, own.longest_s = 0.0, 0.0
    for at in range(begin, end):
        stage = plan.stages[at].leaves_first
        source = plan.stages[stage].source
        chain_s, chain_work_s = 0.0, 0.0
        for edge in range(plan.child_at[source], plan.child_at[source + 1]):
            child = live.stages[begin + plan.child[edge]]
            chain_s = max(chain_s, child.chain_s)
            chain_work_s = max(chain_work_s, child.chain_work_s)
        now = live.stages[stage]
        unfinished = plan.stages[stage].tasks - now.ended
        own_s = plan.stages[stage].est_s * unfinished
        now.chain_s = chain_s + (plan.stages[stage].est_s if unfinished else 0.0)
        now.chain_work_s = chain_work_s + own_s
        own.longest_s = max(own.longest_s, now.chain_s)
        own.work_s += own_s
        now.unclaimed = max(0, plan.stages[stage].tasks - now.started - now.coming - now.held)
        now.claimable = now.unclaimed
        now.wait_s = 0.0
    count_claims(plan, live, job)
    own.is_dirty = 0


@jit
def count_claims(plan: Plan, live: Live, job: int) -> None:
    """Note which stages may be chosen: those that wait for no stage with tasks that nobody has claimed."""
    own = live.jobs[job]
    begin, end = plan.jobs[job].first, plan.jobs[job + 1].first
    for stage in range(begin, end):
        now = live.stages[stage]
        unfinished = plan.stages[stage].tasks - now.ended
        if unfinished == 0:
            continue
        wait_s = plan.stages[stage].est_s * unfinished / max(1, now.started - now.ended)
        source = plan.stages[stage].source
        for edge in range(plan.child_at[source], plan.child_at[source + 1]):
            child = live.stages[begin + plan.child[edge]]
            child.wait_s = max(child.wait_s, wait_s)
            if now.unclaimed:
                child.claimable = 0
    own.unclaimed, own.claims, own.open_claims = 0, 0, 0
    for stage in range(begin, end):
        now = live.stages[stage]
        own.unclaimed += now.unclaimed
        own.claims += now.claimable
        if now.waits == 0:
            own.open_claims += now.claimable


@jit
def refresh_all(plan: Plan, live: Live) -> None:
    """Do so for all jobs that changed."""
    for at in range(live.counts[ACTIVE]):
        if live.jobs[live.active[at]].is_dirty:
            refresh(plan, live, live.active[at])


@jit
def weight_of(plan: Plan, live: Live, job: int, kind: int, exponent: float) -> float:
    """Return the weight of a job in sharing: its whole work to the exponent; 0 where all its tasks are claimed."""
    if live.jobs[job].unclaimed == 0:
        return 0.0
    return 1.0 if kind == FAIR else max(plan.jobs[job].whole_s, 1e-3) ** exponent


@jit
def rank_jobs(plan: Plan, live: Live, kind: int, knobs: Knobs) -> None:
    """Set value and limit of each active job."""
    many = live.counts[ACTIVE]
    weights = 0.0
    if kind in (FAIR, WEIGHTED):
        for at in range(many):
            weights += weight_of(plan, live, live.active[at], kind, knobs[0])
    for at in range(many):
        job = live.active[at]
        own = live.jobs[job]
        own.value, own.limit = -float(job), inf
        if kind == SHORTEST:
            own.value = -plan.jobs[job].whole_s
        elif kind in (FAIR, WEIGHTED):
            own.limit = ceil(plan.slots * weight_of(plan, live, job, kind, knobs[0]) / max(weights, 1e-300))
        elif kind >= PACKING:
            own.value = -own.work_s
        if kind == CAPPED:
            own.limit = ceil(knobs[0] * max(own.work_s, 0.0) ** knobs[1])


@jit
def stage_value(plan: Plan, live: Live, kind: int, stage: int, idle: int) -> float:
    """Return what a stage is worth within its job."""
    now = live.stages[stage]
    if kind <= WEIGHTED and kind != SHORTEST:
        return -float(stage) if now.waits == 0 else -1e9 - stage
    if kind == PACKING:
        return float(plan.stages[stage].est_s * min(now.claimable, idle))
    if kind == TROUBLE:
        trouble = plan.stages[stage].est_s * max(1.0, now.claimable / plan.slots)
        return float(trouble + 1e6 * (now.chain_s >= 0.6 * live.jobs[plan.stages[stage].job].longest_s))
    return float(now.chain_work_s + (_OPEN_FIRST if now.waits == 0 else 0.0))


@jit
def best_job(live: Live, kind: int, knobs: Knobs, source: int, spills: bool) -> int:
    """Return the job that gets containers of the source; -1: none. `spills`: limits count for nothing."""
    best, found = -inf, -1
    stay, holds, leaves = knobs[2], knobs[3] > 0.0, knobs[4] > 0.0
    for at in range(live.counts[ACTIVE]):
        job = live.active[at]
        own = live.jobs[job]
        if (own.claims if holds else own.open_claims) == 0:
            continue
        held = own.here + own.on_way
        is_own = job == source
        if not spills and (leaves and held > own.limit if is_own else held >= own.limit):
            continue
        value = own.value + stay if is_own else own.value
        if value > best:
            best, found = value, job
    return found


@jit
def choose(plan: Plan, live: Live, kind: int, knobs: Knobs, source: int, idle: int) -> tuple[int, int]:
    """Return the stage that gets idle containers of a source, and how many; -1: none."""
    job = best_job(live, kind, knobs, source, False)
    spills = job < 0
    if spills:
        job = best_job(live, kind, knobs, source, True) if knobs[5] > 0.0 else -1
        if job < 0:
            return -1, 0
    best, found = -inf, -1
    for stage in range(plan.jobs[job].first, plan.jobs[job + 1].first):
        if live.stages[stage].claimable and (knobs[3] > 0.0 or live.stages[stage].waits == 0):
            value = stage_value(plan, live, kind, stage, idle)
            if value > best:
                best, found = value, stage
    many = min(idle, live.stages[found].claimable)
    if spills:
        return found, 1
    if job != source:
        room = live.jobs[job].limit - live.jobs[job].here - live.jobs[job].on_way
        if room < many:
            many = max(1, int(room))
    return found, many
