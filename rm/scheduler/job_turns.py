"""Applications of a leaf queue by how much is left of them: Yaq, section 3.4.1, global job reordering.

A leaf queue whose ordering policy is one of `yaqd.policies.queueing.job_order` serves its applications by their ranks.
These are worked out once in an interval, for those that wait; a newcomer gets a place among them at once. In between
they stand still, so that an event costs no more than with first in, first out. One whose master does not run yet comes
first: nothing else of it can. Priorities count before all ranks.
"""

import math
from bisect import bisect_left
from itertools import islice
from typing import TYPE_CHECKING, Final

from yaqd.model import ApplicationId
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.job_order import JobOrdering, WaitingJob

if TYPE_CHECKING:
    from rm.scheduler.view import AttemptView, ClusterView, QueueView

_INTERVAL_S: Final = 1.0
#: how long a task is taken to run where nothing at all has been seen to end, s: only its ratio to others counts
_TYPICAL_S: Final = 30.0
#: asks of one application that are looked at for how long it has waited
_ASKS_LOOKED_AT: Final = 64

_Key = tuple[bool, float, float, ApplicationId]


class JobTurns:
    def __init__(self, view: "ClusterView") -> None:
        self._view = view
        #: by leaf queue, the keys of those that waited, in order
        self._keys: dict[str, list[_Key]] = {}
        self._ranked_at = -math.inf

    def tick(self, now: float) -> None:
        """Rank everybody afresh if it is time, also where the clock has jumped."""
        if abs(now - self._ranked_at) < _INTERVAL_S:
            return
        self._ranked_at = now
        for leaf in self._view.queues.values():
            ordering = leaf.spec.job_order
            if ordering is not None and leaf.waiting:
                self._rank(leaf, ordering, now)
            else:
                self._keys.pop(leaf.path, None)

    def came(self, attempt: "AttemptView", now: float) -> None:
        """The attempt asks, maybe for the first time."""
        leaf = attempt.app.leaf
        ordering = leaf.spec.job_order
        if ordering is None or attempt.filed_shapes:
            return
        key = ordering.key(self._waiting(attempt, _TYPICAL_S), now)
        # between two of those that have whole numbers
        self._set(attempt, bisect_left(self._keys.get(leaf.path, []), key) - 0.5)

    def _rank(self, leaf: "QueueView", ordering: JobOrdering, now: float) -> None:
        attempts = [attempt for attempt in leaf.attempts.values() if attempt.filed_shapes]
        typical_s = self._typical_s(attempts)
        keyed = [(ordering.key(self._waiting(attempt, typical_s), now), attempt) for attempt in attempts]
        keyed.sort(key=lambda pair: pair[0])
        self._keys[leaf.path] = [key for key, _ in keyed]
        for place, (_, attempt) in enumerate(keyed):
            self._set(attempt, float(place))

    def _set(self, attempt: "AttemptView", rank: float) -> None:
        """The rank is part of where an attempt is filed."""
        has_no_master = attempt.app.containers == 0
        attempt.app.rank = -1.0 if has_no_master else rank
        if attempt.filed_shapes:
            self._view.file(attempt)

    def _waiting(self, attempt: "AttemptView", typical_s: float) -> WaitingJob:
        app = attempt.app
        queues = self._view.node_queues
        if queues is not None:
            facts, job = queues.jobs.facts(app), queues.jobs.of(app.id)
            done_s = job.done * (job.mean_estimate() or typical_s)
        else:
            facts, done_s = JobFacts(None, attempt.asks.pending + app.containers), 0.0
        left_s = facts.remaining_work
        if left_s is None:
            left_s = (facts.remaining_tasks or 0) * typical_s
            facts = JobFacts(left_s, facts.remaining_tasks, facts.critical_path)
        pending = [ask.waiting_since for ask in islice(attempt.asks, _ASKS_LOOKED_AT) if ask.pending]
        # each ask's time begins anew when it is given something: the latest is when the application was served last
        since = max(pending, default=math.inf)
        # nobody knows how wide it will run: its whole work stands for how long it takes
        return WaitingJob(app.id, float(app.sequence), since, facts, done_s + left_s)

    def _typical_s(self, attempts: "list[AttemptView]") -> float:
        """Of those applications of which something is known."""
        queues = self._view.node_queues
        if queues is None:
            return _TYPICAL_S
        means = [mean for a in attempts if (mean := queues.jobs.of(a.app.id).mean_estimate()) is not None]
        return sum(means) / len(means) if means else _TYPICAL_S
