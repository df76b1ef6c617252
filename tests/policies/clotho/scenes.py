"""Jobs and scenes for tests of policies of stages."""

import numpy as np

from yaqd.policies.clotho.facts import Graph, Scene, StageJob, graph_of


def chain(many: int) -> Graph:
    """Return a graph whose stages run one after the other."""
    return graph_of(many, [(at, at + 1) for at in range(many - 1)])


def job(graph: Graph, tasks: list[int], duration_s: float | list[float] = 1.0, containers: int = 0) -> StageJob:
    """Return a job of which nothing has run."""
    many = np.array(tasks)
    none = np.zeros(len(tasks), dtype=np.int64)
    waits = np.isin(np.arange(len(tasks)), graph.child)
    return StageJob(
        graph, many, none, many, none, np.full(len(tasks), duration_s, dtype=np.float64), ~waits, containers, 0
    )


def random_job(seed: int) -> StageJob:
    """Return a job in the midst of its life."""
    rng = np.random.default_rng(seed)
    many = int(rng.integers(1, 12))
    graph = graph_of(many, [(int(rng.integers(at)), at) for at in range(1, many) for _ in range(2)])
    unfinished = rng.integers(0, 40, many)
    for before, after in zip(graph.parent.tolist(), graph.child.tolist(), strict=True):
        unfinished[before] = max(1, unfinished[before]) if unfinished[after] else unfinished[before]
    waits = np.zeros(many, dtype=bool)
    waits[graph.child[unfinished[graph.parent] > 0]] = True
    running = np.where(waits, 0, rng.integers(0, 5, many)).clip(0, unfinished)
    durations = np.where(rng.random(many) < 0.2, np.nan, rng.lognormal(0.0, 1.0, many))
    unclaimed = unfinished - running
    return StageJob(
        graph, unfinished, running, unclaimed, np.zeros_like(running), durations, ~waits, int(running.sum()) + 1, 1
    )


def scene(*jobs: StageJob, source: int = -1, free: int = 5, slots: int = 20) -> Scene:
    """Return a cluster with moves of 2 s."""
    return Scene(tuple(jobs), slots, 2.0, source, free)
