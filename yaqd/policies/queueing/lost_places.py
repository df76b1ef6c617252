"""Since when tasks wait that have lost their place at a node: a longer queue shed them, or they waited too long there.

Masters ask again for such a task, but no ask says which one it is for: the tasks of a stage are alike to everybody but
their master. So the longest wait of a stage goes along with the next container that the stage is given, and the guards
against starvation count from when a task was queued first, however often it was moved.

What has waited longer than it may at all is overdue, and waits nowhere again: so many of its stage's containers are
given where they start at once. Who can keep no place free for such a task (opportunistic containers are promised
nothing) lets it wait again in the end, after as long again as it had waited by then: it is given back a number of times
that grows with the logarithm of the time, however wrong the estimates are, and never left aside for good.
"""

from bisect import insort
from math import inf
from typing import Final

from yaqd.model import ApplicationId

#: stages of which it is kept, of all jobs together, and tasks of one
_STAGES_MAX: Final = 100_000
_TASKS_MAX: Final = 1_000


class _Stage:
    __slots__ = ("again_at", "overdue", "since")

    def __init__(self) -> None:
        #: of each task, earliest first
        self.since: list[float] = []
        #: so many of the first ones must not wait again
        self.overdue = 0
        #: when they may after all, where no place is kept free for them
        self.again_at = -inf


class LostPlaces:
    def __init__(self) -> None:
        self._jobs: dict[ApplicationId, dict[int, _Stage]] = {}
        self._stages = 0

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def lost(
        self, job: ApplicationId, priority: int, since: float, now: float = inf, *, is_overdue: bool = False
    ) -> None:
        """Note that a task of this stage, queued first at `since`, is to be placed again."""
        if since != since:
            return
        stages = self._jobs.get(job, {})
        stage = stages.get(priority)
        if stage is None:
            if self._stages >= _STAGES_MAX:
                return
            self._stages += 1
            stage = self._jobs.setdefault(job, stages)[priority] = _Stage()
        if len(stage.since) < _TASKS_MAX:
            insort(stage.since, since)
            stage.overdue += is_overdue
        if is_overdue:
            stage.again_at = max(stage.again_at, now + (now - since))

    def overdue(self, job: ApplicationId, priority: int) -> int:
        """Return how many of the stage's tasks must not wait again."""
        stages = self._jobs.get(job)
        stage = stages.get(priority) if stages is not None else None
        return stage.overdue if stage is not None else 0

    def forgive(self, job: ApplicationId, priority: int, now: float) -> None:
        """Let those wait that must not wait again, if they have been kept from it for as long as they had waited."""
        stages = self._jobs.get(job)
        stage = stages.get(priority) if stages is not None else None
        if stage is not None and now >= stage.again_at:
            stage.overdue = 0

    def wait_limit(self, job: ApplicationId, priority: int, pending: int, limit_s: float, now: float) -> float:
        """Return how long the next of `pending` containers of the stage may wait, s, for whom no place is kept free.

        `limit_s`: how long any of its master may; what came back from a node waits at none for a while.
        """
        if self._jobs and limit_s < inf:
            self.forgive(job, priority, now)
            if pending <= self.overdue(job, priority):
                return 0.0
        return limit_s

    def take(self, job: ApplicationId, priority: int, wanted: int, *, may_wait: bool) -> float | None:
        """Note that the stage is given a container. Return since when the task that it is for waits; None: since now.

        `wanted`: containers that the stage asked for, this one counted; no more tasks than that can have lost their
        place. `may_wait`: at its node, so no overdue one gets it.
        """
        stages = self._jobs.get(job)
        stage = stages.get(priority) if stages is not None else None
        if stages is None or stage is None:
            return None
        del stage.since[max(0, wanted) :]
        stage.overdue = min(stage.overdue, len(stage.since))
        first = stage.overdue if may_wait else 0
        found = stage.since.pop(first) if first < len(stage.since) else None
        if not may_wait and stage.overdue:
            stage.overdue -= 1
        if not stage.since:
            del stages[priority]
            self._stages -= 1
            if not stages:
                del self._jobs[job]
        return found

    def forget(self, job: ApplicationId) -> None:
        """Forget a job that is over, or has another master, which asks anew."""
        self._stages -= len(self._jobs.pop(job, ()))

    def validate(self) -> None:
        """Assert every invariant."""
        stages = [stage for job in self._jobs.values() for stage in job.values()]
        assert len(stages) == self._stages and all(self._jobs.values())
        assert all(stage.since == sorted(stage.since) and stage.since for stage in stages)
        assert all(0 <= stage.overdue <= len(stage.since) for stage in stages)
