"""Runs a load under the network's chances: stages are drawn, and so are limits. A replay adds up slopes on the way.

A stage is drawn by a softmax over the scores of those that the plain network would choose from. A job's limit is drawn
around the network's logarithm, by a normal distribution. It is kept until the job ends a stage, or jobs come or end:
drawn anew at each decision, the least of many draws would send containers away.

A draw follows from the seed and its number. So a replay makes the same choices, and nothing of them is stored.
"""

from math import cos, exp, inf, log, pi, sqrt
from typing import Any, Final, NamedTuple

import numpy as np

from yaqd.policies.curves.samples import Floats, Ints
from yaqd.sim.stages.compiled.jit import jit
from yaqd.sim.stages.compiled.network import Mind, limit_logarithm, limit_of, may_have, room_for, score
from yaqd.sim.stages.compiled.run import note, step
from yaqd.sim.stages.compiled.slopes import (
    Tape,
    limit_slopes,
    look_with_slopes,
    score_slopes,
    settle_all,
    settle_cluster,
)
from yaqd.sim.stages.compiled.state import ACTIVE, FREE, LEFT, Live, Plan
from yaqd.sim.stages.compiled.world import give, uniform

#: the limit that a job has, and what must not change for it to stay
_KEPT: Final = np.dtype([("logarithm", "f8"), ("stages_left", "i8"), ("active", "i8")])


class Chances(NamedTuple):
    """How choices are drawn, and what they are worth afterwards."""

    seed: int
    #: standard deviation of a limit's logarithm
    width: float
    #: what the entropy of a choice of stages counts for
    entropy: float
    #: whether slopes are added up
    learns: bool
    #: by time: what the advantage falls by a second until the next one, and the advantage
    times: Floats
    falls: Floats
    worth: Floats
    #: what comes later counts less by exp(-1) each so many seconds
    horizon_s: float


class Course(NamedTuple):
    """What a run under chances keeps."""

    kept: Any
    #: stages to choose from, and their scores, then their chances, then slopes
    stages: Ints
    scores: Floats
    #: draws so far
    draws: Ints


def course_of(plan: Plan) -> Course:
    """Return what a run begins with."""
    kept = np.zeros(len(plan.jobs), dtype=_KEPT)
    many = len(plan.stages)
    return Course(kept, np.zeros(many, dtype=np.int64), np.zeros(many), np.zeros(1, dtype=np.int64))


@jit
def advantage(chances: Chances, now_s: float) -> float:
    """Return what is known afterwards of decisions at a time."""
    at, above = -1, len(chances.times)
    while above - at > 1:
        middle = (at + above) // 2
        if chances.times[middle] <= now_s:
            at = middle
        else:
            above = middle
    if at < 0 or at + 1 >= len(chances.times):
        return 0.0
    left_s = chances.times[at + 1] - now_s
    if chances.horizon_s == inf:
        return float(chances.worth[at + 1] - chances.falls[at] * left_s)
    keeps = exp(-left_s / chances.horizon_s)
    return float(keeps * chances.worth[at + 1] - chances.falls[at] * chances.horizon_s * (1.0 - keeps))


@jit
def chance(chances: Chances, course: Course) -> float:
    """Return the next draw, of [0, 1)."""
    course.draws[0] += 1
    return uniform(chances.seed, course.draws[0], 0, 0)


@jit
def normal(chances: Chances, course: Course) -> float:
    """Return the next draw, of a normal distribution (Box and Muller)."""
    radius = sqrt(-2.0 * log(1.0 - chance(chances, course)))
    return radius * cos(2.0 * pi * chance(chances, course))


@jit
def draw_limits(
    plan: Plan,
    live: Live,
    mind: Mind,
    tape: Tape,
    course: Course,
    chances: Chances,
    mean_s: float,
    worth: float,
) -> None:
    """Set the limit of each job that has stages to choose from."""
    for at in range(live.counts[ACTIVE]):
        job = live.active[at]
        own, kept = live.jobs[job], course.kept[job]
        if own.claims == 0:
            continue
        if kept.stages_left != own.stages_left or kept.active != live.counts[ACTIVE]:
            moved = normal(chances, course)
            kept.logarithm = limit_logarithm(plan, live, mind, job, mean_s) + chances.width * moved
            kept.stages_left, kept.active = own.stages_left, live.counts[ACTIVE]
            if chances.learns:
                limit_slopes(mind, tape, job, worth * moved / chances.width)
        own.value = kept.logarithm
        own.limit = limit_of(kept.logarithm, plan.slots)


