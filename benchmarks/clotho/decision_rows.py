"""What a decision costs, how large the weights are, and how fast the compiled simulator is; on one core.

Rows `decide-...`: one decision of the learned policy (numpy alone) with so many jobs of nine stages each. All of 20 and
100 jobs changed before it, 100 of 1,000. `environment-...`: 201 streamed jobs, or drawn ones where none are recorded.
"""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.options import Options, progress
from benchmarks.report import Row, spread
from yaqd.config.stage_weights import shipped_weights
from yaqd.ml.threads import one_thread
from yaqd.policies.clotho.facts import Scene, StageJob, graph_of
from yaqd.policies.clotho.learned import Learned
from yaqd.policies.clotho.shapes import AT
from yaqd.policies.clotho.weights import pack, unpack
from yaqd.sim.stages.measuring import WEIGHTED, run_contender, run_weights
from yaqd.sim.stages.rules import DECIMA, Finished
from yaqd.sim.stages.training.begin import beginning
from yaqd.sim.workloads.drawn import WorkloadError
from yaqd.sim.workloads.graphs import GraphSet, draw_graphs, stream
from yaqd.sim.workloads.tpch import find_tpch, tpch

_DECIDE: Final = {"decide-20": (20, 20, 1.0), "decide-100": (100, 100, 2.0), "decide-1000": (1000, 100, 20.0)}
_ENVIRONMENT: Final = {"environment": 0.15, "environment-network": 1.0}
ROWS: Final = (*_DECIDE, "weights", *_ENVIRONMENT)
_STAGES: Final = 9
_PASSES: Final = 60


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """Return the rows asked for, and what belongs beside each."""
    rows: list[Row] = []
    beside: dict[str, Mapping[str, Any]] = {}
    data = _weights()
    for row_id, (jobs, changed, most_ms) in _DECIDE.items():
        if options.wants(row_id):
            progress(row_id)
            with one_thread():
                took, whole = (
                    [seconds * 1e3 for seconds in decision_s(weights, jobs, changed)]
                    for weights in (data, _all_layers(data))
                )
            rows.append(Row(row_id, median(took), None, "ms", None, spread(took), len(took)))
            beside[row_id] = {
                "at most": f"{most_ms:g} ms",
                "changed": changed,
                "with all layers": f"{median(whole):.2f} ms",
            }
    if options.wants("weights"):
        rows.append(Row("weights", len(data) / 1024, None, "KB", None, 0.0, 1))
        beside["weights"] = {"at most": "64 KB"}
    if any(options.wants(row_id) for row_id in _ENVIRONMENT):
        _environment(options, data, rows, beside)
    return rows, beside


def _weights() -> bytes:
    try:
        return shipped_weights()
    except FileNotFoundError:
        return pack(beginning(1), {})


def _all_layers(data: bytes) -> bytes:
    """Return weights that differ by next to nothing, of which no layer is left out: those that ship are linear."""
    weights = unpack(data).flat()
    weights[AT["score_out"]] += 1e-12
    return pack(weights, {})


def _job(rng: np.random.Generator) -> StageJob:
    edges = [(int(rng.integers(stage)), stage) for stage in range(1, _STAGES)]
    graph = graph_of(_STAGES, edges)
    tasks = rng.integers(1, 200, _STAGES)
    is_open = ~np.isin(np.arange(_STAGES), [after for _, after in edges])
    none = np.zeros(_STAGES, dtype=np.int64)
    return StageJob(graph, tasks, none, tasks, none, rng.lognormal(0.0, 1.0, _STAGES), is_open, 3, 1)


def decision_s(data: bytes, jobs: int, changed: int) -> list[float]:
    """Return how long decisions took, s; before each so many jobs changed."""
    rng = np.random.default_rng(1)
    policy = Learned(data)
    now = [_job(rng) for _ in range(jobs)]
    policy.choose(Scene(tuple(now), 50, 2.0, -1, 5))
    took = []
    for turn in range(_PASSES):
        for place in range(changed):
            at = (turn * changed + place) % jobs
            now[at] = _job(rng)
        scene = Scene(tuple(now), 50, 2.0, -1, 5)
        began = time.perf_counter()
        policy.choose(scene)
        took.append(time.perf_counter() - began)
    return took


def _graphs() -> GraphSet:
    try:
        return tpch(find_tpch())
    except WorkloadError as missing:
        progress(f"drawn graphs in place of recorded ones: {missing}")
        return draw_graphs(1)


def _environment(options: Options, data: bytes, rows: list[Row], beside: dict[str, Mapping[str, Any]]) -> None:
    load, weights = stream(_graphs(), 30_000), unpack(_all_layers(data)).flat()
    middle = WEIGHTED[len(WEIGHTED) // 2]
    runs: dict[str, Callable[[], list[Finished]]] = {
        "environment": lambda: run_contender(middle, [load], DECIMA),
        "environment-network": lambda: run_weights(weights, [load], DECIMA),
    }
    for row_id, run in runs.items():
        if not options.wants(row_id):
            continue
        progress(row_id)
        (found,) = run()
        took, busy = [], []
        for _ in range(5):
            began, begun = time.perf_counter(), time.process_time()
            run()
            took.append(time.perf_counter() - began)
            busy.append(time.process_time() - begun)
        rows.append(Row(row_id, median(took), None, "s", None, spread(took), len(took)))
        beside[row_id] = {
            "at most": f"{_ENVIRONMENT[row_id]:g} s",
            "processor time": f"{median(busy):.3f} s",
            "decisions": found.decisions,
            "tasks": found.tasks,
        }
