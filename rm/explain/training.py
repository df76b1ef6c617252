"""Why a training job has its cores: what is predicted of its loss, beside the others of its queue."""

import math
from collections.abc import Callable
from typing import Any, Final

from rm.applications.records import Application
from rm.cluster import Cluster
from rm.nodes.cores import ApplicationCores
from rm.scheduler.facts import TrainingOutlook
from yaqd.policies.quality.facts import MILLI, Reason

#: jobs of one queue that are told beside one
_NEIGHBOURS: Final = 20

#: for people; of each the cores follow
WHY: Final = {
    Reason.SHARE: "its share",
    Reason.FLOOR: "the least that every job gets: others' losses fall more for a core",
    Reason.GAIN: "what its predicted gain earned",
    Reason.CAP: "as many as it can use or may have",
    Reason.OUTNUMBERED: "none now: there are more jobs than cores, and others' losses fall more",
    Reason.NEW: "its losses tell little yet, so it is taken for a job that falls fast",
    Reason.LEAST_SERVED: "it has been served least so far",
    Reason.SHORTEST: "it has the least work left",
    Reason.KEPT: "as before: what it would gain is not worth the move",
}


class ExplainTraining:
    def __init__(self, cluster: Cluster, cores: ApplicationCores) -> None:
        self._cluster, self._cores = cluster, cores

    @property
    def longest_ms(self) -> float:
        """The longest division of cores so far, from the reports to the orders."""
        return round(1000 * self._cluster.longest_division_s, 3)

    def all(self, may_view: Callable[[Application], bool]) -> list[dict[str, Any]]:
        """Return the training jobs that may be viewed, those that came first before others."""
        apps = self._cluster.applications
        return [
            self._job(outlook)
            for outlook in self._cluster.scheduler.facts.training_outlooks()
            if (app := apps.get(outlook.job.attempt.app.id)) is not None and may_view(app)
        ]

    def application(self, app: Application) -> dict[str, Any] | None:
        """Return why it has its cores; None: it does not train, or is over."""
        outlooks = self._cluster.scheduler.facts.training_outlooks()
        own = next((one for one in outlooks if one.job.attempt.app.id == app.id), None)
        if own is None:
            return None
        leaf = own.job.attempt.app.leaf
        others = [one for one in outlooks if one is not own and one.job.attempt.app.leaf is leaf]
        others.sort(key=lambda one: -one.job.gain)
        beside = [self._job(one) for one in others[:_NEIGHBOURS]]
        #: nodes of its containers that hold nobody to an order: stock ones, and those whose throttle is off
        unheld = sorted(map(str, self._cores.unaware_nodes(app.id)))
        return {
            **self._job(own),
            "policy": own.policy,
            "unheldNodes": unheld,
            "others": len(others),
            "beside": beside,
        }

    def _job(self, outlook: TrainingOutlook) -> dict[str, Any]:
        job = outlook.job
        app = self._cluster.applications.get(job.attempt.app.id)
        milli = job.order.milli if job.order is not None else None
        return {
            "id": str(job.attempt.app.id),
            "name": app.name if app is not None else "",
            "user": job.attempt.app.user,
            "queue": job.attempt.app.leaf.path,
            #: None: as many as it can use
            "cores": None if milli is None else milli / MILLI,
            #: in containers; None: it is a program in one
            "workers": outlook.workers,
            "reason": job.reason.name,
            "why": WHY[job.reason],
            #: predicted normalized fall of the loss until the next division
            "gain": _finite(job.gain),
            "iteration": None if job.iteration < 0 else job.iteration,
            "iterationsExpected": job.iterations_expected,
            "loss": _finite(outlook.loss),
            #: 1 at the first loss, 0 at the predicted last one
            "normalizedLoss": _finite(outlook.normalized),
            #: until nine tenths of the whole predicted fall are done, with the cores that it has
            "ninetyS": _finite(outlook.ninety_s),
            "coreSeconds": round(job.cpu_s, 3),
            "iterationCoreSeconds": round(job.cost.work_s, 6) if job.cost.is_known else None,
            #: of an iteration, what no core shortens
            "iterationFixedS": round(job.cost.fixed_s, 6) if job.cost.is_known else None,
        }


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
