"""One scheduler with its time, and short words for what happens to it. What it keeps is recounted after each event."""

import math
from collections.abc import Iterable
from typing import Any

from rm.scheduler.decisions import Allocate, Outcome
from rm.scheduler.events import (
    ApplicationSubmitted,
    Asked,
    AttemptStarted,
    ContainerEnded,
    NodeBeat,
    NodeJoined,
    NodeQueueReported,
    SchedulerEvent,
    WaitingTolerated,
)
from rm.scheduler.limits import SchedulerLimits
from rm.scheduler.queues.spec import PREFIX, SchedulerSpec, parse_capacity_scheduler
from rm.scheduler.scheduler import Scheduler
from rm.scheduler.view.calculators import AllocationBounds
from rm.scheduler.view.records import AttemptView
from rm.scheduler.why.reasons import why_waits
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, ExecutionType, NodeId, Resource
from yaqd.policies.asks.rows import AskRow

GB = 1024
SLOT = Resource(GB, 1)
BOUNDS = AllocationBounds(SLOT, Resource(8 * GB, 4))
DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
DEFAULT = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
ONE_QUEUE = {"root.queues": "default", "root.default.capacity": "100"}
HALVES = {"root.queues": "a,b", "root.a.capacity": "50", "root.b.capacity": "50"}

_unchecked: "list[World]" = []


def queues(lines: dict[str, str] = ONE_QUEUE, **more: str) -> SchedulerSpec:
    """Parses keys without their common prefix. In `more`, `__` is a dot and `_` a hyphen: `root__a__capacity`."""
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in more.items()}
    named = {name.replace("disable-preemption", "disable_preemption"): value for name, value in named.items()}
    return parse_capacity_scheduler({PREFIX + name: value for name, value in {**lines, **named}.items()})


class World:
    """A scheduler with queues and limits. What a container does is up to subclasses: see `follow`."""

    def __init__(
        self,
        tree: SchedulerSpec | None = None,
        *,
        bounds: AllocationBounds = BOUNDS,
        validates: bool = True,
        **limits: Any,
    ) -> None:
        """Starts empty. `tree`: by default one queue, `default`. `validates` False: for thousands of events."""
        self.scheduler = Scheduler(tree or queues(), SchedulerLimits(bounds, **limits))
        self.now = 0.0
        self.apps = 0
        self.validates = validates
        #: in the order in which they were given
        self.live: dict[ContainerId, Allocate] = {}
        if not validates:
            _unchecked.append(self)

    def tell(self, event: SchedulerEvent) -> list[Outcome]:
        """Tells an event at this time, recounts, and follows what was decided."""
        decisions = self.scheduler.handle(event, self.now)
        if self.validates:
            self.scheduler.validate()
        if isinstance(event, ContainerEnded):
            self.live.pop(event.container_id, None)
        for decision in decisions:
            self.follow(decision)
        return decisions

    def follow(self, decision: Outcome) -> None:
        """Does what a cluster does with a decision; subclasses add to it."""
        if isinstance(decision, Allocate):
            self.live[decision.container_id] = decision

    # ---- nodes

    def join(self, host: str, size: Resource = SLOT * 4, *, rack: str = "/r1", port: int = 1) -> NodeId:
        node_id = NodeId(host, port)
        self.tell(NodeJoined(node_id, rack, size))
        return node_id

    def reports(self, node_id: NodeId, running: int, queued: int, wait_s: float) -> None:
        """A node tells of its node queue; `wait_s`: how long a newcomer would wait there."""
        self.tell(NodeQueueReported(node_id, running, queued, wait_s))

    def reports_opportunistic(self, node_id: NodeId, queued: int, wait_ms: int, most: float) -> list[Outcome]:
        """A stock node tells of its node queue. `wait_ms` -1: it does not know; `most`: so many may wait there."""
        wait_s = wait_ms / 1000 if wait_ms >= 0 else math.inf
        return self.tell(NodeQueueReported(node_id, 0, queued, wait_s, opportunistic_max=most, queues_any=False))

    def beats(self, *node_ids: NodeId) -> list[Allocate]:
        """Heartbeats of these nodes; returns what was given at them."""
        return [one for node_id in node_ids for one in given(self.tell(NodeBeat(node_id)))]

    # ---- applications

    def submits(
        self, queue: str = "default", user: str = "user", *, priority: int = 0, tags: Iterable[str] = ()
    ) -> tuple[ApplicationId, list[Outcome]]:
        """Submits the next application; returns its id and what was decided."""
        self.apps += 1
        app_id = ApplicationId(1, self.apps)
        return app_id, self.tell(ApplicationSubmitted(app_id, queue, user, priority, frozenset(tags)))

    def begin(
        self,
        queue: str = "default",
        user: str = "user",
        *,
        master: Resource | None = None,
        priority: int = 0,
        tags: Iterable[str] = (),
        tolerates_waiting: bool = False,
    ) -> ApplicationAttemptId:
        """Submits an application and starts its first attempt. `master` None: it runs outside and takes no room."""
        app_id, _ = self.submits(queue, user, priority=priority, tags=tags)
        attempt_id = ApplicationAttemptId(app_id, 1)
        self.tell(AttemptStarted(attempt_id, (row(size=master, priority=0),) if master is not None else ()))
        if tolerates_waiting:
            self.tell(WaitingTolerated(attempt_id))
        return attempt_id

    def asks(self, attempt_id: ApplicationAttemptId, *rows: AskRow, avoids: tuple[str, ...] = ()) -> list[Allocate]:
        """The attempt's master asks; returns what it was given at once. `avoids`: hosts and racks."""
        return given(self.tell(Asked(attempt_id, rows, avoids)))

    def ends(self, container_id: ContainerId) -> list[Allocate]:
        """A container ends; returns what was given then."""
        return given(self.tell(ContainerEnded(container_id)))

    # ---- what is known

    def attempt_of(self, attempt_id: ApplicationAttemptId) -> AttemptView:
        found = self.scheduler.view.attempt(attempt_id)
        assert found is not None, f"{attempt_id} is over"
        return found

    def why_waits(self, attempt_id: ApplicationAttemptId) -> str:
        """Says why the first ask of the attempt waits."""
        attempt = self.attempt_of(attempt_id)
        return why_waits(self.scheduler.view, attempt, next(iter(attempt.asks))).reason


def recount() -> None:
    """Recounts the worlds that were not recounted after each event; a fixture calls it when a test has ended."""
    worlds = [*_unchecked]
    _unchecked.clear()
    for world in worlds:
        world.scheduler.validate()


def row(
    name: str = "*",
    count: int = 1,
    *,
    size: Resource = SLOT,
    priority: int = 1,
    relax: bool = True,
    request: int = -1,
    kind: ExecutionType = ExecutionType.GUARANTEED,
) -> AskRow:
    return AskRow(priority, request, name, size, count, relax, kind)


def rows(*names: str, count: int = 1, **more: Any) -> tuple[AskRow, ...]:
    """Rows of one ask that prefers these hosts and racks."""
    return tuple(row(name, count, **more) for name in (*names, "*"))


def given(decisions: Iterable[Outcome]) -> list[Allocate]:
    return [decision for decision in decisions if isinstance(decision, Allocate)]


def hosts(allocated: Iterable[Allocate]) -> list[str]:
    return [one.node_id.host for one in allocated]
