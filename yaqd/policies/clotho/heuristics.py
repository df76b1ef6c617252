"""Heuristics of stages, one interface for all: each ranks jobs, gives each a limit, and ranks a job's stages.

- `fifo`: the oldest job first, as Spark does. `shortest`: the job with the least work in all, its longest chain first.
- `fair`, `weighted-fair`: each job its share, by its work to an exponent. As published a container stays in its job
  while there is a stage to go to, and waits for one about to open. With `leaves` it goes when its job has more than
  its share.
- `packing` is like Tetris: as much work as fits now, of jobs with little left. `trouble` is like Graphene: stages that
  are long or on the longest chain first.
- `capped`: least remaining work first, at most ceil(c x work^e) containers a job; a container leaves for a job with
  clearly less left.
"""

from dataclasses import dataclass
from math import ceil, inf
from typing import Final

from yaqd.policies.clotho.facts import Scene, StageChoice
from yaqd.policies.clotho.known import CHAIN, CHAIN_WORK, CLAIMABLE, EST, OPEN, Known, KnownJobs

_OPEN_FIRST: Final = 1e9


@dataclass(frozen=True, slots=True)
class Manner:
    """How a heuristic treats containers that are in a job."""

    #: how much more the job that has them is worth
    stay: float = 0.0
    #: whether they wait for stages that are about to open
    holds: bool = False
    #: whether they leave a job that is above its limit
    leaves: bool = True
    #: whether limits count for nothing where all that want more are at theirs
    spills: bool = True


class Ranking:
    """The rule that all heuristics share: the best job below its limit, then its best stage."""

    def __init__(self, manner: Manner) -> None:
        self.manner = manner
        self._seen = KnownJobs()

    def choose(self, scene: Scene) -> StageChoice | None:
        """Return who gets free containers; None: nobody may."""
        jobs = self._seen.known(scene)
        limits = self.limits(scene, jobs)
        best = self._best(scene, jobs, limits, False)
        spills = best < 0
        if spills:
            best = self._best(scene, jobs, limits, True) if self.manner.spills else -1
            if best < 0:
                return None
        job, limit = jobs[best], limits[best]
        place = self._best_stage(scene, job)
        many = min(scene.free, int(job.facts[place, CLAIMABLE]))
        if spills:
            many = 1
        elif best != scene.source and limit - job.job.containers < many:
            many = max(1, int(limit - job.job.containers))
        told = scene.slots if limit == inf else int(limit)
        return StageChoice(best, int(job.stages[place]), many, told, spills=spills)

    def limits(self, scene: Scene, jobs: list[Known]) -> list[float]:
        """Return how many containers each job should have."""
        return [inf] * len(jobs)

    def value(self, at: int, job: Known) -> float:
        """Return what a job is worth."""
        return -float(at)

    def stage_value(self, scene: Scene, job: Known, place: int) -> float:
        """Return what a choosable stage is worth within its job: open ones first, by number."""
        stage = int(job.stages[place])
        return -float(stage) if job.facts[place, OPEN] else -1e9 - stage

    def _best(self, scene: Scene, jobs: list[Known], limits: list[float], spills: bool) -> int:
        best, found = -inf, -1
        manner = self.manner
        for at, (job, limit) in enumerate(zip(jobs, limits, strict=True)):
            if not (job.claims if manner.holds else job.open_claims):
                continue
            has, is_own = job.job.containers, at == scene.source
            if not spills and (manner.leaves and has > limit if is_own else has >= limit):
                continue
            value = self.value(at, job) + (manner.stay if is_own else 0.0)
            if value > best:
                best, found = value, at
        return found

    def _best_stage(self, scene: Scene, job: Known) -> int:
        best, found = -inf, -1
        for place in range(len(job.stages)):
            if self.manner.holds or job.facts[place, OPEN]:
                value = self.stage_value(scene, job, place)
                if value > best:
                    best, found = value, place
        return found


class Fifo(Ranking):
    """The oldest job first."""

    def __init__(self) -> None:
        super().__init__(Manner(stay=inf, holds=True))


class _ByChain(Ranking):
    def stage_value(self, scene: Scene, job: Known, place: int) -> float:
        """Return the work on the longest chain from the stage on; stages that are open go first."""
        return float(job.facts[place, CHAIN_WORK] + (_OPEN_FIRST if job.facts[place, OPEN] else 0.0))


class Shortest(_ByChain):
    """The shortest job first, its longest chain first."""

    def __init__(self) -> None:
        super().__init__(Manner())

    def value(self, at: int, job: Known) -> float:
        """Return less for more work in all."""
        return -job.whole_s


class WeightedFair(Ranking):
    """Shares by the work of the whole job to an exponent; 0 is fair sharing."""

    def __init__(self, exponent: float = -1.0, leaves: bool = False, holds: bool = True) -> None:
        super().__init__(Manner(stay=inf, holds=holds, leaves=leaves, spills=leaves))
        self._exponent = exponent

    def limits(self, scene: Scene, jobs: list[Known]) -> list[float]:
        """Return each job's share of the slots; jobs whose tasks are all claimed have none."""
        weights = [max(job.whole_s, 1e-3) ** self._exponent if job.unclaimed else 0.0 for job in jobs]
        total = max(sum(weights), 1e-300)
        return [float(ceil(scene.slots * weight / total)) for weight in weights]


class Fair(WeightedFair):
    """The same share for every job."""

    def __init__(self, leaves: bool = False, holds: bool = True) -> None:
        super().__init__(0.0, leaves, holds)


class _LeastLeft(_ByChain):
    def value(self, at: int, job: Known) -> float:
        """Return less for more work that is left."""
        return -job.work_s


class Packing(_LeastLeft):
    """As much work as fits now, of jobs with little left."""

    def __init__(self) -> None:
        super().__init__(Manner())

    def stage_value(self, scene: Scene, job: Known, place: int) -> float:
        """Return the work that fits into the free containers."""
        return float(job.facts[place, EST]) * min(int(job.facts[place, CLAIMABLE]), scene.free)


class Trouble(_LeastLeft):
    """Stages that are long, or on the longest chain, first."""

    def __init__(self) -> None:
        super().__init__(Manner())

    def stage_value(self, scene: Scene, job: Known, place: int) -> float:
        """Return how much trouble a stage makes."""
        facts = job.facts[place]
        is_long = bool(facts[CHAIN] >= 0.6 * job.longest_s)
        return float(facts[EST]) * max(1.0, float(facts[CLAIMABLE]) / scene.slots) + 1e6 * is_long


class Capped(_LeastLeft):
    """Capped shortest remaining work."""

    def __init__(self, c: float = 1.5, e: float = 0.35, clearly_s: float = 300.0, holds: bool = True) -> None:
        """`clearly_s`: a container leaves for a job that has so much less left, slot seconds."""
        super().__init__(Manner(stay=clearly_s, holds=holds))
        self._c, self._e = c, e

    def limits(self, scene: Scene, jobs: list[Known]) -> list[float]:
        """Return what grows with the work that is left."""
        return [float(ceil(self._c * max(job.work_s, 0.0) ** self._e)) for job in jobs]
