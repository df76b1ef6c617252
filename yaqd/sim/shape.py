"""What is simulated: the shape of a cluster, and the system that runs it.

The ResourceManager's decisions and the nodes' queues are the live objects (`rm.scheduler`, `nm.node_queue`); what is
made up here is time: heartbeats, polling, the network, how long a task runs, and when a node breaks. Same shape,
workload, system and seed: the same result, bit for bit. How long each task runs, how estimates err and when nodes beat
depend on the seed alone, not on the system. So systems are compared on the same ground.
"""

import math
from dataclasses import dataclass
from typing import Final

from rm.scheduler.limits import Rules
from rm.scheduler.queues.spec import LEAF_ORDERINGS
from yaqd.model import Resource
from yaqd.model.values import value
from yaqd.policies.queueing.bounds import BOUNDS
from yaqd.policies.queueing.estimates import ESTIMATES as LIVE_ESTIMATES
from yaqd.policies.queueing.job_order import JOB_ORDERS
from yaqd.policies.queueing.order import ORDERS, Scope
from yaqd.policies.queueing.place_scores import PLACES
from yaqd.policies.queueing.rebalance import REBALANCES
from yaqd.policies.queueing.wait import WAITS
from yaqd.policies.registry import UnknownPolicy
from yaqd.sim.workload import SLOT

#: the systems that `System.name` may name
SYSTEMS: Final = ("yarn", "yarn-opportunistic", "yaq-c", "yaq-d", "mercury", "sparrow")
#: how tasks' durations are known: each task's own, its stage's mean, what the job has seen so far, not at all; or by
#: a name in `yaqd.policies.queueing.estimates.ESTIMATES`, to which the stage's mean is what earlier runs say
ESTIMATES: Final = ("task", "stage", "learned", "none")
#: what the network takes one way, s
NETWORK_S: Final = 0.001
#: the longest queue at a node that may be asked for
BOUND_MAX: Final = 1_000_000


class Stuck(RuntimeError):
    """Jobs are left, and nothing will ever happen again."""


@value()
class NodeFailure:
    """A node is gone at `at_s` with all it holds, and comes back empty `down_s` later."""

    node: int
    at_s: float
    down_s: float = math.inf


@dataclass(frozen=True, slots=True)
class CallCosts:
    """What the ResourceManager's processor takes, s. With `beat_s` 0 it takes no time.

    They are measured over real RPC (`python -m benchmarks.rm_bound --costs`), and differ from machine to machine.
    """

    #: a heartbeat that has nothing new, and a manager's call that neither asks nor is given anything
    beat_s: float = 0.0
    call_s: float = 0.0
    #: beside these, for each container that is given: the decision, its tokens, what is said of it until it is over
    container_s: float = 0.0
    #: and for each that is sent to wait at a node
    queued_s: float = 0.0
    #: a heartbeat of a node where something may wait, beyond another's
    heeded_s: float = 0.0
    #: that serve calls, each one at a time
    cores: int = 1
    #: the same while a core that is full has queues at nodes turned off; None: that makes no difference
    without_queues: "CallCosts | None" = None


@dataclass(frozen=True, slots=True)
class LivedTimes:
    """What a live run shows beside its tasks' work; a twin of the run is given it, measured in that run."""

    #: from a job's submission to its manager's first call
    register_s: float = 0.0
    #: managers hear of their tasks' ends from the ResourceManager, and not from the tasks
    hears_by_polls: bool = False
    #: what processors are busy with one start, and no other start gets on meanwhile: all nodes share one machine
    start_turn_s: float = 0.0
    #: heartbeats of all nodes come within so long of each other, as where nodes have registered at one moment
    beats_within_s: float = math.inf


