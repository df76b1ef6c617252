"""What follows from the facts of jobs: work, chains, and which stages may be chosen. It is kept until they change."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from yaqd.policies.clotho.facts import Scene, StageJob
from yaqd.policies.curves.samples import Bools, Floats, Ints

#: jobs that are kept beyond those in the scene
_SPARE: Final = 64


class HeightEdges(NamedTuple):
    """Edges whose parents have one height, those of one parent together."""

    #: each once, and where its edges begin
    parent: Ints
    first: Ints
    #: of each edge
    child: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Several jobs laid end to end: stages have one numbering, edges are by height."""

    jobs: Sequence[StageJob]
    #: where each job's stages begin
    begin: Ints
    #: job of each stage
    owner: Ints
    unfinished: Ints
    running: Ints
    unclaimed: Ints
    wanted: Ints
    coming: Ints
    est_s: Floats
    is_open: Bools
    parent: Ints
    child: Ints
    #: edges whose parents have one height, lowest first
    levels: list[HeightEdges]


def block_of(jobs: Sequence[StageJob], unknown_s: float) -> Block:
    """Lay jobs end to end. `unknown_s`: how long tasks count where nobody knows any of their job's, s."""
    sizes = np.array([job.graph.many for job in jobs])
    begin = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    edges = np.array([len(job.graph.parent) for job in jobs])
    shift = np.repeat(begin, edges)
    parent = np.concatenate([job.graph.parent for job in jobs]) + shift
    child = np.concatenate([job.graph.child for job in jobs]) + shift
    height = np.concatenate([job.graph.height for job in jobs])[parent]
    order = np.argsort(height, kind="stable")
    parent, child, height = parent[order], child[order], height[order]
    owner = np.repeat(np.arange(len(jobs)), sizes)
    est_s = np.concatenate([job.duration_s for job in jobs])
    is_known = np.isfinite(est_s)
    if not is_known.all():
        many = np.add.reduceat(is_known.astype(np.int64), begin)
        total = np.add.reduceat(np.where(is_known, est_s, 0.0), begin)
        mean = np.where(many > 0, total / np.maximum(many, 1), unknown_s)
        est_s = np.where(is_known, est_s, mean[owner])
    return Block(
        jobs,
        begin,
        owner,
        np.concatenate([job.unfinished for job in jobs]),
        np.concatenate([job.running for job in jobs]),
        np.concatenate([job.unclaimed for job in jobs]),
        np.concatenate([job.unclaimed if job.wanted is None else job.wanted for job in jobs]),
        np.concatenate([job.coming for job in jobs]),
        est_s,
        np.concatenate([job.is_open for job in jobs]),
        parent,
        child,
        _levels(parent, child, height),
    )


