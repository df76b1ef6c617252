"""The network of `yaqd.policies.clotho.network`, compiled: the same scores to 1e-5."""

from math import ceil, exp, inf, log
from typing import Any, Final, NamedTuple

import numpy as np

from yaqd.policies.clotho.network import TIE
from yaqd.policies.clotho.shapes import AT, CLUSTER, EMB, HEAD, HID, JOB_RAW, LIMIT_WIDE, RAW, WIDE
from yaqd.policies.clotho.weights import arrays_of, is_linear
from yaqd.policies.curves.samples import Floats
from yaqd.sim.stages.compiled.jit import jit
from yaqd.sim.stages.compiled.layers import add_product, leak, two_layers
from yaqd.sim.stages.compiled.state import ACTIVE, WANTING, Live, Plan

ENTER: Final = AT["enter"]
ENTER_BIAS: Final = AT["enter_bias"]
STAGE_F: Final = AT["stage_f_hidden"]
STAGE_G: Final = AT["stage_g_hidden"]
JOB_F: Final = AT["job_f_hidden"]
JOB_G: Final = AT["job_g_hidden"]
CLUSTER_F: Final = AT["cluster_f_hidden"]
CLUSTER_G: Final = AT["cluster_g_hidden"]
SCORE_STAGE: Final = AT["score_stage"]
SCORE_JOB: Final = AT["score_job"]
SCORE_CLUSTER: Final = AT["score_cluster"]
SCORE_WIDE: Final = AT["score_wide"]
SCORE_BIAS: Final = AT["score_bias"]
SCORE_OUT: Final = AT["score_out"]
SCORE_LINEAR: Final = AT["score_linear"]
LIMIT_JOB: Final = AT["limit_job"]
LIMIT_CLUSTER: Final = AT["limit_cluster"]
LIMIT_WIDE_AT: Final = AT["limit_wide"]
LIMIT_BIAS: Final = AT["limit_bias"]
LIMIT_OUT: Final = AT["limit_out"]
LIMIT_LINEAR: Final = AT["limit_linear"]
#: of a job's row: embedding, message to the cluster, what heads add for the job
JOB_ROW: Final = 2 * EMB + 2 * HEAD
#: of a stage's row: features and embedding, message to its parents, what the score adds for the stage
STAGE_ROW: Final = RAW + 2 * EMB + HEAD
#: limits are below exp of this
_EXPONENT_MAX: Final = 12.0


#: by these the heads see embeddings
OF_EMBEDDINGS: Final = ("score_stage", "score_job", "score_cluster", "limit_job", "limit_cluster")


class Mind(NamedTuple):
    """Weights, and what the network keeps between decisions."""

    weights: Floats
    stages: Any
    jobs: Any
    #: embedding of the cluster, and what heads add for it
    cluster: Floats
    scratch: Any
    #: no hidden layer has a say in scores and limits, so none is worked out
    is_linear: bool
    #: embeddings have a say
    has_graph: bool


def mind_of(weights: Floats, plan: Plan, *, skips: bool = False) -> Mind:
    """Return a network for a run. `skips`: layers whose outputs all count for nothing are not worked out."""
    arrays = arrays_of(weights)
    leaves_out = skips and is_linear(arrays)
    has_graph = not leaves_out and (not skips or any(arrays[name].any() for name in OF_EMBEDDINGS))
    # without a graph the cluster adds nothing but the heads' biases
    cluster = np.concatenate((np.zeros(EMB), arrays["score_bias"], arrays["limit_bias"]))
    return Mind(
        np.ascontiguousarray(weights, dtype=np.float64),
        np.zeros((len(plan.stages), STAGE_ROW)),
        np.zeros((len(plan.jobs), JOB_ROW)),
        cluster,
        np.zeros((8, 32)),
        leaves_out,
        has_graph,
    )


@jit
def stage_features(plan: Plan, live: Live, stage: int, x: Floats) -> None:
    """Set the features of a stage."""
    now = live.stages[stage]
    fixed = plan.stages[stage]
    unfinished = fixed.tasks - now.ended
    x[0] = log(1.0 + now.unclaimed) / 5.0
    x[1] = log(1.0 + unfinished) / 5.0
    x[2] = (now.started - now.ended) / plan.slots
    x[3] = log(0.01 + fixed.est_s) / 3.0
    x[4] = log(1.0 + fixed.est_s * unfinished) / 8.0
    x[5] = 1.0 if now.waits == 0 else 0.0
    x[6] = (now.coming + now.held) / plan.slots
    x[7] = log(1.0 + now.chain_s) / 5.0


