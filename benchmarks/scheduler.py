"""How many containers a second the scheduler itself gives: `python -m benchmarks.scheduler`.

The object that the ResourceManager and the simulator call, `rm.scheduler.scheduler.Scheduler`, with nothing around it:
no wire, no tokens, no daemon. 100 applications of 36 users in a three-level tree of queues ask for 10,000 containers,
by their masters' heartbeats as MapReduce does: splits with three replicas on two racks become host, rack and `*` rows,
the other half may stand anywhere, and each heartbeat also takes back the rows that the last answer made void. Between
two masters' heartbeats nodes send theirs, each node one per round, and a fifth of what was given is over again.
What the masters do is worked out once and their events are kept; a run hands them to a new scheduler, which decides
the same, and times nothing else. The heap is in large pages when that begins, as the ResourceManager has its own.

Rows `core-500`, `core-1000`, `core-2000`, `core-5000`: containers given per second of wall time on that many nodes.
Queues at the nodes are off there, which is not as shipped.
Row `core-full`: the same on 500 nodes with a quarter of the room, so that most requests wait for room, for their users'
limits or for a better place, and containers go to whoever is next when others end; one in a hundred does at a time.
Row `core-queues`: the same with queues at the nodes, where up to eight containers wait; nodes report their queues, and
by name what runs and what waits. Rows `core-queues-1000` to `core-queues-5000`: on more nodes, as many requests a node.
Rows `core-shipped-500` to `core-shipped-5000` are `core-500` to `core-5000` with what is shipped: queues at the nodes
that find their bounds themselves, nodes that report them, jobs ordered by what is left of them. Their nodes have room
for all that is asked for, so nothing waits at any: they say what queues cost while nobody waits, and `core-queues*`
what filling them costs. In both two things are not as shipped: what nobody knows the length of is taken to run for
20 s, where a cluster that configures nothing takes it to run for ever, and no wait is too long, for any master. Each
row prints how many were sent to wait.
`scripts/compiled.sh python -m benchmarks.scheduler` measures the same compiled.
There is no peer: Hadoop's scheduler cannot be called without its daemon. `benchmarks.rm_load` compares the daemons.
"""

import gc
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rm.large_pages import LargePages
from rm.scheduler.decisions import Allocate
from rm.scheduler.events import (
    ApplicationSubmitted,
    Asked,
    AttemptStarted,
    ContainerEnded,
    NodeBeat,
    NodeJoined,
    NodeQueueReported,
    SchedulerEvent,
)
from rm.scheduler.limits import SchedulerLimits
from rm.scheduler.node_queues.spec import QueueingSpec, Tuning
from rm.scheduler.queues.spec import PREFIX, SchedulerSpec, parse_capacity_scheduler
from rm.scheduler.scheduler import Scheduler
from rm.scheduler.view.calculators import AllocationBounds
from yaqd.model import ANY_HOST, ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource
from yaqd.model.compiled import is_compiled
from yaqd.policies.asks.rows import AskRow, Locality

from .options import Options, parse_options, progress, show
from .report import make_row

_FULL: Final = "core-full"
_QUEUES: Final = "core-queues"
_QUEUES_NODES: Final = 500
_SHIPPED: Final = "core-shipped"
#: row -> nodes, and how large each is
ROWS: Final = {
    **{f"core-{nodes}": (nodes, Resource(32 * 1024, 32)) for nodes in (500, 1000, 2000, 5000)},
    _FULL: (500, Resource(8 * 1024, 8)),
    _QUEUES: (_QUEUES_NODES, Resource(8 * 1024, 8)),
    **{f"{_QUEUES}-{nodes}": (nodes, Resource(8 * 1024, 8)) for nodes in (1000, 2000, 5000)},
    **{f"{_SHIPPED}-{nodes}": (nodes, Resource(32 * 1024, 32)) for nodes in (500, 1000, 2000, 5000)},
}
APPLICATIONS: Final = 100
REQUESTS: Final = 10_000
RELEASED: Final = 0.2
_ROUNDS: Final = 5
_ORGANIZATIONS: Final = 3
_TEAMS: Final = 3
_USERS_PER_TEAM: Final = 4
_NODES_PER_RACK: Final = 40
_REPLICAS: Final = 3
#: how long a task is expected to run, s
_TASK_S: Final = 20.0
_SHAPES: Final = (Resource(1024, 1), Resource(2048, 2))
#: rounds of node heartbeats without a container given that end a run as failed
_IDLE_ROUNDS_MAX: Final = 200
_AT_LEAST: Final = "40,000 per second, the same for each number of nodes"
_AT_LEAST_FILLED: Final = "20,000 per second"


