"""Jobs in another order than that of their arrival, at the ResourceManager.

The order is that of the live policy; the scheduler is told it as priorities, once in a heartbeat interval while
somebody waits, so that it serves jobs by it with its ordinary first-in-first-out queues.
"""

import math
from collections.abc import Callable
from typing import Final

from rm.scheduler.events import PriorityChanged
from yaqd.model import ApplicationId
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.job_order import JobOrdering, WaitingJob
from yaqd.sim.jobs import JobRun


class JobOrder:
    def __init__(self, strategy: str, period_s: float) -> None:
        """Raises `UnknownPolicy`."""
        self._ordering: Final = JobOrdering(strategy)
        self._period_s: Final = period_s
        self._turn = -1
        self._running: dict[int, JobRun] = {}
        self._served: dict[int, float] = {}
        self._priorities: dict[ApplicationId, int] = {}

    def started(self, job: JobRun, now: float) -> None:
        self._running[job.index] = job
        self._served[job.index] = now
        self._turn = -1  # it has no place yet

    def served(self, job: JobRun, now: float) -> None:
        """It was given a container."""
        self._served[job.index] = now

    def ended(self, job: JobRun) -> None:
        self._running.pop(job.index, None)
        self._served.pop(job.index, None)
        self._priorities.pop(job.id, None)

    def changes(self, now: float, facts_of: Callable[[JobRun], JobFacts]) -> list[PriorityChanged]:
        """What the scheduler is to be told; nothing before the next interval."""
        turn = math.floor(now / self._period_s)
        if turn == self._turn:
            return []
        self._turn = turn
        waiting = [
            WaitingJob(job.id, job.spec.arrival_s, self._served[index], facts_of(job), job.length_s)
            for index, job in self._running.items()
        ]
        told = []
        for place, job in enumerate(self._ordering.sorted(waiting, now)):
            if self._priorities.get(job.job) != -place:
                self._priorities[job.job] = -place
                told.append(PriorityChanged(job.job, -place))
        return told
