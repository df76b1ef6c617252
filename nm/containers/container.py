"""One container as the node knows it, and its forms on the wire."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

from nm.containers.retries import Retries
from nm.containers.states import ON_THE_WIRE, Stage
from nm.launch.context import LaunchContext
from nm.node_queue_wire import task_facts
from nm.resources.directories import ContainerFolders
from nm.resources.processes import ContainerProcess
from yaqd.model import ContainerId, ContainerType, ExecutionType, ExitStatus, Resource
from yaqd.policies.queueing.facts import TaskFacts
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server


class LocalizationState(IntEnum):
    """Hadoop's numbers."""

    PENDING = 1
    COMPLETED = 2
    FAILED = 3


_MAX_DIAGNOSTICS = 64 << 10


def wire_enum(value: int) -> Any:
    """Passes an enum of the vocabulary as messages take it: the numbers are the same, the types differ."""
    return int(value)


@dataclass(frozen=True, slots=True)
class ContainerGrant:
    """What the container token says: the ResourceManager's word, already verified."""

    container_id: ContainerId
    user: str
    resource: Resource
    priority: int
    execution_type: ExecutionType
    #: epoch ms
    created_ms: int
    version: int
    allocation_request_id: int
    allocation_tags: tuple[str, ...]
    node_label: str
    container_type: ContainerType
    #: the application's wishes for its logs; None: it has none
    log_aggregation: common.LogAggregationContext | None
    #: what the node queue orders by
    task: TaskFacts

    @classmethod
    def from_pb(cls, token: server.ContainerTokenIdentifier) -> "ContainerGrant":
        return cls(
            container_id=convert.container_id(token.containerId),
            user=token.appSubmitter,
            resource=convert.resource(token.resource),
            priority=token.priority.priority,
            execution_type=ExecutionType(token.executionType),
            created_ms=token.creationTime,
            version=token.version,
            allocation_request_id=token.allocation_request_id,
            allocation_tags=tuple(token.allocation_tags),
            node_label=token.nodeLabelExpression,
            container_type=ContainerType(token.containerType)
            if token.HasField("containerType")
            else ContainerType.TASK,
            log_aggregation=token.logAggregationContext if token.HasField("logAggregationContext") else None,
            task=task_facts(token, convert.container_id(token.containerId).application_id),
        )


@dataclass(frozen=True, slots=True)
class LocalizationNote:
    state: LocalizationState
    #: why it failed
    diagnostics: str = ""


@dataclass(frozen=True, slots=True)
class Previous:
    """A launch that may come back."""

    launch: LaunchContext
    #: link name -> localized path
    links: Mapping[str, Path]


