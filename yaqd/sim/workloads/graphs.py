"""Jobs that are graphs of stages, whose tasks draw their durations when they start.

A set of graphs has recorded durations for each stage: of an executor that is new to the job (fresh), new to the stage
(first), or neither (rest), at several executor counts of the job. A load is a sequence of arrivals of such graphs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from yaqd.policies.curves.samples import Floats, Ints

#: executor counts at which durations are recorded
POINTS: Final = (5, 10, 20, 40, 50, 60, 80, 100)
KINDS: Final = 3
FRESH, FIRST, REST = range(KINDS)
_EVEN: Final = POINTS.index(20)
_LOAD_SEED: Final = 41
_DRAWN_SEED: Final = 42


@dataclass(frozen=True, slots=True, eq=False)
class GraphSet:
    """Graphs as flat arrays. Stages of one graph follow one another; edges go from a stage to one that waits for it."""

    #: (graphs,): input in GB, number of the query; first stage of each, and one more
    size: Ints
    query: Ints
    first: Ints = field(repr=False)
    #: (stages,): tasks, and mean recorded duration, s
    tasks: Ints = field(repr=False)
    mean_s: Floats = field(repr=False)
    #: (stages + 1,) and (edges,): stages that wait for a stage, counted from the graph's first
    child_at: Ints = field(repr=False)
    child: Ints = field(repr=False)
    #: (stages,): stages that it waits for
    waits: Ints = field(repr=False)
    #: (stages, points, kinds): where durations begin in `values`, how many, and whether the warm-up is added
    wave_at: Ints = field(repr=False)
    wave_len: Ints = field(repr=False)
    is_cold: npt.NDArray[np.bool_] = field(repr=False)
    #: durations, s
    values: Floats = field(repr=False)

    def __len__(self) -> int:
        return len(self.size)

    def work_s(self) -> Floats:
        """Return the work of each graph, slot seconds, by mean durations."""
        return np.add.reduceat(self.tasks * self.mean_s, self.first[:-1])

    def rows(self, graph: int) -> slice:
        """Return a graph's stages."""
        return slice(int(self.first[graph]), int(self.first[graph + 1]))

    def even(self, slower: float = 1.0) -> "GraphSet":
        """Return the graphs with one list of durations for each stage, whoever runs its tasks and how many do.

        It is the one of 20 executors that went on in the stage, times `slower`.
        """
        at, many = self.wave_at[:, _EVEN, REST], self.wave_len[:, _EVEN, REST]
        mean_s = [self.values[a : a + n].mean() for a, n in zip(at.tolist(), many.tolist(), strict=True)]
        return replace(
            self,
            mean_s=slower * np.array(mean_s),
            wave_at=np.broadcast_to(at[:, None, None], self.wave_at.shape).copy(),
            wave_len=np.broadcast_to(many[:, None, None], self.wave_at.shape).copy(),
            is_cold=np.zeros(self.wave_at.shape, dtype=bool),
            values=slower * self.values,
        )


def graph_set(arrays: Mapping[str, Any]) -> GraphSet:
    """Build a set from the reader's arrays: durations there are ms, and a list that begins with -1 is cold."""
    graphs, stages = arrays["graphs"], arrays["stages"]
    many = len(stages)
    lengths = arrays["lengths"].reshape(many, len(POINTS), KINDS)
    at = np.concatenate(([0], np.cumsum(lengths.ravel())[:-1])).reshape(lengths.shape)
    values = arrays["values"]
    is_cold = values[at] == -1.0
    first = np.append(graphs[:, 2], many)
    edges = arrays["edges"]
    parents = first[edges[:, 0]] + edges[:, 1]
    order = np.lexsort((edges[:, 2], parents))
    child_at = np.concatenate(([0], np.cumsum(np.bincount(parents, minlength=many))))
    waits = np.bincount(first[edges[:, 0]] + edges[:, 2], minlength=many)
    return GraphSet(
        graphs[:, 0].copy(),
        graphs[:, 1].copy(),
        first,
        stages[:, 0].astype(np.int64),
        stages[:, 1] / 1000.0,
        child_at.astype(np.int64),
        edges[order, 2].astype(np.int64),
        waits.astype(np.int64),
        at + is_cold,
        lengths - is_cold,
        is_cold,
        values / 1000.0,
    )


