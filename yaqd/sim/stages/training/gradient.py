"""Policy gradient: weights move so that choices which turned out better than those of other rollouts become likelier.

As in Decima's paper: all rollouts of a sequence see the same arrivals, and their mean return at the same time is the
baseline. Episodes end at a random time, and grow. The entropy of choices counts less and less. Each generation draws
from the seed and its number alone, so a resumed run comes to the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, Final

import numpy as np

from yaqd.policies.curves.samples import Floats, Ints
from yaqd.sim.stages.compiled.network import mind_of
from yaqd.sim.stages.compiled.sampling import Chances, course_of, run_drawn
from yaqd.sim.stages.compiled.slopes import tape_of
from yaqd.sim.stages.compiled.state import LEFT, live_of, plan_of
from yaqd.sim.stages.training.advantages import Advantages, advantages
from yaqd.sim.stages.training.begin import scales
from yaqd.sim.stages.training.settings import Setting, TrainingTerms, sequences
from yaqd.sim.stages.training.state import TrainingState, stepped
from yaqd.sim.stages.training.workers import Spread, alone
from yaqd.sim.workloads.graphs import GraphSet

_DRAW_SEED: Final = 72
_NONE: Final = np.zeros(0)


@dataclass(frozen=True, slots=True)
class GradientTerms(TrainingTerms):
    """How a run learns."""

    stream_jobs: int = 40
    batches: int = 1
    #: of each sequence
    rollouts: int = 8
    #: size of a step, in units of what evolution strategies move a weight by
    rate: float = 0.05
    #: mean length of an episode, in makespans of the plain heuristic, and what it grows by each generation
    episode: float = 0.5
    longer: float = 0.01
    #: what entropy counts for at first, and after `decay` generations; advantages have a mean square of 1
    entropy: float = 0.1
    entropy_least: float = 0.001
    #: the same of the standard deviation of limits' logarithms
    width: float = 0.4
    width_least: float = 0.1
    decay: int = 300
    #: whether returns are against the mean number of jobs
    differential: bool = False
    #: the paper has none (0): what comes later counts less by exp(-1) each so many mean completion times of the plain
    #: heuristic. Slopes of two sets of 8 rollouts then agree more: cosine 0.69, not 0.47, on a batch, from nothing
    horizon: float = 1.0


@dataclass(frozen=True, slots=True)
class Episode:
    """A rollout: of which sequence, what it draws from, and when it ends, s."""

    sequence: int
    seed: int
    until_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """A rollout to be replayed, with what its decisions were worth."""

    episode: Episode
    times: Floats
    falls: Floats
    worth: Floats
    horizon_s: float


def fading(first: float, least: float, generation: int, decay: int) -> float:
    """Return what falls by equal steps from `first` to `least` within `decay` generations."""
    return max(least, first - (first - least) * generation / max(decay, 1))


def episodes(settings: list[Setting], terms: GradientTerms, generation: int) -> list[Episode]:
    """Return the rollouts of a generation. Those of one sequence end at the same time, which is memoryless."""
    rng = np.random.default_rng((terms.seed, generation, _DRAW_SEED))
    mean = terms.episode + terms.longer * generation
    found = []
    for number, setting in enumerate(settings):
        until_s = inf if terms.makespan else float(rng.exponential(mean)) * setting.makespan_s
        found += [Episode(number, int(rng.integers(1 << 62)), until_s) for _ in range(terms.rollouts)]
    return found


def rolled(some: Sequence[Episode], settings: list[Setting], weights: Floats, width: float) -> list[Floats]:
    """Run rollouts; return when each job ended, or the episode. Raises ValueError where jobs never end."""
    found = []
    for one in some:
        setting = settings[one.sequence]
        plan = plan_of(setting.load, setting.rules)
        live = live_of(plan, setting.load)
        chances = Chances(one.seed, width, 0.0, False, _NONE, _NONE, _NONE, inf)
        run_drawn(plan, live, mind_of(weights, plan), tape_of(plan), course_of(plan), chances, one.until_s)
        ends_s = np.fmin(live.jobs["done_s"], one.until_s)
        if np.isinf(ends_s).any():
            raise ValueError(f"{live.counts[LEFT]} jobs never end: the policy gives them no container")
        found.append(ends_s)
    return found


def replayed(
    lessons: Sequence[Lesson], settings: list[Setting], weights: Floats, width: float, entropy: float
) -> list[Floats]:
    """Run rollouts again; return the slope of each by weight."""
    found = []
    for one in lessons:
        setting = settings[one.episode.sequence]
        plan = plan_of(setting.load, setting.rules)
        live, tape = live_of(plan, setting.load), tape_of(plan)
        chances = Chances(one.episode.seed, width, entropy, True, one.times, one.falls, one.worth, one.horizon_s)
        run_drawn(plan, live, mind_of(weights, plan), tape, course_of(plan), chances, one.episode.until_s)
        found.append(tape.gradient)
    return found


def ascend(
    state: TrainingState, graphs: GraphSet, among: Ints, terms: GradientTerms, spread: Spread = alone
) -> tuple[TrainingState, float]:
    """Go one generation further; return also the mean loss of its rollouts, as they were drawn."""
    settings = sequences(graphs, among, terms, state.generation)
    some = episodes(settings, terms, state.generation)
    width = fading(terms.width, terms.width_least, state.generation, terms.decay)
    entropy = fading(terms.entropy, terms.entropy_least, state.generation, terms.decay)
    bound: dict[str, Any] = {"settings": settings, "weights": state.weights, "width": width}
    ends = spread(partial(rolled, **bound), some)
    many = terms.rollouts
    each = [np.stack(ends[at * many : (at + 1) * many]) for at in range(len(settings))]
    untils = (one.until_s for one in some[::many])
    known = _judged(settings, each, terms)
    lessons = [_lesson(one, known[at // many], at % many) for at, one in enumerate(some)]
    slopes = spread(partial(replayed, **bound, entropy=entropy), lessons)
    gradient = np.sum(slopes, axis=0) / len(slopes)
    loss = np.mean([_loss(*one, terms.makespan) for one in zip(settings, each, untils, strict=True)])
    return stepped(state, gradient, terms.rate * scales()[1]), float(loss)


def _lesson(episode: Episode, known: Advantages, number: int) -> Lesson:
    return Lesson(episode, known.times, known.falls[number], known.worth[number], known.horizon_s)


def _judged(settings: list[Setting], each: list[Floats], terms: GradientTerms) -> list[Advantages]:
    """Return advantages as parts of what the plain heuristic needs, then in units of their root mean square."""
    found = []
    for setting, ends_s in zip(settings, each, strict=True):
        one = advantages(ends_s, setting.load.arrive_s, terms.makespan, terms.differential, _horizon_s(setting, terms))
        found.append(one.scaled(1.0 / _plain_s(setting, inf, terms.makespan)))
    size = float(np.sqrt(np.mean([one.mean_square for one in found])))
    return [one.scaled(1.0 / size) if size > 0.0 else one for one in found]


def _horizon_s(setting: Setting, terms: GradientTerms) -> float:
    # the end of the last job is far off for most decisions
    return terms.horizon * setting.mean_s if terms.horizon > 0.0 and not terms.makespan else inf


def _plain_s(setting: Setting, until_s: float, makespan: bool) -> float:
    """Return what the plain heuristic needs of all jobs until a time, or until its last job ends."""
    if makespan:
        return setting.makespan_s
    return float((np.minimum(setting.ends_s, until_s) - setting.load.arrive_s).clip(min=0.0).sum())


def _loss(setting: Setting, ends_s: Floats, until_s: float, makespan: bool) -> float:
    took_s = ends_s.max(axis=1) if makespan else (ends_s - setting.load.arrive_s).clip(min=0.0).sum(axis=1)
    return float(np.log(took_s / _plain_s(setting, until_s, makespan)).mean())
