"""What is left of each job, counted as its asks and containers come and go. Node queues and job orders go by it.

Counting begins where queues are filled, from what there is then.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from rm.scheduler.view.held import Held
from rm.scheduler.view.records import AppView, AttemptView
from yaqd.model import ApplicationAttemptId, ApplicationId
from yaqd.policies.asks.table import Ask
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.left import StageLeft, bounded, facts_of
from yaqd.policies.queueing.means import RecentMean

#: priorities that are told apart in one application: they are its master's to choose
_PRIORITIES_MAX: Final = 1000
#: asks of one attempt that are looked at for its remaining work; further ones are taken to be like them
_ASKS_LOOKED_AT: Final = 64
#: tasks that say what is typical, and how many times as long, or as short, is something else
_REMEMBERED: Final = 64
_STEP: Final = 1.25


@dataclass(slots=True)
class Turn:
    """So many containers for a stage of an application, before others get any."""

    app_id: ApplicationId
    priority: int
    left: int
    #: scheduler's seconds
    until: float = math.inf
    #: who gives them up
    source: ApplicationId | None = None
    #: among those of its leaf queue
    place: int = 0


class Job:
    """One application's containers and estimates by priority."""

    __slots__ = (
        "asked_at",
        "counted_at",
        "done_work",
        "elsewhere",
        "estimates",
        "facts",
        "facts_at",
        "given_back",
        "held",
        "is_starved",
        "passed_s",
        "rank",
        "ranked_at",
        "sent",
        "since",
        "told",
        "told_by",
        "told_facts",
        "turns",
        "version",
        "waited_s",
    )

    def __init__(self) -> None:
        self.estimates: dict[int, float] = {}
        #: containers that are not over, without masters
        self.held: dict[int, int] = {}
        #: estimated durations of those that are over, s
        self.done_work = 0.0
        #: containers still wanted that are asked of others, proxies at the nodes
        self.elsewhere: dict[int, int] = {}
        #: since when it wants something and was given nothing, scheduler's seconds; None: it was not noted
        self.since: float | None = None
        #: it has waited too long
        self.is_starved = False
        #: when it began to want what it wants, or wanted last, scheduler's seconds
        self.asked_at = 0.0
        #: how long it has wanted something until `counted_at`, s
        self.waited_s = 0.0
        self.counted_at = 0.0
        #: containers that nodes gave back before they started, which it has not asked for again: that is no new wait
        self.given_back = 0
        #: the part of `waited_s` in which jobs that asked after it ran instead, s
        self.passed_s = 0.0
        #: what is left of it as the master of this attempt told, and what that comes to, once worked out
        self.told: tuple[StageLeft, ...] = ()
        self.told_by: ApplicationAttemptId | None = None
        self.told_facts: JobFacts | None = None
        #: counts the changes
        self.version = 0
        #: what is left of it, and its place in the order, as worked out last, and of what
        self.facts = JobFacts()
        self.facts_at: object = None
        self.rank = 0.0
        self.ranked_at: object = None
        #: where its leaf queue decides by stages: what it gets before others, and by stage the containers given to it
        #: that its master does not yet tell of as running
        self.turns: list[Turn] = []
        self.sent: dict[int, int] = {}

    def mean_estimate(self) -> float | None:
        """Return the estimate for priorities of which nothing is known, s; None when nothing is known of any."""
        return sum(self.estimates.values()) / len(self.estimates) if self.estimates else None

    def facts_as_told(self, attempt: AttemptView | None) -> JobFacts | None:
        """Return what is left of it in its master's words.

        None: the master says nothing, or says less than it asks for, which cannot be.
        """
        if attempt is None or attempt.id != self.told_by:
            return None
        if self.told_facts is None:
            self.told_facts = facts_of(self.told, self.estimates.get)
        facts = self.told_facts
        return facts if (facts.remaining_tasks or 0) >= attempt.asks.pending else None