@jit
def weigh(plan: Plan, live: Live, mind: Mind, course: Course, source: int, idle: int, spills: bool) -> int:
    """Set stages to choose from and their scores; return how many there are."""
    many = 0
    for at in range(live.counts[ACTIVE]):
        job = live.active[at]
        if may_have(live, job, source, spills):
            for stage in range(plan.jobs[job].first, plan.jobs[job + 1].first):
                if live.stages[stage].claimable:
                    course.stages[many] = stage
                    course.scores[many] = score(plan, live, mind, job, stage, source, idle)
                    many += 1
    return many


@jit
def softmax(scores: Floats) -> None:
    """Turn scores into chances."""
    top, total = -inf, 0.0
    for at in range(len(scores)):
        top = max(top, scores[at])
    for at in range(len(scores)):
        scores[at] = exp(scores[at] - top)
        total += scores[at]
    for at in range(len(scores)):
        scores[at] /= total


@jit
def drawn(parts: Floats, at: float) -> int:
    """Return which of some chances a draw falls on; the likeliest where rounding leaves none."""
    likeliest = 0
    for number in range(len(parts)):
        at -= parts[number]
        if at < 0.0:
            return number
        if parts[number] > parts[likeliest]:
            likeliest = number
    return likeliest


@jit
def choice_slopes(parts: Floats, taken: int, worth: float, entropy: float) -> None:
    """Turn chances into slopes by score of: worth x logarithm of what was taken + entropy x entropy of all."""
    mixed = 0.0
    for at in range(len(parts)):
        if parts[at] > 0.0:
            mixed -= parts[at] * log(parts[at])
    for at in range(len(parts)):
        part = parts[at]
        inner = part * (log(part) + mixed) if part > 0.0 else 0.0
        parts[at] = (worth if at == taken else 0.0) - worth * part - entropy * inner


@jit
def draw_stage(
    plan: Plan,
    live: Live,
    mind: Mind,
    tape: Tape,
    course: Course,
    chances: Chances,
    source: int,
    idle: int,
    worth: float,
) -> tuple[int, int]:
    """Return the stage that gets idle containers of a source, and how many; -1: none."""
    many, spills = weigh(plan, live, mind, course, source, idle, False), False
    if many == 0:
        many, spills = weigh(plan, live, mind, course, source, idle, True), True
    if many == 0:
        return -1, 0
    parts = course.scores[:many]
    softmax(parts)
    taken = drawn(parts, chance(chances, course)) if many > 1 else 0
    found = int(course.stages[taken])
    if chances.learns and many > 1:
        choice_slopes(parts, taken, worth, chances.entropy)
        for at in range(many):
            stage = int(course.stages[at])
            score(plan, live, mind, plan.stages[stage].job, stage, source, idle)
            score_slopes(plan, mind, tape, stage, parts[at])
    return found, 1 if spills else room_for(plan, live, found, source, idle)


@jit
def decide_drawn(
    plan: Plan, live: Live, mind: Mind, tape: Tape, course: Course, chances: Chances, source: int, now_s: float
) -> None:
    """Give away the idle containers of one source as it is drawn."""
    worth = advantage(chances, now_s) if chances.learns else 0.0
    while True:
        idle = live.counts[FREE] if source < 0 else live.jobs[source].idle
        if idle == 0:
            return
        mean_s = look_with_slopes(plan, live, mind, tape)
        draw_limits(plan, live, mind, tape, course, chances, mean_s, worth)
        stage, many = draw_stage(plan, live, mind, tape, course, chances, source, idle, worth)
        if chances.learns:
            settle_cluster(live, mind, tape)
        if stage < 0:
            return
        note(live, source, stage, many)
        give(plan, live, source, stage, many, now_s)


@jit
def run_drawn(plan: Plan, live: Live, mind: Mind, tape: Tape, course: Course, chances: Chances, until_s: float) -> None:
    """Run until a time under the network's chances; where it learns, the tape has all slopes afterwards."""
    next_job = 0
    while live.counts[LEFT]:
        now_s, next_job, asks = step(plan, live, next_job)
        if now_s > until_s or now_s == inf:
            break
        if asks:
            decide_drawn(plan, live, mind, tape, course, chances, -1, now_s)
            for at in range(live.counts[ACTIVE]):
                decide_drawn(plan, live, mind, tape, course, chances, live.active[at], now_s)
    settle_all(plan, mind, tape)
