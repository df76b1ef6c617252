"""What this node knows of jobs by itself: for an order under a stock ResourceManager.

Such a one says nothing of a job but what its containers' tokens hold. Containers that end well tell how long others of
their application and priority will run. What is left of a job its master may say with each container (our job managers
do); of another it is what the node has of it: a job that has much to do has much waiting everywhere.
"""

from typing import Final

from nm.containers.container import Container
from nm.node_queue import JobReport
from yaqd.model import ApplicationId, ContainerType
from yaqd.policies.queueing.estimates import Estimator, ask_key
from yaqd.policies.queueing.left import StageLeft, facts_of

_STAGES_MAX: Final = 10_000


class OwnEstimates:
    def __init__(self) -> None:
        self._estimator = Estimator(most_keys=_STAGES_MAX)
        #: containers that are not over, by priority, of applications that have any
        self._here: dict[ApplicationId, dict[int, int]] = {}
        #: the master's last word, of such applications as well
        self._told: dict[ApplicationId, tuple[StageLeft, ...]] = {}

    def came(self, container: Container) -> JobReport | None:
        """Returns what a container says of its job, before it may wait. A master says nothing."""
        if _is_master(container):
            return None
        job, priority = container.id.application_id, container.grant.priority
        here = self._here.setdefault(job, {})
        here[priority] = here.get(priority, 0) + 1
        if container.launch.left is not None:
            self._told[job] = container.launch.left
        return self._report(job, priority)

    def ended(self, container: Container) -> JobReport | None:
        """Returns what a container's end says of its job and of the job's other containers."""
        job, priority = container.id.application_id, container.grant.priority
        if container.exit_status == 0 and container.started_at:
            self._estimator.observe(ask_key(job, priority), container.ended_at - container.started_at)
        here = self._here.get(job)
        if here is None or priority not in here or not container.queued_at or _is_master(container):
            return None
        here[priority] -= 1
        if not here[priority]:
            del here[priority]
        report = self._report(job, priority)
        if not here:
            del self._here[job]
            self._told.pop(job, None)
        return report

    def _report(self, job: ApplicationId, priority: int) -> JobReport:
        told = self._told.get(job)
        stages = _one_after_the_other(self._here[job]) if told is None else told
        facts = facts_of(stages, lambda stage: self._estimator.estimate(ask_key(job, stage)))
        estimate = self._estimator.estimate(ask_key(job, priority))
        if estimate is None and told is not None:
            estimate = next((stage.task_s for stage in told if stage.priority == priority), None)
        return JobReport(job, facts, estimates={priority: estimate} if estimate is not None else {})


def _is_master(container: Container) -> bool:
    return container.grant.container_type is ContainerType.APPLICATION_MASTER


def _one_after_the_other(counts: dict[int, int]) -> list[StageLeft]:
    """Nobody says which stages wait for which."""
    order = sorted(counts)
    return [StageLeft(p, counts[p], after=tuple(order[:i][-1:])) for i, p in enumerate(order)]