class Jobs:
    def __init__(self) -> None:
        #: guaranteed containers are counted as they come and go, as something goes by it
        self.are_counted = False
        self._jobs: dict[ApplicationId, Job] = {}
        self._ran = RecentMean(_REMEMBERED)
        #: how long a task runs as far as was seen of late, s; it moves in steps. None: nothing was seen
        self.typical_s: float | None = None
        #: applications of which nothing is known, whose place in the order is that of typical tasks
        self.unknown: set[ApplicationId] = set()

    def ran(self, seconds: float) -> bool:
        """Note that a task ran so long. Return True where that changes what is typical."""
        if not self._ran.add(seconds):
            return False
        mean, before = self._ran.mean, self.typical_s
        if before is not None and before <= mean * _STEP and mean <= before * _STEP:
            return False
        self.typical_s = mean
        return True

    def begin(self, containers: Iterable[Held]) -> None:
        """Count from here on; these are there."""
        self.are_counted = True
        for job in self._jobs.values():
            job.held.clear()
        for held in containers:
            if not held.is_master:
                self.began(held.application.id, held.priority)

    def of(self, app_id: ApplicationId) -> Job:
        """Return the record that an event changes; begin one where there is none. A mere question must leave none
        behind."""
        job = self._jobs.get(app_id)
        if job is None:
            job = self._jobs[app_id] = Job()
        return job

    def held(self, app_id: ApplicationId) -> Mapping[int, int]:
        """Count its containers that are not over, by priority, without masters."""
        job = self._jobs.get(app_id)
        return job.held if job is not None else {}

    def elsewhere(self, app_id: ApplicationId) -> Mapping[int, int]:
        """Return how many containers of each priority it still wants of proxies at the nodes."""
        job = self._jobs.get(app_id)
        return job.elsewhere if job is not None else {}

    def estimates(self, app_id: ApplicationId) -> Mapping[int, float]:
        """Return how long its containers of each priority run, s, as far as that is known."""
        job = self._jobs.get(app_id)
        return job.estimates if job is not None else {}

    def version(self, app_id: ApplicationId) -> int:
        """Moves whenever something about the job does; 0 when nothing is known of it."""
        job = self._jobs.get(app_id)
        return job.version if job is not None else 0

    def forget(self, app_id: ApplicationId) -> None:
        self.unknown.discard(app_id)
        self._jobs.pop(app_id, None)

    def touch(self, app_id: ApplicationId) -> None:
        """Note that its asks have changed."""
        if self.are_counted:
            self.of(app_id).version += 1

    def wanted_elsewhere(self, app_id: ApplicationId, counts: dict[int, int]) -> None:
        """Take in what it wants of proxies at the nodes, by priority. It replaces what was said before."""
        job = self.of(app_id)
        if job.elsewhere != counts:
            job.version += 1
            job.elsewhere = dict(islice(counts.items(), _PRIORITIES_MAX))

    def left_told(self, app_id: ApplicationId, attempt_id: ApplicationAttemptId, stages: tuple[StageLeft, ...]) -> None:
        """Take in what the attempt's master says is left. It replaces what was said before."""
        job = self.of(app_id)
        job.version += 1
        job.told, job.told_by, job.told_facts = bounded(stages), attempt_id, None

    def stage_told(self, attempt_id: ApplicationAttemptId, priority: int) -> StageLeft | None:
        """Return what the attempt's master says of a stage that is not over; None: it says nothing of it."""
        job = self._jobs.get(attempt_id.application_id)
        if job is None or job.told_by != attempt_id:
            return None
        return next((stage for stage in job.told if stage.priority == priority), None)

    def began(self, app_id: ApplicationId, priority: int) -> None:
        self.of(app_id).version += 1
        self._hold(self.of(app_id), priority)

    def given(self, attempt: AttemptView, priority: int) -> None:
        """Note that it was given what it asked for. What is left of it is neither less nor more by that."""
        if not self.are_counted:
            return
        job = self.of(attempt.app.id)
        if len(job.held) >= _PRIORITIES_MAX or len(attempt.asks) >= _ASKS_LOOKED_AT:
            job.version += 1  # what is left is counted roughly
        self._hold(job, priority)
        if attempt.app.leaf.spec.orders_stages:
            self._serve(job, attempt, priority)

    def take_turns(self, attempt: AttemptView, turns: list[Turn]) -> None:
        """Serve the attempt in these turns from now on."""
        self.of(attempt.app.id).turns = turns
        attempt.stage = turns[0].priority if turns else None

    @staticmethod
    def _serve(job: Job, attempt: AttemptView, priority: int) -> None:
        if priority in job.sent or len(job.sent) < _PRIORITIES_MAX:
            job.sent[priority] = job.sent.get(priority, 0) + 1
        turn = next((turn for turn in job.turns if turn.priority == priority), job.turns[0] if job.turns else None)
        if turn is None:
            return
        turn.left -= 1
        if turn.left <= 0:
            job.turns.remove(turn)
            attempt.stage = job.turns[0].priority if job.turns else None

    @staticmethod
    def _hold(job: Job, priority: int) -> None:
        if priority in job.held or len(job.held) < _PRIORITIES_MAX:
            job.held[priority] = job.held.get(priority, 0) + 1

    def ended(self, app_id: ApplicationId, priority: int) -> None:
        job = self._jobs.get(app_id)
        if job is None:
            return
        job.version += 1
        job.done_work += job.estimates.get(priority, 0.0)
        left = job.held.get(priority, 0) - 1
        if left > 0:
            job.held[priority] = left
        else:
            job.held.pop(priority, None)

    def estimate(self, app_id: ApplicationId, priority: int) -> float | None:
        job = self._jobs.get(app_id)
        return job.estimates.get(priority) if job is not None else None

    def set_estimate(self, app_id: ApplicationId, priority: int, estimate_s: float | None) -> None:
        job = self.of(app_id)
        job.version += 1
        job.told_facts = None
        if estimate_s is None or not 0.0 <= estimate_s < math.inf:
            job.estimates.pop(priority, None)
        elif priority in job.estimates or len(job.estimates) < _PRIORITIES_MAX:
            job.estimates[priority] = estimate_s

    def facts(self, app: AppView) -> JobFacts:
        """Return what is left of it, as its master says or as far as it has asked.

        In the latter case a task that runs counts as if it had just begun. The critical path is then one task of each
        priority after the other, as nobody says which stages wait for which.
        """
        job, attempt = self._jobs.get(app.id), app.attempt
        if job is None:
            return self._facts(Job(), app)
        told = job.facts_as_told(attempt)
        if told is not None:
            return told
        at = (job.version, attempt, attempt.asks.version if attempt is not None else 0)
        if job.facts_at != at:
            job.facts, job.facts_at = self._facts(job, app), at
        return job.facts

    @staticmethod
    def _facts(job: Job, app: AppView) -> JobFacts:
        mean = job.mean_estimate()
        pending = app.attempt.asks.pending if app.attempt is not None else 0
        tasks = pending + sum(job.held.values()) + sum(job.elsewhere.values())
        if mean is None:
            return JobFacts(None, tasks)
        stages = job.held.keys() | job.elsewhere.keys()
        known = chain(job.held.items(), job.elsewhere.items())
        work = sum([count * job.estimates.get(priority, mean) for priority, count in known])
        if pending and app.attempt is not None:
            looked_at = list(islice(filter(_is_pending, app.attempt.asks), _ASKS_LOOKED_AT))
            seen = sum(ask.pending for ask in looked_at)
            asked = sum([ask.pending * job.estimates.get(ask.key[0], mean) for ask in looked_at])
            work += asked * pending / max(1, seen)
            stages.update(ask.key[0] for ask in looked_at)
        return JobFacts(work, tasks, sum([job.estimates.get(priority, mean) for priority in sorted(stages)]))


def _is_pending(ask: Ask) -> bool:
    return ask.pending > 0
