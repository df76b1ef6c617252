"""Evolution strategies: weights move towards those of antithetic pairs that do better on the same arrivals.

Each generation draws its sequences and its moves from the seed and its number alone. A run that resumes from a
checkpoint comes to the same bits as one that was never stopped.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Floats, Ints
from yaqd.sim.stages.compiled.network import mind_of
from yaqd.sim.stages.compiled.run import finished, run_learned
from yaqd.sim.stages.compiled.state import live_of, plan_of
from yaqd.sim.stages.training.begin import scales
from yaqd.sim.stages.training.settings import TRAINING_SEEDS, Setting, nominal, varied
from yaqd.sim.workloads.graphs import GraphSet

_MOVE_SEED: Final = 71
_FIRST: Final = 0.9
_SECOND: Final = 0.99


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """How a run searches; what it is resumed with has to be the same."""

    seed: int = 1
    pairs: int = 10
    #: generations that move linear scores alone
    linear: int = 75
    rate: float = 0.35
    #: jobs of the streams, batches as they are measured, sequences of anything
    stream_jobs: int = 60
    batches: int = 3
    anything: int = 1
    makespan: bool = False
    #: 0: any number of slots
    slots: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Evolution:
    """Where a run stands."""

    generation: int
    weights: Floats = field(repr=False)
    #: Adam's means of gradients and of their squares
    first: Floats = field(repr=False)
    second: Floats = field(repr=False)


def begin_search(weights: Floats) -> Evolution:
    """Return a search that begins at some weights."""
    return Evolution(0, weights.copy(), np.zeros_like(weights), np.zeros_like(weights))


def sequences(graphs: GraphSet, among: Ints, terms: SearchTerms, generation: int) -> list[Setting]:
    """Return what a generation is tried on: all its members on the same."""
    seed = TRAINING_SEEDS + (terms.seed * 100_000 + generation) * 16
    found = [varied(graphs, seed + at, among, terms.slots) for at in range(terms.anything)]
    found += [nominal(graphs, seed + 8 + at, 20, False, among) for at in range(terms.batches)]
    if terms.stream_jobs:
        found.append(nominal(graphs, seed + 15, terms.stream_jobs, True, among))
    return found


def losses(settings: list[Setting], members: list[Floats], makespan: bool = False) -> Floats:
    """Return the mean logarithm of each member's completion time (or makespan) against the plain heuristic's."""
    total = np.zeros(len(members))
    for setting in settings:
        plan = plan_of(setting.load, setting.rules)
        for number, weights in enumerate(members):
            live = live_of(plan, setting.load)
            run_learned(plan, live, mind_of(weights, plan))
            found = finished(plan, live)
            total[number] += (
                np.log(found.makespan_s / setting.makespan_s) if makespan else np.log(found.mean_s / setting.mean_s)
            )
    return total / len(settings)


def advance(
    search: Evolution,
    graphs: GraphSet,
    among: Ints,
    terms: SearchTerms,
    tried: Callable[[list[Setting], list[Floats], bool], Floats] = losses,
) -> tuple[Evolution, float]:
    """Evolution one generation further; return also the mean loss of its members."""
    rng = np.random.default_rng((terms.seed, search.generation, _MOVE_SEED))
    scale = scales()[search.generation >= terms.linear]
    moves = rng.normal(size=(terms.pairs, len(scale)))
    members = [search.weights + sign * scale * move for move in moves for sign in (1.0, -1.0)]
    found = tried(sequences(graphs, among, terms, search.generation), members, terms.makespan)
    ranks = np.argsort(np.argsort(found, kind="stable"), kind="stable") / (len(found) - 1) - 0.5
    gains = ranks[1::2] - ranks[0::2]
    gradient = gains @ moves / terms.pairs
    first = _FIRST * search.first + (1.0 - _FIRST) * gradient
    second = _SECOND * search.second + (1.0 - _SECOND) * gradient**2
    step = search.generation + 1
    corrected = first / (1.0 - _FIRST**step)
    size = np.sqrt(second / (1.0 - _SECOND**step)) + 1e-8
    rate = terms.rate / (1.0 + search.generation / 150.0)
    weights = search.weights + rate * scale * np.where(scale > 0.0, corrected / size, 0.0)
    return replace(search, generation=step, weights=weights, first=first, second=second), float(found.mean())
