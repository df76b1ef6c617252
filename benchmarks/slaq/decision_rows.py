"""How long a division takes: from the reports to every job's cores.

4,000 jobs, 16,000 cores, windows of 40 losses. Row `decision`: 400 jobs report since the last division, `decision-all`:
all do. Both: processor time of the 99th percentile of 100 divisions, `slaq-total`; beside it the default policy's, and
the total predicted gain as a part of the total that the paper's priority queue reaches. A job's curve, its work and its
cap are drawn, so no two jobs are alike. The paper reports 0.1 to 4 s.
"""

import gc
import time
from collections.abc import Mapping
from heapq import heapify, heapreplace
from typing import Any, Final

import numpy as np

from benchmarks.options import Options
from benchmarks.report import Row, make_row
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.quality.facts import MILLI, Division
from yaqd.policies.quality.forecasts import Forecasts, JobSpec
from yaqd.policies.quality.policies import QUALITY
from yaqd.policies.quality.worth import rates_of, worth_of

JOBS: Final = 4000
CORES: Final = 16_000
#: reporting jobs, and most milliseconds
ROWS: Final = {"decision": 400, "decision-all": JOBS}
LEAST: Final = {"decision": "25 ms", "decision-all": "300 ms"}
_DIVISIONS: Final = 100
#: drawn clusters at most
_CLUSTERS: Final = 3
_ITERATIONS: Final = 1000
_POLICIES: Final = ("slaq-total", "finish")


class Cluster:
    """Jobs in all stages of their training, and the losses that they are going to report."""

    def __init__(self, jobs: int, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self._rng = rng
        self.forecasts = Forecasts()
        part = rng.uniform(0.5, 0.995, jobs)[:, None]
        age = rng.integers(2, 100, jobs)
        noise = rng.normal(0, 0.001, (jobs, _ITERATIONS))
        curve = part ** np.arange(_ITERATIONS)
        sublinear = 1 / (1 + (1 - part) * np.arange(_ITERATIONS))
        self._losses: Floats = np.where(rng.random(jobs)[:, None] < 0.5, curve, sublinear) + noise
        self._done = age
        work = rng.lognormal(4, 1, jobs)
        self.rows: Ints = np.array(
            [self.forecasts.add(JobSpec(1.0, MILLI, int(rng.integers(8, 129)) * MILLI, w, 0.05, 300.0)) for w in work]
        )
        for row, many in zip(self.rows, age, strict=True):
            self.forecasts.report(int(row), 0, self._losses[row, :many])
        self.forecasts.refit()

    def divided(self, policy: str, division: Division, reporting: int) -> float:
        """Report, predict, divide; return the seconds of processor time that it took."""
        chosen = self._rng.choice(len(self.rows), reporting, replace=False)
        fresh = [(int(self.rows[at]), int(self._done[at])) for at in chosen]
        forecasts, losses = self.forecasts, self._losses
        began = time.process_time()
        for row, at in fresh:
            forecasts.report(row, at, losses[row, at : at + 1])
        forecasts.refit()
        QUALITY[policy](forecasts.jobs(self.rows), division)
        took = time.process_time() - began
        self._done[chosen] += 1
        return took

    def of_greedy(self, division: Division) -> float:
        """Return our total gain as a part of the one that a step for each core reaches."""
        jobs = self.forecasts.jobs(self.rows)
        ours = QUALITY["slaq-total"](jobs, division)
        worth, rates = worth_of(jobs, jobs.largest), rates_of(jobs, division.epoch_s)
        units, caps = np.ones(len(jobs), dtype=np.int64), jobs.cap // MILLI

        def gain(row: int) -> float:
            if units[row] >= caps[row]:
                return 0.0
            at, cores = np.array([row, row]), np.array([units[row], units[row] + 1], dtype=np.float64)
            before, after = worth.at(rates.done(cores, at), at)
            return float(before - after)

        heap = [(gain(row), row) for row in range(len(units))]
        heapify(heap)
        for _ in range(division.milli // MILLI - len(units)):
            row = heap[0][1]
            units[row] += 1
            heapreplace(heap, (gain(row), row))
        theirs = worth.at(rates.done(units[:, None].astype(np.float64)))[:, 0]
        reached = worth.at(rates.done(ours.milli[:, None] / MILLI))[:, 0]
        return float(reached.sum() / theirs.sum())


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """Return the rows asked for, and what belongs beside each."""
    rows: list[Row] = []
    beside: dict[str, Mapping[str, Any]] = {}
    jobs = max(40, int(JOBS * options.scale))
    division = Division(max(160, int(CORES * options.scale)) * MILLI)
    for row_id, reporting in ROWS.items():
        if not options.wants(row_id):
            continue
        asked = min(jobs, max(1, int(reporting * options.scale)))
        clusters = min(options.runs, _CLUSTERS)
        found = {policy: _percentile(jobs, division, asked, policy, clusters) for policy in _POLICIES}
        rows.append(make_row(row_id, found[_POLICIES[0]], None, "ms", higher_is_better=False))
        beside[row_id] = {
            "at most": LEAST[row_id],
            "settings": f"{jobs} jobs, {division.milli // MILLI} cores, {asked} report; p99 of {_DIVISIONS} divisions",
            "default": f"{np.median(found[_POLICIES[1]]):.1f} ms",
            "total gain / plain greedy's": f"{Cluster(jobs).of_greedy(division):.12f}",
        }
    return rows, beside


def _percentile(jobs: int, division: Division, reporting: int, policy: str, runs: int) -> list[float]:
    found = []
    for run in range(runs):
        cluster = Cluster(jobs, run + 1)
        cluster.divided(policy, division, reporting)
        # as a daemon does when it starts (`yaqd.ipc.loop.run`), so that no collection looks at what is imported
        gc.collect()
        gc.freeze()
        taken = [cluster.divided(policy, division, reporting) for _ in range(_DIVISIONS)]
        found.append(1000 * float(np.percentile(taken, 99)))
    return found
