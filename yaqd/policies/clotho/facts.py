"""What a policy of stages is told, and what it answers.

A job is a graph of stages; a stage has tasks that are alike. Containers that come free are at a job, or at none. Times
in seconds. Facts of a job that did not change stay the same object, so that what was worked out of them is kept.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite, nan
from typing import Final, Protocol

import numpy as np

from yaqd.policies.curves.samples import Bools, Floats, Ints

STAGES_MAX: Final = 10_000
_LONGEST_S: Final = 1e9


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Which stages of a job wait for which. It never changes."""

    many: int
    #: edges from a stage to one that waits for it, by (height, stage)
    parent: Ints = field(repr=False)
    child: Ints = field(repr=False)
    #: (stages,): the longest way down to a stage that nothing waits for
    height: Ints = field(repr=False)


def graph_of(many: int, edges: Iterable[tuple[int, int]]) -> Graph:
    """Return the graph of pairs (stage, one that waits for it); a pair counts once.

    Raises ValueError where there are no stages, too many, a pair names none of them, or they wait in a circle.
    """
    if not 1 <= many <= STAGES_MAX:
        raise ValueError(f"a job of {many} stages: 1 to {STAGES_MAX} can be scheduled")
    pairs = sorted(set(edges))
    waits_for = [0] * many
    parents: list[list[int]] = [[] for _ in range(many)]
    for before, after in pairs:
        if not (0 <= before < many and 0 <= after < many):
            raise ValueError(f"stage {after} waits for {before}: there are {many} stages")
        waits_for[before] += 1
        parents[after].append(before)
    height = [0] * many
    ready = [stage for stage, count in enumerate(waits_for) if not count]
    for stage in ready:
        for before in parents[stage]:
            height[before] = max(height[before], height[stage] + 1)
            waits_for[before] -= 1
            if not waits_for[before]:
                ready.append(before)
    if len(ready) < many:
        raise ValueError("stages wait for each other in a circle")
    pairs.sort(key=lambda pair: (height[pair[0]], pair))
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Graph(many, ends[:, 0].copy(), ends[:, 1].copy(), np.array(height, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class StageJob:
    """A job as it stands; arrays are by stage."""

    graph: Graph
    #: tasks that have not ended, those that run, and those that no container is on its way to or waits for
    unfinished: Ints
    running: Ints
    unclaimed: Ints
    #: containers that are on their way or wait until the stage opens
    coming: Ints
    #: mean duration of a task; NaN: nobody knows
    duration_s: Floats
    #: whether nothing that it waits for is left
    is_open: Bools
    #: containers that it has, those on their way counted; of these, those that run nothing
    containers: int
    idle: int
    #: work of the whole job, slot seconds; NaN: as much as is left
    whole_s: float = nan
    #: unclaimed tasks that a container from elsewhere may come for; None: all
    wanted: Ints | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster where containers are free."""

    #: in the order in which they came
    jobs: tuple[StageJob, ...]
    slots: int
    #: what it costs a container to go to another job, s
    move_s: float
    #: which job the free containers are at; -1: none
    source: int
    #: how many are free there
    free: int
    #: how long tasks count where nobody knows any of their job's; else the mean of those that are known counts
    unknown_s: float = 1.0


@dataclass(frozen=True, slots=True)
class StageChoice:
    """Which stage gets how many of the free containers, and what the job's limit is."""

    job: int
    stage: int
    containers: int
    limit: int
    #: of policies that score; others say 0
    score: float = 0.0
    #: every job that wants more is at its limit, so limits did not count
    spills: bool = False


class StagePolicy(Protocol):
    """What every policy of stages can do; an object lives as long as one scheduler."""

    def choose(self, scene: Scene) -> StageChoice | None:
        """Return who gets free containers; None: they stay where they are. Callers ask again until all are given."""
        ...


def bounded_s(durations: Iterable[float], many: int) -> Floats:
    """Return durations as they can be: negative, endless or absurd ones are unknown."""
    found = [taken if isfinite(taken) and 0.0 <= taken <= _LONGEST_S else nan for taken in islice(durations, many)]
    return np.array(found + [nan] * (many - len(found)))
