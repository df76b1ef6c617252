"""Time for leaf queues that decide by stages, and their orders to masters."""

import asyncio
import logging
from typing import Final

from rm.cluster import Cluster
from rm.scheduler.decisions import StagesOrdered
from rm.scheduler.events import StagesChanged, StagesDue
from rm.scheduler.stages.spec import StagesSpec

log = logging.getLogger(__name__)

#: a clock may be this much early, s
_EARLY_S: Final = 0.001


class StagesMonitor:
    def __init__(self, cluster: Cluster, spec: StagesSpec) -> None:
        self._cluster = cluster
        self._spec = spec
        self._timer: asyncio.TimerHandle | None = None

    def follow(self) -> None:
        """Have a queue decide when it is due, where one waits for that. Called after each event."""
        due_at = self._cluster.scheduler.facts.stages_due_at
        if due_at is None or self._timer is not None:
            return
        wait_s = max(0.0, due_at - self._cluster.clock.now()) + _EARLY_S
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._due)

    def _due(self) -> None:
        self._timer = None
        try:
            self._cluster.schedule(StagesDue())
        except Exception:
            log.exception("a queue could not decide by stages; it is tried with the next event")

    def stop(self) -> None:
        """Wait for nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def refresh(self, spec: StagesSpec) -> None:
        """Go by these settings from now on."""
        if spec != self._spec:
            log.info("queues that decide by stages go by %s", spec)
            self._spec = spec
            self._cluster.schedule(StagesChanged(spec))

    def ordered(self, decision: StagesOrdered) -> None:
        """Have the master hear of it with its next answer."""
        attempt = self._cluster.find_attempt(decision.attempt_id)
        if attempt is not None:
            attempt.orders.stages = decision.order
