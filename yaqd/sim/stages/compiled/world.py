"""The events of the compiled simulator: tasks start, end and draw their durations; containers move.

Draws are made of the seed, the job, the stage and the number of the task, so they are the same under every policy.
"""

import numpy as np

from yaqd.sim.stages.compiled.jit import jit
from yaqd.sim.stages.compiled.state import ACTIVE, FREE, HEAP, LEFT, SERIAL, STARTED, Live, Plan


@jit
def mixed(value: np.uint64) -> np.uint64:
    """Return the value well mixed (the last steps of splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@jit
def uniform(seed: int, stage: int, task: int, which: int) -> float:
    """Return a number of [0, 1) that belongs to a task."""
    step = np.uint64(0x9E3779B97F4A7C15)
    value = mixed(np.uint64(seed) + step)
    value = mixed(value + step * np.uint64(stage + 1))
    value = mixed(value + step * np.uint64(2 * task + which + 1))
    return float(value >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@jit
def point_of(containers: int, chance: float) -> int:
    """Return the recorded executor count that a job of so many takes its duration from; between two it is drawn."""
    points = (5, 10, 20, 40, 50, 60, 80, 100)
    if containers <= 5:
        return 0
    for at in range(1, 8):
        if containers == points[at]:
            return at
        if containers < points[at]:
            left = points[at - 1]
            return at - 1 if chance * (points[at] - left) < containers - left else at
    return 7


@jit
def duration_s(plan: Plan, live: Live, stage: int, kind: int) -> float:
    """Return how long the next task of a stage runs. `kind`: 0 new to the job, 1 new to the stage, 2 neither."""
    task = live.stages[stage].started
    source = plan.stages[stage].source
    point = point_of(live.jobs[plan.stages[stage].job].here, uniform(plan.seed, stage, task, 0))
    many = plan.waves[source, point, kind].many
    pick = min(many - 1, int(uniform(plan.seed, stage, task, 1) * many))
    took_s = plan.values[plan.waves[source, point, kind].at + pick]
    return float(took_s + plan.warm_s if plan.waves[source, point, kind].is_cold else took_s)


@jit
def push(live: Live, when_s: float, what: int) -> None:
    """Put an event on the heap; of those at the same time the earlier put comes first."""
    count = live.counts
    at = count[HEAP]
    serial = count[SERIAL]
    count[HEAP] = at + 1
    count[SERIAL] = serial + 1
    while at > 0:
        up = (at - 1) // 2
        if live.heap[up].when_s <= when_s:
            break
        live.heap[at].when_s = live.heap[up].when_s
        live.heap[at].serial = live.heap[up].serial
        live.heap[at].what = live.heap[up].what
        at = up
    live.heap[at].when_s = when_s
    live.heap[at].serial = serial
    live.heap[at].what = what


@jit
def before(live: Live, a: int, b: int) -> bool:
    """Return whether event a comes before event b."""
    if live.heap[a].when_s != live.heap[b].when_s:
        return bool(live.heap[a].when_s < live.heap[b].when_s)
    return bool(live.heap[a].serial < live.heap[b].serial)


@jit
def pop(live: Live) -> int:
    """Take the first event off the heap; return what it is."""
    what = live.heap[0].what
    last = live.counts[HEAP] - 1
    live.counts[HEAP] = last
    live.heap[0].when_s = live.heap[last].when_s
    live.heap[0].serial = live.heap[last].serial
    live.heap[0].what = live.heap[last].what
    at = 0
    while True:
        least = at
        for down in (2 * at + 1, 2 * at + 2):
            if down < last and before(live, down, least):
                least = down
        if least == at:
            return int(what)
        live.heap[at].when_s, live.heap[least].when_s = live.heap[least].when_s, live.heap[at].when_s
        live.heap[at].serial, live.heap[least].serial = live.heap[least].serial, live.heap[at].serial
        live.heap[at].what, live.heap[least].what = live.heap[least].what, live.heap[at].what
        at = least


@jit
def start_task(plan: Plan, live: Live, stage: int, kind: int, now_s: float) -> None:
    """Start the next task of a stage on a container that is there."""
    push(live, now_s + duration_s(plan, live, stage, kind), 2 * stage)
    live.stages[stage].started += 1
    live.counts[STARTED] += 1
    live.jobs[plan.stages[stage].job].is_dirty = 1


@jit
def come(plan: Plan, live: Live, job: int) -> None:
    """Let a job in."""
    live.active[live.counts[ACTIVE]] = job
    live.counts[ACTIVE] += 1
    live.jobs[job].is_dirty = 1


@jit
def leave(live: Live, job: int, now_s: float) -> None:
    """End a job; its idle containers belong to nobody."""
    own = live.jobs[job]
    own.done_s = now_s
    live.counts[FREE] += own.idle + own.held
    own.here -= own.idle + own.held
    own.idle = 0
    own.held = 0
    own.fresh = 0
    kept = 0
    for at in range(live.counts[ACTIVE]):
        if live.active[at] != job:
            live.active[kept] = live.active[at]
            kept += 1
    live.counts[ACTIVE] = kept
    live.counts[LEFT] -= 1


@jit
def release(plan: Plan, live: Live, job: int) -> None:
    """Let containers that wait for stages be decided on again."""
    own = live.jobs[job]
    own.idle += own.held
    own.held = 0
    for stage in range(plan.jobs[job].first, plan.jobs[job + 1].first):
        live.stages[stage].held = 0


@jit
def waits_in_vain(plan: Plan, live: Live, stage: int) -> bool:
    """Return whether a stage waits for one with tasks that nobody has claimed any more.

    They were when the container went there. Since then others were let go.
    """
    job = plan.stages[stage].job
    first = plan.jobs[job].first
    for parent in range(first, plan.jobs[job + 1].first):
        now = live.stages[parent]
        if plan.stages[parent].tasks > now.started + now.coming + now.held:
            source = plan.stages[parent].source
            for edge in range(plan.child_at[source], plan.child_at[source + 1]):
                if first + plan.child[edge] == stage:
                    return True
    return False


@jit
def end_stage(plan: Plan, live: Live, stage: int, now_s: float) -> None:
    """Open what waited for it; end the job with its last one."""
    job = plan.stages[stage].job
    source = plan.stages[stage].source
    opens = False
    for edge in range(plan.child_at[source], plan.child_at[source + 1]):
        child = plan.jobs[job].first + plan.child[edge]
        live.stages[child].waits -= 1
        if live.stages[child].waits == 0:
            opens = True
    live.jobs[job].stages_left -= 1
    if live.jobs[job].stages_left == 0:
        leave(live, job, now_s)
    elif opens and live.jobs[job].held:
        release(plan, live, job)


@jit
def end_task(plan: Plan, live: Live, stage: int, now_s: float) -> bool:
    """End a task; its container goes on in the stage or is idle. Return whether somebody has to decide."""
    job = plan.stages[stage].job
    live.stages[stage].ended += 1
    live.jobs[job].is_dirty = 1
    asks = False
    if live.stages[stage].started < plan.stages[stage].tasks:
        start_task(plan, live, stage, 2, now_s)
    else:
        live.jobs[job].idle += 1
        asks = True
    if live.stages[stage].ended == plan.stages[stage].tasks:
        end_stage(plan, live, stage, now_s)
        asks = True
    return asks


@jit
def arrive(plan: Plan, live: Live, stage: int, now_s: float) -> bool:
    """Let a container that moved arrive. Return whether somebody has to decide."""
    job = plan.stages[stage].job
    own = live.jobs[job]
    live.stages[stage].coming -= 1
    own.on_way -= 1
    if own.stages_left == 0:
        live.counts[FREE] += 1
        return True
    own.here += 1
    own.is_dirty = 1
    if live.stages[stage].started == plan.stages[stage].tasks:
        own.idle += 1
        own.fresh += 1
        return True
    if live.stages[stage].waits == 0:
        start_task(plan, live, stage, 0, now_s)
        return False
    own.fresh += 1
    if waits_in_vain(plan, live, stage):
        own.idle += 1
        release(plan, live, job)
        return True
    own.held += 1
    live.stages[stage].held += 1
    return False


@jit
def give_own(plan: Plan, live: Live, job: int, stage: int, many: int, now_s: float) -> None:
    """Give a stage idle containers of its own job: they start, or wait until it opens."""
    own = live.jobs[job]
    own.idle -= many
    if live.stages[stage].waits:
        own.held += many
        live.stages[stage].held += many
        return
    for left in range(many - 1, -1, -1):
        kind = 1
        if own.idle + own.held + left < own.fresh:
            own.fresh -= 1
            kind = 0
        start_task(plan, live, stage, kind, now_s)


@jit
def give(plan: Plan, live: Live, source: int, stage: int, many: int, now_s: float) -> None:
    """Give idle containers of a source (a job, or -1) to a stage: they start there, wait there or move."""
    job = plan.stages[stage].job
    live.jobs[job].is_dirty = 1
    if source == job:
        give_own(plan, live, job, stage, many, now_s)
        return
    if source < 0:
        live.counts[FREE] -= many
    else:
        left = live.jobs[source]
        left.idle -= many
        left.here -= many
        left.fresh = min(left.fresh, left.idle + left.held)
        left.is_dirty = 1
    live.stages[stage].coming += many
    live.jobs[job].on_way += many
    for _ in range(many):
        push(live, now_s + plan.move_s, 2 * stage + 1)
