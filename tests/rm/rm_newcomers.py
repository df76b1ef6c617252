"""A scheduler with real node queues, and jobs that come, run and end."""

import heapq
from collections import defaultdict

from nm.node_queue import Arrived, Decision, Ended, Launch, MastersExpected, NodeQueue, NodeQueueSettings
from rm.scheduler.decisions import Allocate, Outcome
from rm.scheduler.events import (
    ContainerEnded,
    Estimated,
    NodeBeat,
    NodeJoined,
    NodeQueueReported,
    TaskTimes,
    WaitingTolerated,
)
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.view.calculators import AllocationBounds
from tests.rm.rm_world import SLOT, World, queues, row
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, ExecutionType, NodeId
from yaqd.policies.queueing.facts import TaskFacts
from yaqd.policies.queueing.order import Ordering

NODES, SLOTS, BOUND = 2, 2, 3
BEAT_S = 0.5
LONG_S = 6.0
OVERDUE_S = 60.0
SRJF = {
    "root.queues": "q",
    "root.q.capacity": "100",
    "root.q.ordering-policy": "srjf",
    "maximum-am-resource-percent": "1",
}


class Cluster(World):
    """A scheduler and real node queues, and masters that ask for everything when they start and learn at its end how
    long a task ran."""

    def __init__(self, *, keeps_room: bool = False) -> None:
        """`keeps_room`: nodes keep room for masters where they are told so."""
        self.keeps = keeps_room
        spec = QueueingSpec(bound=BOUND, overdue_s=OVERDUE_S)
        super().__init__(queues(SRJF), bounds=AllocationBounds(SLOT, SLOT), queueing=spec)
        self.tasks: dict[ApplicationId, tuple[int, float]] = {}
        self.accepted: dict[ApplicationId, float] = {}
        #: by application: when its master and its tasks started, s after it was accepted
        self.masters: dict[ApplicationId, float] = {}
        self.started: defaultdict[ApplicationId, list[float]] = defaultdict(list)
        self.is_master: set[ContainerId] = set()
        self.running: dict[NodeId, dict[ContainerId, float]] = {}
        #: what started in the room that its node kept for a master
        self.passed: list[ContainerId] = []
        #: when, node, what
        self.due: list[tuple[float, NodeId, ContainerId]] = []
        self.over: dict[NodeId, list[ContainerId]] = defaultdict(list)
        settings = NodeQueueSettings(True, BOUND, Ordering("srjf"), OVERDUE_S)
        self.queues = {
            NodeId(host, 1): NodeQueue(SLOT * SLOTS, max_length=100, settings=settings) for host in "ab"[:NODES]
        }
        for node_id in self.queues:
            self.running[node_id] = {}
            self.tell(NodeJoined(node_id, "/r", SLOT * SLOTS))
            self.reports(node_id, 0, 0, 0.0)

    def follow(self, decision: Outcome) -> None:
        super().follow(decision)
        if not isinstance(decision, Allocate):
            return
        one, app_id = decision, decision.container_id.application_id
        estimate = None if one.is_master else self.scheduler.node_queues.estimate(app_id, one.priority)
        facts = TaskFacts(app_id, estimate=estimate, priority=one.priority)
        if one.is_master:
            self.is_master.add(one.container_id)
        came = Arrived(one.container_id, SLOT, ExecutionType.GUARANTEED, facts, one.is_master)
        self.at_node(one.node_id, self.queues[one.node_id].handle(came, self.now))

    def at_node(self, node_id: NodeId, decisions: list[Decision]) -> None:
        for decision in decisions:
            assert isinstance(decision, Launch), decision
            one, app_id = decision.container_id, decision.container_id.application_id
            self.running[node_id][one] = self.now
            assert len(self.running[node_id]) <= SLOTS, "no node runs more than fits"
            free = self.queues[node_id].free_for_masters()
            if free is not None and not SLOT.fits_in(free):
                self.passed.append(one)
            after_s = self.now - self.accepted[app_id]
            if one in self.is_master:
                self.masters[app_id] = after_s
                number, _ = self.tasks[app_id]
                attempt_id = ApplicationAttemptId(app_id, 1)
                self.tell(WaitingTolerated(attempt_id))
                self.asks(attempt_id, row(count=number))
            else:
                self.started[app_id].append(after_s)
                heapq.heappush(self.due, (self.now + self.tasks[app_id][1], node_id, one))

    def app(self, tasks: int, seconds: float, *, estimate: float | None = None, master: bool = True) -> ApplicationId:
        app_id = ApplicationId(1, self.apps + 1)
        self.tasks[app_id], self.accepted[app_id] = (tasks, seconds), self.now
        attempt_id = self.begin("q", "ann", master=SLOT if master else None)
        if estimate is not None:
            self.tell(Estimated(app_id, 1, estimate))
        if not master:
            self.tell(WaitingTolerated(attempt_id))
            self.asks(attempt_id, row(count=tasks))
        return app_id

    def run(self, seconds: float) -> None:
        """Nodes beat one after the other; what ends at a node is followed there at once, and told with its beat."""
        until = self.now + seconds
        while self.now < until:
            for node_id in self.queues:
                self.now += BEAT_S / NODES
                self.end_tasks()
                self.beat(node_id)

    def end_tasks(self) -> None:
        now = self.now
        while self.due and self.due[0][0] <= now:
            self.now, node_id, one = heapq.heappop(self.due)
            del self.running[node_id][one]
            self.over[node_id].append(one)
            self.at_node(node_id, self.queues[node_id].handle(Ended(one), self.now))
        self.now = now

    def beat(self, node_id: NodeId) -> None:
        seen = self.queues[node_id].snapshot(self.now, first=100)
        waiting = frozenset(task.container_id for task in seen.waiting)
        running = frozenset(self.running[node_id])
        number, free = len(running), self.queues[node_id].free_for_masters()
        room_s = self.queues[node_id].room_comes(self.now) if free is not None else None
        wait_s, keeps = seen.wait_s, self.keeps
        said = NodeQueueReported(node_id, number, len(waiting), wait_s, waiting, running, None, keeps, free, room_s)
        self.tell(said)
        for one in self.over.pop(node_id, []):
            app_id = one.application_id
            self.tell(TaskTimes(app_id, 1, 0.0, self.tasks[app_id][1], node_id, one))
            self.tell(Estimated(app_id, 1, self.tasks[app_id][1]))
            self.tell(ContainerEnded(one))
        self.tell(NodeBeat(node_id))
        expected = MastersExpected(self.scheduler.facts.masters_to_come(node_id))
        self.at_node(node_id, self.queues[node_id].handle(expected, self.now))
