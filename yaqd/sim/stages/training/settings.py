"""What a sequence of training is drawn from: loads, mixes, slots, costs of moves and errors of estimates."""

from dataclasses import dataclass, field
from itertools import count
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Floats, Ints
from yaqd.sim.stages.compiled.heuristics import FAIR, Knobs
from yaqd.sim.stages.compiled.run import heuristic_run
from yaqd.sim.stages.rules import DECIMA, Rules
from yaqd.sim.workloads.graphs import GraphLoad, GraphSet, draw_load

#: seeds below are never used for training: they are measured on
TRAINING_SEEDS: Final = 1_000_000
#: of the sequences that say how far training is
HELD_OUT_SEEDS: Final = 700_000
_SETTING_SEED: Final = 51
#: of a generation, at most
_SEEDS: Final = 64
#: fair sharing that holds containers for stages about to open and leaves above the share
_REFERENCE: Final[Knobs] = (0.0, 0.0, float("inf"), 1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class TrainingTerms:
    """What both trainers are told; what a run is resumed with has to be the same.

    Of each kind of sequence it says how many a generation is tried on.
    """

    seed: int = 1
    #: batches of 20 jobs, as they are measured, and the same with estimates that are off
    batches: int = 3
    estimates: int = 0
    #: ten jobs at once on a hundred slots
    hundreds: int = 0
    #: streams, and the jobs of each
    streams: int = 1
    stream_jobs: int = 60
    #: of anything, and of anything whose tasks run as long on any number of slots
    anything: int = 1
    even: int = 0
    makespan: bool = False
    #: 0: any number of slots
    slots: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A load, the rules it runs by, and what a plain heuristic makes of it, s."""

    load: GraphLoad
    rules: Rules
    mean_s: float
    makespan_s: float
    #: (jobs,): when each ends
    ends_s: Floats = field(repr=False)


def _with_reference(load: GraphLoad, rules: Rules) -> Setting:
    found = heuristic_run(load, FAIR, _REFERENCE, rules)
    return Setting(load, rules, found.mean_s, found.makespan_s, load.arrive_s + found.took_s)


def gap_s(graphs: GraphSet, among: Ints, slots: int, load: float) -> float:
    """Return the mean gap between arrivals that makes a load: the part of the slots that is busy."""
    return float(graphs.work_s()[among].mean()) / (slots * load)


def nominal(graphs: GraphSet, seed: int, jobs: int, streams: bool, among: Ints, sigma: float = 0.0) -> Setting:
    """Return a sequence as it is measured: 50 slots, moves of 2 s. `sigma`: of the lognormal error of estimates."""
    gap = gap_s(graphs, among, DECIMA.slots, 0.71) if streams else 0.0
    return _with_reference(draw_load(graphs, seed, jobs, gap, sigma, among), DECIMA)


def hundred(graphs: GraphSet, seed: int, among: Ints, slots: int = 100) -> Setting:
    """Return ten jobs at once, on a hundred slots as it is measured unless told."""
    return _with_reference(draw_load(graphs, seed, 10, 0.0, 0.0, among), Rules(slots))


def varied(graphs: GraphSet, seed: int, among: Ints, only_slots: int = 0) -> Setting:
    """Return a sequence of anything: other slots, moves, mixes, loads, errors. `only_slots`: no other number."""
    rng = np.random.default_rng((seed, _SETTING_SEED))
    slots = only_slots or int(rng.choice([50, 100, 20, 35, 70], p=[0.35, 0.35, 0.1, 0.1, 0.1]))
    move_s = float(rng.choice([2.0, 0.1, 0.5, 5.0, 0.02], p=[0.45, 0.25, 0.1, 0.1, 0.1]))
    sigma = float(rng.choice([0.0, 0.5, 0.25], p=[0.45, 0.35, 0.2]))
    pool = among
    if rng.random() < 0.4:
        sizes = rng.choice(np.unique(graphs.size[among]), size=2)
        pool = among[np.isin(graphs.size[among], sizes)]
    if rng.random() < 0.45:
        load = draw_load(graphs, seed, 60, gap_s(graphs, pool, slots, float(rng.uniform(0.55, 0.8))), sigma, pool)
    else:
        load = draw_load(graphs, seed, int(rng.choice([10, 20, 30], p=[0.5, 0.35, 0.15])), 0.0, sigma, pool)
    return _with_reference(load, Rules(slots, move_s))


def even(graphs: GraphSet, seed: int, among: Ints, only_slots: int = 0) -> Setting:
    """Return a sequence whose tasks run as long on any number of slots, some four times as long as recorded.

    Recorded graphs run longer on many. A policy that sees no others gives small jobs too little elsewhere.
    """
    rng = np.random.default_rng((seed, _SETTING_SEED))
    slower = graphs.even(float(rng.choice([1.0, 4.0])))
    slots = only_slots or int(rng.choice([20, 35, 50, 100]))
    move_s = float(rng.choice([2.0, 1.0, 0.5, 0.1]))
    small = among[graphs.size[among] <= np.median(graphs.size[among])]
    pool = small if rng.random() < 0.5 else among
    streams = rng.random() < 0.5
    gap = gap_s(slower, pool, slots, float(rng.uniform(0.5, 0.8))) if streams else 0.0
    load = draw_load(slower, seed, 60 if streams else 20, gap, 0.0, pool)
    return _with_reference(load, Rules(slots, move_s, 0.0))


def sequences(graphs: GraphSet, among: Ints, terms: TrainingTerms, generation: int) -> list[Setting]:
    """Return what a generation is tried on: all its members or rollouts on the same."""
    seeds = count(TRAINING_SEEDS + (terms.seed * 100_000 + generation) * _SEEDS)
    found = [varied(graphs, next(seeds), among, terms.slots) for _ in range(terms.anything)]
    found += [even(graphs, next(seeds), among, terms.slots) for _ in range(terms.even)]
    found += [nominal(graphs, next(seeds), 20, False, among) for _ in range(terms.batches)]
    found += [nominal(graphs, next(seeds), 20, False, among, 0.5) for _ in range(terms.estimates)]
    found += [hundred(graphs, next(seeds), among, terms.slots or 100) for _ in range(terms.hundreds)]
    return found + [nominal(graphs, next(seeds), terms.stream_jobs, True, among) for _ in range(terms.streams)]