@dataclass(frozen=True, slots=True)
class ClusterShape:
    nodes: int = 80
    slots: int = 10
    #: a node's report to the ResourceManager, each node at its own phase
    heartbeat_s: float = 3.0
    #: a job manager's
    am_poll_s: float = 1.0
    #: one way
    network_s: float = NETWORK_S
    #: between a slot's getting free and the process that is next on it
    start_gap_s: float = 0.05
    #: files and launch script of a container, made while it queues if it does
    prepare_s: float = 0.0
    #: standard deviation of the logarithm of how much longer a task takes than it should
    noise: float = 0.0
    failures: tuple[NodeFailure, ...] = ()
    #: after so long without a heartbeat a node counts as lost
    expiry_s: float = 60.0
    #: of the nodes in turn; 2 runs a task in half the time
    speeds: tuple[float, ...] = (1.0,)
    #: of the nodes in turn; 2 has twice the slots
    sizes: tuple[float, ...] = (1.0,)
    #: how much longer a task takes beside tasks of its own stage, which fight for the same resource: with 1, twice as
    #: long on a node full of them, as it is when the task starts
    crowding: float = 0.0
    rack_size: int = 40
    #: of the ResourceManager
    calls: CallCosts = CallCosts()
    #: one slot
    slot: Resource = SLOT
    #: leaf queues below root, each with its percent
    queues: tuple[tuple[str, float], ...] = (("default", 100.0),)
    #: further lines of capacity-scheduler.xml, without the prefix `yarn.scheduler.capacity.`
    scheduler: tuple[tuple[str, str], ...] = ()
    #: of systems with a ResourceManager
    lived: LivedTimes = LivedTimes()

    @property
    def total_slots(self) -> int:
        return sum(map(self.slots_of, range(self.nodes)))

    def slots_of(self, node: int) -> int:
        return max(1, round(self.slots * self.sizes[node % len(self.sizes)]))

    def capacity_of(self, node: int) -> Resource:
        return self.slot * self.slots_of(node)


