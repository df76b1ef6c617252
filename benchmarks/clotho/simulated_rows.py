"""Clotho in simulated time: the learned policy against heuristics on the same arrivals.

Recorded graphs are read where they lie (`yaqd.sim.workloads.tpch`). A row says by how much our mean completion time is
lower, with the standard error over pairs. Weighted fair sharing has its best exponent in hindsight, and so has every
heuristic its best options. `--scale` below 1 measures that part of the seeds.

    python -m benchmarks.clotho --only stream --only batch
"""

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.options import Options, progress
from benchmarks.report import Row
from yaqd.config.stage_weights import Objective, shipped_weights
from yaqd.policies.clotho.weights import WeightsError, unpack
from yaqd.policies.curves.samples import Floats
from yaqd.sim.stages.measuring import (
    FIFO,
    OTHERS,
    WEIGHTED,
    Best,
    best_of,
    lower_by,
    means,
    run_contender,
    run_weights,
)
from yaqd.sim.stages.settings import SETTINGS
from yaqd.sim.workloads.drawn import WorkloadError
from yaqd.sim.workloads.graphs import GraphSet
from yaqd.sim.workloads.tpch import find_tpch, tpch

#: row -> (setting, whether all heuristics count, at least so much lower)
_LOWER: Final[Mapping[str, tuple[str, bool, float]]] = {
    "stream": ("stream", False, 0.22),
    "batch": ("batch", False, 0.13),
    "best-heuristic-stream": ("stream", True, 0.06),
    "best-heuristic-batch": ("batch", True, 0.03),
    "paper": ("paper", False, 0.08),
    "cheap-moves": ("cheap-moves", False, 0.20),
    "estimates-stream": ("estimates-stream", False, 0.17),
    "estimates-batch": ("estimates-batch", False, 0.10),
}
_PAPER_FIFO: Final = "paper-fifo"
_MAKESPAN: Final = "makespan"
_UNSEEN: Final = ("unseen-queries", "unseen-size", "unseen-slots")
ROWS: Final = (*_LOWER, _PAPER_FIFO, _MAKESPAN, *_UNSEEN)


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """Return the rows asked for, and what belongs beside each."""
    try:
        graphs = tpch(find_tpch())
    except WorkloadError as missing:
        progress(f"rows of recorded graphs do not run here: {missing}")
        return [], {}
    return _Measuring(graphs, options).rows()


class _Measuring:
    def __init__(self, graphs: GraphSet, options: Options) -> None:
        self._graphs, self._options = graphs, options
        self._best: dict[tuple[str, bool, bool], Best] = {}
        self._rows: list[Row] = []
        self._beside: dict[str, Mapping[str, Any]] = {}

    def rows(self) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
        wants = self._options.wants
        for row_id, (setting, is_all, least) in _LOWER.items():
            if wants(row_id):
                self._lower(row_id, setting, is_all, least)
        if wants(_PAPER_FIFO):
            self._fifo()
        if wants(_MAKESPAN):
            self._lower(_MAKESPAN, "paper", True, 0.03, "makespan")
        for row_id in _UNSEEN:
            if wants(row_id):
                self._unseen(row_id)
        return self._rows, self._beside

    def _many(self, setting: str) -> int:
        return max(2, round(SETTINGS[setting].seeds * min(self._options.scale, 1.0)))

    def _weights(self, objective: Objective) -> Floats | None:
        try:
            return unpack(shipped_weights(objective)).flat()
        except (WeightsError, FileNotFoundError) as error:
            progress(f"no weights for {objective}: {error}")
            return None

    def _others(self, setting: str, is_all: bool, makespan: bool) -> Best:
        key = (setting, is_all, makespan)
        if key not in self._best:
            progress(f"{setting}: {'all heuristics' if is_all else 'weighted fair sharing'}")
            measured = SETTINGS[setting]
            loads = measured.loads(self._graphs, self._many(setting))
            contenders = WEIGHTED + OTHERS if is_all else WEIGHTED
            self._best[key] = best_of(contenders, loads, measured.rules, makespan)
        return self._best[key]

    def _ours(self, setting: str, objective: Objective) -> Floats | None:
        weights = self._weights(objective)
        if weights is None:
            return None
        measured = SETTINGS[setting]
        loads = measured.loads(self._graphs, self._many(setting))
        return means(run_weights(weights, loads, measured.rules), objective == "makespan")

    def _lower(self, row_id: str, setting: str, is_all: bool, least: float, objective: Objective = "mean") -> None:
        ours = self._ours(setting, objective)
        if ours is None:
            return
        best = self._others(setting, is_all, objective == "makespan")
        part, error = lower_by(ours, best.each)
        theirs = float(best.each.mean())
        self._rows.append(Row(row_id, float(ours.mean()), theirs, "s", theirs / float(ours.mean()), 0.0, len(ours)))
        self._beside[row_id] = {
            "lower by": f"{part:.1%} +- {error:.1%}",
            "in the worst sequence": f"{_worst(ours, best.each):.1%}",
            "at least": f"{least:.0%}",
            "theirs is": best.name,
            "all": {name: f"{mean:.2f}" for name, mean in sorted(best.table.items(), key=lambda one: one[1])[:8]},
        }

    def _fifo(self) -> None:
        measured = SETTINGS["paper"]
        best = self._others("paper", True, False)
        loads = measured.loads(self._graphs, self._many("paper"))
        fifo = float(means(run_contender(FIFO, loads, measured.rules)).mean())
        mean = float(best.each.mean())
        self._rows.append(Row(_PAPER_FIFO, mean, fifo, "s", fifo / mean, 0.0, len(loads)))
        self._beside[_PAPER_FIFO] = {"at least": "2.5x", "ours is": f"the best heuristic, {best.name}"}

    def _unseen(self, row_id: str) -> None:
        ours, shipped = self._ours(row_id, "unseen"), self._ours(row_id, "mean")
        if ours is None or shipped is None:
            return
        part, error = lower_by(ours, shipped)
        mean, other = float(ours.mean()), float(shipped.mean())
        self._rows.append(Row(row_id, mean, other, "s", other / mean, 0.0, len(ours)))
        self._beside[row_id] = {
            "above the shipped weights by": f"{-part:.1%} +- {error:.1%}",
            "in the worst sequence": f"{-_worst(ours, shipped):.1%}",
            "at most": "10%",
        }


def _worst(ours: Floats, theirs: Floats) -> float:
    """Return by what part the first is below the second where that is least: below 0 it is above."""
    return float((1.0 - ours / theirs).min())