def queue_tree(order: str) -> SchedulerSpec:
    """Three organizations of three teams each; users, teams and organizations all have limits. `order`: of jobs."""
    organizations = [f"org{n}" for n in range(_ORGANIZATIONS)]
    teams = [f"team{n}" for n in range(_TEAMS)]
    values = {
        "root.queues": ",".join(organizations),
        "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        "maximum-am-resource-percent": "0.5",
        "minimum-user-limit-percent": "10",
        "user-limit-factor": "2",
    }
    for organization in organizations:
        values[f"root.{organization}.queues"] = ",".join(teams)
        values[f"root.{organization}.capacity"] = str(100 / _ORGANIZATIONS)
        values[f"root.{organization}.maximum-capacity"] = "80"
        for team in teams:
            values[f"root.{organization}.{team}.capacity"] = str(100 / _TEAMS)
            values[f"root.{organization}.{team}.maximum-capacity"] = "90"
            values[f"root.{organization}.{team}.ordering-policy"] = order
    return parse_capacity_scheduler({PREFIX + name: value for name, value in values.items()})


@dataclass(slots=True)
class Master:
    """What an application master keeps: its rows, lowered by itself as containers arrive."""

    attempt_id: ApplicationAttemptId
    rows: dict[tuple[int, str], int] = field(default_factory=dict)
    #: rows whose number the scheduler does not know yet
    changed: set[tuple[int, str]] = field(default_factory=set)
    #: for each row the splits it stands for; a split is all the names under which its container was asked for
    splits: dict[tuple[int, str], list[tuple[str, ...]]] = field(default_factory=dict)

    def want(self, priority: int, names: tuple[str, ...]) -> None:
        """Want one container more: on one of these hosts, in one of these racks, or anywhere."""
        for name in names:
            key = (priority, name)
            self.rows[key] = self.rows.get(key, 0) + 1
            self.changed.add(key)
            self.splits.setdefault(key, []).append(names)

    def got(self, given: Allocate, rack: str) -> None:
        """Give the container to a split and take back what was asked for that split elsewhere."""
        lowered = [ANY_HOST]
        if given.locality in (Locality.NODE, Locality.RACK):
            lowered.insert(0, rack)
        if given.locality is Locality.NODE:
            lowered.insert(0, given.node_id.host)
        # A host may be given twice for one split before the master can say that once was enough.
        fitting = next(waiting for name in lowered if (waiting := self.splits.get((given.priority, name))))
        names = fitting[0]
        for name in names:
            self.splits[(given.priority, name)].remove(names)
            self.rows[(given.priority, name)] -= 1
        self.changed.update((given.priority, name) for name in {*names} ^ {*lowered})

    def asked(self) -> Asked:
        """Return the heartbeat: every row that changed."""
        rows = tuple(
            AskRow(priority, -1, name, _SHAPES[priority % 2], self.rows[(priority, name)])
            for priority, name in sorted(self.changed)
        )
        self.changed.clear()
        return Asked(self.attempt_id, rows)


