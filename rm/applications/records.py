"""An application, its attempts and their containers, as the ResourceManager knows them: records that name each other.

An application has attempts, an attempt has containers, and each knows whose it is.
"""

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rm.applications.orders import Orders
from rm.applications.states import (
    APPLICATION_OVER,
    APPLICATION_TRANSITIONS,
    ATTEMPT_OVER,
    ATTEMPT_TRANSITIONS,
    CONTAINER_TRANSITIONS,
    PUBLIC_STATE,
    AppStage,
    ContainerStage,
)
from rm.scheduler.decisions import Allocate
from rm.transitions import Machine
from yaqd.model import (
    ApplicationAttemptId,
    ApplicationId,
    ContainerId,
    ExecutionType,
    FinalApplicationStatus,
    NodeId,
    Resource,
    YarnApplicationAttemptState,
    YarnApplicationState,
)
from yaqd.model.values import value
from yaqd.policies.asks.placement import Constraint
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.security.acl import AccessControlList

_S: Final = YarnApplicationAttemptState
#: ended containers an attempt's report still lists
_ENDED_CONTAINERS_KEPT: Final = 500
#: attributes that say what an application has used
_USE: Final = (
    "memory_mb_ms",
    "vcore_ms",
    "further_ms",
    "preempted_memory_mb_ms",
    "preempted_vcore_ms",
    "preempted_further_ms",
)
#: no total is larger: Hadoop's reports have 64 bits for it, in seconds
_TOTAL_MAX: Final = 2**63 - 1


#: what our jobs call it; its folder is the job's, wherever whoever submitted it has such folders
_JOB_FILE: Final = "job.json"
#: no path is longer
_URI_MAX: Final = 9000


def _job_file(launch: common.ContainerLaunchContext) -> str:
    """Kept, because the launch context is dropped when the application is over. The user's word."""
    url = next((entry.value.resource for entry in launch.localResources if entry.key == _JOB_FILE), None)
    if url is None:
        return ""
    uri = f"{url.scheme}://{url.host}{f':{url.port}' if url.port > 0 else ''}{url.file}"
    return uri if len(uri) <= _URI_MAX else ""


def _is_total(amount: object) -> bool:
    return type(amount) is int and 0 <= amount <= _TOTAL_MAX


@value()
class Completion:
    """The end of a container, as its master is told."""

    container_id: ContainerId
    exit_status: int
    diagnostics: str
    resource: Resource
    execution_type: ExecutionType
    node_id: NodeId
    #: how long it waited at its node and ran there, ms, as that said; None: it did not
    times_ms: tuple[int, int] | None = None


class RmContainer:
    """One container."""

    __slots__ = (
        "allocation",
        "attempt",
        "booked_ms",
        "completion",
        "confirmed",
        "created_at",
        "created_ms",
        "estimate_s",
        "finished_ms",
        "http_address",
        "id",
        "machine",
        "node_id",
        "times_ms",
        "update_wanted",
        "version",
    )

    def __init__(
        self, allocation: Allocate, attempt: "Attempt", http_address: str, created_ms: int, created_at: float = 0.0
    ) -> None:
        self.id = allocation.container_id
        #: whose container it is
        self.attempt = attempt
        self.node_id = allocation.node_id
        #: the decision it comes from: resource, priority, request id, execution type, whether it is a master's;
        #: replaced when the container is updated
        self.allocation = allocation
        #: counts its updates
        self.version = 0
        #: number of the kind of update that its master asked for last, a ContainerUpdateType
        self.update_wanted: int | None = None
        #: what its node is known to have; less than allocated while an increase is on its way there
        self.confirmed = allocation.resource
        #: `host:port` of the node's web server
        self.http_address = http_address
        self.machine = Machine(self.id, CONTAINER_TRANSITIONS, ContainerStage.ALLOCATED)
        self.created_ms = created_ms
        #: on the clock that only goes forward, s
        self.created_at = created_at
        #: how long one like it ran as far as was known when it was placed, s; None: nothing was known
        self.estimate_s: float | None = None
        #: up to when its use is in its application's totals, epoch ms
        self.booked_ms = created_ms
        self.finished_ms = 0
        #: how long it waited at its node and ran there, as that says when it is over; None: it does not
        self.times_ms: tuple[int, int] | None = None
        self.completion: Completion | None = None

    @property
    def stage(self) -> ContainerStage:
        return self.machine.state

    @property
    def is_started(self) -> bool:
        """Its node has reported it running."""
        return self.machine.state is ContainerStage.RUNNING

    def book_usage(self, now_ms: int) -> None:
        """Add what it has held since the last booking to its application's totals."""
        held_ms = max(0, now_ms - self.booked_ms)
        self.booked_ms += held_ms
        app = self.attempt.app
        app.memory_mb_ms += self.allocation.resource.memory_mb * held_ms
        app.vcore_ms += self.allocation.resource.vcores * held_ms
        for name, amount in self.allocation.resource.extras.items():
            app.further_ms[name] = app.further_ms.get(name, 0) + amount * held_ms

    @property
    def is_over(self) -> bool:
        return self.completion is not None