@dataclass(frozen=True, slots=True)
class System:
    """Who decides, and by which rules. A parameter that a system does not have is ignored by it."""

    name: str = "yarn"
    # ---- all
    #: a node reports at once when a container ends
    out_of_turn: bool = False
    #: the ResourceManager decides when it is asked too, not only at nodes' heartbeats
    at_asks: bool = False
    #: jobs that may run at a time, the others wait in the order of their arrival; 0: any number
    jobs_at_once: int = 0
    estimates: str = "stage"
    #: each stage's estimate is this many times too high or too low, by the toss of a coin
    estimate_error: float = 1.0
    #: what a task is taken to run of which nobody knows anything, s; None: for ever
    default_estimate_s: float | None = None
    # ---- queues at nodes: yarn-opportunistic, yaq-c (by length), yaq-d, mercury, sparrow
    #: containers that may wait at a node, 1 and more; None: any number (yarn-opportunistic: Hadoop's own limit)
    bound: int | None = None
    #: yaq-c: the bound comes from the observed durations and gaps, for this part of the intervals with all slots busy
    bound_target: float = 0.0
    #: by which formula then, a name in `BOUNDS`
    bound_policy: str = "poisson"
    #: and no shorter than this: with 0 nothing waits where that gains nothing
    bound_least: int = 0
    #: yaq-c: nothing is sent to a node where it would wait longer than this, s; 0: no such bound
    bound_wait_s: float = 0.0
    #: yaq-c: a container that has waited so long goes back and is placed again, s; 0: never
    max_wait_s: float = 60.0
    #: yaq-c, yaq-d: masters say that their containers may wait, as ours do and stock ones do not
    aware: bool = True
    #: yaq-c, yaq-d: without that a container goes only where it is expected to wait less than this, after so long goes
    #: before all others there, and after three times as long back, s
    max_wait_unaware_s: float = 0.0
    #: yaq-c, yaq-d: how nodes estimate how long one more would wait, a name in `WAITS`
    wait_estimate: str = "resources"
    # ---- placement
    #: at which of the nodes one waits, a name in `PLACES`; with "length" yaq-d knows nothing else of them
    place: str = "wait"
    #: yaq-c, yaq-d: how much tasks of one stage avoid each other
    interference: float = 0.0
    #: yaq-c: nothing waits while a larger part of the cluster than this is free (Rf_min)
    free_min: float = 0.1
    # ---- order at the nodes, and of jobs at the ResourceManager: yaq-c, yaq-d
    order: str = "srjf"
    starve_s: float = 60.0
    starve_ratio: float = math.inf
    order_scope: str = "queue"
    #: a leaf queue's ordering policy: fifo, fair, or a name of `yaqd.policies.queueing.job_order`
    job_order: str = "fifo"
    #: a job that was given nothing for so long goes first, s
    job_starve_s: float = 60.0
    #: or for so many times the work that is left of it
    job_starve_ratio: float = 10.0
    #: what a leaf queue has beyond its guarantee is taken back for one below its own
    preempt: bool = False
    # ---- distributed: yaq-d, mercury, sparrow
    #: yaq-d: the ResourceManager books what managers place, as the live one does: what is published has it at once, and
    #: what would wait for longer than it may by then stays with its manager. Always where some masters are not aware
    booked: bool = False
    #: yaq-d: queues are told to be no longer than most are, as Hadoop does (mean and a standard deviation, within these
    #: two), and the last of a queue go where they start so much sooner, s; 0: only by length
    rebalance: bool = True
    rebalance_least: int = 5
    rebalance_most: int = 15
    rebalance_gain_s: float = 0.0
    #: by which rule then, a name in `REBALANCES`
    rebalance_policy: str = "gain"
    #: containers of one job that may run and wait at a time; 0: any number
    tasks_at_once: int = 0
    #: nodes whose load is published, the least loaded ones; Hadoop's own are 10 (nodes-used). sparrow asks among these
    published: int = 200
    #: sparrow: nodes asked for each task; 0: none, tasks go anywhere
    probes: float = 2.0
    #: sparrow: a node that was asked gets its task when it has a slot for it, not before
    late_binding: bool = True
    # ---- yarn-opportunistic
    #: part of each stage's tasks that is asked for as opportunistic
    opportunistic_share: float = 1.0
    # ---- yarn, yarn-opportunistic
    #: by which rules guaranteed containers are given at heartbeats: "yaq", or "stock", as Hadoop's CapacityScheduler
    rules: str = "yaq"
    #: by stock's rules: containers of one heartbeat for asks that prefer no place, or others
    off_switch_max: int = 1
    #: by stock's rules: so often all nodes are offered a container each, and none at heartbeats, s; 0: at heartbeats
    async_s: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in SYSTEMS:
            raise ValueError(f"no system is called {self.name!r}; there are {', '.join(SYSTEMS)}")
        self._check_names()
        self._check_orders()
        self._check_rules()
        if self.bound is not None and not 1 <= self.bound <= BOUND_MAX:
            raise ValueError(
                f"bound is {self.bound}; it must be 1 to {BOUND_MAX}, or none for any number; "
                "without queues at the nodes it is the system yarn"
            )
        if self.published < 1:
            raise ValueError(f"published is {self.published}; managers must know 1 node and more")
        for name in ("bound_target", "free_min", "opportunistic_share"):
            part = getattr(self, name)
            if not 0.0 <= part <= 1.0:  # also refuses NaN
                raise ValueError(f"{name} is {part}; it is a part, 0 to 1")
        if self.bound_target == 1.0:
            raise ValueError("bound_target is 1; no bound keeps the slots busy in all intervals")

    def most_wait_s(self, is_aware: bool) -> float:
        """Return how long a container may wait at one node for its master's sake, s.

        `is_aware`: what is said of its job.
        """
        return math.inf if self.aware and is_aware else self.max_wait_unaware_s

    def _check_names(self) -> None:
        """Raise `ValueError` for a word that nobody knows: here, and not where a simulation is under way."""
        if self.estimates not in ESTIMATES:
            try:
                LIVE_ESTIMATES[self.estimates]
            except UnknownPolicy:
                known = (*ESTIMATES, *LIVE_ESTIMATES.names())
                raise ValueError(f"no estimates are called {self.estimates!r}; there are {', '.join(known)}") from None
        PLACES[self.place]
        BOUNDS[self.bound_policy]
        WAITS[self.wait_estimate]
        REBALANCES[self.rebalance_policy]

    def _check_rules(self) -> None:
        if self.rules not in list(Rules):
            raise ValueError(f"no rules are called {self.rules!r}; there are {', '.join(Rules)}")
        if self.rules == Rules.STOCK:
            if self.at_asks:
                raise ValueError("rules=stock gives nothing at asks: leave at_asks off")
            if self.off_switch_max < 1:
                raise ValueError(f"off_switch_max is {self.off_switch_max}; it must be 1 or more")
        elif self.off_switch_max != 1 or self.async_s:
            raise ValueError("off_switch_max and async_s are of stock's rules: say rules=stock")

    def _check_orders(self) -> None:
        """The same of orders, at the nodes and of jobs."""
        ORDERS[self.order.removesuffix("+pack")]
        if self.order_scope not in list(Scope):
            raise ValueError(f"no order_scope is called {self.order_scope!r}; there are {', '.join(Scope)}")
        if self.job_order.lower() not in LEAF_ORDERINGS:
            try:
                JOB_ORDERS[self.job_order.lower()]
            except UnknownPolicy:
                known = (*LEAF_ORDERINGS, *JOB_ORDERS.names())
                raise ValueError(f"no job_order is called {self.job_order!r}; there are {', '.join(known)}") from None


def host_name(node: int) -> str:
    return f"node{node:05d}"