@jit
def embed_stages(plan: Plan, live: Live, mind: Mind, job: int) -> None:
    """Embed a job's stages, those first that nothing waits for; sum their messages to the job in scratch 3."""
    w, scratch = mind.weights, mind.scratch
    begin, end = plan.jobs[job].first, plan.jobs[job + 1].first
    scratch[3, :EMB] = 0.0
    for at in range(begin, end):
        stage = plan.stages[at].leaves_first
        if live.stages[stage].ended == plan.stages[stage].tasks:
            continue
        row = mind.stages[stage]
        stage_features(plan, live, stage, row[:RAW])
        own = row[RAW : RAW + EMB]
        for o in range(EMB):
            own[o] = w[ENTER_BIAS + o]
        add_product(w, ENTER, RAW, EMB, row[:RAW], own)
        leak(own, EMB)
        source = plan.stages[stage].source
        scratch[0, :EMB] = 0.0
        low, high = plan.child_at[source], plan.child_at[source + 1]
        for edge in range(low, high):
            told = mind.stages[begin + plan.child[edge]]
            for o in range(EMB):
                scratch[0, o] += told[RAW + EMB + o]
        if high > low:
            two_layers(w, STAGE_G, EMB, scratch[0], scratch[1], scratch[2])
            for o in range(EMB):
                own[o] += scratch[2, o]
        two_layers(w, STAGE_F, EMB, own, scratch[1], row[RAW + EMB : RAW + 2 * EMB])
        two_layers(w, JOB_F, RAW + EMB, row[: RAW + EMB], scratch[1], scratch[2])
        for o in range(EMB):
            scratch[3, o] += scratch[2, o]
        adds = row[RAW + 2 * EMB :]
        adds[:] = 0.0
        add_product(w, SCORE_STAGE, RAW + EMB, HEAD, row[: RAW + EMB], adds)


@jit
def embed_job(plan: Plan, live: Live, mind: Mind, job: int) -> None:
    """Embed a job and its stages."""
    w, scratch = mind.weights, mind.scratch
    embed_stages(plan, live, mind, job)
    row, own = mind.jobs[job], live.jobs[job]
    two_layers(w, JOB_G, EMB, scratch[3], scratch[1], row[:EMB])
    x = scratch[4]
    x[0] = log(1.0 + own.work_s) / 8.0
    x[1] = log(1.0 + own.longest_s) / 5.0
    x[2] = (own.here + own.on_way) / plan.slots
    x[3] = (own.idle + own.held) / plan.slots
    x[4] = log(1.0 + own.unclaimed) / 6.0
    x[5] = log(1.0 + own.claims) / 6.0
    x[6] = log(1.0 + own.open_claims) / 6.0
    x[7] = 1.0 - own.work_s / max(plan.jobs[job].whole_s, 1e-9)
    for o in range(EMB):
        x[JOB_RAW + o] = row[o]
    two_layers(w, CLUSTER_F, JOB_RAW + EMB, x, scratch[1], row[EMB : 2 * EMB])
    row[2 * EMB :] = 0.0
    add_product(w, SCORE_JOB, EMB, HEAD, row, row[2 * EMB :])
    add_product(w, LIMIT_JOB, EMB, HEAD, row, row[2 * EMB + HEAD :])


@jit
def count_wanting(live: Live) -> float:
    """Count the jobs that have tasks that nobody has claimed; return the mean work left of a job, s."""
    many, work_s, wanting = live.counts[ACTIVE], 0.0, 0
    for at in range(many):
        own = live.jobs[live.active[at]]
        work_s += own.work_s
        wanting += 1 if own.unclaimed else 0
    live.counts[WANTING] = wanting
    return float(work_s / max(many, 1))


