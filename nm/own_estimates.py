"""How long containers run, as far as this node has seen it itself: for an order under a stock ResourceManager.

Such a one says nothing of a job but what its containers' tokens hold. Containers that end well tell how long others of
their application and priority will run.
"""

from typing import Final

from nm.container import Container
from nm.queue import JobReport
from yaqd.policies.queueing.estimates import Estimator, ask_key
from yaqd.policies.queueing.facts import JobFacts

_STAGES_MAX: Final = 10_000


class OwnEstimates:
    def __init__(self) -> None:
        self._estimator = Estimator(most_keys=_STAGES_MAX)

    def ended(self, container: Container) -> JobReport | None:
        """What the end of a container says of its likes; None: nothing."""
        if container.exit_status != 0 or not container.started_at:
            return None
        job, priority = container.id.application_id, container.grant.priority
        key = ask_key(job, priority)
        self._estimator.observe(key, container.ended_at - container.started_at)
        return JobReport(job, JobFacts(), estimates={priority: self._estimator.estimate(key)})