class TriedRequest:
    """A scheduling request, and with how many heartbeats it has found no place for all of its containers."""

    __slots__ = ("request", "times")

    def __init__(self, request: common.SchedulingRequest) -> None:
        self.request = request
        self.times = 0


class Attempt:
    def __init__(self, attempt_id: ApplicationAttemptId, app: "Application", started_ms: int) -> None:
        self.id = attempt_id
        self.app = app
        self.machine = Machine(attempt_id, ATTEMPT_TRANSITIONS, YarnApplicationAttemptState.NEW)
        self.started_ms = started_ms
        self.finished_ms = 0
        self.master: RmContainer | None = None
        #: as registered
        self.host = "N/A"
        self.rpc_port = -1
        self.tracking_url = ""
        self.progress = 0.0
        self.diagnostics = ""
        self.final_status = FinalApplicationStatus.UNDEFINED
        #: whether its failure counts against the limit of attempts
        self.counts = True

        #: live containers without the master's own
        self.containers: dict[ContainerId, RmContainer] = {}
        self.ended: deque[RmContainer] = deque(maxlen=_ENDED_CONTAINERS_KEPT)

        # What the next allocate response will carry.
        self.allocated: list[RmContainer] = []
        self.completions: list[Completion] = []
        #: carried by the last one; their nodes keep them until the master shows by its next call that it has it
        self.told_completions: list[Completion] = []
        #: containers whose size or execution type has changed
        self.updated: dict[ContainerId, RmContainer] = {}
        #: containers that may be preempted, and their sizes
        self.notices: dict[ContainerId, Resource] = {}
        #: constraints it registered, by tag; keys of its scheduling requests; those that may still be given up
        self.constraints: dict[str, Constraint] = {}
        self.placed_keys: set[tuple[int, int]] = set()
        self.tried: dict[tuple[int, int], TriedRequest] = {}
        #: number of the last node change it was told
        self.node_changes_seen = 0

        # The allocate conversation.
        self.is_registered = False
        self.response_id = -1
        self.last_response: service.AllocateResponse | None = None
        #: done when a call whose many asks are still being taken in is answered
        self.taking_in: asyncio.Future[None] | None = None
        #: what it was ordered beside its containers
        self.orders = Orders()
        #: id of the key of the last AMRMToken made for it
        self.amrm_key_id: int | None = None
        #: the lowest container id that a proxy has used for it; None: none has
        self.proxy_lowest: int | None = None
        #: what its proxy placed last and was not booked
        self.proxy_refused: set[ContainerId] = set()
        #: node -> id of the key of the NMToken it was sent
        self.nm_tokens: dict[NodeId, int] = {}

    @property
    def state(self) -> YarnApplicationAttemptState:
        return self.machine.state

    @property
    def is_over(self) -> bool:
        return self.machine.state in ATTEMPT_OVER

    def book_usage(self, now_ms: int) -> None:
        """Bring the application's totals up to now, for what its running containers hold."""
        for container in (*self.containers.values(), self.master):
            if container is not None and not container.is_over:
                container.book_usage(now_ms)

    def book_end(self, before: YarnApplicationAttemptState, now_ms: int) -> None:
        """Note the attempt's end: nobody finds a master any more that did not finish.

        As RMAppAttemptImpl's FinalTransition. A master that crashed before it registered has made no progress.
        """
        self.finished_ms = now_ms
        if before in (_S.RUNNING, _S.FINISHING) or (before is _S.LAUNCHED and self.state is _S.KILLED):
            self.progress = 1.0
        if self.machine.state is not YarnApplicationAttemptState.FINISHED:
            self.host, self.rpc_port = "N/A", -1

    @property
    def takes_containers(self) -> bool:
        """False once it has unregistered or ended."""
        return not self.is_over and self.machine.state is not YarnApplicationAttemptState.FINISHING


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How an application ended."""

    state: YarnApplicationState
    #: what its master said, or FAILED or KILLED
    final_status: FinalApplicationStatus
    diagnostics: str
    tracking_url: str
    finished_ms: int


class Application:
    def __init__(
        self, app_id: ApplicationId, context: common.ApplicationSubmissionContext, user: str, submitted_ms: int
    ) -> None:
        self.id = app_id
        #: as submitted; its launch context goes to the node with everything in it that we do not know
        self.context = context
        self.user = user
        #: as submitted until the scheduler has accepted it, then the full path
        self.queue = context.queue or "default"
        self.name = context.application_name or "N/A"
        self.type = (context.applicationType or "YARN")[:20]
        self.tags = tuple(context.applicationTags)
        #: what counts of the priority that was asked for
        self.priority = context.priority.priority
        #: when its lifetime ends, epoch ms; None: never
        self.expires_ms: int | None = None
        acls = {entry.accessType: entry.acl for entry in context.am_container_spec.application_ACLs}
        #: who else may see it, and change it
        self.view_acl = AccessControlList.parse(acls.get(common.APPACCESS_VIEW_APP, " "))
        self.modify_acl = AccessControlList.parse(acls.get(common.APPACCESS_MODIFY_APP, " "))
        #: full URI; empty: it is none of our jobs
        self.job_file = _job_file(context.am_container_spec)
        self.submitted_ms = submitted_ms
        self.launched_ms = 0
        self.machine = Machine(app_id, APPLICATION_TRANSITIONS, AppStage.NEW)
        self.stage_before_saving = AppStage.NEW
        self.attempts: list[Attempt] = []
        #: attempts made by earlier ResourceManagers, which are not in `attempts`
        self.earlier_attempts = 0
        #: what the state store kept of these, by number, as far as it did; read by `rm.applications.former_attempts`
        self.former: Mapping[int, str] = {}
        self.conclusion: Conclusion | None = None
        #: nodes that ran something of it and will be told to clean up
        self.nodes: dict[NodeId, None] = {}
        self.master_is_gone = False
        #: nodes that ran something of it, with what each last said of its logs; changed by LogStatuses
        self.log_nodes: dict[NodeId, common.LogAggregationStatus] = {}
        #: once every node has said how it went
        self.log_status: common.LogAggregationStatus | None = None
        #: memory and cores held, times milliseconds: a container of half a second counts too
        self.memory_mb_ms = 0
        self.vcore_ms = 0
        #: the same of further resource types
        self.further_ms: dict[str, int] = {}
        #: the part of it that went into containers which were preempted
        self.preempted_memory_mb_ms = 0
        self.preempted_vcore_ms = 0
        self.preempted_further_ms: dict[str, int] = {}

    def ran_on(self, node: NodeId) -> None:
        """Note that the node has started something of it, so there will be logs."""
        if self.log_status is None:
            self.log_nodes.setdefault(node, common.LOG_NOT_START)

    @property
    def stage(self) -> AppStage:
        return self.machine.state

    @property
    def state(self) -> YarnApplicationState:
        stage = self.machine.state
        return PUBLIC_STATE[self.stage_before_saving if stage is AppStage.FINAL_SAVING else stage]

    def further_seconds(self) -> dict[str, int]:
        """Return the amounts of further resource types held, times seconds."""
        return {name: total // 1000 for name, total in self.further_ms.items()}

    def book_preempted(self, resource: Resource, held_ms: int) -> None:
        """Book that a container of this size, held so long, was taken back."""
        self.preempted_memory_mb_ms += resource.memory_mb * held_ms
        self.preempted_vcore_ms += resource.vcores * held_ms
        for name, amount in resource.extras.items():
            self.preempted_further_ms[name] = self.preempted_further_ms.get(name, 0) + amount * held_ms

    def use_as_text(self) -> str:
        """Return what the application has used, for the state store."""
        return json.dumps({name: getattr(self, name) for name in _USE}, separators=(",", ":"))

    def take_use(self, text: str) -> None:
        """Take in what was used under an earlier ResourceManager; whatever of it makes sense."""
        try:
            found = json.loads(text) if text else {}
        except ValueError:
            return
        for name in _USE if isinstance(found, dict) else ():
            total = found.get(name)
            if isinstance(total, dict):
                total = {key: amount for key, amount in total.items() if _is_total(amount)}
            elif not _is_total(total):
                continue
            if type(total) is type(getattr(self, name)):
                setattr(self, name, total)

    @property
    def memory_mb_seconds(self) -> int:
        return self.memory_mb_ms // 1000

    @property
    def vcore_seconds(self) -> int:
        return self.vcore_ms // 1000

    @property
    def is_over(self) -> bool:
        """Nothing will happen to it any more."""
        return self.machine.state in APPLICATION_OVER

    @property
    def is_concluded(self) -> bool:
        """Whether it has ended, though its end may not be stored yet or its master may still be there."""
        return self.conclusion is not None

    @property
    def attempt(self) -> Attempt | None:
        """The last attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def is_unmanaged(self) -> bool:
        return self.context.unmanaged_am