@jit
def embed_cluster(plan: Plan, live: Live, mind: Mind) -> float:
    """Sum up all jobs in scratch 0 and set what heads add for the cluster; return as `count_wanting`."""
    w, scratch = mind.weights, mind.scratch
    x = scratch[0]
    x[: EMB + CLUSTER] = 0.0
    many, spare = live.counts[ACTIVE], 0
    mean_s = count_wanting(live)
    for at in range(many):
        job = live.active[at]
        spare += live.jobs[job].idle + live.jobs[job].held
        for o in range(EMB):
            x[o] += mind.jobs[job, EMB + o] / 8.0
    x[EMB] = log(1.0 + many) / 3.0
    x[EMB + 1] = log(1.0 + live.counts[WANTING]) / 3.0
    x[EMB + 2] = log(1.0 + mean_s) / 8.0
    x[EMB + 3] = log(plan.slots / 50.0)
    x[EMB + 4] = log(1.0 + plan.move_s)
    x[EMB + 5] = spare / plan.slots
    cluster = mind.cluster
    two_layers(w, CLUSTER_G, EMB + CLUSTER, x, scratch[1], cluster[:EMB])
    for o in range(HEAD):
        cluster[EMB + o] = w[SCORE_BIAS + o]
        cluster[EMB + HEAD + o] = w[LIMIT_BIAS + o]
    add_product(w, SCORE_CLUSTER, EMB, HEAD, cluster, cluster[EMB:])
    add_product(w, LIMIT_CLUSTER, EMB, HEAD, cluster, cluster[EMB + HEAD :])
    return mean_s


@jit
def limit_of(logarithm: float, slots: int) -> float:
    """Return how many containers a job should have, by the logarithm of it."""
    return min(max(1.0, ceil(exp(min(logarithm, _EXPONENT_MAX)) - 1e-6)), float(slots))


@jit
def set_limits(plan: Plan, live: Live, mind: Mind, mean_s: float) -> None:
    """Say how many containers each job should have."""
    for at in range(live.counts[ACTIVE]):
        own = live.jobs[live.active[at]]
        own.value = limit_logarithm(plan, live, mind, live.active[at], mean_s)
        own.limit = limit_of(own.value, plan.slots)


@jit
def limit_logarithm(plan: Plan, live: Live, mind: Mind, job: int, mean_s: float) -> float:
    """Return the logarithm of a job's limit. Features stay in scratch 5, the hidden layer in scratch 6."""
    w, own = mind.weights, live.jobs[job]
    x, hidden = mind.scratch[5], mind.scratch[6]
    x[0] = 1.0
    x[1] = log(1.0 + own.work_s)
    x[2] = log(max(live.counts[WANTING], 1.0))
    x[3] = log(plan.slots / 50.0)
    x[4] = log((1.0 + own.work_s) / (1.0 + mean_s))
    x[5] = log((1.0 + own.work_s) / (1.0 + own.longest_s))
    x[6] = log(1.0 + plan.move_s)
    x[7] = 1.0 - own.work_s / max(plan.jobs[job].whole_s, 1e-9)
    x[8] = log(1.0 + own.unclaimed)
    x[9] = log(1.0 + own.open_claims)
    x[10] = log(1.0 + plan.jobs[job].whole_s)
    x[11] = x[1] * x[1] / 8.0
    x[12] = x[1] * x[2] / 4.0
    x[13] = log(1.0 + own.longest_s)
    x[14] = x[2] * x[2] / 2.0
    total = 0.0
    for i in range(LIMIT_WIDE):
        total += w[LIMIT_LINEAR + i] * x[i]
    if mind.is_linear:
        return total
    for o in range(HEAD):
        hidden[o] = mind.cluster[EMB + HEAD + o] + mind.jobs[job, 2 * EMB + HEAD + o]
    add_product(w, LIMIT_WIDE_AT, LIMIT_WIDE, HEAD, x, hidden)
    leak(hidden, HEAD)
    for o in range(HEAD):
        total += w[LIMIT_OUT + o] * hidden[o]
    return total


