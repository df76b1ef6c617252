"""One leaf queue's turns by stages: what is decided for it, and what was decided last."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rm.scheduler.asks.jobs import Jobs, Turn
from rm.scheduler.stages.sketch import Sketch
from rm.scheduler.view.records import AppView, AttemptView, QueueView
from yaqd.model import ApplicationId
from yaqd.model.stages import StagesOrder
from yaqd.policies.clotho.facts import Scene, StageChoice
from yaqd.policies.clotho.heuristics import WeightedFair
from yaqd.policies.clotho.known import KnownJobs
from yaqd.policies.clotho.learned import Learned
from yaqd.policies.clotho.network import Scores
from yaqd.policies.clotho.policies import Chooser

#: a container that was given up for a job is kept for it so long, s
_KEPT_S: Final = 5.0
#: choices of one decision, and how many jobs they may weigh together; the next decision makes more
_CHOICES_MAX: Final = 64
_CHOICES_LEAST: Final = 8
_WEIGHED_MAX: Final = 8_000


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, in words of applications. `source`: whose containers they were; None: they were free."""

    source: ApplicationId | None
    app_id: ApplicationId
    priority: int
    containers: int
    limit: int
    score: float


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision, as it can be shown."""

    #: scheduler's seconds
    at: float
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class Weighed:
    """The applications of a queue beside each other."""

    sketches: list[Sketch]
    #: of stages of all applications, end to end; None: the policy does not score
    scores: Scores | None
    #: what weighted fair sharing would give each, and whom it would serve next
    fair_limits: list[float]
    fair_choice: StageChoice | None
    decided: Decided


class LeafStages:
    """Decides for one leaf queue."""

    def __init__(self, leaf: QueueView, chooser: Chooser, number: Callable[[], int]) -> None:
        """`number` numbers orders, all queues together."""
        self.leaf = leaf
        self.chooser: Final = chooser
        self._number = number
        self.decided_at = -math.inf
        self.decided = Decided(-math.inf)
        self.sketches: dict[ApplicationId, Sketch] = {}
        #: the most containers that each should have, as was chosen last
        self.limits: dict[ApplicationId, int] = {}
        #: whose masters were told that the queue decides
        self.told: set[ApplicationId] = set()
        #: of containers that others give up
        self._promises: list[Turn] = []
        self._slots = 1
        self._unknown_s = 1.0
        self._move_s = 0.0
        self._choices: list[Choice] = []
        #: how many more this decision may make
        self._left = 0
        #: the last decision made as many choices as it may
        self.has_more = False

    def sketch(self, app: AppView) -> Sketch:
        """Return what is known of an application."""
        found = self.sketches.get(app.id)
        if found is None or found.app is not app:
            found = self.sketches[app.id] = Sketch(app)
        return found

    def forget(self, app_id: ApplicationId) -> None:
        """Forget an attempt that is over, or has gone to another queue."""
        self.sketches.pop(app_id, None)
        self.limits.pop(app_id, None)
        self.told.discard(app_id)
        self._promises = [one for one in self._promises if one.app_id != app_id]

    def looked(self, jobs: Jobs) -> list[Sketch]:
        """Return the applications with something left to do, the oldest first."""
        apps = sorted(self.leaf.applications.values(), key=lambda app: app.sequence)
        found = [self.sketch(app) for app in apps if app.attempt is not None and app.attempt.master is not None]
        for one in found:
            one.look(jobs)
            jobs.of(one.app.id).sent = one.sent
        return [one for one in found if one.facts is not None]

    # ---- what can be shown

    def weighed(self, jobs_left: Jobs) -> Weighed:
        """Return how the applications stand, and what would be chosen for one more container."""
        sketches = sorted((one.copied() for one in self.sketches.values()), key=lambda one: one.app.sequence)
        for one in sketches:
            one.look(jobs_left)
        sketches = [one for one in sketches if one.facts is not None]
        jobs = tuple(one.facts for one in sketches if one.facts is not None)
        scene = Scene(jobs, self._slots, self._move_s, -1, 1, self._unknown_s)
        fair = WeightedFair()
        policy = self.chooser.policy
        scores = policy.scores(scene) if isinstance(policy, Learned) and jobs else None
        limits = fair.limits(scene, KnownJobs().known(scene)) if jobs else []
        return Weighed(sketches, scores, limits, fair.choose(scene) if jobs else None, self.decided)

    # ---- a decision

    def decide(self, jobs: Jobs, free: int, move_s: float, now: float) -> list[tuple[AttemptView, StagesOrder]]:
        """Decide who gets what is free, and where idle containers go on. Return the orders for masters that have some.

        `free`: how many more containers fit.
        """
        self.decided_at, self.has_more = now, False
        if free <= 0 and not any(one.idle for one in self.sketches.values()):
            return []
        self._choices = []
        self._promises = [turn for turn in self._promises if turn.until > now and turn.left > 0]
        sketches = self.looked(jobs)
        self._left = max(_CHOICES_LEAST, min(_CHOICES_MAX, _WEIGHED_MAX // max(1, len(sketches))))
        self._slots = max(1, sum(one.containers + one.leaving for one in sketches) + free)
        self._unknown_s, self._move_s = jobs.typical_s or 1.0, move_s
        self._count_promises(sketches)
        turns = list(self._promises)
        self._give_free(sketches, free - sum(turn.left for turn in turns), turns)
        orders = [self._place_idle(sketches, one, jobs, now) for one in sketches if one.idle]
        self._take_turns(jobs, turns)
        self.decided = Decided(now, tuple(self._choices))
        for one in sketches:
            one.forget_plans()
        self.has_more = self._left <= 0
        return [order for order in orders if order is not None]

    def _count_promises(self, sketches: list[Sketch]) -> None:
        by_id = {one.app.id: one for one in sketches}
        for turn in list(self._promises):
            sketch = by_id.get(turn.app_id)
            if sketch is None or turn.priority not in sketch.priorities:
                self._promises.remove(turn)
            else:
                sketch.claims(sketch.priorities.index(turn.priority), turn.left)

    def _give_free(self, sketches: list[Sketch], free: int, turns: list[Turn]) -> None:
        while free > 0 and (choice := self._chosen(sketches, -1, free)) is not None:
            sketch = sketches[choice.job]
            sketch.claims(choice.stage, choice.containers)
            turns.append(Turn(sketch.app.id, sketch.priorities[choice.stage], choice.containers))
            free -= choice.containers

    def _take_turns(self, jobs: Jobs, turns: list[Turn]) -> None:
        by_app: dict[ApplicationId, list[Turn]] = {}
        for place, turn in enumerate(turns):
            turn.place = place
            by_app.setdefault(turn.app_id, []).append(turn)
        for app in self.leaf.applications.values():
            if app.attempt is not None:
                jobs.take_turns(app.attempt, by_app.get(app.id, []))

    def _place_idle(
        self, sketches: list[Sketch], own: Sketch, jobs: Jobs, now: float
    ) -> tuple[AttemptView, StagesOrder] | None:
        """Say where an application's idle containers go on. None: they stay as they are."""
        place, shares, given_up = sketches.index(own), list[tuple[int, int]](), 0
        # a master that tells of the same containers again gives up no more than it has
        most = own.containers + own.leaving - sum(t.left for t in self._promises if t.source == own.app.id)
        while own.idle and given_up < most and (choice := self._chosen(sketches, place, own.idle)) is not None:
            sketch, many = sketches[choice.job], choice.containers
            priority = sketch.priorities[choice.stage]
            if sketch is own:
                own.goes_on(choice.stage, many)
                shares.append((priority, many))
                sent = jobs.of(own.app.id).sent
                sent[priority] = sent.get(priority, 0) + many
                continue
            own.loses(many)
            sketch.claims(choice.stage, many)
            self._promises.append(Turn(sketch.app.id, priority, many, now + _KEPT_S, own.app.id))
            given_up += many
        if own.app.attempt is None or not (shares or given_up):
            return None
        limit = own.containers if given_up else None
        return own.app.attempt, StagesOrder(self._number(), limit=limit, shares=tuple(shares))

    def _chosen(self, sketches: list[Sketch], source: int, free: int) -> StageChoice | None:
        """Return what the policy chooses, where that can be."""
        if self._left <= 0:
            return None
        self._left -= 1
        seen = (one.facts if place == source else one.asked for place, one in enumerate(sketches))
        jobs = tuple(facts for facts in seen if facts is not None)
        choice = self.chooser.choose(Scene(jobs, self._slots, self._move_s, source, free, self._unknown_s))
        if choice is None:
            return None
        sketch = sketches[choice.job]
        self.limits[sketch.app.id] = choice.limit
        whose = sketches[source].app.id if source >= 0 else None
        priority = sketch.priorities[choice.stage]
        self._choices.append(
            Choice(whose, sketch.app.id, priority, choice.containers, choice.limit, float(choice.score))
        )
        return choice
