"""Heuristics and weights on the same arrivals, in the compiled simulator; who is best, and by how much."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Floats
from yaqd.sim.stages.compiled import heuristics as h
from yaqd.sim.stages.compiled.run import heuristic_run, learned_run
from yaqd.sim.stages.rules import Finished, Rules
from yaqd.sim.workloads.graphs import GraphLoad

#: exponents of weighted fair sharing: the best on the measured seeds counts
EXPONENTS: Final = tuple(float(step) / 4.0 for step in range(-8, 5))


@dataclass(frozen=True, slots=True)
class CompiledHeuristic:
    """A heuristic with its options, by a name for tables."""

    name: str
    kind: int
    knobs: h.Knobs


def _sharing(name: str, exponent: float, leaves: bool) -> CompiledHeuristic:
    spill = float(leaves)
    return CompiledHeuristic(f"{name} {exponent:g}", h.WEIGHTED, (exponent, 0.0, inf, 1.0, spill, spill))


def _capped(c: float, e: float, clearly_s: float) -> CompiledHeuristic:
    return CompiledHeuristic(f"capped {c:g} {e:g} {clearly_s:g}s", h.CAPPED, (c, e, clearly_s, 1.0, 1.0, 1.0))


FIFO: Final = CompiledHeuristic("fifo", h.FIFO, (0.0, 0.0, inf, 1.0, 1.0, 1.0))
WEIGHTED: Final = tuple(_sharing("weighted-fair", exponent, False) for exponent in EXPONENTS)
#: with options from a small grid: whoever compares takes the best in hindsight
OTHERS: Final = (
    FIFO,
    CompiledHeuristic("shortest", h.SHORTEST, (0.0, 0.0, 0.0, 0.0, 1.0, 1.0)),
    CompiledHeuristic("packing", h.PACKING, (0.0, 0.0, 0.0, 0.0, 1.0, 1.0)),
    CompiledHeuristic("trouble", h.TROUBLE, (0.0, 0.0, 0.0, 0.0, 1.0, 1.0)),
    *(_sharing("weighted-fair, leaves", exponent, True) for exponent in EXPONENTS),
    *(
        _capped(c, e, clearly_s)
        for c, e in ((1.0, 0.35), (1.25, 0.35), (1.5, 0.35), (2.0, 0.35), (0.155, 0.65), (0.215, 0.65), (0.284, 0.64))
        for clearly_s in (100.0, 300.0)
    ),
)


def contender_of(policy: str, options: Mapping[str, float]) -> CompiledHeuristic | None:
    """Return a shipped heuristic by name, compiled; None: there is no such."""
    if policy in ("fair", "weighted-fair") and options.get("holds", 1.0):
        exponent = options.get("exponent", -1.0 if policy == "weighted-fair" else 0.0)
        return _sharing(policy, exponent, bool(options.get("leaves", 0.0)))
    if policy == "capped" and options.get("holds", 1.0):
        return _capped(options.get("c", 1.5), options.get("e", 0.35), options.get("clearly_s", 300.0))
    return next((one for one in OTHERS if one.name == policy), None)


def run_contender(contender: CompiledHeuristic, loads: list[GraphLoad], rules: Rules) -> list[Finished]:
    """Run a heuristic on each load."""
    return [heuristic_run(load, contender.kind, contender.knobs, rules) for load in loads]


def run_weights(weights: Floats, loads: list[GraphLoad], rules: Rules) -> list[Finished]:
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


def best_of(
    contenders: tuple[CompiledHeuristic, ...], loads: list[GraphLoad], rules: Rules, makespan: bool = False
) -> Best:
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
