"""An application's stages as a policy is told of them, and as they change while it decides.

A master that tells of its stages is believed as far as that can be. Of others each priority that is asked for is a
stage.
"""

from copy import copy, deepcopy
from dataclasses import replace
from itertools import islice
from math import nan
from typing import Final

import numpy as np

from rm.scheduler.asks.jobs import Job, Jobs
from rm.scheduler.view.records import AppView, AttemptView
from yaqd.policies.clotho.facts import StageJob
from yaqd.policies.clotho.told import ToldStages

#: asks of an attempt that are looked at
_ASKS_LOOKED_AT: Final = 1000


class Sketch:
    """What is known of one application, counted anew when something about it has changed."""

    def __init__(self, app: AppView) -> None:
        self.app = app
        self.stages = ToldStages()
        #: containers that wait at the master for word
        self.idle = 0
        #: those that were told to go, and have not gone
        self.leaving = 0
        #: without those that are leaving
        self.containers = 0
        #: by priority: containers given, or promised, that do not yet run anything as far as the master tells
        self.sent: dict[int, int] = {}
        self._coming: list[int] = []
        #: by stage: containers that its asks still want
        self._wanted: list[int] = []
        self._whole_s = nan
        self._made_of: object = None
        #: something is counted that is only planned
        self._is_planned = False
        self._facts: StageJob | None = None
        self._asked: StageJob | None = None

    @property
    def priorities(self) -> tuple[int, ...]:
        """Return the stages by the priority of their asks."""
        return self.stages.priorities

    def look(self, jobs: Jobs) -> None:
        """Count anew where something has changed."""
        attempt = self.app.attempt
        job = jobs.of(self.app.id)
        asked = attempt.asks.version if attempt is not None else 0
        if (attempt, job.version, asked, self.idle, self.leaving, job.sent) == self._made_of:
            return
        held = dict(jobs.held(self.app.id))
        pending = _pending(attempt)
        if attempt is not None and job.facts_as_told(attempt) is not None:
            self.stages.hear(job.told, job.estimates.get)
        else:
            self.stages.ask(pending, held, job.estimates.get)
        self._wanted = [pending.get(priority, 0) for priority in self.priorities]
        has = sum(held.values())
        running = self._cut_to(has)
        self.idle = max(0, min(self.idle, has - running))
        self.leaving = max(0, min(self.leaving, has - running - self.idle))
        self.containers = max(has - self.leaving, running + self.idle)
        self._coming = self._on_their_way(job, self.containers - running - self.idle)
        # the most that was ever left; what is not known now changes nothing
        self._whole_s = float(np.fmax(self._whole_s, self.stages.work_s()))
        self._made_of = (attempt, job.version, asked, self.idle, self.leaving, dict(self.sent))
        self._facts = self._asked = None

    def _cut_to(self, has: int) -> int:
        """Let no more tasks run than it has containers, whatever its master tells; return how many do."""
        left = has
        for at, many in enumerate(self.stages.running):
            self.stages.running[at] = min(many, left)
            left -= self.stages.running[at]
        return has - left

    def _on_their_way(self, job: Job, surplus: int) -> list[int]:
        """Count the containers on their way to each stage: of those sent, no more than run nothing."""
        coming = []
        for priority in self.priorities:
            many = min(job.sent.get(priority, 0), max(0, surplus))
            surplus -= many
            coming.append(many)
        self.sent = {priority: many for priority, many in zip(self.priorities, coming, strict=True) if many}
        return coming

    def copied(self) -> "Sketch":
        """Return a copy that may be looked at without a trace."""
        other = copy(self)
        other.stages = deepcopy(self.stages)
        return other

    # ---- while a policy decides

    @property
    def facts(self) -> StageJob | None:
        """Return what a policy is told; the same object while nothing changes. None: nothing is left to do."""
        if self._facts is None:
            self._facts = self.stages.facts(self._coming, self.containers, self.idle, self._whole_s)
        return self._facts

    @property
    def asked(self) -> StageJob | None:
        """Return the same for containers from elsewhere: they come for what is asked for, not for stages to come."""
        facts = self.facts
        if self._asked is None and facts is not None:
            wanted = np.maximum(0, np.array(self._wanted, dtype=np.int64))
            self._asked = facts if (wanted >= facts.unclaimed).all() else replace(facts, wanted=wanted)
        return self._asked

    def claims(self, stage: int, many: int) -> None:
        """Count containers that are about to come for a stage."""
        self._coming[stage] += many
        self._wanted[stage] -= many
        self.containers += many
        self._changes()

    def goes_on(self, stage: int, many: int) -> None:
        """Count idle containers that go on with a stage."""
        self.idle -= many
        self._coming[stage] += many
        self._changes()

    def loses(self, many: int) -> None:
        """Count idle containers that go to another job."""
        self.idle -= many
        self.leaving += many
        self.containers -= many
        self._changes()

    def _changes(self) -> None:
        self._is_planned, self._facts, self._asked = True, None, None

    def forget_plans(self) -> None:
        """Let the next look count anew what this decision has planned."""
        if self._is_planned:
            self._is_planned, self._made_of = False, None


def _pending(attempt: AttemptView | None) -> dict[int, int]:
    """Return the containers asked for, by priority."""
    pending: dict[int, int] = {}
    for ask in islice(attempt.asks, _ASKS_LOOKED_AT) if attempt is not None else ():
        if not ask.is_master:
            pending[ask.key[0]] = pending.get(ask.key[0], 0) + ask.pending
    return pending
