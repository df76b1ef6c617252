"""What the queueing policies know of a task and of its job: values.

Times are seconds. Points in time are all of one clock, which one does not matter as long as it is the same for what is
compared. An estimate that is None is no finite one: such a task counts as never ending, so that nothing is made to
wait for its end alone.
"""

from math import inf

from yaqd.model import ApplicationId, ContainerId, Resource
from yaqd.model.values import value


@value()
class TaskFacts:
    """What a task brings along when it comes to a node."""

    job: ApplicationId
    user: str = ""
    #: full path of the leaf queue that pays for it
    queue: str = ""
    #: when its job was submitted
    job_arrival: float = 0.0
    #: how long it will run, s
    estimate: float | None = None
    #: the ask's; tells a job's stages apart
    priority: int = 0
    #: how long it had waited elsewhere, at nodes that gave it up again, before it came, s
    waited_s: float = 0.0
    #: how long it may wait at its node, s: its master takes it for running
    most_wait_s: float = inf


@value()
class JobFacts:
    """What is left of a job, as of the last report."""

    #: sum of the remaining durations of its tasks that are not over, s; None when nobody knows
    remaining_work: float | None = None
    #: tasks that are not over; None when nobody knows
    remaining_tasks: int | None = None
    #: the longest chain of tasks still to run one after the other, s; None when nobody knows
    critical_path: float | None = None


@value()
class QueuedTask:
    """A task that waits at a node."""

    container_id: ContainerId
    resource: Resource
    facts: TaskFacts
    #: since when it waits, other nodes that gave it up counted
    since: float
    #: its place in line among groups that take turns (`Ordering.passed`); None: as it came
    turn: float | None = None
    #: since when it waits here; None: all the time
    came: float | None = None


@value()
class RunningTask:
    """A task that holds resources of a node."""

    container_id: ContainerId
    resource: Resource
    facts: TaskFacts
    #: since when it runs
    since: float

    def remaining(self, now: float, *, overrun: float = 3.0, grace_s: float = 10.0) -> float | None:
        """Return seconds until it ends; None when it has no finite estimate or has run `overrun` times as long as that,
        and `grace_s` longer: what a start takes, or a busy disk, says nothing about a task of a second.

        One that has overrun its estimate by less is taken for about to end.
        """
        estimate = self.facts.estimate
        if estimate is None or not estimate >= 0.0:
            return None
        ran = max(0.0, now - self.since)
        return max(0.0, estimate - ran) if ran <= max(overrun * estimate, estimate + grace_s) else None