@dataclass(frozen=True, slots=True, eq=False)
class GraphLoad:
    """A sequence of arrivals. Durations follow from the seed: whoever schedules sees the same ones."""

    graphs: GraphSet = field(repr=False)
    #: (jobs,): the graph of each, and when it comes, s
    graph: Ints = field(repr=False)
    arrive_s: Floats = field(repr=False)
    #: (stages of all jobs,): by what factor the estimate of its mean duration is off
    error: Floats = field(repr=False)
    seed: int = 0

    def __len__(self) -> int:
        return len(self.graph)


def draw_load(
    graphs: GraphSet, seed: int, jobs: int, gap_s: float = 0.0, sigma: float = 0.0, among: Ints | None = None
) -> GraphLoad:
    """Return a load, the same for the same seed: the first job at 0, the others after exponential gaps.

    `gap_s`: mean gap; 0: all come at 0. `sigma`: of the lognormal error of estimates. `among`: graphs to draw from.
    """
    rng = np.random.default_rng((seed, _LOAD_SEED))
    pool = np.arange(len(graphs)) if among is None else among
    graph = pool[rng.integers(len(pool), size=jobs)]
    gaps = rng.exponential(1.0, jobs) * gap_s
    gaps[0] = 0.0
    stages = int((graphs.first[graph + 1] - graphs.first[graph]).sum())
    error = np.exp(sigma * rng.normal(size=stages)) if sigma else np.ones(stages)
    return GraphLoad(graphs, graph.astype(np.int64), np.cumsum(gaps), error, seed)


def stream(
    graphs: GraphSet, seed: int, sigma: float = 0.0, among: Ints | None = None, gap_s: float = 19.4
) -> GraphLoad:
    """Return 201 jobs that come one after another."""
    return draw_load(graphs, seed, 201, gap_s, sigma, among)


def batch(graphs: GraphSet, seed: int, sigma: float = 0.0, among: Ints | None = None, jobs: int = 20) -> GraphLoad:
    """Return jobs that all come at 0."""
    return draw_load(graphs, seed, jobs, 0.0, sigma, among)


def draw_graphs(seed: int, many: int = 60) -> GraphSet:
    """Return drawn graphs where no recorded ones are at hand: 2 to 18 stages, skewed tasks, waves as on Spark.

    A stage waits for one to three earlier ones. More executors make tasks of a job slower, as they share its disks.
    """
    rng = np.random.default_rng((seed, _DRAWN_SEED))
    graphs: list[tuple[int, int, int, int]] = []
    edges: list[tuple[int, int, int]] = []
    stages: list[tuple[int, float]] = []
    lengths: list[int] = []
    values: list[Floats] = []
    for number in range(many):
        size = int(rng.choice([2, 5, 10, 20, 100]))
        count = int(rng.integers(2, 19))
        graphs.append((size, 1 + number % 22, len(stages), count))
        for stage in range(count):
            if stage:
                before = rng.choice(stage, size=min(stage, int(rng.integers(0, 4))), replace=False)
                edges += [(number, int(one), stage) for one in before]
            tasks = max(1, int(rng.lognormal(1.2 + 0.7 * np.log(size), 1.0)) if rng.random() < 0.7 else 1)
            tasks = min(tasks, 2_000)
            mean_ms = float(rng.lognormal(np.log(500.0), 0.8))
            stages.append((tasks, mean_ms))
            for point in POINTS:
                slower = mean_ms * (1.0 + 0.004 * point)
                waves = (slower * 2.2, slower * 1.4, slower)
                for wave in waves:
                    lengths.append(12)
                    values.append(np.round(wave * rng.lognormal(0.0, 0.25, 12)) + 1.0)
    return graph_set(
        {
            "graphs": np.array(graphs, dtype=np.int64),
            "edges": np.array(edges, dtype=np.int64).reshape(-1, 3),
            "stages": np.array(stages, dtype=np.float64),
            "lengths": np.array(lengths, dtype=np.int64),
            "values": np.concatenate(values),
        }
    )
