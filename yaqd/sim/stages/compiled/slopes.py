"""The backward pass of the compiled network: from slopes of what its heads say to slopes of its weights.

Slopes of what a job hands out add up over decisions, as long as its embedding is kept. One pass then takes them to the
weights. So a replay with slopes costs about three times what it costs without.
"""

from typing import NamedTuple

import numpy as np

from yaqd.policies.clotho.shapes import CLUSTER, EMB, HEAD, HID, JOB_RAW, LEAK, LIMIT_WIDE, RAW, SIZE, WIDE
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.sim.stages.compiled.heuristics import refresh
from yaqd.sim.stages.compiled.jit import jit
from yaqd.sim.stages.compiled.layers import add_product, copy
from yaqd.sim.stages.compiled.network import (
    CLUSTER_F,
    CLUSTER_G,
    ENTER,
    ENTER_BIAS,
    JOB_F,
    JOB_G,
    LIMIT_BIAS,
    LIMIT_CLUSTER,
    LIMIT_JOB,
    LIMIT_LINEAR,
    LIMIT_OUT,
    LIMIT_WIDE_AT,
    SCORE_BIAS,
    SCORE_CLUSTER,
    SCORE_JOB,
    SCORE_LINEAR,
    SCORE_OUT,
    SCORE_STAGE,
    SCORE_WIDE,
    STAGE_F,
    STAGE_G,
    Mind,
    embed_cluster,
    embed_job,
)
from yaqd.sim.stages.compiled.state import ACTIVE, Live, Plan


class Tape(NamedTuple):
    """Slopes by weight, and those that wait for the next pass."""

    gradient: Floats
    #: of what the score adds for a stage, and of its message to its parents
    stages: Floats
    #: of a job's message to the cluster, and of what the two heads add for it
    jobs: Floats
    #: of what the two heads add for the cluster
    cluster: Floats
    #: what embeddings were made of: the sum of a job's stages and its features; that of the cluster
    job_inputs: Floats
    cluster_inputs: Floats
    #: whether a stage was embedded with its job, whether slopes of a job wait
    is_embedded: Ints
    waits: Ints
    scratch: Floats


def tape_of(plan: Plan) -> Tape:
    """Return an empty tape for a run."""
    stages, jobs = len(plan.stages), len(plan.jobs)
    return Tape(
        np.zeros(SIZE),
        np.zeros((stages, HEAD + EMB)),
        np.zeros((jobs, EMB + 2 * HEAD)),
        np.zeros(2 * HEAD),
        np.zeros((jobs, EMB + JOB_RAW)),
        np.zeros(EMB + CLUSTER),
        np.zeros(stages, dtype=np.int64),
        np.zeros(jobs, dtype=np.int64),
        np.zeros((8, 32)),
    )


@jit
def product_slopes(
    weights: Floats, gradient: Floats, at: int, inputs: int, outputs: int, x: Floats, up: Floats, down: Floats
) -> None:
    """Add the slopes of a matrix, whose product with x has slopes `up`; add those of x to `down`."""
    for i in range(inputs):
        value, total = x[i], 0.0
        for o in range(outputs):
            gradient[at + i * outputs + o] += value * up[o]
            total += weights[at + i * outputs + o] * up[o]
        down[i] += total


@jit
def two_layers_slopes(
    weights: Floats, gradient: Floats, at: int, inputs: int, x: Floats, up: Floats, hidden: Floats, down: Floats
) -> None:
    """Add the slopes of two layers, whose result has slopes `up`; add those of x to `down`. `hidden` is scratch."""
    bias = at + inputs * HID
    last = bias + HID
    for h in range(HID):
        hidden[h] = weights[bias + h]
    add_product(weights, at, inputs, HID, x, hidden)
    for o in range(EMB):
        gradient[last + HID * EMB + o] += up[o]
    for h in range(HID):
        slope = LEAK if hidden[h] < 0.0 else 1.0
        value, total = hidden[h] * slope, 0.0
        for o in range(EMB):
            gradient[last + h * EMB + o] += value * up[o]
            total += weights[last + h * EMB + o] * up[o]
        hidden[h] = total * slope
        gradient[bias + h] += hidden[h]
    product_slopes(weights, gradient, at, inputs, HID, x, hidden, down)


