"""Expected starts where masters let containers run several tasks, one after the other.

A node takes each container that waits for one that runs as long as those before it did: with all the tasks that they
had. Such a master gives its tasks to whichever container is free, so that what waits runs fewer, or none at all: what a
node expects is the longest that it can be. And no container is wanted for longer than those that the job has need for
the rest of its stage.
"""

from collections import Counter
from typing import Any, Final

from rm.cluster import Cluster
from yaqd.model import ApplicationAttemptId, ContainerId

#: containers that run so many times as long as a task run more than one
_SEVERAL: Final = 1.5


class Reuse:
    """Completes the asks and waiting containers of one explanation."""

    def __init__(
        self, cluster: Cluster, attempt_id: ApplicationAttemptId, waiting: list[dict[str, Any]], sent: Counter[int]
    ) -> None:
        """`waiting`: those that are told of; `sent`: by priority, how many wait in all."""
        self._cluster = cluster
        self._facts = cluster.scheduler.facts
        self._attempt_id = attempt_id
        self._waiting = waiting
        self._sent = sent
        self._seen: dict[tuple[ApplicationAttemptId, int], bool] = {}

    def complete(self, asks: list[dict[str, Any]]) -> None:
        """Add to each ask how long one task runs, as the master says (`taskS`).

        `isAtMost` says that what is expected is no more than a bound.
        """
        for ask in asks:
            stage = self._facts.stage_told(self._attempt_id, ask["priority"])
            ask["taskS"] = stage.task_s if stage is not None else None
            self._bound(ask, "shortestWaitS", self._runs_several(self._attempt_id, ask["priority"]))
        for entry in self._waiting:
            self._bound(entry, "expectedStartInS", any(self._may_run_less(name) for name in self._until(entry)))

    @staticmethod
    def _until(entry: dict[str, Any]) -> list[str]:
        return [*(entry["behind"] or ()), entry["container"]]

    def _bound(self, entry: dict[str, Any], what: str, is_at_most: bool) -> None:
        entry["isAtMost"] = is_at_most and entry[what] is not None
        left_s = self._left_s(entry["priority"]) if entry["isAtMost"] else None
        if left_s is not None:
            entry[what] = round(min(entry[what], left_s), 3)

    def _may_run_less(self, name: str) -> bool:
        container = self._cluster.containers.get(ContainerId.parse(name))
        return container is not None and self._runs_several(container.attempt.id, container.allocation.priority)

    def _runs_several(self, attempt_id: ApplicationAttemptId, priority: int) -> bool:
        """As far as was seen of that stage: containers run for longer than its tasks take."""
        key = attempt_id, priority
        if key not in self._seen:
            stage = self._facts.stage_told(attempt_id, priority)
            runs_s = self._facts.estimate(attempt_id.application_id, priority)
            task_s = stage.task_s if stage is not None else None
            self._seen[key] = runs_s is not None and task_s is not None and runs_s > _SEVERAL * task_s
        return self._seen[key]

    def _left_s(self, priority: int) -> float | None:
        """How long the containers that run now need for the rest of the stage; None: none runs, or nobody knows."""
        stage = self._facts.stage_told(self._attempt_id, priority)
        running = self._facts.held(self._attempt_id.application_id).get(priority, 0) - self._sent[priority]
        if stage is None or stage.task_s is None or running <= 0:
            return None
        work_s = stage.work_s if stage.work_s is not None else stage.tasks * stage.task_s
        return work_s / running + stage.task_s  # they do not end all at once
