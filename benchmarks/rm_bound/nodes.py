"""Nodes that run nothing but clocks, and heartbeats as a NodeManager sends them.

At most one heartbeat is under way. The next one goes out an interval after the last answer, or at once when a container
ended here. A task is a timer: what it takes beside is nothing. Where the ResourceManager may fill nodes beyond their
size they have the live queue of a NodeManager. Elsewhere all that comes has room, and starts at once. Nodes of ours
tell of their queues in either case.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Final

from nm.heartbeat import CAPABILITIES, MASTER_ROOMS, NM_VERSION, YAQ_QUEUE
from nm.node_queue import Arrived, Decision, Ended, Event, Launch, NodeQueue, NodeQueueSnapshot, Tick
from nm.node_queue_wire import NodeQueueCommands, queue_pb, task_facts, wait_ms
from yaqd.model import ContainerId, ExecutionType, NodeAction, Resource
from yaqd.policies.queueing.means import RecentMean
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto.protocols import ResourceTracker

from ..live_master import SLOT_MB
from ..load_client import heartbeat_of
from .lines import RpcLine

_PORT: Final = 45454
_ANSWERS: Final = 16
_QUEUE_MAX: Final = 1000
_REGISTER_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class NodeWays:
    """How all nodes behave."""

    slots: int
    #: they are nodes of ours, which tell of their queues
    is_ours: bool
    #: containers may wait there
    has_queues: bool
    #: mean, s, and the deviation of its logarithm: tasks of one moment do not end at one moment
    task_s: float
    noise: float = 0.1


@dataclass(slots=True)
class Tally:
    """What has happened on all nodes so far."""

    beats: int = 0
    #: containers that came, that a process started of, and that ended
    arrived: int = 0
    started: int = 0
    ended: int = 0
    #: that were handed back without having run
    refused: int = 0
    running: int = 0
    waiting: int = 0
    #: integrals over time: of running containers, and of waiting ones, container-seconds
    busy_s: float = 0.0
    queued_s: float = 0.0
    #: from a heartbeat's sending to its answer, all together, s
    answer_s: float = 0.0
    at: float = 0.0

    def pass_to(self, now: float) -> None:
        """Count what runs and waits up to now."""
        passed = now - self.at
        self.busy_s += self.running * passed
        self.queued_s += self.waiting * passed
        self.at = now


class ClockNode:
    """One NodeManager as its ResourceManager sees it."""

    def __init__(self, fleet: "ClockFleet", index: int) -> None:
        self._fleet = fleet
        self._ways = fleet.ways
        host = f"127.{1 + index // 62500}.{index // 250 % 250}.{index % 250 + 1}"
        self.address = f"{host}:{_PORT}"
        self._capacity = Resource(self._ways.slots * SLOT_MB, self._ways.slots)
        #: None: nothing ever waits
        self._queue: NodeQueue | None = None
        if self._ways.has_queues:
            self._queue = NodeQueue(self._capacity, max_length=_QUEUE_MAX, smallest=Resource(SLOT_MB, 1))
        self._commands = NodeQueueCommands(max_length=_QUEUE_MAX)
        #: what is said of each container, with when it came
        self._statuses: dict[ContainerId, common.ContainerStatus] = {}
        self._arrived: dict[ContainerId, float] = {}
        self._started: dict[ContainerId, float] = {}
        self._ended: list[ContainerId] = []
        self._told: list[ContainerId] = []
        self._answers = RecentMean(_ANSWERS)
        self._line: RpcLine | None = None
        self._tells = False
        self._beats_now = False
        self._is_due = False
        self._sent_at = 0.0
        self._next: asyncio.TimerHandle | None = None
        self._tick: asyncio.TimerHandle | None = None
        self._request = heartbeat_of(common.NodeId(host=host, port=_PORT))

    # ---- registration

    def register(self, line: RpcLine, done: Callable[[], None]) -> None:
        """Register over this connection; `done` is called with the answer. It does not beat before `begin`."""
        self._line = line
        status = self._request.node_status
        status.response_id = 0
        request = server.RegisterNodeManagerRequest(
            node_id=status.node_id,
            http_port=_PORT + 1,
            resource=convert.resource_pb(self._capacity),
            physicalResource=convert.resource_pb(self._capacity),
            nm_version=NM_VERSION,
            nodeStatus=status,
        )
        if self._ways.is_ours:
            request.yaq_capabilities.understands.extend((*CAPABILITIES, YAQ_QUEUE, MASTER_ROOMS))
            request.yaq_capabilities.queue_max = _QUEUE_MAX

        def answered(body: bytes) -> None:
            response = server.RegisterNodeManagerResponse.FromString(body)
            if response.nodeAction != NodeAction.NORMAL.value:
                raise RuntimeError(f"{self.address} was turned away: {response.diagnostics_message}")
            self._request.last_known_container_token_master_key.CopyFrom(response.container_token_master_key)
            self._request.last_known_nm_token_master_key.CopyFrom(response.nm_token_master_key)
            self._tells = self._ways.is_ours and YAQ_QUEUE in response.yaq_capabilities.understands
            done()

        line.call(ResourceTracker.registerNodeManager, request, answered)

    def begin(self, after_s: float) -> None:
        """Send the first heartbeat after so long, s."""
        self._next = self._fleet.loop.call_later(after_s, self._beat)

    # ---- heartbeats

    def _notify(self) -> None:
        """Note that a container has ended, which both sides' nodes report at once."""
        if self._beats_now:
            self._is_due = True
        elif not self._is_due:
            self._is_due = True
            self._fleet.loop.call_soon(self._beat_early)

    def _beat_early(self) -> None:
        if not self._beats_now:
            self._beat()

    def _beat(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None
        self._is_due = False
        self._beats_now = True
        status = self._request.node_status
        del status.containersStatuses[:]
        statuses = self._statuses
        if statuses:
            status.containersStatuses.extend(statuses.values())
        self._told, self._ended = self._ended, []
        now = self._sent_at = self._fleet.loop.time()
        if self._tells:
            queue = queue_pb(self._snapshot(now))
            queue.tells_ends = True
            queue.refill_ms = wait_ms(self._answers.mean)
            status.yaq_queue.CopyFrom(queue)
        assert self._line is not None
        self._line.call(ResourceTracker.nodeHeartbeat, self._request, self._answered)

    def _snapshot(self, now: float) -> NodeQueueSnapshot:
        if self._queue is not None:
            return self._queue.snapshot(now)
        running = len(self._started)
        return NodeQueueSnapshot(running, 0, 0.0 if running < self._ways.slots else inf, ())

    def _answered(self, body: bytes) -> None:
        fleet = self._fleet
        now = fleet.loop.time()
        took_s = now - self._sent_at
        self._answers.add(took_s)
        fleet.tally.beats += 1
        fleet.tally.answer_s += took_s
        response = server.NodeHeartbeatResponse.FromString(body)
        if response.nodeAction != NodeAction.NORMAL.value:
            raise RuntimeError(f"{self.address} was told to {response.nodeAction}: {response.diagnostics_message}")
        self._request.node_status.response_id = response.response_id
        for container_id in self._told:
            del self._statuses[container_id]
        self._told = []
        self._beats_now = False
        if self._queue is not None and response.HasField("yaq_orders"):
            for event in self._commands.events(response.yaq_orders):
                self._tell(self._queue, event, now)
        for message in response.containers_to_cleanup:
            self.end(convert.container_id(message))
        if self._is_due:
            self._beat()
        else:
            self._next = fleet.loop.call_later(response.nextHeartBeatInterval / 1000, self._beat)

    # ---- containers

    def start(self, container: common.Container) -> None:
        """Take a container that its master starts here."""
        token = server.ContainerTokenIdentifier.FromString(container.container_token.identifier)
        container_id = convert.container_id(token.containerId)
        now = self._fleet.loop.time()
        tally = self._fleet.tally
        tally.pass_to(now)
        tally.arrived += 1
        tally.waiting += 1
        self._arrived[container_id] = now
        self._statuses[container_id] = common.ContainerStatus(
            container_id=token.containerId,
            state=common.C_RUNNING,
            exit_status=-1000,
            diagnostics="",
            capability=token.resource,
            container_sub_state=common.CSS_SCHEDULED,
        )
        queue = self._queue
        if queue is None:
            self._launch(container_id, now)
            return
        facts = task_facts(token, container_id.application_id)
        size = convert.resource(token.resource)
        self._tell(queue, Arrived(container_id, size, ExecutionType.GUARANTEED, facts), now)

    def end(self, container_id: ContainerId) -> None:
        """End a container here, whether it runs or waits."""
        status = self._statuses.get(container_id)
        if status is None or status.state == common.C_COMPLETE:
            return
        loop, tally = self._fleet.loop, self._fleet.tally
        now = loop.time()
        tally.pass_to(now)
        started, arrived = self._started.pop(container_id, None), self._arrived.pop(container_id)
        if started is None:
            tally.waiting -= 1
            tally.refused += 1
            status.exit_status = -102
        else:
            tally.running -= 1
            tally.ended += 1
            status.exit_status = 0
            if self._tells:
                status.yaq_times.queued_ms = round(1000 * (started - arrived))
                status.yaq_times.run_ms = round(1000 * (now - started))
        status.state = common.C_COMPLETE
        status.container_sub_state = common.CSS_DONE
        self._ended.append(container_id)
        if self._queue is not None:
            self._tell(self._queue, Ended(container_id), now)
        self._notify()

    def _tell(self, queue: NodeQueue, event: Event, now: float) -> None:
        for decision in queue.handle(event, now):
            self._carry_out(decision, now)
        due = queue.next_tick()
        if self._tick is not None and self._tick.when() != due:
            self._tick.cancel()
            self._tick = None
        if due is not None and self._tick is None:
            self._tick = self._fleet.loop.call_at(due, self._ticked, queue)

    def _ticked(self, queue: NodeQueue) -> None:
        self._tick = None
        self._tell(queue, Tick(), self._fleet.loop.time())

    def _carry_out(self, decision: Decision, now: float) -> None:
        if type(decision) is Launch:
            self._launch(decision.container_id, now)
        else:
            self.end(decision.container_id)

    def _launch(self, container_id: ContainerId, now: float) -> None:
        if self._queue is None and len(self._started) >= self._ways.slots:
            raise RuntimeError(f"{self.address} was given more than its {self._ways.slots} slots")
        self._statuses[container_id].container_sub_state = common.CSS_RUNNING
        self._started[container_id] = now
        tally = self._fleet.tally
        tally.pass_to(now)
        tally.waiting -= 1
        tally.running += 1
        tally.started += 1
        self._fleet.loop.call_later(self._fleet.duration_s(), self.end, container_id)


class ClockFleet:
    """All nodes and their connections, one each."""

    def __init__(self, tracker: tuple[str, int], nodes: int, ways: NodeWays) -> None:
        self._tracker = tracker
        self.ways = ways
        self.loop = asyncio.get_running_loop()
        self.tally = Tally(at=self.loop.time())
        self.errors: list[BaseException] = []
        self.nodes: Final = [ClockNode(self, index) for index in range(nodes)]
        self._by_address: Final[Mapping[str, ClockNode]] = {node.address: node for node in self.nodes}
        self._lines: list[RpcLine] = []
        self._random = Random(1)

    def duration_s(self) -> float:
        """Draw how long the next task runs, s."""
        sigma = self.ways.noise
        return self.ways.task_s * self._random.lognormvariate(-sigma * sigma / 2.0, sigma)

    async def start(self, heartbeat_s: float) -> None:
        """Connect and register all nodes; they beat from then on, spread over the interval, s."""
        for at in range(0, len(self.nodes), _REGISTER_AT_ONCE):
            await asyncio.gather(*map(self._register, self.nodes[at : at + _REGISTER_AT_ONCE]))
        for index, node in enumerate(self.nodes):
            node.begin(heartbeat_s * index / len(self.nodes))

    async def _register(self, node: ClockNode) -> None:
        host, port = self._tracker
        name = ResourceTracker.nodeHeartbeat.protocol
        _, line = await self.loop.create_connection(lambda: RpcLine(name, self.errors), host, port)
        self._lines.append(line)
        registered = self.loop.create_future()
        node.register(line, lambda: registered.set_result(None))
        async with asyncio.timeout(60):
            await registered

    def run(self, container: common.Container) -> None:
        """Start a container at its node, as its master does."""
        self._by_address[f"{container.nodeId.host}:{container.nodeId.port}"].start(container)

    def check(self) -> None:
        """Raise what went wrong on any connection."""
        if self.errors:
            raise RuntimeError(f"{len(self.errors)} connections failed") from self.errors[0]

    def stop(self) -> None:
        """Close all connections."""
        for line in self._lines:
            line.close()
