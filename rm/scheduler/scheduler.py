"""The scheduler: events in, decisions out.

`Scheduler.handle(event, now)` brings the `ClusterView` up to date, lets the policy pick, charges each pick to the view
and returns the decisions. It is synchronous and knows neither clock nor wire: the ResourceManager calls it with the
loop's time and the simulator with its own. Between two events the view has no pending ask that could be placed at once.
Two kinds are excepted: asks that wait for a preferred place, and asks that wait for a heartbeat after their queue's
limit moved.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from rm.scheduler.asks.intake import parts, split, take_in
from rm.scheduler.asks.updates import Updates
from rm.scheduler.assign.assigner import Assigner
from rm.scheduler.assign.capacity import CapacityPolicy
from rm.scheduler.assign.stock_assigner import StockAssigner
from rm.scheduler.decisions import AcceptApplication, DecisionLog, Outcome, RefuseApplication, StagesOrdered
from rm.scheduler.events import (
    ApplicationEnded,
    ApplicationMoved,
    ApplicationSubmitted,
    Asked,
    AttemptEnded,
    AttemptStarted,
    ContainerEnded,
    MastersDue,
    PreemptionDue,
    PreemptionRefreshed,
    PriorityChanged,
    ProxyPlaced,
    QualityChanged,
    QualityDue,
    QueuesRefreshed,
    SchedulerEvent,
    TrainingReported,
    UpdateAsked,
)
from rm.scheduler.facts import Facts
from rm.scheduler.limits import Rules, SchedulerLimits
from rm.scheduler.node_events import NodeEvents
from rm.scheduler.node_queues.reports import NodeQueueEvents
from rm.scheduler.opportunistic.placing import Opportunistic, OpportunisticLimits
from rm.scheduler.preemption.preemption import Preemption
from rm.scheduler.preemption.yielding import Yielding
from rm.scheduler.quality.training import Training
from rm.scheduler.queues.admission import refresh, refusal
from rm.scheduler.queues.rehome import rehome
from rm.scheduler.queues.spec import SchedulerSpec
from rm.scheduler.queues.starting import Starting
from rm.scheduler.stages.stages import Stages
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.invariants import validate
from rm.scheduler.view.records import AppView, AttemptView
from yaqd.model import Resource

#: they lead to orders every second, which would push all else out of the decision log
_UNLOGGED: Final = frozenset((QualityDue, TrainingReported, QualityChanged))
#: sizes of containers whose normal form is remembered
_SIZES_MAX: Final = 4096


class Scheduler:
    def __init__(
        self,
        spec: SchedulerSpec,
        limits: SchedulerLimits,
        *,
        clock: Callable[[], float] | None = None,
        note: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`clock` tells how long a decision of stages takes, s; None: none is late. `note` hears what operators
        should."""
        self.limits: Final = limits
        self.view: Final = ClusterView(
            spec, least=limits.bounds.minimum, ask_rows_max=limits.ask_rows_max, queueing=limits.queueing
        )
        self.node_queues: Final = self.view.node_queues
        self.log: Final = DecisionLog(limits.decision_log_entries)
        self.opportunistic: Final = Opportunistic(
            limits.opportunistic or OpportunisticLimits(), self.view, ask_rows_max=limits.ask_rows_max
        )
        self.updates: Final = Updates(self.view, self.opportunistic)
        policy = CapacityPolicy(
            reserve_after_s=limits.reserve_after_s,
            reservation_s=limits.reservation_s,
            reserved_share=limits.reserved_share,
        )
        self._assigner = self._make_assigner(policy)
        self._starting = Starting(self.view, self._assigner)
        self._preemption = Preemption(limits.preemption)
        self._yielding = Yielding(limits.masters_yield_after_s)
        self._training = Training(self.view, limits.quality)
        self._stages = Stages(self.view, limits.stages, clock=clock, note=note)
        self._queue_events = NodeQueueEvents(self.view, self._assigner, self.opportunistic)
        self._node_events = NodeEvents(self.view, self._assigner, self.updates, self.opportunistic, self._starting)
        #: what may be asked
        self.facts: Final = Facts(
            self.view,
            self.opportunistic,
            self.updates,
            limits.bounds,
            self.log,
            self._training,
            self._stages,
            gives_opportunistic=limits.opportunistic is not None,
        )
        self._submissions = 0
        #: asked without further types -> given
        self._sizes: dict[tuple[int, int], Resource] = {}
        self._handlers: dict[type[Any], Callable[[Any, float], Iterable[Outcome]]] = {
            ApplicationSubmitted: self._application_submitted,
            ApplicationEnded: self._application_ended,
            AttemptStarted: self._attempt_started,
            AttemptEnded: self._attempt_ended,
            Asked: self._asked,
            UpdateAsked: self._update_asked,
            ProxyPlaced: self._proxy_placed,
            ContainerEnded: self._container_ended,
            PriorityChanged: self._priority_changed,
            ApplicationMoved: self._application_moved,
            QueuesRefreshed: self._queues_refreshed,
            PreemptionDue: self._preemption_due,
            MastersDue: self._masters_due,
            PreemptionRefreshed: self._preemption_refreshed,
            **self._node_events.handlers(),
            **self._queue_events.handlers(),
            **self._training.handlers(),
            **self._stages.handlers(),
        }

    def _make_assigner(self, policy: CapacityPolicy) -> Assigner:
        limits, view = self.limits, self.view
        if limits.rules is Rules.STOCK:
            largest, starvation = limits.bounds.maximum, limits.job_starvation
            return StockAssigner(view, policy, self.updates, largest=largest, starvation=starvation)
        return Assigner(view, policy, self.updates, at_asks=limits.at_asks, starvation=limits.job_starvation)

    def handle(self, event: SchedulerEvent, now: float) -> list[Outcome]:
        """Take one event in and decide.

        Raises `TooManyAsks` (an attempt holds too much) or `QueueConfigError` (a refresh that cannot be); the view is
        then as before.
        """
        kind = type(event)
        if self._stages.is_used:
            self._stages.stir(event)
        outcomes = self._handlers[kind](event, now)
        decisions = list(outcomes) if outcomes else []  # most events come to nothing, told by an empty tuple
        if self._stages.is_used:
            decisions += self._stages.follow(event, self._assigner, now)
        news = self.opportunistic.starved.news
        if news:
            decisions += news
            news.clear()
        if decisions and kind not in _UNLOGGED:
            noted = decisions
            if self._stages.is_used:  # orders about stages would push all else out as well
                noted = [one for one in decisions if type(one) is not StagesOrdered]
            self.log.note(now, kind.__name__, noted)
        return decisions

    # ---- facts the daemon asks for

    def maximum_allocation(self) -> Resource:
        """Return the largest container anyone may ask for now: as configured, and no larger than the largest node.

        Where no node is in use it is as configured, as others may come, or the same again.
        """
        most, largest = self.limits.bounds.maximum, self.view.nodes.largest
        if all(node.is_draining for node in self.view.nodes.all()):
            return most
        least = self.limits.bounds.minimum
        vcores = min(most.vcores, largest.vcores) if self.view.calculator.counts_vcores else most.vcores
        extras = most.smaller(largest).extras
        return Resource(max(least.memory_mb, min(most.memory_mb, largest.memory_mb)), max(least.vcores, vcores), extras)

    def parts(self, asked: Asked, size: int) -> Iterator[Asked]:
        """Return a very long call in parts, told one after the other. Raises `TooManyAsks` if they may be too many."""
        gives_opportunistic = self.limits.opportunistic is not None
        attempt = self.view.attempt(asked.attempt_id)
        if attempt is not None:
            rows, spare = split(asked.rows, gives_opportunistic=gives_opportunistic)
            attempt.asks.check_room(len(rows))
            self.opportunistic.check_room(attempt.id, len(spare))
        return parts(asked, size, gives_opportunistic=gives_opportunistic)

    @property
    def has_waiting(self) -> bool:
        """Would a node's heartbeat be an opportunity for anybody?"""
        return self._assigner.has_work

    def normalized(self, asked: Resource) -> Resource:
        """Return the container that is given for this; the same object for the same amounts, as far as they are
        remembered."""
        if asked.extras:
            return self.view.calculator.normalize(asked, self.limits.bounds)
        key = (asked.memory_mb, asked.vcores)
        known = self._sizes.get(key)
        if known is None:
            if len(self._sizes) >= _SIZES_MAX:
                self._sizes.clear()
            known = self._sizes[key] = self.view.calculator.normalize(asked, self.limits.bounds)
        return known

    def validate(self) -> None:
        """Assert every invariant of the view."""
        validate(self.view)
        self.opportunistic.validate()
        self.node_queues.validate()
        self._assigner.validate()

    # ---- applications and attempts

    def _application_submitted(self, event: ApplicationSubmitted, now: float) -> Iterator[Outcome]:
        app_id = event.application_id
        leaf = self.view.find_queue(event.queue)
        reason = refusal(self.view, app_id, event.queue, event.user)
        if reason is None and app_id in self.view.applications:
            reason = f"{app_id} is already there"
        if reason is not None or leaf is None:
            yield RefuseApplication(app_id, reason or "")
            return
        self._submissions += 1
        app = AppView(app_id, leaf, event.user, event.priority, self._submissions, event.tags)
        self.view.enter(app)
        yield AcceptApplication(app_id, leaf.path)

    def _application_ended(self, event: ApplicationEnded, now: float) -> Iterator[Outcome]:
        app = self.view.applications.get(event.application_id)
        if app is None:
            return
        if app.attempt is not None:
            yield from self._end_attempt(app.attempt, now)
        self.view.leave(app)
        self.view.jobs.forget(app.id)
        self.node_queues.polls.forget(app.id)
        if self.view.yielded:
            yield from self._settle_yielded(now)

    def _attempt_started(self, event: AttemptStarted, now: float) -> Iterator[Outcome]:
        app = self.view.applications.get(event.attempt_id.application_id)
        if app is None:
            return
        if app.attempt is not None:
            yield from self._end_attempt(app.attempt, now)
        attempt = self.view.new_attempt(event.attempt_id, app, event.epoch)
        for row in event.master:
            attempt.asks.put(row, self.normalized(row.capability), now, is_master=True)
        insort(app.leaf.inactive, (-app.priority, app.sequence))
        yield from self._starting.admit(app.leaf, now)

    def _attempt_ended(self, event: AttemptEnded, now: float) -> Iterator[Outcome]:
        attempt = self.view.attempt(event.attempt_id)
        if attempt is not None:
            yield from self._end_attempt(attempt, now)

    def _end_attempt(self, attempt: AttemptView, now: float) -> Iterator[Outcome]:
        leaf = attempt.app.leaf
        self.view.masters_wanted.discard(attempt.id)
        self.view.unfile(attempt)
        self.node_queues.lost_places.forget(attempt.app.id)
        attempt.asks.clear()
        self.opportunistic.attempt_ended(attempt.id)
        self._training.attempt_ended(attempt.id)
        self._stages.ended(attempt.app)
        yield from self._assigner.ended(attempt, now)
        attempt.app.attempt = None
        leaf.attempts.pop(attempt.app.sequence, None)
        if attempt.master is None:
            leaf.inactive.remove((-attempt.app.priority, attempt.app.sequence))
        else:
            self.view.count_master(attempt, attempt.master, -1)
            yield from self._starting.admit(leaf, now)

    def _priority_changed(self, event: PriorityChanged, now: float) -> Iterator[Outcome]:
        app = self.view.applications.get(event.application_id)
        if app is None:
            return
        before, app.priority = app.priority, event.priority
        if app.attempt is None:
            return
        if app.attempt.master is None:
            app.leaf.inactive.remove((-before, app.sequence))
            insort(app.leaf.inactive, (-app.priority, app.sequence))
        else:
            self.view.file(app.attempt)
        yield from ()

    def _application_moved(self, event: ApplicationMoved, now: float) -> Iterator[Outcome]:
        app, target = self.view.applications.get(event.application_id), self.view.find_queue(event.queue)
        if app is None or target is None or not target.is_leaf or target is app.leaf:
            return
        source = app.leaf
        self._stages.ended(app)
        rehome(self.view, app, target)
        attempt = app.attempt
        if attempt is not None and attempt.master is not None:
            yield from self._assigner.place(attempt, list(attempt.asks), {}, now)
            yield from self._assigner.settle(attempt, now)
        yield from self._starting.admit(source, now)
        yield from self._starting.admit(target, now)

    # ---- asks and containers

    def _asked(self, event: Asked, now: float) -> Iterator[Outcome]:
        attempt = self.view.attempt(event.attempt_id)
        if attempt is None:
            return
        rows, spare = split(event.rows, gives_opportunistic=self.limits.opportunistic is not None)
        attempt.asks.check_room(len(rows))
        self.opportunistic.check_room(attempt.id, len(spare))
        attempt.blacklist.difference_update(event.blacklist_removals)
        attempt.blacklist.update(event.blacklist_additions)
        if not event.continues and (spare or self.opportunistic.waits(attempt.id)):
            self.opportunistic.put(attempt, [(row, self.normalized(row.capability)) for row in spare], now)
            yield from self.opportunistic.place(attempt, now)
        touched, attempt.carried = take_in(attempt.asks, rows, self.normalized, now, attempt.carried), {}
        if event.goes_on:
            last = (rows[-1].priority, rows[-1].allocation_request_id)
            attempt.carried[last] = touched.pop(last)
        if attempt.master is None:
            return  # kept until the attempt is admitted
        asks = [a for key in sorted(touched) if (a := attempt.asks.get(key)) is not None]
        yield from self._assigner.place(attempt, asks, touched, now)
        yield from self._assigner.settle(attempt, now)

    def _update_asked(self, event: UpdateAsked, now: float) -> Iterator[Outcome]:
        for update in self.updates.ask(event):
            yield update
            held = self.view.containers.get(event.container_id) or self.opportunistic.containers[event.container_id]
            node = self.view.nodes.get(held.node_id)
            if node is not None:
                yield from self._assigner.give_away(node, now)

    def _proxy_placed(self, event: ProxyPlaced, now: float) -> Iterator[Outcome]:
        """Book what a proxy placed, if that can be. As in Hadoop neither the node's room nor a queue's share is
        asked."""
        attempt, container_id = self.view.attempt(event.container_id.attempt_id), event.container_id
        known = container_id in self.view.containers or container_id in self.opportunistic.containers
        if attempt is not None and not known and self.view.nodes.get(event.node_id) is not None:
            yield self.opportunistic.book(event, now)

    def _container_ended(self, event: ContainerEnded, now: float) -> Iterable[Outcome]:
        self.view.tags.remove(event.container_id)
        held = self.view.discharge(event.container_id)
        self.view.shares.ended(event.container_id, now)
        if held is None:
            placed = self.opportunistic.release(event.container_id)
            if placed is not None:
                self.updates.forget(event.container_id, placed.node_id)
            return ()
        self.updates.forget(event.container_id, held.node_id)
        if self.view.jobs.are_counted and not held.is_master:
            self.view.jobs.ended(held.application.id, held.priority)
        if held.application.attempt is not None:
            self.view.use_changed(held.application.attempt)
        node = self.view.nodes.get(held.node_id)
        if node is None:
            return ()
        self.node_queues.ended(node)
        return self._assigner.give_away(node, now)

    # ---- what comes with time and from the administrator

    def _preemption_due(self, event: PreemptionDue, now: float) -> Iterator[Outcome]:
        yield from self._preemption.decide(self.view, now)

    def _masters_due(self, event: MastersDue, now: float) -> Iterator[Outcome]:
        yield from self._settle_yielded(now)
        yield from self._yielding.decide(self.view, self.opportunistic.containers, now)

    def _settle_yielded(self, now: float) -> Iterator[Outcome]:
        if self._yielding.settle(self.view, now):
            yield from self._starting.admit_everywhere(now)

    def _preemption_refreshed(self, event: PreemptionRefreshed, now: float) -> Iterator[Outcome]:
        if event.starts_anew:
            self._preemption = Preemption(event.spec)
            self.view.shares.serve_first(())
        self._preemption.spec = event.spec
        yield from ()

    def _queues_refreshed(self, event: QueuesRefreshed, now: float) -> Iterator[Outcome]:
        """Take a new configuration: capacities, limits, states, added queues, removed empty ones."""
        if any(queue.orders_jobs for queue in event.spec.root.walk()):
            self._queue_events.count_jobs()
        refresh(self.view, event.spec)
        self._stages.queues_changed()
        self.view.shares.queues_changed()
        yield from self._starting.admit_everywhere(now)
