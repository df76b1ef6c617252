"""The leaf queues whose ordering policy is `clotho`: when each decides, and what comes of it.

After Clotho (published later as Decima, Mao et al., SIGCOMM 2019). Room that comes free is kept until the queue has
decided, which it does at most every `yaq.clotho.interval-ms`. What is decided gives each application a place among the
others, for so many containers. So limits of users, starvation guard, holds and preemption stay in force.
"""

from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count, islice
from typing import Any, Final

from rm.scheduler.assign.assigner import Assigner
from rm.scheduler.decisions import Allocate, Outcome, StagesOrdered
from rm.scheduler.events import (
    ApplicationMoved,
    Asked,
    AttemptEnded,
    AttemptStarted,
    ContainerEnded,
    Estimated,
    LeftTold,
    NodeJoined,
    NodeResized,
    QueuesRefreshed,
    StagesChanged,
    StagesDue,
)
from rm.scheduler.stages.leaf import LeafStages, Weighed
from rm.scheduler.stages.spec import StagesSpec
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import NodeView
from rm.scheduler.view.records import AppView, QueueView
from yaqd.model import ANY_HOST, ApplicationId, Resource
from yaqd.model.stages import StagesOrder
from yaqd.policies.clotho.policies import Chooser

#: nodes that are looked at one by one to see how many containers fit
_NODES_COUNTED: Final = 64
_FREE_MAX: Final = 10_000
#: sizes of containers that are given away after a decision, and nodes of which nobody takes anything
_SHAPES_MAX: Final = 16
_IN_VAIN_MAX: Final = 16
#: what may lead to another decision: of one application, and of all
_OF_ONE: Final = (Asked, AttemptStarted, AttemptEnded)
_OF_ALL: Final = (ContainerEnded, NodeJoined, NodeResized, ApplicationMoved, QueuesRefreshed, StagesChanged)


