"""What became of containers: how long they should have waited and run, and how long they did.

Kept for the last containers of the last applications, so that `yaq explain` can say how right the estimates were also
when an application is over.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from rm.container import RmContainer
from yaqd.model import ApplicationId

_PER_APPLICATION: Final = 200
_APPLICATIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class TaskRecord:
    container: str
    node: str
    priority: int
    #: as known when it ended, before it told; None: no end was known
    estimate_s: float | None
    #: where it should have waited; None: it was given free room
    expected_wait_s: float | None
    rule: str
    queued_s: float
    run_s: float

    def as_json(self) -> dict[str, Any]:
        return {
            "container": self.container,
            "node": self.node,
            "priority": self.priority,
            "estimateS": self.estimate_s,
            "ranS": round(self.run_s, 3),
            "expectedWaitS": None if self.expected_wait_s is None else round(self.expected_wait_s, 3),
            "waitedS": round(self.queued_s, 3),
            "rule": self.rule,
        }


class TaskRecords:
    def __init__(self) -> None:
        self._by_app: dict[ApplicationId, deque[TaskRecord]] = {}

    def of(self, app_id: ApplicationId) -> list[TaskRecord]:
        """Oldest first."""
        return list(self._by_app.get(app_id, ()))

    def note(self, container: RmContainer, estimate_s: float | None, queued_s: float, run_s: float) -> None:
        app_id, allocation = container.attempt.app.id, container.allocation
        records = self._by_app.pop(app_id, None)
        if records is None:
            records = deque(maxlen=_PER_APPLICATION)
        self._by_app[app_id] = records
        if len(self._by_app) > _APPLICATIONS:
            del self._by_app[next(iter(self._by_app))]
        place = allocation.queued
        records.append(
            TaskRecord(
                str(container.id),
                str(container.node_id),
                allocation.priority,
                estimate_s,
                place.expected_wait_s if place is not None else None,
                allocation.reason,
                queued_s,
                run_s,
            )
        )


def accuracy(records: list[TaskRecord]) -> dict[str, Any]:
    """How far off estimates and waits were, in the mean over those that had one."""
    ran = [(r.estimate_s, r.run_s) for r in records if r.estimate_s is not None]
    waited = [(r.expected_wait_s, r.queued_s) for r in records if r.expected_wait_s is not None]
    return {
        "tasks": len(records),
        "withEstimate": len(ran),
        "meanEstimateS": _mean([estimate for estimate, _ in ran]),
        "meanRanS": _mean([seconds for _, seconds in ran]),
        "meanErrorS": _mean([abs(estimate - seconds) for estimate, seconds in ran]),
        "withWait": len(waited),
        "meanExpectedWaitS": _mean([wait for wait, _ in waited]),
        "meanWaitedS": _mean([seconds for _, seconds in waited]),
        "meanWaitErrorS": _mean([abs(wait - seconds) for wait, seconds in waited]),
    }


def _mean(numbers: list[float]) -> float | None:
    return round(sum(numbers) / len(numbers), 3) if numbers else None
