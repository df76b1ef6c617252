"""Evolution strategies: weights move towards those of antithetic pairs that do better on the same arrivals.

Each generation draws its sequences and its moves from the seed and its number alone. A run that resumes from a
checkpoint comes to the same bits as one that was never stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Floats, Ints
from yaqd.sim.stages.compiled.network import mind_of
from yaqd.sim.stages.compiled.run import finished, run_learned
from yaqd.sim.stages.compiled.state import live_of, plan_of
from yaqd.sim.stages.training.begin import scales
from yaqd.sim.stages.training.settings import Setting, TrainingTerms, sequences
from yaqd.sim.stages.training.state import TrainingState, stepped
from yaqd.sim.stages.training.workers import Spread, alone
from yaqd.sim.workloads.graphs import GraphSet

_MOVE_SEED: Final = 71


@dataclass(frozen=True, slots=True)
class SearchTerms(TrainingTerms):
    """How a run searches."""

    batches: int = 4
    estimates: int = 2
    hundreds: int = 4
    streams: int = 5
    stream_jobs: int = 100
    anything: int = 3
    even: int = 1
    pairs: int = 24
    #: generations that move linear scores alone
    linear: int = 200
    rate: float = 0.2


def losses(members: Sequence[Floats], settings: list[Setting], makespan: bool = False) -> Floats:
    """Return the mean logarithm of each member's completion time (or makespan) against the plain heuristic's."""
    total = np.zeros(len(members))
    for setting in settings:
        plan = plan_of(setting.load, setting.rules)
        for number, weights in enumerate(members):
            live = live_of(plan, setting.load)
            run_learned(plan, live, mind_of(weights, plan, skips=True), 0)
            found = finished(plan, live)
            total[number] += (
                np.log(found.makespan_s / setting.makespan_s) if makespan else np.log(found.mean_s / setting.mean_s)
            )
    return total / len(settings)


def evolve(
    state: TrainingState, graphs: GraphSet, among: Ints, terms: SearchTerms, spread: Spread = alone
) -> tuple[TrainingState, float]:
    """Go one generation further; return also the mean loss of its members."""
    rng = np.random.default_rng((terms.seed, state.generation, _MOVE_SEED))
    scale = scales()[state.generation >= terms.linear]
    moves = rng.normal(size=(terms.pairs, len(scale)))
    members = [state.weights + sign * scale * move for move in moves for sign in (1.0, -1.0)]
    settings = sequences(graphs, among, terms, state.generation)
    found = np.array(spread(partial(losses, settings=settings, makespan=terms.makespan), members))
    ranks = np.argsort(np.argsort(found, kind="stable"), kind="stable") / (len(found) - 1) - 0.5
    gains = ranks[1::2] - ranks[0::2]
    rate = terms.rate / (1.0 + state.generation / 150.0)
    return stepped(state, gains @ moves / terms.pairs, rate * scale), float(found.mean())
