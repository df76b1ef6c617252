"""What the distributed scheduler is told and what it decides: values."""

import math

from yaqd.model import ContainerId, NodeId, Resource
from yaqd.model.values import value
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.queueing.place_scores import Affinity


@value()
class NodeOffer:
    """A node as the ResourceManager publishes it. Only what a stock one leaves out may be None."""

    node_id: NodeId
    #: `host:port` of its web server
    http_address: str
    rack: str
    partition: str = ""
    #: how long a newcomer would wait there, s; inf: for ever
    wait_s: float | None = None
    free: Resource | None = None
    #: containers that wait there
    queued: int | None = None
    #: how many may
    queue_max: int | None = None
    #: it reads estimates in container tokens
    reads_tasks: bool = False
    #: how many run there at once; 0: nobody has seen it
    slots: int = 0


@value()
class DistributedLimits:
    #: containers that one heartbeat of the master may be given; negative: any number
    per_beat: int = -1
    #: containers of the job that run or wait at a time; negative: any number
    tasks_max: int = -1
    #: nothing is sent where it would wait longer, s
    wait_max_s: float = math.inf
    #: how long a task without an estimate is taken to run when its node's load is reckoned, s
    typical_s: float = 10.0
    #: worth of a place in the wanted rack, and of any other, beside 1 for the wanted host, and what likes take of it
    affinity: Affinity = Affinity()
    ask_rows_max: int = 200_000
    #: how a node's load is measured: a name in PLACES (yaqd.policies.queueing.place_scores)
    placement: str = "wait"


# ---- events


@value()
class NodesPublished:
    """The whole list, least loaded first; the former one is void, and what was placed by it is in its numbers."""

    nodes: tuple[NodeOffer, ...]


@value()
class Asked:
    """A heartbeat of the master, with or without news."""

    rows: tuple[AskRow, ...] = ()
    #: hosts or racks to avoid, and to avoid no longer
    blacklist_additions: tuple[str, ...] = ()
    blacklist_removals: tuple[str, ...] = ()


@value()
class ContainerOver:
    """Completed or given back."""

    container_ids: tuple[ContainerId, ...]
    #: those of them that waited at a node and went without having run: their master asks for them again
    unserved: frozenset[ContainerId] = frozenset()


@value()
class StageEstimated:
    """How long the job's tasks of one priority run, s; None: nobody knows."""

    priority: int
    estimate_s: float | None


@value()
class WaitLimited:
    """None of the job's containers is to go where it is expected to wait as long, s; None: as long as it takes.

    Its master takes what it has started for running.
    """

    most_s: float | None


@value()
class NotBooked:
    """The ResourceManager has answered what was placed, and these of it are to be placed again.

    By now they would wait for longer than they may. Told before the nodes that came with the answer.
    """

    #: each with the rows that wanted it, for a scheduler that began after it was placed
    containers: tuple[tuple[ContainerId, tuple[AskRow, ...]], ...]


Event = NodesPublished | Asked | ContainerOver | StageEstimated | WaitLimited | NotBooked


# ---- decisions


@value()
class Place:
    """Give this container; already counted."""

    container_id: ContainerId
    node: NodeOffer
    resource: Resource
    priority: int
    allocation_request_id: int
    #: s; None: no finite one
    estimate_s: float | None
    #: what it is expected to wait there, s; None: not known
    wait_s: float | None
    #: how long its task has waited at other nodes, s
    waited_s: float = 0.0
    #: how many were known to wait there
    behind: int = 0
    #: why there, for people
    rule: str = ""
    #: its master takes it for running, and must not for longer than this, s
    most_wait_s: float = math.inf
    #: what wanted it: the rows that are one less by it
    wanted_by: tuple[AskRow, ...] = ()
