"""What the scheduler is told about queues at the nodes, and what it does about it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rm.scheduler.assign.assigner import Assigner
from rm.scheduler.assign.over_allocate import OverAllocator
from rm.scheduler.decisions import Outcome
from rm.scheduler.events import (
    Estimated,
    LeftTold,
    MasterCalled,
    NodeQueueReported,
    PlaceLost,
    QueueingChanged,
    TaskTimes,
    WaitingTolerated,
    WantedElsewhere,
)
from rm.scheduler.opportunistic.placing import Opportunistic
from rm.scheduler.opportunistic.unplaced import Unplaced
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import HoldKind


class NodeQueueEvents:
    def __init__(
        self,
        view: ClusterView,
        assigner: Assigner,
        opportunistic: Opportunistic,
    ) -> None:
        self._view = view
        self._queues = queues = view.node_queues
        self._assigner = assigner
        self._opportunistic = opportunistic
        if queues.spec is not None:
            self._begin()
        if any(queue.spec.orders_jobs for queue in view.queues.values()):
            self.count_jobs()

    def handlers(self) -> dict[type[Any], Callable[[Any, float], Iterable[Outcome]]]:
        return {
            NodeQueueReported: self._reported,
            Estimated: self._estimated,
            MasterCalled: self._master_called,
            WaitingTolerated: self._waiting_tolerated,
            WantedElsewhere: self._wanted_elsewhere,
            LeftTold: self._left_told,
            TaskTimes: self._ran,
            PlaceLost: self._place_lost,
            QueueingChanged: self._changed,
        }

    def _begin(self) -> None:
        """Let containers wait from now on. What was sent to wait is looked after also when that ends."""
        self.count_jobs()
        self._view.shares.begin()
        self._assigner.over_allocator = OverAllocator(self._view, self._assigner.policy)

    def count_jobs(self) -> None:
        """Count from now on what is left of each application."""
        if not self._view.jobs.are_counted:
            known = self._view.applications
            self._view.jobs.begin([held for held in self._view.containers.values() if held.application.id in known])

    def _reported(self, event: NodeQueueReported, now: float) -> Iterable[Outcome]:
        node = self._view.nodes.get(event.node_id)
        if node is None:
            return ()
        queue, shares = node.queue, self._view.shares
        ran = queue.started
        self._queues.reported(queue, event, now)
        if queue.started is not ran or queue.look_at <= now:
            shares.run(queue, ran, now)
        if event.opportunistic_max > 0:
            self._opportunistic.limit_queues(now)
        return ()

    def _estimated(self, event: Estimated, now: float) -> Iterator[Outcome]:
        """Take an estimate in. What could not wait before, because nobody knew its end, may now."""
        app = self._view.applications.get(event.application_id)
        if app is None:
            return
        was_known = self._queues.estimate(app.id, event.priority) is not None
        self._view.jobs.set_estimate(app.id, event.priority, event.estimate_s)
        attempt = app.attempt
        if attempt is None or attempt.master is None:
            return
        if was_known:
            self._view.file(attempt)  # its place among the others may be another
            return
        asks = [ask for ask in attempt.asks if ask.key[0] == event.priority]
        for hold in [hold for ask in asks for hold in self._view.holds.of(attempt, ask)]:
            if hold.kind is HoldKind.QUEUE:
                yield from self._view.holds.end(hold, "the ask may wait there")
        yield from self._assigner.place(attempt, asks, {}, now)
        yield from self._assigner.settle(attempt, now)

    def _master_called(self, event: MasterCalled, now: float) -> Iterable[Outcome]:
        if self._queues.spec is not None and event.application_id in self._view.applications:
            self._queues.polls.called(event.application_id, now)
        return ()

    def _waiting_tolerated(self, event: WaitingTolerated, now: float) -> Iterator[Outcome]:
        attempt = self._view.attempt(event.attempt_id)
        if attempt is not None:
            attempt.tolerates_waiting = True
            self._view.use_changed(attempt)  # a master that waits for nobody comes first where it was cut off
        yield from ()

    def _wanted_elsewhere(self, event: WantedElsewhere, now: float) -> Iterator[Outcome]:
        app = self._view.applications.get(event.application_id)
        if app is not None:
            self._view.jobs.wanted_elsewhere(app.id, dict(event.counts))
            self._view.reorder(app.id)
            if app.attempt is not None:
                number = sum(number for _, number in event.counts)
                self._opportunistic.wanted(app.attempt, Unplaced(number, event.sizes, event.bound), now)
        yield from ()

    def _left_told(self, event: LeftTold, now: float) -> Iterator[Outcome]:
        app_id = event.attempt_id.application_id
        if self._view.attempt(event.attempt_id) is not None:
            self._view.jobs.left_told(app_id, event.attempt_id, event.stages)
            self._view.reorder(app_id)
        yield from ()

    def _ran(self, event: TaskTimes, now: float) -> Iterator[Outcome]:
        node = self._view.nodes.get(event.node_id) if event.node_id is not None else None
        if node is not None:
            self._queues.ran(node, event.run_s)
        if event.container_id is not None:
            self._view.shares.ran(event.container_id, event.run_s)
        jobs = self._view.jobs
        if self._queues.spec is not None and jobs.ran(event.run_s):
            for app_id in list(jobs.unknown):
                self._view.reorder(app_id)
        yield from ()

    def _place_lost(self, event: PlaceLost, now: float) -> Iterator[Outcome]:
        app = self._view.applications.get(event.application_id)
        if app is not None and app.attempt is not None:
            self._queues.place_lost(app.attempt, event.priority, event.since, now)
        yield from ()

    def _changed(self, event: QueueingChanged, now: float) -> Iterator[Outcome]:
        for queue in self._queues.all():
            self._view.holds.release(queue.node)
        self._queues.change(event.spec)
        if event.job_starvation is not None:
            self._assigner.starving.spec = event.job_starvation
        if event.at_asks is not None:
            self._assigner.at_asks = event.at_asks
        if event.spec is not None:
            self._begin()
        else:
            self._view.shares.end()
        for leaf in self._view.queues.values():  # who is cut off goes by the settings
            for attempt in leaf.attempts.values():
                self._view.use_changed(attempt)
        yield from ()
