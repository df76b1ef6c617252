"""Graphs of stages out of what a cluster really ran: what a policy of stages is trained on beside public graphs."""

from pathlib import Path
from typing import Final

import numpy as np

from yaqd.sim.workloads.drawn import WorkloadError
from yaqd.sim.workloads.graphs import KINDS, POINTS, GraphSet, graph_set
from yaqd.sim.workloads.history import read_history

#: durations of a stage that are kept, evenly over all of them by length
_DURATIONS_MAX: Final = 200
#: a task takes that at least, ms
_LEAST_MS: Final = 1.0


def history_graphs(paths: list[Path]) -> GraphSet:
    """Return a graph for each job of these histories.

    A history does not tell how long a task took because its container was new, so all kinds have the same durations.
    Raises WorkloadError.
    """
    graphs, stages, edges = list[tuple[int, int, int]](), list[tuple[int, float]](), list[tuple[int, int, int]]()
    lengths, values = list[int](), list[np.ndarray]()
    for number, job in enumerate(read_history(paths).jobs):
        graphs.append((0, number, len(stages)))
        for at, stage in enumerate(job.stages):
            taken = np.sort([max(_LEAST_MS, 1000.0 * task.duration_s) for task in stage.tasks])
            kept = taken[np.linspace(0, len(taken) - 1, min(len(taken), _DURATIONS_MAX)).round().astype(int)]
            stages.append((len(taken), float(taken.mean())))
            edges.extend((number, before, at) for before in stage.after)
            lengths.extend([len(kept)] * (len(POINTS) * KINDS))
            values.extend([kept] * (len(POINTS) * KINDS))
    if not graphs:
        raise WorkloadError("no job in these histories")
    return graph_set(
        {
            "graphs": np.array(graphs, dtype=np.int64),
            "stages": np.array(stages, dtype=np.float64),
            "edges": np.array(edges, dtype=np.int64).reshape(-1, 3),
            "lengths": np.array(lengths, dtype=np.int64),
            "values": np.concatenate(values),
        }
    )
