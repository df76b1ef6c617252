"""Which task of a node's queue starts next: a strategy, guarded against starvation.

Yaq, section 3.3, Algorithm 3: a task that has waited longer than min(ST, ST_r x its duration) is starved and goes
before all that are not; among the starved the earlier job goes first, among the others the strategy decides; ties go to
the task that waits longer. What is still equal keeps the order in which the queue was given: a tie costs nothing.
What is left of a job is compared in steps (`steps.step`), so what is nearly equal is a tie too.

Reordering across capacity queues or users gives resources to others than the scheduler meant to have them (section
3.4.2). With the scopes `queue` and `user` these take turns in the order in which their tasks came, so that each starts
as many as if nobody reordered anything, and the rule above holds inside them only.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from typing import Final

from yaqd.model import ApplicationId, Resource
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import JobFacts, QueuedTask, TaskFacts
from yaqd.policies.queueing.steps import step
from yaqd.policies.registry import PolicyTable

#: what a strategy is: the rank of a task, the smallest first; inf is last, and NaN counts as inf
TaskRank = Callable[[QueuedTask, JobFacts], float]

_UNKNOWN: Final = JobFacts()
_PACK: Final = "+pack"


def _remaining_work(task: QueuedTask, job: JobFacts) -> float:
    work = step(job.remaining_work)
    # where only their number is known, its tasks are taken for as long as this one
    if work < inf:
        return work
    tasks, runs = limits.duration(job.remaining_tasks), limits.duration(task.facts.estimate)
    return step(tasks * runs) if tasks < inf and runs < inf else inf


def _remaining_tasks(task: QueuedTask, job: JobFacts) -> float:
    return limits.duration(job.remaining_tasks)


def _shortest_task(task: QueuedTask, job: JobFacts) -> float:
    # to the millisecond: tasks are many and short, and equal ones cost each other little
    return limits.duration(task.facts.estimate)


def _earliest_job(task: QueuedTask, job: JobFacts) -> float:
    return task.facts.job_arrival


def _longest_wait(task: QueuedTask, job: JobFacts) -> float:
    return task.since


def _critical_path(task: QueuedTask, job: JobFacts) -> float:
    return step(job.critical_path)


ORDERS: Final[PolicyTable[TaskRank]] = PolicyTable(
    "order",
    {
        "srjf": _remaining_work,
        "lrtf": _remaining_tasks,
        "stf": _shortest_task,
        "ejf": _earliest_job,
        "fifo": _longest_wait,
        "cpath": _critical_path,
    },
    instead="fifo",
)


#: those of the shipped ones that need not know the job
_JOB_BLIND: Final = (_shortest_task, _earliest_job, _longest_wait)


class Scope(StrEnum):
    """Among whose tasks the strategy chooses."""

    ALL = "all"
    #: of the capacity queue whose turn it is
    QUEUE = "queue"
    #: of the user whose turn it is
    USER = "user"


@dataclass(frozen=True, slots=True)
class Ordering:
    """A node queue's order: a value, the same object for every node."""

    #: a name in ORDERS or of an entry point in `yaqd.order`, `+pack` behind it sets `packing`; another name raises
    #: UnknownPolicy
    strategy: str = "srjf"
    #: ST: a task that has waited longer is starved, s; inf turns the guard off
    starve_s: float = 10.0
    #: ST_r: and so is one that has waited longer than this many times its duration
    starve_ratio: float = 10.0
    scope: str = Scope.ALL
    #: lets a task that fits pass a better one that does not, until that one is starved
    packing: bool = False
    #: of single leaf queues, by path, in place of this one where it is such a queue's turn (scope `queue`)
    leaves: tuple[tuple[str, "Ordering"], ...] = ()
    _rank: TaskRank = field(init=False, repr=False, compare=False)
    #: need the job not be looked up?
    _is_job_blind: bool = field(init=False, repr=False, compare=False)
    _of_leaf: Mapping[str, "Ordering"] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        name = self.strategy.removesuffix(_PACK)
        if name != self.strategy:
            object.__setattr__(self, "strategy", name)
            object.__setattr__(self, "packing", True)
        object.__setattr__(self, "scope", Scope(self.scope))
        object.__setattr__(self, "starve_s", limits.threshold(self.starve_s))
        object.__setattr__(self, "starve_ratio", limits.threshold(self.starve_ratio))
        object.__setattr__(self, "_rank", ORDERS[self.strategy])
        object.__setattr__(self, "_is_job_blind", any(self._rank is rank for rank in _JOB_BLIND))
        object.__setattr__(self, "_of_leaf", dict(self.leaves) if self.scope is Scope.QUEUE else {})

    @property
    def name(self) -> str:
        """What makes the same strategy of an Ordering again."""
        return self.strategy + _PACK if self.packing else self.strategy

    def pick(
        self,
        queue: Iterable[QueuedTask],
        jobs: Mapping[ApplicationId, JobFacts],
        now: float,
        free: Resource | None = None,
    ) -> QueuedTask:
        """Return the task that starts next, in one pass; ValueError when there is none.

        With `free`, what the node has free, and `packing`: the best of those that fit where the best of all does not
        and is not starved, so that nobody is passed for longer than ST.
        """
        mine = self._turn(queue)
        order = self._of(mine[0].facts) if mine and self._of_leaf else self
        best = order._first(mine, jobs, now)
        if order.packing and free is not None and not best.resource.fits_in(free) and not order.is_starved(best, now):
            fitting = [task for task in mine if task.resource.fits_in(free)]
            return order._first(fitting, jobs, now) if fitting else best
        return best

    def _of(self, facts: TaskFacts) -> "Ordering":
        """What holds in the task's leaf queue."""
        return self._of_leaf.get(facts.queue, self)

    def sorted(
        self, queue: Iterable[QueuedTask], jobs: Mapping[ApplicationId, JobFacts], now: float
    ) -> list[QueuedTask]:
        """Return all of them in the order in which they would start if they all stood there until then."""
        of_leaf = self._of_leaf

        def key(task: QueuedTask) -> tuple[bool, float, float]:
            return (of_leaf.get(task.facts.queue, self) if of_leaf else self)._key(task, jobs, now)

        tasks = list(queue)
        ordered = sorted(tasks, key=key)
        return ordered if self.scope is Scope.ALL else self._by_turns(tasks, ordered)

    def is_starved(self, task: QueuedTask, now: float) -> bool:
        """Algorithm 3, isStarved. A clock that went backwards starves nobody."""
        waited = now - task.since
        if waited > self.starve_s:
            return True
        estimate = task.facts.estimate
        # an estimate that says nothing, or nothing takes no time, starves nobody earlier
        return estimate is not None and estimate > 0.0 and waited > estimate * self.starve_ratio

    def passed(self, queue: Iterable[QueuedTask], started: QueuedTask) -> QueuedTask | None:
        """Return the task of those that still wait whose turn `started` has taken, now with the turn of `started`; the
        owner of the queue puts it in its place. None where `started` took its own turn, or nobody takes turns.

        Without this the group of a task that its own group keeps back would start everything it has before any other.
        """
        if self.scope is Scope.ALL:
            return None
        group_of = _GROUPS[self.scope]
        group = group_of(started.facts)
        oldest = min((task for task in queue if group_of(task.facts) == group), key=_turn_of, default=None)
        if oldest is None or _turn_of(started) <= _turn_of(oldest):
            return None
        return replace(oldest, turn=_turn_of(started))

    # In one turn ------------------------------------------------------------------------------------------------------

    def _key(self, task: QueuedTask, jobs: Mapping[ApplicationId, JobFacts], now: float) -> tuple[bool, float, float]:
        """Not starved, rank, since; written out because every node asks for it at every heartbeat."""
        facts, since = task.facts, task.since
        waited, estimate = now - since, facts.estimate
        if waited > self.starve_s or (
            estimate is not None and estimate > 0.0 and waited > estimate * self.starve_ratio
        ):
            return False, limits.rank(facts.job_arrival), since
        return True, limits.rank(self._rank(task, jobs.get(facts.job, _UNKNOWN))), since

    def _first(self, queue: Iterable[QueuedTask], jobs: Mapping[ApplicationId, JobFacts], now: float) -> QueuedTask:
        """The smallest by (not starved, rank, since), written out because it runs at each launch."""
        starve_s, ratio, rank_of = self.starve_s, self.starve_ratio, self._rank
        best: QueuedTask | None = None
        best_rank, best_since, best_starved = inf, inf, False
        job: ApplicationId | None = None
        job_facts = _UNKNOWN
        for task in queue:
            facts, since = task.facts, task.since
            waited, estimate = now - since, facts.estimate
            if waited > starve_s or (estimate is not None and estimate > 0.0 and waited > estimate * ratio):
                rank = facts.job_arrival
                starved = True
            elif best_starved:
                continue
            else:
                if facts.job is not job and not self._is_job_blind:
                    job = facts.job
                    job_facts = jobs.get(job, _UNKNOWN)
                rank = rank_of(task, job_facts)
                starved = False
            if rank != rank:
                rank = inf
            if (
                best is None
                or starved is not best_starved
                or rank < best_rank
                or (rank == best_rank and since < best_since)
            ):
                best, best_rank, best_since, best_starved = task, rank, since, starved
        if best is None:
            raise ValueError("an empty queue has no next task")
        return best

    # Turns ------------------------------------------------------------------------------------------------------------

    def _turn(self, queue: Iterable[QueuedTask]) -> list[QueuedTask]:
        """The tasks of the group whose turn it is."""
        tasks = queue if isinstance(queue, list) else list(queue)
        if self.scope is Scope.ALL or not tasks:
            return tasks
        group_of = _GROUPS[self.scope]
        turn = group_of(min(tasks, key=_turn_of).facts)
        return [task for task in tasks if group_of(task.facts) == turn]

    def _by_turns(self, tasks: list[QueuedTask], ordered: list[QueuedTask]) -> list[QueuedTask]:
        """Gives the k-th place to the group that has the k-th turn, and there to the best of it."""
        group_of = _GROUPS[self.scope]
        lines: dict[str, list[QueuedTask]] = {}
        for task in reversed(ordered):
            lines.setdefault(group_of(task.facts), []).append(task)
        if len(lines) < 2:
            return ordered
        return [lines[group_of(task.facts)].pop() for task in sorted(tasks, key=_turn_of)]


def _turn_of(task: QueuedTask) -> float:
    return task.since if task.turn is None else task.turn


def _queue_of(facts: TaskFacts) -> str:
    return facts.queue


def _user_of(facts: TaskFacts) -> str:
    return facts.user


_GROUPS: Final[Mapping[str, Callable[[TaskFacts], str]]] = {Scope.QUEUE: _queue_of, Scope.USER: _user_of}