def _levels(parent: Ints, child: Ints, height: Ints) -> list[HeightEdges]:
    """`height`: of each edge's parent, rising; edges of one parent are together."""
    if not len(parent):
        return []
    first = np.flatnonzero(np.append(True, parent[1:] != parent[:-1]))
    heads, heights = parent[first], np.arange(1, int(height[-1]) + 2)
    edges = np.searchsorted(height, heights).tolist()
    starts = np.searchsorted(height[first], heights).tolist()
    return [
        HeightEdges(heads[begin:end], first[begin:end] - low, child[low:high])
        for (low, high), (begin, end) in zip(pairwise(edges), pairwise(starts), strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """What follows from a block, by stage and by job."""

    #: longest chain of stages from this one on, by duration of one task, and by work, s
    chain_s: Floats
    chain_work_s: Floats
    #: until what it waits for is over, by what runs, s
    wait_s: Floats
    #: unclaimed tasks of stages that may be chosen: what they wait for has no unclaimed task
    claimable: Ints
    work_s: Floats
    longest_s: Floats
    whole_s: Floats
    #: by job: tasks unclaimed, choosable, choosable at once
    tasks: Ints


def chains_of(block: Block) -> Chains:
    """Work it out, level by level."""
    work = block.est_s * block.unfinished
    chains = np.column_stack((np.where(block.unfinished > 0, block.est_s, 0.0), work))
    for level in block.levels:
        chains[level.parent] += np.maximum.reduceat(chains[level.child], level.first, axis=0)
    chain_s = chains[:, 0]
    wait_s = np.zeros(len(work))
    lasts = work / np.maximum(block.running, 1)
    np.maximum.at(wait_s, block.child, lasts[block.parent])
    claimable = np.minimum(block.unclaimed, block.wanted)
    claimable[block.child[block.unclaimed[block.parent] > 0]] = 0
    tasks = np.stack((block.unclaimed, claimable, np.where(block.is_open, claimable, 0)), axis=1)
    work_s = np.add.reduceat(work, block.begin)
    whole_s = np.array([job.whole_s for job in block.jobs])
    return Chains(
        chain_s,
        chains[:, 1],
        wait_s,
        claimable,
        work_s,
        np.maximum.reduceat(chain_s, block.begin),
        np.where(np.isfinite(whole_s), whole_s, work_s),
        np.add.reduceat(tasks, block.begin, axis=0),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What follows from one job's facts."""

    job: StageJob
    work_s: float
    longest_s: float
    whole_s: float
    unclaimed: int
    claims: int
    open_claims: int
    #: stages that may be chosen, and of each: claimable tasks, whether it is open, duration, chain, chain of work, wait
    stages: Ints = field(repr=False)
    facts: Floats = field(repr=False)


CLAIMABLE, OPEN, EST, CHAIN, CHAIN_WORK, WAIT = range(6)


class Choosable(NamedTuple):
    """The stages of a block that may be chosen, end to end."""

    #: of each: its number in the block, its number in its job, its facts by the columns above
    chosen: Ints
    number: Ints
    facts: Floats
    #: where each job's begin, and where the last one's end
    cuts: list[int]


def choosable(block: Block, chains: Chains) -> Choosable:
    """Return which stages of a block may be chosen."""
    chosen = np.flatnonzero(chains.claimable > 0)
    facts = np.stack(
        (
            chains.claimable[chosen],
            block.is_open[chosen],
            block.est_s[chosen],
            chains.chain_s[chosen],
            chains.chain_work_s[chosen],
            chains.wait_s[chosen],
        ),
        axis=1,
        dtype=np.float64,
    )
    cuts = np.searchsorted(chosen, np.append(block.begin, len(block.owner)))
    return Choosable(chosen, chosen - block.begin[block.owner[chosen]], facts, cuts.tolist())


def split(block: Block, chains: Chains) -> list[Known]:
    """Return what is known of each job."""
    _, number, facts, cuts = choosable(block, chains)
    each = zip(
        block.jobs, chains.work_s.tolist(), chains.longest_s.tolist(), chains.whole_s.tolist(), chains.tasks.tolist(),
        cuts[:-1], cuts[1:], strict=True,
    )  # fmt: skip
    return [
        Known(job, work, longest, whole, tasks[0], tasks[1], tasks[2], number[low:high], facts[low:high])
        for job, work, longest, whole, tasks, low, high in each
    ]


class KnownJobs:
    """Keeps what follows from jobs until their facts change."""

    def __init__(self) -> None:
        self._known: dict[int, Known] = {}
        self._unknown_s = 1.0

    def known(self, scene: Scene) -> list[Known]:
        """Return what is known of each job of the scene."""
        if scene.unknown_s != self._unknown_s:
            self._known, self._unknown_s = {}, scene.unknown_s
        new = [job for job in scene.jobs if (old := self._known.get(id(job))) is None or old.job is not job]
        if new:
            block = block_of(new, scene.unknown_s)
            for found in split(block, chains_of(block)):
                self._known[id(found.job)] = found
        if len(self._known) > 2 * len(scene.jobs) + _SPARE:
            kept = {id(job) for job in scene.jobs}
            self._known = {number: found for number, found in self._known.items() if number in kept}
        return [self._known[id(job)] for job in scene.jobs]
