"""What programs add to waits whose turn has come and whose start is held (`nm.resources.start_pace`)."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final

from yaqd.model import ContainerId
from yaqd.model.values import value
from yaqd.policies.queueing.facts import RunningTask


@value()
class HeldStarts:
    #: until their programs start, s; earliest first
    left_s: Mapping[ContainerId, float] = field(default_factory=dict)
    #: how long one is held whose turn comes now, s
    usual_s: float = 0.0

    def begins(self, turn_s: float) -> float:
        """Returns when the program starts of a container that has its turn at `turn_s`; both are seconds from now.

        It is held behind those that are held already. Later ones may be held too, but of that nobody knows anything:
        the processors may have become idle by then.
        """
        if not self.left_s:
            return turn_s
        return max(turn_s, min(turn_s, max(self.left_s.values())) + self.usual_s)

    def put_off(self, task: RunningTask, now: float) -> RunningTask:
        """Returns the task with all of its time before it, from its start on, if it is held."""
        left_s, estimate = self.left_s.get(task.container_id), task.facts.estimate
        if left_s is None or estimate is None or not estimate >= 0.0:
            return task
        return replace(task, facts=replace(task.facts, estimate=estimate + left_s), since=now)


NONE_HELD: Final = HeldStarts()
