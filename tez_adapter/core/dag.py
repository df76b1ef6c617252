"""What a job is before it runs: vertices of equal tasks, edges that carry data between them.

A MapReduce job is two vertices and one edge, a map-only job or a set of commands one vertex, a flow any graph.
Everything the machine needs to decide is here as values; what a task does (its script, its split) is not its business.
"""

from dataclasses import dataclass
from typing import NamedTuple

from yaqd.model import Resource


class TaskId(NamedTuple):
    vertex: int
    task: int


class AttemptId(NamedTuple):
    vertex: int
    task: int
    #: 0, 1, 2, ... over all attempts of the task, whatever became of them
    number: int

    @property
    def task_id(self) -> TaskId:
        return TaskId(self.vertex, self.task)


@dataclass(frozen=True, slots=True)
class VertexSpec:
    name: str
    tasks: int
    #: of one container
    resource: Resource
    #: of its asks; unique within the job and smaller for vertices that others wait for (smaller is served first)
    priority: int
    #: failed attempts of one task that fail the job (killed ones do not count)
    max_attempts: int = 4
    #: share of its tasks that may fail for good without failing the job, 0..100
    failures_max_percent: int = 0
    #: an attempt without a sign of progress for so long is failed; 0 never
    timeout_s: float = 600.0
    #: its containers run a task process that asks for one task after another
    reusable: bool = True
    #: hosts that hold a task's input, by task index; empty when there are none to prefer
    hosts: tuple[tuple[str, ...], ...] = ()
    #: run each task on one of its hosts or not at all
    only_on_hosts: bool = False
    #: share of its containers that is asked for as opportunistic, 0..1
    opportunistic: float = 0.0
    #: what its tasks leave stays when their node is lost
    outputs_stay: bool = False
    #: its tasks serve those of others: the job ends without them, and they may come and go (`VertexLimited`)
    serves: bool = False
    #: as what it counts and its attempts are named: map, reduce; "": as its own name says
    phase: str = ""
    #: of its attempts' names, where several vertices share a letter
    first_name: int = 0
    #: how long one of its tasks should run as far as the user says, s
    task_s: float | None = None


@dataclass(frozen=True, slots=True)
class EdgeSpec:
    """Every task of `target` reads a part of what every task of `source` leaves on its node."""

    source: int
    target: int
    #: share of finished source tasks from which target tasks may start, 0..1
    slow_start: float = 0.05


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that belong to the job as a whole."""

    #: failed attempts on one node until nothing more is started there (mapreduce.job.maxtaskfailures.per.tracker)
    node_failures: int = 3
    #: share of the cluster's nodes that may be avoided at a time
    blacklist_share: float = 0.33
    #: an idle container with work only in sight is given back after so long, seconds
    idle_release_s: float = 2.0
    #: a container held longer than this takes no further task where the cluster is full: others may be due, seconds
    reuse_max_s: float = 15.0
    #: where a ResourceManager decides about stages: an idle container for which its order does not come in so long goes
    #: on without, seconds. It decides many times a second; and what waits in vain must go on before it is given back
    order_wait_s: float = 1.0
    #: share of the containers held that early target tasks may take while source tasks wait
    ramp_up: float = 0.5
    #: source tasks waiting without any container for so long take one from a target task, seconds
    preempt_after_s: float = 1.0
    #: a node that does not answer is not used for so long, seconds
    node_retry_s: float = 30.0
    #: a node without room on its disks is not used for so long, seconds
    disk_retry_s: float = 5.0
    #: containers of one task in a row that find no room; then the job ends, if no node is known to have some
    disk_failures: int = 3
    #: a node that takes nothing at present is not used for so long, seconds
    busy_retry_s: float = 1.0
    #: containers of one task in a row that nodes do not take at present; each further one costs an attempt
    refusals: int = 20
    #: containers kept unused on such nodes
    parked_max: int = 256
    #: containers smaller than asked for that come in a row; then the job ends: others will not come
    too_small_max: int = 20
    #: containers in a row on hosts that the job avoids; then such a host is used: the ResourceManager does not heed it
    avoided_max: int = 100
    #: a process that has begun a task and says nothing for so long is lost (with its node, as a rule); 0 never
    silence_s: float = 60.0
    #: an attempt of a vertex that serves has run so long when it fails: the task's failures before it are forgotten, s
    forgive_after_s: float = 600.0
    #: reports of failed fetches that make one map output lost, when fewer reducers than that are running: all of them
    fetch_failures: int = 3


@dataclass(frozen=True, slots=True)
class DagSpec:
    vertices: tuple[VertexSpec, ...]
    edges: tuple[EdgeSpec, ...] = ()
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        priorities = [v.priority for v in self.vertices]
        if len(set(priorities)) != len(priorities):
            raise ValueError(f"vertices share a priority: {priorities}")
        for edge in self.edges:
            if not 0 <= edge.source < edge.target < len(self.vertices):
                raise ValueError(f"edge {edge.source} -> {edge.target} does not point forward")
        for vertex in self.vertices:
            if vertex.hosts and len(vertex.hosts) != vertex.tasks:
                raise ValueError(f"vertex {vertex.name}: {len(vertex.hosts)} lists of hosts for {vertex.tasks} tasks")
