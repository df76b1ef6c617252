"""Time for the division of cores among training jobs: asks the scheduler for it, and has nodes hold jobs to it."""

import asyncio
import logging
from typing import Final

from rm.cluster import Cluster
from rm.nodes.cores import ApplicationCores
from rm.scheduler.decisions import CoresTargeted
from rm.scheduler.events import QualityChanged, QualityDue
from rm.scheduler.quality.spec import QualitySpec

log = logging.getLogger(__name__)

#: a look that comes so little before its time is in time, s
_EARLY_S: Final = 0.05


class QualityMonitor:
    def __init__(self, cluster: Cluster, cores: ApplicationCores, spec: QualitySpec | None) -> None:
        self._cluster = cluster
        self._cores = cores
        self._spec = spec
        self._last = cluster.clock.now()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, tick_s: float) -> None:
        """Look every epoch from now on, or every `tick_s` seconds where that is shorter."""
        wait_s = tick_s if self._spec is None else min(tick_s, self._spec.epoch_s)
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._tick, tick_s)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self, tick_s: float) -> None:
        try:
            self.check(self._cluster.clock.now())
        except Exception:
            log.exception("cores could not be divided; it is tried again")
        self.start(tick_s)

    def refresh(self, spec: QualitySpec | None) -> None:
        """Go by these settings from now on."""
        if spec != self._spec:
            log.info("cores of training jobs are %s: %s", "divided" if spec is not None else "not divided", spec)
            self._spec = spec
            self._cores.divided(spec.epoch_s if spec is not None else None)
            self._cluster.schedule(QualityChanged(spec))

    def check(self, now: float) -> None:
        """Have the cores divided anew, once an epoch."""
        if self._spec is None or now - self._last < self._spec.epoch_s - _EARLY_S:
            return
        self._last = now
        jobs = self._cluster.scheduler.facts.training_jobs()
        if jobs:
            known = ((job.attempt.app.id, self._cores.cpu_s(job.attempt.app.id)) for job in jobs)
            used = tuple((app_id, cpu_s) for app_id, cpu_s in known if cpu_s is not None)
            began = self._cluster.clock.now()
            self._cluster.schedule(QualityDue(used))
            took_s = self._cluster.clock.now() - began
            self._cluster.longest_division_s = max(self._cluster.longest_division_s, took_s)
            self._cores.divided(self._spec.epoch_s)

    def targeted(self, decision: CoresTargeted) -> None:
        """Hold the job to its cores; its master hears of them with its next answer."""
        attempt = self._cluster.find_attempt(decision.attempt_id)
        if attempt is not None:
            attempt.orders.cores = decision.order
            self._cores.set_cores(attempt.app.id, decision.order.milli)