@jit
def score(plan: Plan, live: Live, mind: Mind, job: int, stage: int, source: int, idle: int) -> float:
    """Return the score of a stage for idle containers of a source; features and hidden layer as for limits."""
    w, own, now = mind.weights, live.jobs[job], live.stages[stage]
    x, hidden = mind.scratch[5], mind.scratch[6]
    has = own.here + own.on_way
    is_own = 1.0 if job == source else 0.0
    is_open = 1.0 if now.waits == 0 else 0.0
    x[0] = -own.work_s / 100.0
    x[1] = -log(1.0 + own.work_s)
    x[2] = is_own
    x[3] = is_open
    x[4] = is_own * is_open
    x[5] = now.chain_s / max(own.longest_s, 1e-9)
    x[6] = now.chain_work_s / max(own.work_s, 1e-9)
    x[7] = min(now.claimable, idle) / idle
    x[8] = log(0.01 + plan.stages[stage].est_s)
    x[9] = min(has / own.limit, 3.0)
    x[10] = log(1.0 + has)
    x[11] = -min(now.wait_s, 30.0) / 10.0
    x[12] = is_own * log(1.0 + plan.move_s)
    x[13] = 1.0 - own.work_s / max(plan.jobs[job].whole_s, 1e-9)
    x[14] = 1.0 if has == 0 else 0.0
    x[15] = log((1.0 + own.work_s) / (1.0 + has))
    x[16] = is_own if has > own.limit else 0.0
    x[17] = is_own * max(log(max(has, 1) / own.limit), 0.0)
    many = log(max(live.counts[WANTING], 1.0))
    x[18] = log(1.0 + own.unclaimed)
    x[19] = x[1] * many / 2.0
    x[20] = x[10] * many / 2.0
    x[21] = is_own * x[8]
    x[22] = log(1.0 + own.longest_s)
    x[23] = is_own * many
    x[24] = log(1.0 + plan.stages[stage].est_s * now.claimable)
    total = 0.0
    for i in range(WIDE):
        total += w[SCORE_LINEAR + i] * x[i]
    if mind.is_linear:
        return total
    row = mind.stages[stage]
    for o in range(HEAD):
        hidden[o] = mind.cluster[EMB + o] + mind.jobs[job, 2 * EMB + o] + row[RAW + 2 * EMB + o]
    add_product(w, SCORE_WIDE, WIDE, HEAD, x, hidden)
    leak(hidden, HEAD)
    for o in range(HEAD):
        total += w[SCORE_OUT + o] * hidden[o]
    return total


@jit
def may_have(live: Live, job: int, source: int, spills: bool) -> bool:
    """Return whether a job has stages to choose from and is below its limit. `spills`: limits do not count."""
    own = live.jobs[job]
    return bool(own.claims and (spills or job == source or own.here + own.on_way < own.limit))


@jit
def best_stage(plan: Plan, live: Live, mind: Mind, source: int, idle: int, spills: bool) -> int:
    """Return the stage with the highest score whose job is below its limit, the first of those about as high; -1: none.

    `spills`: limits do not count.
    """
    best = -inf
    for at in range(live.counts[ACTIVE]):
        job = live.active[at]
        if may_have(live, job, source, spills):
            for stage in range(plan.jobs[job].first, plan.jobs[job + 1].first):
                if live.stages[stage].claimable:
                    value = score(plan, live, mind, job, stage, source, idle)
                    live.stages[stage].score = value
                    best = max(best, value)
    least, found = best - TIE * max(1.0, abs(best)), -1
    for at in range(live.counts[ACTIVE]):
        job = live.active[at]
        if may_have(live, job, source, spills):
            for stage in range(plan.jobs[job].first, plan.jobs[job + 1].first):
                if live.stages[stage].claimable:
                    if live.stages[stage].score >= least:
                        return stage
                    found = stage if found < 0 else found
    return found


@jit
def choose_learned(plan: Plan, live: Live, mind: Mind, source: int, idle: int) -> tuple[int, int]:
    """Return the stage that gets idle containers of a source, and how many; -1: none."""
    found = best_stage(plan, live, mind, source, idle, False)
    if found < 0:
        return best_stage(plan, live, mind, source, idle, True), 1
    return found, room_for(plan, live, found, source, idle)


@jit
def room_for(plan: Plan, live: Live, found: int, source: int, idle: int) -> int:
    """Return how many idle containers a stage gets: at most its job's limit, unless they are the job's own."""
    job = plan.stages[found].job
    many = min(idle, live.stages[found].claimable)
    if job != source:
        room = live.jobs[job].limit - live.jobs[job].here - live.jobs[job].on_way
        if room < many:
            many = max(1, int(room))
    return int(many)


assert HID <= 32
