"""Why an application has its containers where its queue decides by stages: what was weighed, and what was chosen."""

import math
from typing import Any, Final

import numpy as np

from rm.applications.records import Application
from rm.cluster import Cluster
from rm.scheduler.stages.leaf import LeafStages, Weighed
from rm.scheduler.stages.sketch import Sketch
from yaqd.policies.clotho.learned import Learned

#: of one answer
_STAGES_MAX: Final = 200
_CHOICES_MAX: Final = 20


class ExplainStages:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def application(self, app: Application) -> dict[str, Any] | None:
        """Return what its queue weighs; None: it does not decide by stages, or knows of none."""
        facts = self._cluster.scheduler.facts
        scheduled = facts.application(app.id)
        found = facts.stages_of(scheduled.leaf) if scheduled is not None else None
        if found is None:
            return None
        leaf, weighed = found
        place = next((at for at, one in enumerate(weighed.sketches) if one.app is scheduled), None)
        if place is None:
            return None
        return {
            **self._told(leaf, weighed, place),
            "stages": [{**one, "name": self._name(weighed, place, one["priority"])} for one in _stages(weighed, place)],
            "choices": _choices(weighed, weighed.sketches[place]),
        }

    def _name(self, weighed: Weighed, place: int, priority: int) -> str | None:
        """Return what its master calls a stage; None: it tells of none."""
        attempt = weighed.sketches[place].app.attempt
        told = self._cluster.scheduler.facts.stage_told(attempt.id, priority) if attempt is not None else None
        return told.name or None if told is not None else None

    def _told(self, leaf: LeafStages, weighed: Weighed, place: int) -> dict[str, Any]:
        own = weighed.sketches[place]
        facts = self._cluster.scheduler.facts
        policy, fair = leaf.chooser.policy, weighed.fair_choice
        at = weighed.decided.at
        return {
            "policy": leaf.chooser.name,
            #: how often weighted fair sharing decided instead, by reason
            "fallbacks": dict(policy.fallbacks) if isinstance(policy, Learned) else {},
            "decidedAgoS": round(self._cluster.clock.now() - at, 3) if math.isfinite(at) else None,
            "containers": sum(facts.held(own.app.id).values()),
            "idle": own.idle,
            #: as was chosen last; None: it was not chosen yet
            "limit": leaf.limits.get(own.app.id),
            "learnedLimit": _limit(weighed, place),
            "jobs": len(weighed.sketches),
            "weightedFair": {
                "limit": int(weighed.fair_limits[place]),
                #: whom it would serve next
                "application": str(weighed.sketches[fair.job].app.id) if fair is not None else None,
                "priority": weighed.sketches[fair.job].priorities[fair.stage] if fair is not None else None,
            },
        }


def _limit(weighed: Weighed, place: int) -> int | None:
    said = float(weighed.scores.limit[place]) if weighed.scores is not None else math.nan
    return int(said) if math.isfinite(said) else None


def _stages(weighed: Weighed, place: int) -> list[dict[str, Any]]:
    own, scores = weighed.sketches[place], weighed.scores
    facts = own.facts
    assert facts is not None
    said: dict[int, float] = {}
    if scores is not None:
        for at in np.flatnonzero(scores.job == place):
            said[int(scores.stage[at])] = float(scores.score[at])
    return [
        {
            "priority": priority,
            "tasks": int(facts.unfinished[stage]),
            "running": int(facts.running[stage]),
            "coming": int(facts.coming[stage]),
            "taskS": _finite(float(facts.duration_s[stage])),
            "open": bool(facts.is_open[stage]),
            #: None: it may not be chosen now, or the policy does not score
            "score": _finite(said.get(stage, math.nan)),
        }
        for stage, priority in list(enumerate(own.priorities))[:_STAGES_MAX]
        if facts.unfinished[stage]
    ]


def _choices(weighed: Weighed, own: Sketch) -> list[dict[str, Any]]:
    """Return what was chosen in the last decision that is about the application."""
    about = [one for one in weighed.decided.choices if own.app.id in (one.app_id, one.source)]
    return [
        {
            "application": str(one.app_id),
            "source": str(one.source) if one.source is not None else None,
            "priority": one.priority,
            "containers": one.containers,
            "limit": one.limit,
            "score": _finite(one.score),
        }
        for one in about[:_CHOICES_MAX]
    ]


def _finite(number: float) -> float | None:
    return round(number, 4) if math.isfinite(number) else None
