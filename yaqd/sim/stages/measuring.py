"""What is measured of policies of stages: settings by name, and systems that run on the same arrivals.

Seeds from 30000 on are measured and nothing else: training and tuning use others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Floats, Ints
from yaqd.sim.stages.compiled import heuristics as h
from yaqd.sim.stages.compiled.run import heuristic_run, learned_run
from yaqd.sim.stages.rules import DECIMA, Finished, Rules
from yaqd.sim.workloads.graphs import GraphSet, Load, batch, draw_load, stream

MEASURED_SEED: Final = 30_000
#: exponents of weighted fair sharing: the best on the measured seeds counts
EXPONENTS: Final = tuple(float(step) / 4.0 for step in range(-8, 5))
#: what `unseen` leaves out
UNSEEN_QUERIES: Final = (17, 18, 19, 20, 21, 22)
UNSEEN_SIZE: Final = 100


@dataclass(frozen=True, slots=True)
class Measured:
    """A setting: loads by seed, and the rules."""

    name: str
    seeds: int
    rules: Rules
    #: (set of graphs, seed) -> load
    load: Callable[[GraphSet, int], Load] = field(repr=False)

    def loads(self, graphs: GraphSet, many: int | None = None) -> list[Load]:
        """Return the first loads, all unless said otherwise."""
        seeds = self.seeds if many is None else min(many, self.seeds)
        return [self.load(graphs, MEASURED_SEED + at) for at in range(seeds)]


def _only(graphs: GraphSet, queries: tuple[int, ...] = (), size: int = 0) -> Ints:
    """Return graphs of some queries, or of one input size."""
    return np.flatnonzero(np.isin(graphs.query, queries) | (graphs.size == size))


_HUNDRED: Final = Rules(100)
SETTINGS: Final[Mapping[str, Measured]] = {
    one.name: one
    for one in (
        Measured("stream", 20, DECIMA, lambda graphs, seed: stream(graphs, seed)),
        Measured("batch", 60, DECIMA, lambda graphs, seed: batch(graphs, seed)),
        Measured("paper", 60, _HUNDRED, lambda graphs, seed: batch(graphs, seed, jobs=10)),
        Measured("cheap-moves", 20, Rules(50, 0.1), lambda graphs, seed: stream(graphs, seed)),
        Measured("estimates-stream", 20, DECIMA, lambda graphs, seed: stream(graphs, seed, 0.5)),
        Measured("estimates-batch", 60, DECIMA, lambda graphs, seed: batch(graphs, seed, 0.5)),
        Measured(
            "unseen-queries", 60, DECIMA, lambda graphs, seed: batch(graphs, seed, among=_only(graphs, UNSEEN_QUERIES))
        ),
        Measured(
            "unseen-size", 60, DECIMA, lambda graphs, seed: batch(graphs, seed, among=_only(graphs, (), UNSEEN_SIZE))
        ),
        Measured("unseen-slots", 20, _HUNDRED, lambda graphs, seed: draw_load(graphs, seed, 201, 9.7)),
    )
}


@dataclass(frozen=True, slots=True)
class Contender:
    """A heuristic with its options, by a name for tables."""

    name: str
    kind: int
    knobs: h.Knobs


def _sharing(name: str, exponent: float, leaves: bool) -> Contender:
    spill = float(leaves)
    return Contender(f"{name} {exponent:g}", h.WEIGHTED, (exponent, 0.0, inf, 1.0, spill, spill))


def _capped(c: float, e: float, clearly_s: float) -> Contender:
    return Contender(f"capped {c:g} {e:g} {clearly_s:g}s", h.CAPPED, (c, e, clearly_s, 1.0, 1.0, 1.0))


FIFO: Final = Contender("fifo", h.FIFO, (0.0, 0.0, inf, 1.0, 1.0, 1.0))
WEIGHTED: Final = tuple(_sharing("weighted-fair", exponent, False) for exponent in EXPONENTS)
#: of those that others would tune, the options that did best on seeds below 10000
OTHERS: Final = (
    FIFO,
    Contender("shortest", h.SHORTEST, (0.0, 0.0, 0.0, 0.0, 1.0, 1.0)),
    Contender("packing", h.PACKING, (0.0, 0.0, 0.0, 0.0, 1.0, 1.0)),
    Contender("trouble", h.TROUBLE, (0.0, 0.0, 0.0, 0.0, 1.0, 1.0)),
    *(_sharing("weighted-fair, leaves", exponent, True) for exponent in EXPONENTS),
    *(
        _capped(c, e, clearly_s)
        for c, e in ((1.0, 0.35), (1.25, 0.35), (1.5, 0.35), (2.0, 0.35), (0.155, 0.65), (0.215, 0.65), (0.284, 0.64))
        for clearly_s in (100.0, 300.0)
    ),
)


def run_contender(contender: Contender, loads: list[Load], rules: Rules) -> list[Finished]:
    """Run a heuristic on each load."""
    return [heuristic_run(load, contender.kind, contender.knobs, rules) for load in loads]


def run_weights(weights: Floats, loads: list[Load], rules: Rules) -> list[Finished]:
    """Run the network on each load."""
    return [learned_run(load, weights, rules) for load in loads]


def means(runs: list[Finished], makespan: bool = False) -> Floats:
    """Return the mean completion time of each run, or its makespan, s."""
    return np.array([run.makespan_s if makespan else run.mean_s for run in runs])


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The contender with the lowest mean over all loads, and its numbers."""

    name: str
    each: Floats = field(repr=False)
    #: mean of every contender, s
    table: Mapping[str, float] = field(repr=False)


def best_of(contenders: tuple[Contender, ...], loads: list[Load], rules: Rules, makespan: bool = False) -> Best:
    """Return the best of some heuristics on the same arrivals, chosen in hindsight."""
    found = {one.name: means(run_contender(one, loads, rules), makespan) for one in contenders}
    name = min(found, key=lambda key: float(found[key].mean()))
    return Best(name, found[name], {key: float(each.mean()) for key, each in found.items()})


def lower_by(ours: Floats, theirs: Floats) -> tuple[float, float]:
    """Return by what part our mean is lower, and the standard error of it over pairs of the same arrivals."""
    ratio = float(ours.mean() / theirs.mean())
    spread = (ours - ratio * theirs) / theirs.mean()
    error = float(np.std(spread, ddof=1) / np.sqrt(len(spread))) if len(spread) > 1 else 0.0
    return 1.0 - ratio, error