@jit
def head_slopes(mind: Mind, tape: Tape, linear: int, wide: int, out: int, inputs: int, up: float, down: Floats) -> None:
    """Add the slopes of a head that was just asked; set those of its hidden layer's sum in `down`."""
    w, gradient = mind.weights, tape.gradient
    x, hidden = mind.scratch[5], mind.scratch[6]
    for i in range(inputs):
        gradient[linear + i] += up * x[i]
    for o in range(HEAD):
        gradient[out + o] += up * hidden[o]
        down[o] = up * w[out + o] * (LEAK if hidden[o] < 0.0 else 1.0)
    for i in range(inputs):
        for o in range(HEAD):
            gradient[wide + i * HEAD + o] += x[i] * down[o]


@jit
def score_slopes(plan: Plan, mind: Mind, tape: Tape, stage: int, up: float) -> None:
    """Take in the slope of a stage's score, right after `score` returned it."""
    down = tape.scratch[0]
    head_slopes(mind, tape, SCORE_LINEAR, SCORE_WIDE, SCORE_OUT, WIDE, up, down)
    job = plan.stages[stage].job
    for o in range(HEAD):
        tape.stages[stage, o] += down[o]
        tape.jobs[job, EMB + o] += down[o]
        tape.cluster[o] += down[o]
    tape.waits[job] = 1


@jit
def limit_slopes(mind: Mind, tape: Tape, job: int, up: float) -> None:
    """Take in the slope of a limit's logarithm, right after `limit_logarithm` returned it."""
    down = tape.scratch[0]
    head_slopes(mind, tape, LIMIT_LINEAR, LIMIT_WIDE_AT, LIMIT_OUT, LIMIT_WIDE, up, down)
    for o in range(HEAD):
        tape.jobs[job, EMB + HEAD + o] += down[o]
        tape.cluster[HEAD + o] += down[o]
    tape.waits[job] = 1


@jit
def settle_cluster(live: Live, mind: Mind, tape: Tape) -> None:
    """Take the cluster's slopes on to its weights and to the jobs that are active. Once per look."""
    w, gradient, up, scratch = mind.weights, tape.gradient, tape.cluster, tape.scratch
    for o in range(HEAD):
        gradient[SCORE_BIAS + o] += up[o]
        gradient[LIMIT_BIAS + o] += up[HEAD + o]
    scratch[0, :EMB] = 0.0
    product_slopes(w, gradient, SCORE_CLUSTER, EMB, HEAD, mind.cluster, up[:HEAD], scratch[0])
    product_slopes(w, gradient, LIMIT_CLUSTER, EMB, HEAD, mind.cluster, up[HEAD:], scratch[0])
    scratch[1, : EMB + CLUSTER] = 0.0
    two_layers_slopes(w, gradient, CLUSTER_G, EMB + CLUSTER, tape.cluster_inputs, scratch[0], scratch[2], scratch[1])
    for at in range(live.counts[ACTIVE]):
        job = live.active[at]
        for o in range(EMB):
            tape.jobs[job, o] += scratch[1, o] / 8.0
        tape.waits[job] = 1
    up[:] = 0.0