@dataclass(slots=True)
class Counts:
    """What one run did."""

    given: int = 0
    released: int = 0
    asks: int = 0
    rows: int = 0
    beats: int = 0
    node_local: int = 0
    #: given at nodes without room, to wait there
    queued: int = 0
    #: the most memory that containers held at a time, waiting or not, without the masters' own, MB
    held_mb: int = 0


class Play:
    """One cluster, its masters, and the events between them; the same for the same seed."""

    def __init__(
        self,
        nodes: int,
        size: Resource,
        applications: int,
        per_heartbeat: int,
        *,
        queues: bool = False,
        is_shipped: bool = False,
        seed: int = 1,
    ) -> None:
        """`queues`: at the nodes, of eight places each; `is_shipped`: as they are shipped instead."""
        self.random = random.Random(seed)
        self.per_heartbeat = per_heartbeat
        bounds = AllocationBounds(_SHAPES[0], Resource(8 * 1024, 8))
        queueing = QueueingSpec(default_estimate_s=_TASK_S) if queues else None
        if is_shipped:
            queueing = QueueingSpec(bound=None, tuning=Tuning(idle=0.1), default_estimate_s=_TASK_S)
        self.scheduler = Scheduler(
            queue_tree("srjf" if is_shipped else "fifo"), SchedulerLimits(bounds, queueing=queueing)
        )
        #: how many containers run at once on a node, and all that each node has; None: nodes have no queues
        self.slots = size.memory_mb // ((_SHAPES[0] + _SHAPES[1]).memory_mb // 2)
        self.held: dict[NodeId, dict[ContainerId, None]] | None = {} if queueing is not None else None
        self.now = 0.0
        self.counts = Counts()
        #: what the scheduler was told once everybody had registered, and when
        self.events: list[tuple[SchedulerEvent, float]] = []
        self.live: list[tuple[ContainerId, NodeId]] = []
        self.sizes_mb: dict[ContainerId, int] = {}
        self.held_mb = 0
        self.racks: dict[NodeId, str] = {}
        for number in range(nodes):
            node_id = NodeId(f"node{number:05d}.cluster", 8041)
            self.racks[node_id] = f"/rack{number // _NODES_PER_RACK:03d}"
            self.scheduler.handle(NodeJoined(node_id, self.racks[node_id], size), self.now)
        self.nodes = list(self.racks)
        self.beating = 0
        self.masters = {master.attempt_id: master for master in self._submit(applications)}

    def _submit(self, applications: int) -> Iterator[Master]:
        teams = [q.path for q in self.scheduler.facts.root.walk() if q.is_leaf]
        for number in range(applications):
            app_id = ApplicationId(1_700_000_000_000, number + 1)
            team = teams[number % len(teams)]
            user = f"{team}-user{number // len(teams) % _USERS_PER_TEAM}"
            self.scheduler.handle(ApplicationSubmitted(app_id, team, user, 0), self.now)
            attempt_id = ApplicationAttemptId(app_id, 1)
            own = AskRow(0, -1, ANY_HOST, _SHAPES[0], 1)
            decisions = self.scheduler.handle(AttemptStarted(attempt_id, (own,)), self.now)
            if not any(isinstance(decision, Allocate) for decision in decisions):
                raise RuntimeError(f"the master of {app_id} was not admitted")
            yield Master(attempt_id)

    def tell(self, event: SchedulerEvent) -> None:
        """Hand one event to the scheduler, and its decisions to the masters."""
        self.events.append((event, self.now))
        for decision in self.scheduler.handle(event, self.now):
            if isinstance(decision, Allocate):
                self.counts.given += 1
                self.counts.node_local += decision.locality is Locality.NODE
                self.counts.queued += decision.queued is not None
                self.live.append((decision.container_id, decision.node_id))
                self.sizes_mb[decision.container_id] = decision.resource.memory_mb
                self.held_mb += decision.resource.memory_mb
                self.counts.held_mb = max(self.counts.held_mb, self.held_mb)
                if self.held is not None:
                    self.held.setdefault(decision.node_id, {})[decision.container_id] = None
                self.masters[decision.container_id.attempt_id].got(decision, self.racks[decision.node_id])

    def beat(self, nodes: int) -> None:
        for _ in range(nodes):
            self.counts.beats += 1
            node_id = self.nodes[self.beating]
            if self.held is not None:
                self.tell(self._report(node_id, list(self.held.get(node_id, ()))))
            self.tell(NodeBeat(node_id))
            self.beating = (self.beating + 1) % len(self.nodes)

    def _report(self, node_id: NodeId, held: list[ContainerId]) -> NodeQueueReported:
        """What a node says that runs the first ones and has the others wait."""
        runs, waits = held[: self.slots], held[self.slots :]
        wait_s = _TASK_S * (1 + len(waits)) / self.slots
        return NodeQueueReported(node_id, len(runs), len(waits), wait_s, frozenset(waits), frozenset(runs))

    def release(self) -> None:
        """End containers, any of those there are, until a fifth of all that were given is over."""
        while self.counts.released < int(self.counts.given * RELEASED):
            self.end_one()

    def end_one(self) -> None:
        at = self.random.randrange(len(self.live))
        self.live[at], self.live[-1] = self.live[-1], self.live[at]
        self.counts.released += 1
        container_id, node_id = self.live.pop()
        self.held_mb -= self.sizes_mb.pop(container_id)
        if self.held is not None:
            del self.held[node_id][container_id]
        self.tell(ContainerEnded(container_id))

    def heartbeat(self, master: Master, wave: int) -> None:
        """Send what the master has to say of its last containers and what it wants next; no new wave below 0."""
        for number in range(self.per_heartbeat if wave >= 0 else 0):
            if number % 2:
                master.want(2 * wave + 1, (ANY_HOST,))
                continue
            first = self.random.choice(self.nodes)
            rack = [n for n in self._rack_of(self.random.choice(self.nodes)) if n != first]
            places = (first, *self.random.sample(rack, min(_REPLICAS - 1, len(rack))))
            names = dict.fromkeys([*(n.host for n in places), *(self.racks[n] for n in places), ANY_HOST])
            master.want(2 * wave + 2, tuple(names))
        event = master.asked()
        self.counts.asks += 1
        self.counts.rows += len(event.rows)
        self.tell(event)

    def _rack_of(self, node: NodeId) -> list[NodeId]:
        first = self.nodes.index(node) // _NODES_PER_RACK * _NODES_PER_RACK
        return self.nodes[first : first + _NODES_PER_RACK]

    def run(self, requests: int) -> Counts:
        """Ask, beat and release until everything asked for is given."""
        per_master = -(-len(self.nodes) // len(self.masters))
        for wave in range(_ROUNDS):
            self.now += 1.0
            for master in self.masters.values():
                self.heartbeat(master, wave)
                self.beat(per_master)
                self.release()
        idle = 0
        while self.counts.given < requests:
            before = self.counts.given
            self.now += 1.0
            for master in self.masters.values():
                self.heartbeat(master, -1)
                self.beat(per_master)
                for _ in range(-(-len(self.live) // 100)):
                    self.end_one()
            idle = idle + 1 if self.counts.given == before else 0
            if idle > _IDLE_ROUNDS_MAX:
                raise RuntimeError(f"{self.counts.given} of {requests} containers given, and nothing moves any more")
        return self.counts


def replay(scheduler: Scheduler, events: Sequence[tuple[SchedulerEvent, float]]) -> tuple[float, float]:
    """Hand the events over, one after the other; wall and processor time, s."""
    gc.collect()
    LargePages().join()
    handle = scheduler.handle
    cpu, start = time.process_time(), time.perf_counter()
    for event, now in events:
        handle(event, now)
    return time.perf_counter() - start, time.process_time() - cpu


def measure(row: str, nodes: int, size: Resource, options: Options) -> tuple[list[float], dict[str, Any]]:
    """Return the rate of each run on so many nodes, and what was beside it."""
    applications = max(1, int(APPLICATIONS * options.scale))
    queues, is_shipped = row.startswith(_QUEUES), row.startswith(_SHIPPED)
    if queues:  # as many for each node, so that all are full
        applications = max(1, APPLICATIONS * nodes // _QUEUES_NODES)
    per_heartbeat = REQUESTS // APPLICATIONS // _ROUNDS
    first = Play(nodes, size, applications, per_heartbeat, queues=queues, is_shipped=is_shipped)
    counts = first.run(applications * per_heartbeat * _ROUNDS)
    first.scheduler.validate()
    rates, cpu_us = [], []
    for number in range(options.runs + 1):  # the first one warms up
        again = Play(nodes, size, applications, per_heartbeat, queues=queues, is_shipped=is_shipped).scheduler
        wall_s, cpu_s = replay(again, first.events)
        if again.log.count != first.scheduler.log.count:
            raise RuntimeError("the same events led to other decisions")
        if number:
            rates.append(counts.given / wall_s)
            cpu_us.append(cpu_s / counts.given * 1e6)
    beside = {
        "settings": (
            f"{applications} applications, {_ORGANIZATIONS} x {_TEAMS} teams of {_USERS_PER_TEAM} users, "
            "minimum user limit 10 %, factor 2, dominant resource; "
            f"containers of {_SHAPES[0]} and {_SHAPES[1]} on nodes of {size}, {_NODES_PER_RACK} in a rack; "
            f"{_ROUNDS} waves of {per_heartbeat}; decision log on; {'compiled' if is_compiled() else 'not compiled'}; "
            f"{_queueing(queues=queues, is_shipped=is_shipped)}"
        ),
        "sent to wait at nodes, most of the memory held at a time": (
            f"{counts.queued:,}, {100 * counts.held_mb / (nodes * size.memory_mb):.0f} %"
        ),
        "given, node-local, released": [counts.given, counts.node_local, counts.released],
        "heartbeats of masters, their rows, heartbeats of nodes": [counts.asks, counts.rows, counts.beats],
        "processor time per container": f"{statistics.median(cpu_us):.1f} us",
        "and for each row, each heartbeat of a node and each container given": f"{_each_us(counts, cpu_us):.2f} us",
    }
    return rates, beside


def _each_us(counts: Counts, cpu_us: list[float]) -> float:
    """On more nodes masters name more places, and more nodes send heartbeats: of each of these things."""
    return statistics.median(cpu_us) * counts.given / (counts.rows + counts.beats + counts.given)


def _queueing(*, queues: bool, is_shipped: bool) -> str:
    """What a row has of queues at the nodes, and what of it is not shipped."""
    if not queues and not is_shipped:
        return "queues at the nodes off, which is not as shipped: rows core-shipped-N are"
    what = "queues at the nodes as shipped" if is_shipped else "queues of eight places at the nodes"
    return (
        f"{what}, but what nobody knows the length of is taken to run for {_TASK_S:g} s, not for ever, "
        "and no wait is too long"
    )


def main() -> int:
    """Runs the benchmark."""
    options = parse_options("scheduler", __doc__ or "", list(ROWS), runs=5)
    rows, beside = [], {}
    for row, (nodes, size) in ROWS.items():
        if not options.wants(row) or not options.ours:
            continue
        rates, beside[row] = measure(row, max(1, int(nodes * options.scale)), size, options)
        if row != _FULL and not row.startswith(_QUEUES):
            beside[row] |= {"at least": _AT_LEAST}
        elif row == _QUEUES:
            beside[row] |= {"at least": _AT_LEAST_FILLED}
        rows.append(make_row(row, rates, None, "allocations/s", higher_is_better=True))
        progress(f"{row}: {', '.join(f'{rate:,.0f}' for rate in rates)} /s")
    return show(rows, beside, options)


if __name__ == "__main__":
    sys.exit(main())
