"""Tells the ResourceManager, and nodes that it tells nothing, what is left of the job, in an extension field.

A ResourceManager or node that does not know the field skips it. What is left changes all the time while tasks run: it
is told anew when a task began or ended, and no more often than somebody could make use of it. How many containers wait
for the ResourceManager's word is told at once.
"""

import math
from collections.abc import Callable
from typing import Final

from tez_adapter.core.machine import JobMachine
from yaqd.model import ContainerId
from yaqd.policies.queueing.left import STAGES_MAX
from yaqd.policies.queueing.limits import LONGEST_S
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as pb

#: what was worked out so lately is good enough, s
_GOOD_FOR_S: Final = 0.1


class WorkLeft:
    def __init__(
        self, machine: JobMachine, clock: Callable[[], float], id_of: Callable[[str], ContainerId | None]
    ) -> None:
        """`clock`: the one that the machine is told the time by; `id_of`: a container by the machine's
        name for it, as long as it is not known to be over."""
        self._machine = machine
        self._id_of = id_of
        self._clock = clock
        self._message = pb.JobLeft()
        self._made_at = -math.inf
        #: tasks that are done and that run, by vertex, when the ResourceManager was told; None: it is to be told
        self._told: tuple[tuple[int, int], ...] | None = None
        self._told_at = -math.inf
        #: containers that never had a task, of which the ResourceManager was told last
        self._without_task: list[ContainerId] = []
        #: and of which it is to be told
        self._untold: list[ContainerId] = []
        #: containers that wait for its word, as it was told last; and where some did, how many orders had been heard
        self._told_idle = (0, 0)

    def news(self) -> pb.JobLeft | None:
        """Return the news for the ResourceManager, from now on taken as told; None: nothing has changed since."""
        now = self._clock()
        self._untold += filter(None, map(self._id_of, self._machine.held.take_without_task()))
        count = self._machine.held.undecided()
        # an order that leaves some idle may not have done what the ResourceManager takes it for
        idle = (count, self._machine.held.orders.heard if count else 0)
        is_urgent = bool(self._untold) or count != self._told_idle[0]
        if not is_urgent and self._told is not None and now - self._told_at < _GOOD_FOR_S:
            return None
        state = tuple((vertex.done, len(vertex.running)) for vertex in self._machine.vertices)
        if not is_urgent and (state, idle) == (self._told, self._told_idle):
            return None
        self._told, self._told_at, self._told_idle = state, now, idle
        self._make(now)
        message = pb.JobLeft()
        message.CopyFrom(self._message)
        message.idle = count
        message.without_task.extend(map(convert.container_id_pb, self._untold))
        self._without_task, self._untold = self._untold, []
        return message

    def forget(self) -> None:
        """Forget what was told: the ResourceManager may not have heard it."""
        self._told = None
        self._untold[:0] = self._without_task
        self._without_task = []

    def latest(self) -> pb.JobLeft:
        """Return what is left, for a node."""
        now = self._clock()
        if now - self._made_at >= _GOOD_FOR_S:
            self._make(now)
        return self._message

    def _make(self, now: float) -> None:
        self._message, self._made_at = pb.JobLeft(), now
        for stage in self._machine.left(now)[:STAGES_MAX]:
            entry = self._message.stages.add(
                priority=stage.priority, tasks=stage.tasks, after=stage.after, running=stage.running
            )
            entry.name = stage.name.encode(errors="replace").decode()
            if stage.task_s is not None:
                entry.task_ms = _ms(stage.task_s)
            if stage.work_s is not None:
                entry.work_ms = _ms(stage.work_s)
            if stage.longest_s is not None:
                entry.longest_ms = _ms(stage.longest_s)


def _ms(seconds: float) -> int:
    return round(1000 * min(seconds, LONGEST_S))
