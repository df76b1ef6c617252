"""Jobs for tests of quality policies, and the paper's greedy as it is printed."""

from heapq import heapify, heapreplace
from typing import Any

import numpy as np

from yaqd.policies.curves.drops import HORIZONS
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.quality.facts import MILLI, Division, TrainingJobs
from yaqd.policies.quality.worth import IterationRates, Worth


def training_jobs(many: int, seed: int = 1, **changes: Any) -> TrainingJobs:
    """Return jobs of all ages with curves that fall exponentially; `changes` replace whole fields."""
    rng = np.random.default_rng(seed)
    part = rng.uniform(0.3, 0.99, many)[:, None]
    drops = rng.lognormal(0, 2, many)[:, None] * (1 - part**HORIZONS)
    fields: dict[str, Any] = {
        "weight": np.ones(many),
        "floor": np.full(many, MILLI),
        "cap": np.full(many, 64 * MILLI),
        "work_s": rng.lognormal(4, 1, many),
        "fixed_s": np.full(many, 0.05),
        "left": rng.integers(1, 100, many).astype(np.float64),
        "attained_s": rng.uniform(0, 1000, many),
        "drops": drops,
        "fallen": rng.uniform(0, 5, many) * drops[:, 5],
        "largest": drops[:, 1] * rng.uniform(1, 30, many),
        "is_known": np.ones(many, dtype=bool),
        "current": np.zeros(many, dtype=np.int64),
        "move_s": np.zeros(many),
        "usable": np.full(many, 10**9),
    }
    return TrainingJobs(**(fields | changes))


def greedy(
    worth: Worth, rates: IterationRates, unit: float, base: Ints, caps: Ints, free: int, has: Ints, gaining: float
) -> Ints:
    """Return what Algorithm 1 gives: a unit at a time to the job whose worth grows most; what it gains beyond what it
    `has` counts `gaining` times."""
    units = base.copy()

    def gain(row: int) -> float:
        if units[row] >= caps[row]:
            return 0.0
        at = np.array([row, row])
        cores: Floats = np.array([units[row], units[row] + 1]) * unit
        before, after = worth.at(rates.done(cores, at), at)
        return float(before - after) * (gaining if units[row] >= has[row] else 1.0)

    heap = [(gain(row), row) for row in range(len(units))]
    heapify(heap)
    for _ in range(free):
        best, row = heap[0]
        if best >= 0.0:
            break
        units[row] += 1
        heapreplace(heap, (gain(row), row))
    return units


def cores(milli: int, unit: int = MILLI) -> Division:
    return Division(milli, unit)