class Stages:
    """Idle where no leaf queue has that ordering policy."""

    def __init__(
        self,
        view: ClusterView,
        spec: StagesSpec,
        *,
        clock: Callable[[], float] | None,
        note: Callable[[str], None],
    ) -> None:
        """`clock` tells how long a decision takes, s; None: no decision is late. `note` hears what operators should."""
        self._view = view
        self.spec = spec
        self._clock, self._note = clock, note
        self._number: Final = partial(next, count(1))
        self._leaves: dict[str, LeafStages] = {}
        #: some leaf queue decides by stages, or did: masters may wait for its word
        self.is_used = False
        self.queues_changed()

    def handlers(self) -> dict[type[Any], Callable[[Any, float], Iterable[Outcome]]]:
        return {StagesDue: self._due, StagesChanged: self._changed}

    def get(self, leaf: QueueView) -> tuple[LeafStages, Weighed] | None:
        """Return what is decided for a leaf queue, and how its applications stand; None: it does not decide by
        stages."""
        found = self._leaves.get(leaf.path)
        return (found, found.weighed(self._view.jobs)) if found is not None else None

    @property
    def due_at(self) -> float | None:
        """When a decision is due that waits for its time, scheduler's seconds; None: none does."""
        waits = [one.decided_at for one in self._leaves.values() if one.leaf.undecided]
        return min(waits) + self.spec.interval_s if waits else None

    # ---- events

    def stir(self, event: Any) -> None:
        """Note, before an event is handled, which leaf queues have to decide anew."""
        if isinstance(event, _OF_ALL):
            for one in self._leaves.values():
                one.leaf.undecided = True
        elif isinstance(event, _OF_ONE):
            self._stir(event.attempt_id.application_id)
        elif isinstance(event, Estimated):
            self._stir(event.application_id)

    def _stir(self, app_id: ApplicationId) -> None:
        app = self._view.applications.get(app_id)
        if app is not None and app.leaf.path in self._leaves:
            app.leaf.undecided = True

    def follow(self, event: Any, assigner: Assigner, now: float) -> Iterator[Outcome]:
        """Decide, after an event was handled, where that is due."""
        if isinstance(event, LeftTold):
            yield from self._told(event)
        for one in self._leaves.values():
            if one.leaf.undecided and now >= one.decided_at + self.spec.interval_s:
                yield from self._decide(one, assigner, now)

    def _told(self, event: LeftTold) -> Iterator[Outcome]:
        """Take in how many containers wait at a master for word."""
        attempt = self._view.attempt(event.attempt_id)
        if attempt is None:
            return
        app = attempt.app
        decides = self._leaves.get(app.leaf.path)
        if decides is None:
            if event.idle > 0:  # it waits for a queue that it was moved from
                yield StagesOrdered(attempt.id, StagesOrder(self._number(), decides=False))
            return
        decides.sketch(app).idle = max(0, event.idle)
        app.leaf.undecided = True
        if app.id not in decides.told:
            decides.told.add(app.id)
            yield StagesOrdered(attempt.id, StagesOrder(self._number()))

    def ended(self, app: AppView) -> None:
        """Forget what is known of an attempt that is over, or goes to another queue."""
        if not self._leaves:
            return
        for one in self._leaves.values():
            one.forget(app.id)
        self._no_turns(app)

    def _no_turns(self, app: AppView) -> None:
        job = self._view.jobs.of(app.id)
        job.turns, job.sent = [], {}
        if app.attempt is not None:
            app.attempt.stage = None

    def _due(self, event: StagesDue, now: float) -> Iterable[Outcome]:
        return ()  # whatever is due is decided after each event

    def _changed(self, event: StagesChanged, now: float) -> Iterable[Outcome]:
        self.spec = event.spec
        before, self._leaves = self._leaves, {}
        self.queues_changed()
        for path, one in before.items():  # masters do not repeat how many containers wait
            for sketch in one.sketches.values():
                self._leaves[path].sketch(sketch.app).idle = sketch.idle
        return ()

    # ---- decisions

    def queues_changed(self) -> None:
        """Find the leaf queues that decide by stages, at first and after their configuration has changed."""
        known = self._leaves
        self._leaves = {}
        for leaf in self._view.queues.values():
            leaf.undecided = False
            if leaf.spec.orders_stages:
                before = known.get(leaf.path)
                found = before if before is not None and before.leaf is leaf else self._begin(leaf)
                self._leaves[leaf.path] = found
                leaf.undecided = self.is_used = True
        for path in known.keys() - self._leaves.keys():
            for app in known[path].leaf.applications.values():
                self._no_turns(app)
        self._view.stage_leaves = [one.leaf for one in self._leaves.values()]

    def _begin(self, leaf: QueueView) -> LeafStages:
        try:
            weights = b64decode(self.spec.weights, validate=True)
        except BadBase64:
            weights = b""
        return LeafStages(leaf, Chooser(self.spec.policy, weights, clock=self._clock, note=self._note), self._number)

    def _decide(self, one: LeafStages, assigner: Assigner, now: float) -> Iterator[Outcome]:
        view, leaf = self._view, one.leaf
        leaf.undecided = False
        orders = one.decide(view.jobs, self._free(leaf), self.spec.move_s, now)
        for attempt, order in orders:
            yield StagesOrdered(attempt.id, order)
        for attempt in leaf.attempts.values():
            view.use_changed(attempt)
        gave = False
        for outcome in self._serve(assigner, now):
            gave = gave or isinstance(outcome, Allocate)
            yield outcome
        leaf.undecided = one.has_more and (gave or bool(orders))

    def _serve(self, assigner: Assigner, now: float) -> Iterator[Outcome]:
        """Give away what nodes have free, as far as somebody takes it: others' asks have waited for it too."""
        looked_at: set[int] = set()
        waiting = (leaf for leaf in self._view.queues.values() if leaf.is_leaf and leaf.waiting)
        shapes = dict.fromkeys(shape for leaf in waiting for shape, _ in leaf.lines)

        def is_new(node: NodeView) -> bool:
            return id(node) not in looked_at

        for shape in islice(shapes, _SHAPES_MAX):
            in_vain = 0
            while in_vain < _IN_VAIN_MAX and (node := self._view.nodes.emptiest(shape, is_new, ANY_HOST)) is not None:
                outcomes = list(assigner.give_away(node, now))
                yield from outcomes
                looked_at.add(id(node))
                in_vain += not any(isinstance(outcome, Allocate) for outcome in outcomes)

    def _free(self, leaf: QueueView) -> int:
        """Return how many containers there is room for, of the first size in line of which there is for any."""
        lines = sorted(leaf.lines.items(), key=lambda named: named[1][0])
        return next((free for (shape, _), _ in lines if (free := self._room_for(leaf, shape)) > 0), 0)

    def _room_for(self, leaf: QueueView, shape: Resource) -> int:
        nodes = self._view.nodes
        if len(nodes) <= _NODES_COUNTED:
            able = (node for node in nodes.all() if node.reserved is None and not node.is_draining)
            free = sum(_fit(node.free_mb, node.free_cores, shape, self._view) for node in able)
        else:
            left = nodes.total - self._view.root.used
            free = _fit(left.memory_mb, left.vcores, shape, self._view)
        return max(0, min(free, self._view.room(leaf, shape), _FREE_MAX))


def _fit(memory_mb: int, vcores: int, shape: Resource, view: ClusterView) -> int:
    many = memory_mb // max(1, shape.memory_mb)
    return min(many, vcores // max(1, shape.vcores)) if view.calculator.counts_vcores else many
