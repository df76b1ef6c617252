"""One application: what was submitted, how far it is, how it ended."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from rm.applications.attempt import Attempt
from rm.transitions import Machine
from yaqd.model import ApplicationId, FinalApplicationStatus, NodeId, Resource, YarnApplicationState
from yaqd.proto import yarn_common_pb2 as common
from yaqd.security.acl import AccessControlList


class AppStage(Enum):
    NEW = auto()
    #: not acknowledged yet: it goes into the state store first
    NEW_SAVING = auto()
    SUBMITTED = auto()
    ACCEPTED = auto()
    RUNNING = auto()
    #: how it ended goes into the state store before anybody is told
    FINAL_SAVING = auto()
    #: its master has unregistered and still runs
    FINISHING = auto()
    FINISHED = auto()
    FAILED = auto()
    KILLED = auto()


class AppEvent(Enum):
    SUBMIT = auto()
    STORED = auto()
    ACCEPT = auto()
    REGISTER = auto()
    #: an attempt failed and another one follows
    RETRY = auto()
    #: it has ended, one way or another
    CONCLUDE = auto()
    STORED_FINISHED = auto()
    STORED_FAILED = auto()
    STORED_KILLED = auto()
    #: the last attempt's master is gone
    MASTER_GONE = auto()


_S, _E = AppStage, AppEvent

APPLICATION_TRANSITIONS: Final[Mapping[tuple[AppStage, AppEvent], AppStage]] = {
    (_S.NEW, _E.SUBMIT): _S.NEW_SAVING,
    (_S.NEW_SAVING, _E.STORED): _S.SUBMITTED,
    (_S.NEW_SAVING, _E.CONCLUDE): _S.FINAL_SAVING,
    (_S.SUBMITTED, _E.ACCEPT): _S.ACCEPTED,
    (_S.SUBMITTED, _E.CONCLUDE): _S.FINAL_SAVING,
    (_S.ACCEPTED, _E.REGISTER): _S.RUNNING,
    (_S.ACCEPTED, _E.RETRY): _S.ACCEPTED,
    (_S.ACCEPTED, _E.CONCLUDE): _S.FINAL_SAVING,
    (_S.RUNNING, _E.RETRY): _S.ACCEPTED,
    (_S.RUNNING, _E.CONCLUDE): _S.FINAL_SAVING,
    # killed while its submission was being stored
    (_S.FINAL_SAVING, _E.STORED): _S.FINAL_SAVING,
    (_S.FINAL_SAVING, _E.STORED_FINISHED): _S.FINISHING,
    (_S.FINAL_SAVING, _E.STORED_FAILED): _S.FAILED,
    (_S.FINAL_SAVING, _E.STORED_KILLED): _S.KILLED,
    (_S.FINISHING, _E.MASTER_GONE): _S.FINISHED,
}

#: what clients are told; FINAL_SAVING shows the state before it
PUBLIC_STATE: Final[Mapping[AppStage, YarnApplicationState]] = {
    _S.NEW: YarnApplicationState.NEW,
    _S.NEW_SAVING: YarnApplicationState.NEW_SAVING,
    _S.SUBMITTED: YarnApplicationState.SUBMITTED,
    _S.ACCEPTED: YarnApplicationState.ACCEPTED,
    _S.RUNNING: YarnApplicationState.RUNNING,
    _S.FINISHING: YarnApplicationState.FINISHED,
    _S.FINISHED: YarnApplicationState.FINISHED,
    _S.FAILED: YarnApplicationState.FAILED,
    _S.KILLED: YarnApplicationState.KILLED,
}

STORED_EVENT: Final[Mapping[FinalApplicationStatus, AppEvent]] = {
    FinalApplicationStatus.FAILED: _E.STORED_FAILED,
    FinalApplicationStatus.KILLED: _E.STORED_KILLED,
}

_OVER: Final = (_S.FINISHED, _S.FAILED, _S.KILLED)


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
        """The node has started something of it, so there will be logs."""
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
        """Amounts of further resource types held, times seconds."""
        return {name: total // 1000 for name, total in self.further_ms.items()}

    def book_preempted(self, resource: Resource, held_ms: int) -> None:
        """A container of this size, held so long, was taken back."""
        self.preempted_memory_mb_ms += resource.memory_mb * held_ms
        self.preempted_vcore_ms += resource.vcores * held_ms
        for name, amount in resource.extras.items():
            self.preempted_further_ms[name] = self.preempted_further_ms.get(name, 0) + amount * held_ms

    def use_as_text(self) -> str:
        """What it has used, for the state store."""
        return json.dumps({name: getattr(self, name) for name in _USE}, separators=(",", ":"))

    def take_use(self, text: str) -> None:
        """Of an earlier ResourceManager; whatever of it makes sense."""
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
        return self.machine.state in _OVER

    @property
    def is_concluded(self) -> bool:
        """It has ended, though its end may not be stored yet or its master may still be there."""
        return self.conclusion is not None

    @property
    def attempt(self) -> Attempt | None:
        """The last attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def is_unmanaged(self) -> bool:
        return self.context.unmanaged_am
