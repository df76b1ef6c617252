"""What can happen to a job, and what may follow from it.

Events come from the ResourceManager's answers, the task processes' calls and the clock; decisions are carried
out by the application master, in order. Container ids and hosts are plain strings here: the core compares
them and nothing else.
"""

from dataclasses import dataclass

from tez_adapter.core.dag import AttemptId
from tez_adapter.core.states import JobState
from yaqd.model import Resource
from yaqd.model.stages import StagesOrder

# ---- events


@dataclass(frozen=True, slots=True)
class ContainerAllocated:
    container: str
    #: host and port of its node
    node: str
    host: str
    resource: Resource
    #: that of the ask it answers: tells the vertex
    priority: int


@dataclass(frozen=True, slots=True)
class ContainerCompleted:
    container: str
    #: YARN's: 0..255 the process's own, negative ones say who ended it
    exit_status: int
    diagnostics: str = ""
    #: how long its process ran, s, as its node said; None: it did not
    ran_s: float | None = None


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """The node refused the container or could not be reached."""

    container: str
    reason: str
    #: the node answered, and its answer was no; an unreachable node is not the task's fault
    refused: bool = True
    #: it takes no container at present, whatever it is
    not_now: bool = False


@dataclass(frozen=True, slots=True)
class ContainerWaits:
    """Asked for (`AskNode`), the node says that the container has not had its turn there yet."""

    container: str


@dataclass(frozen=True, slots=True)
class TaskRequested:
    """The process in a container asks what to do."""

    container: str


@dataclass(frozen=True, slots=True)
class AttemptReported:
    attempt: AttemptId
    #: 0..1
    progress: float
    #: False: the process lives, but its task has not moved since the last report
    moved: bool


@dataclass(frozen=True, slots=True)
class AttemptSucceeded:
    attempt: AttemptId


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    attempt: AttemptId
    #: for the user: the error, its traceback, its split
    error: str
    #: no other attempt could fare better (the script does not import)
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class AttemptReturned:
    """Of a vertex that serves: its process goes, and its container is given back."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True)
class VertexLimited:
    """So many tasks of a vertex that serves may run from now on; those that run go on."""

    vertex: int
    tasks: int


@dataclass(frozen=True, slots=True)
class CommitRequested:
    attempt: AttemptId


@dataclass(frozen=True, slots=True)
class FetchReported:
    """A target attempt could not get the output of source attempts."""

    reporter: AttemptId
    sources: tuple[AttemptId, ...]


@dataclass(frozen=True, slots=True)
class NodeLost:
    node: str


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """What an allocate answer says about the cluster."""

    headroom: Resource
    nodes: int


@dataclass(frozen=True, slots=True)
class ResourcesCounted:
    """The ResourceManager, of whom nothing was heard or who began anew, says what it schedules by."""

    #: virtual cores and further resources beside memory
    cores: bool


@dataclass(frozen=True, slots=True)
class StagesOrdered:
    """The ResourceManager says where idle containers go on, or that it does not say."""

    order: StagesOrder


@dataclass(frozen=True, slots=True)
class KillRequested:
    reason: str


@dataclass(frozen=True, slots=True)
class AbortRequested:
    """The job manager itself cannot go on (no output folder can be made): the job has failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class JobCompleted:
    """The job has what it was for, whatever its tasks do."""

    text: str


@dataclass(frozen=True, slots=True)
class ProgressTold:
    """How far a job is, 0..1, whose tasks only serve."""

    part: float


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = (
    ContainerAllocated
    | ContainerCompleted
    | LaunchFailed
    | ContainerWaits
    | TaskRequested
    | AttemptReported
    | AttemptSucceeded
    | AttemptFailed
    | AttemptReturned
    | VertexLimited
    | CommitRequested
    | FetchReported
    | NodeLost
    | ClusterSeen
    | ResourcesCounted
    | StagesOrdered
    | KillRequested
    | AbortRequested
    | JobCompleted
    | ProgressTold
    | Tick
)

# ---- decisions


@dataclass(frozen=True, slots=True)
class Launch:
    """Start the container's process; its first attempt is this one."""

    container: str
    node: str
    attempt: AttemptId


@dataclass(frozen=True, slots=True)
class LaunchMerger:
    """Start a merger of the job's own in the container."""

    container: str
    node: str


@dataclass(frozen=True, slots=True)
class GiveTask:
    """Answer the container's request with this attempt (again, if it was given before)."""

    container: str
    attempt: AttemptId


@dataclass(frozen=True, slots=True)
class GiveExit:
    """Answer the container's request with: end."""

    container: str


@dataclass(frozen=True, slots=True)
class Release:
    """Give a container back that was never started."""

    container: str


@dataclass(frozen=True, slots=True)
class Stop:
    """End the container's process on its node."""

    container: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class AskNode:
    """Ask the node whether the container, of which nothing has been heard, still waits there."""

    container: str
    node: str


@dataclass(frozen=True, slots=True)
class AnswerCommit:
    attempt: AttemptId
    granted: bool


@dataclass(frozen=True, slots=True)
class Blacklist:
    """The hosts to avoid changed."""

    additions: tuple[str, ...]
    removals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    state: JobState
    diagnostics: str


Decision = Launch | LaunchMerger | GiveTask | GiveExit | Release | Stop | AskNode | AnswerCommit | Blacklist | Finish


class Turn:
    """The event at hand, as all parts of the machine see it."""

    def __init__(self) -> None:
        #: seconds on the caller's clock
        self.now = 0.0
        #: decided so far, in the order in which it is to be carried out
        self.out: list[Decision] = []

    def begin(self, now: float) -> None:
        self.now, self.out = now, []
