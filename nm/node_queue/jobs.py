"""What a node knows of the jobs whose containers it has: bounded, the longest not heard of forgotten first."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from nm.node_queue.events import JobReport
from yaqd.model import ApplicationId
from yaqd.policies.queueing.facts import JobFacts, TaskFacts

_JOBS_MAX: Final = 10_000
#: of one job
_STAGES_MAX: Final = 1_000


class Jobs:
    def __init__(self) -> None:
        self._facts: dict[ApplicationId, JobFacts] = {}
        self._arrivals: dict[ApplicationId, float] = {}
        self._estimates: dict[ApplicationId, dict[int, float | None]] = {}

    @property
    def facts(self) -> Mapping[ApplicationId, JobFacts]:
        return self._facts

    def report(self, report: JobReport) -> bool:
        """Takes a report in, and returns whether it changes what is known of the job's containers.

        Most reports change only what is left of the job.
        """
        job = report.job
        changes = self._facts.pop(job, None) is None  # to the end of the line
        if len(self._facts) >= _JOBS_MAX:
            oldest = next(iter(self._facts))
            for table in (self._facts, self._arrivals, self._estimates):
                table.pop(oldest, None)
        self._facts[job] = report.facts
        if report.arrival is not None and self._arrivals.get(job) != report.arrival:
            self._arrivals[job] = report.arrival
            changes = True
        if report.estimates:
            known = self._estimates.setdefault(job, {})
            for priority, estimate in report.estimates.items():
                if priority in known and known[priority] == estimate:
                    continue
                if priority in known or len(known) < _STAGES_MAX:
                    known[priority] = estimate
                    changes = True
        return changes

    def estimates(self, job: ApplicationId) -> Mapping[int, float | None]:
        """Returns seconds by priority, as last heard."""
        return self._estimates.get(job, {})

    def revised(self, facts: TaskFacts) -> TaskFacts:
        """Returns a container's facts with what was heard of its job since they were written."""
        if facts.job not in self._facts:
            return facts
        arrival = self._arrivals.get(facts.job, facts.job_arrival)
        estimate = self._estimates.get(facts.job, {}).get(facts.priority, facts.estimate)
        if arrival == facts.job_arrival and estimate == facts.estimate:
            return facts
        return replace(facts, job_arrival=arrival, estimate=estimate)