@dataclass(slots=True, eq=False)
class Container:
    """Changed by ContainerRuntime only."""

    grant: ContainerGrant
    launch: LaunchContext
    retries: Retries
    stage: Stage = Stage.NEW
    #: INVALID until the container is done
    exit_status: int = ExitStatus.INVALID
    #: why it was ended by somebody else than itself: wins over the process's own code
    kill_status: int | None = None
    diagnostics: str = ""
    #: set once the container has folders
    folders: ContainerFolders | None = None
    process: ContainerProcess | None = None
    #: until it runs again after its process failed; None: it does not
    retry_delay_s: float | None = None
    #: name and address of its node, once it runs
    address: tuple[str, str] | None = None
    #: resources asked for while it runs, by link: how far each is
    later_resources: dict[str, LocalizationNote] = field(default_factory=dict)
    #: its program waits for a processor before it starts, since then; None: it does not. Monotonic seconds
    held_since: float | None = None
    #: how long it waited so before its first start, s
    held_s: float = 0.0
    #: its process is being replaced, or files for that are being fetched
    is_replacing: bool = False
    #: what it ran before it was replaced, until that is committed
    previous: Previous | None = None
    #: monotonic seconds; 0 until then
    accepted_at: float = 0.0
    queued_at: float = 0.0
    #: it waited in the node queue until then
    turn_at: float = 0.0
    #: its first process ran
    started_at: float = 0.0
    running_at: float = 0.0
    ended_at: float = 0.0
    #: started without a shell by the prepared process
    is_warm: bool = False
    #: the ResourceManager was told of the end and answered
    is_reported: bool = False
    #: bytes, by the last memory scan
    physical_bytes: int = 0
    virtual_bytes: int = 0
    #: the most that its processes had together at a scan, or one of them ever
    peak_bytes: int = 0
    #: processor time of all its processes
    cpu_s: float = 0.0
    #: counters for LOCALIZATION_COUNTERS
    localization: tuple[int, int, int, int, int] = field(default=(0, 0, 0, 0, 0))

    @property
    def id(self) -> ContainerId:
        return self.grant.container_id

    @property
    def is_done(self) -> bool:
        return self.stage is Stage.DONE

    def add_diagnostics(self, text: str) -> None:
        if len(self.diagnostics) < _MAX_DIAGNOSTICS:
            self.diagnostics += text if text.endswith("\n") else text + "\n"

    @property
    def is_held(self) -> bool:
        return self.held_since is not None

    def status_pb(self, *, times_at: float | None = None, starts_in_s: float | None = None) -> common.ContainerStatus:
        """Writes the container's status.

        `times_at`: now in monotonic seconds, for a ResourceManager that understands times. `starts_in_s`: seconds until
        its program, which waits for a processor, is expected to start.
        """
        state, sub_state = ON_THE_WIRE[self.stage]
        status = common.ContainerStatus(
            container_id=convert.container_id_pb(self.id),
            state=wire_enum(state),
            diagnostics=self.diagnostics,
            exit_status=self.exit_status if self.is_done else ExitStatus.INVALID,
            executionType=wire_enum(self.grant.execution_type),
            container_sub_state=wire_enum(sub_state),
        )
        convert.put_resource(status.capability, self.grant.resource)
        if self.address is not None:
            status.container_attributes.add(key="HOST", value=self.address[0])
            status.container_attributes.add(key="IPS", value=self.address[1])
        if times_at is not None and self.is_done:
            turn_at = self.turn_at or self.ended_at
            status.yaq_times.queued_ms = _passed_ms(self.queued_at, turn_at)
            status.yaq_times.run_ms = _passed_ms(self.started_at, self.ended_at)
            status.yaq_times.held_ms = round(1000 * self.held_s)
            status.yaq_times.peak_memory_bytes = self.peak_bytes
            status.yaq_times.cpu_ms = round(1000 * self.cpu_s)
        elif times_at is not None and self.held_since is not None:
            status.yaq_times.held_ms = _passed_ms(self.held_since, times_at)
            if starts_in_s is not None:
                status.yaq_times.starts_in_ms = round(1000 * starts_in_s)
        return status

    def used(self, cpu_s: float, peak_bytes: int) -> None:
        """Notes what its processes have used together, as far as somebody has seen."""
        self.cpu_s = max(self.cpu_s, cpu_s)
        self.peak_bytes = max(self.peak_bytes, peak_bytes)

    def registration_pb(self) -> server.NMContainerStatus:
        """Writes the container for a registration with a ResourceManager that may know nothing of it."""
        grant = self.grant
        status = server.NMContainerStatus(
            container_id=convert.container_id_pb(self.id),
            container_state=wire_enum(ON_THE_WIRE[self.stage][0]),
            resource=convert.resource_pb(grant.resource),
            priority=common.Priority(priority=grant.priority),
            diagnostics=self.diagnostics,
            container_exit_status=self.exit_status if self.is_done else ExitStatus.INVALID,
            creation_time=grant.created_ms,
            nodeLabelExpression=grant.node_label,
            version=grant.version,
            executionType=wire_enum(grant.execution_type),
            allocation_request_id=grant.allocation_request_id,
        )
        status.allocation_tags.extend(grant.allocation_tags)
        return status


def _passed_ms(since: float, until: float) -> int:
    """0 where the first was never reached."""
    return max(0, round(1000 * (until - since))) if since else 0