@jit
def settle_job(plan: Plan, mind: Mind, tape: Tape, job: int) -> None:
    """Take a job's slopes on to the weights, before it is embedded anew."""
    if tape.waits[job] == 0:
        return
    w, gradient, up, scratch = mind.weights, tape.gradient, tape.jobs[job], tape.scratch
    row, x, down = mind.jobs[job], scratch[1], scratch[0]
    copy(tape.job_inputs[job, EMB:], x, JOB_RAW)
    copy(row, x[JOB_RAW:], EMB)
    down[: JOB_RAW + EMB] = 0.0
    two_layers_slopes(w, gradient, CLUSTER_F, JOB_RAW + EMB, x, up, scratch[2], down)
    own = down[JOB_RAW : JOB_RAW + EMB]
    product_slopes(w, gradient, SCORE_JOB, EMB, HEAD, row, up[EMB:], own)
    product_slopes(w, gradient, LIMIT_JOB, EMB, HEAD, row, up[EMB + HEAD :], own)
    scratch[3, :EMB] = 0.0
    two_layers_slopes(w, gradient, JOB_G, EMB, tape.job_inputs[job], own, scratch[2], scratch[3])
    begin, end = plan.jobs[job].first, plan.jobs[job + 1].first
    for at in range(end - 1, begin - 1, -1):
        if tape.is_embedded[plan.stages[at].leaves_first]:
            settle_stage(plan, mind, tape, plan.stages[at].leaves_first, begin)
    up[:] = 0.0
    tape.waits[job] = 0


@jit
def settle_stage(plan: Plan, mind: Mind, tape: Tape, stage: int, begin: int) -> None:
    """Take a stage's slopes on to the weights and to stages that wait for it; those of the job's sum: scratch 3."""
    w, gradient, up, scratch = mind.weights, tape.gradient, tape.stages[stage], tape.scratch
    row, both = mind.stages[stage], scratch[4]
    both[: RAW + EMB] = 0.0
    two_layers_slopes(w, gradient, JOB_F, RAW + EMB, row, scratch[3], scratch[2], both)
    product_slopes(w, gradient, SCORE_STAGE, RAW + EMB, HEAD, row, up, both)
    own = both[RAW : RAW + EMB]
    two_layers_slopes(w, gradient, STAGE_F, EMB, row[RAW:], up[HEAD:], scratch[2], own)
    source = plan.stages[stage].source
    low, high = plan.child_at[source], plan.child_at[source + 1]
    if high > low:
        told, down = scratch[5], scratch[6]
        told[:EMB] = 0.0
        down[:EMB] = 0.0
        for edge in range(low, high):
            for o in range(EMB):
                told[o] += mind.stages[begin + plan.child[edge], RAW + EMB + o]
        two_layers_slopes(w, gradient, STAGE_G, EMB, told, own, scratch[2], down)
        for edge in range(low, high):
            for o in range(EMB):
                tape.stages[begin + plan.child[edge], HEAD + o] += down[o]
    entered = scratch[5]
    for o in range(EMB):
        entered[o] = w[ENTER_BIAS + o]
    add_product(w, ENTER, RAW, EMB, row, entered)
    for o in range(EMB):
        own[o] *= LEAK if entered[o] < 0.0 else 1.0
        gradient[ENTER_BIAS + o] += own[o]
    for i in range(RAW):
        for o in range(EMB):
            gradient[ENTER + i * EMB + o] += row[i] * own[o]
    up[:] = 0.0


@jit
def look_with_slopes(plan: Plan, live: Live, mind: Mind, tape: Tape) -> float:
    """Embed all jobs that changed, and the cluster, after what waits was settled; return as `embed_cluster`."""
    for at in range(live.counts[ACTIVE]):
        job = live.active[at]
        if live.jobs[job].is_dirty:
            settle_job(plan, mind, tape, job)
            refresh(plan, live, job)
            embed_job(plan, live, mind, job)
            copy(mind.scratch[3], tape.job_inputs[job], EMB)
            copy(mind.scratch[4], tape.job_inputs[job, EMB:], JOB_RAW)
            for stage in range(plan.jobs[job].first, plan.jobs[job + 1].first):
                tape.is_embedded[stage] = live.stages[stage].ended < plan.stages[stage].tasks
    mean_s = embed_cluster(plan, live, mind)
    copy(mind.scratch[0], tape.cluster_inputs, EMB + CLUSTER)
    return mean_s


@jit
def settle_all(plan: Plan, mind: Mind, tape: Tape) -> None:
    """Take all slopes that wait on to the weights."""
    for job in range(len(tape.waits)):
        settle_job(plan, mind, tape, job)
