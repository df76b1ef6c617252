"""One attempt to run an application: its master's container, registration, progress, end."""

import asyncio
from collections import deque
from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from rm.applications.container import Completion, RmContainer
from rm.scheduler.placement import Constraint
from rm.transitions import Machine
from yaqd.model import (
    ApplicationAttemptId,
    ContainerId,
    FinalApplicationStatus,
    NodeId,
    Resource,
    YarnApplicationAttemptState,
)
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service

if TYPE_CHECKING:
    from rm.applications.application import Application

#: ended containers an attempt's report still lists
_ENDED_CONTAINERS_KEPT: Final = 500


class AttemptEvent(Enum):
    #: ask for the master's container
    SCHEDULE = auto()
    #: the master runs outside the cluster
    ATTACH = auto()
    ALLOCATE = auto()
    LAUNCH = auto()
    REGISTER = auto()
    UNREGISTER = auto()
    #: the master's container ended after it unregistered
    END = auto()
    FAIL = auto()
    KILL = auto()


_S, _E = YarnApplicationAttemptState, AttemptEvent

ATTEMPT_TRANSITIONS: Final[Mapping[tuple[YarnApplicationAttemptState, AttemptEvent], YarnApplicationAttemptState]] = {
    (_S.NEW, _E.SCHEDULE): _S.SCHEDULED,
    (_S.NEW, _E.ATTACH): _S.LAUNCHED,
    (_S.NEW, _E.KILL): _S.KILLED,
    (_S.SCHEDULED, _E.ALLOCATE): _S.ALLOCATED,
    (_S.SCHEDULED, _E.FAIL): _S.FAILED,
    (_S.SCHEDULED, _E.KILL): _S.KILLED,
    (_S.ALLOCATED, _E.LAUNCH): _S.LAUNCHED,
    # a quick master registers before the node's answer to the launch is here
    (_S.ALLOCATED, _E.REGISTER): _S.RUNNING,
    (_S.ALLOCATED, _E.FAIL): _S.FAILED,
    (_S.ALLOCATED, _E.KILL): _S.KILLED,
    (_S.LAUNCHED, _E.REGISTER): _S.RUNNING,
    (_S.LAUNCHED, _E.FAIL): _S.FAILED,
    (_S.LAUNCHED, _E.KILL): _S.KILLED,
    (_S.RUNNING, _E.LAUNCH): _S.RUNNING,
    (_S.RUNNING, _E.UNREGISTER): _S.FINISHING,
    (_S.RUNNING, _E.FAIL): _S.FAILED,
    (_S.RUNNING, _E.KILL): _S.KILLED,
    (_S.FINISHING, _E.LAUNCH): _S.FINISHING,
    (_S.FINISHING, _E.END): _S.FINISHED,
}

_OVER: Final = (_S.FINISHED, _S.FAILED, _S.KILLED)


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
        return self.machine.state in _OVER

    def book_usage(self, now_ms: int) -> None:
        """Bring the application's totals up to now, for what its running containers hold."""
        for container in (*self.containers.values(), self.master):
            if container is not None and not container.is_over:
                container.book_usage(now_ms)

    def book_end(self, before: YarnApplicationAttemptState, now_ms: int) -> None:
        """It is over (RMAppAttemptImpl's FinalTransition): nobody finds a master any more that did not finish.

        A master that crashed before it registered has made no progress.
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
