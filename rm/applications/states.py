"""The stages of applications, attempts and containers: each as an enum of states, an enum of events, and one table."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from yaqd.model import FinalApplicationStatus, YarnApplicationAttemptState, YarnApplicationState


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


_App, _AppDo = AppStage, AppEvent

APPLICATION_TRANSITIONS: Final[Mapping[tuple[AppStage, AppEvent], AppStage]] = {
    (_App.NEW, _AppDo.SUBMIT): _App.NEW_SAVING,
    (_App.NEW_SAVING, _AppDo.STORED): _App.SUBMITTED,
    (_App.NEW_SAVING, _AppDo.CONCLUDE): _App.FINAL_SAVING,
    (_App.SUBMITTED, _AppDo.ACCEPT): _App.ACCEPTED,
    (_App.SUBMITTED, _AppDo.CONCLUDE): _App.FINAL_SAVING,
    (_App.ACCEPTED, _AppDo.REGISTER): _App.RUNNING,
    (_App.ACCEPTED, _AppDo.RETRY): _App.ACCEPTED,
    (_App.ACCEPTED, _AppDo.CONCLUDE): _App.FINAL_SAVING,
    (_App.RUNNING, _AppDo.RETRY): _App.ACCEPTED,
    (_App.RUNNING, _AppDo.CONCLUDE): _App.FINAL_SAVING,
    # killed while its submission was being stored
    (_App.FINAL_SAVING, _AppDo.STORED): _App.FINAL_SAVING,
    (_App.FINAL_SAVING, _AppDo.STORED_FINISHED): _App.FINISHING,
    (_App.FINAL_SAVING, _AppDo.STORED_FAILED): _App.FAILED,
    (_App.FINAL_SAVING, _AppDo.STORED_KILLED): _App.KILLED,
    (_App.FINISHING, _AppDo.MASTER_GONE): _App.FINISHED,
}

#: what clients are told; FINAL_SAVING shows the state before it
PUBLIC_STATE: Final[Mapping[AppStage, YarnApplicationState]] = {
    _App.NEW: YarnApplicationState.NEW,
    _App.NEW_SAVING: YarnApplicationState.NEW_SAVING,
    _App.SUBMITTED: YarnApplicationState.SUBMITTED,
    _App.ACCEPTED: YarnApplicationState.ACCEPTED,
    _App.RUNNING: YarnApplicationState.RUNNING,
    _App.FINISHING: YarnApplicationState.FINISHED,
    _App.FINISHED: YarnApplicationState.FINISHED,
    _App.FAILED: YarnApplicationState.FAILED,
    _App.KILLED: YarnApplicationState.KILLED,
}

STORED_EVENT: Final[Mapping[FinalApplicationStatus, AppEvent]] = {
    FinalApplicationStatus.FAILED: _AppDo.STORED_FAILED,
    FinalApplicationStatus.KILLED: _AppDo.STORED_KILLED,
}

#: nothing happens to an application any more
APPLICATION_OVER: Final = (_App.FINISHED, _App.FAILED, _App.KILLED)


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


_Try, _TryDo = YarnApplicationAttemptState, AttemptEvent

ATTEMPT_TRANSITIONS: Final[Mapping[tuple[YarnApplicationAttemptState, AttemptEvent], YarnApplicationAttemptState]] = {
    (_Try.NEW, _TryDo.SCHEDULE): _Try.SCHEDULED,
    (_Try.NEW, _TryDo.ATTACH): _Try.LAUNCHED,
    (_Try.NEW, _TryDo.KILL): _Try.KILLED,
    (_Try.SCHEDULED, _TryDo.ALLOCATE): _Try.ALLOCATED,
    (_Try.SCHEDULED, _TryDo.FAIL): _Try.FAILED,
    (_Try.SCHEDULED, _TryDo.KILL): _Try.KILLED,
    (_Try.ALLOCATED, _TryDo.LAUNCH): _Try.LAUNCHED,
    # a quick master registers before the node's answer to the launch is here
    (_Try.ALLOCATED, _TryDo.REGISTER): _Try.RUNNING,
    (_Try.ALLOCATED, _TryDo.FAIL): _Try.FAILED,
    (_Try.ALLOCATED, _TryDo.KILL): _Try.KILLED,
    (_Try.LAUNCHED, _TryDo.REGISTER): _Try.RUNNING,
    (_Try.LAUNCHED, _TryDo.FAIL): _Try.FAILED,
    (_Try.LAUNCHED, _TryDo.KILL): _Try.KILLED,
    (_Try.RUNNING, _TryDo.LAUNCH): _Try.RUNNING,
    (_Try.RUNNING, _TryDo.UNREGISTER): _Try.FINISHING,
    (_Try.RUNNING, _TryDo.FAIL): _Try.FAILED,
    (_Try.RUNNING, _TryDo.KILL): _Try.KILLED,
    (_Try.FINISHING, _TryDo.LAUNCH): _Try.FINISHING,
    (_Try.FINISHING, _TryDo.END): _Try.FINISHED,
}

#: nor to an attempt
ATTEMPT_OVER: Final = (_Try.FINISHED, _Try.FAILED, _Try.KILLED)


class _Member(Enum):
    """Hashed by identity, in C: Enum's own hash is a call, and each step of a container looks two members up."""

    __hash__ = object.__hash__


class ContainerStage(_Member):
    #: the scheduler has charged it, its master does not know it yet
    ALLOCATED = auto()
    #: its master has it
    ACQUIRED = auto()
    #: its node has reported it
    RUNNING = auto()
    COMPLETED = auto()
    #: never started in time
    EXPIRED = auto()
    #: given back by its master
    RELEASED = auto()
    #: ended by the ResourceManager, or lost with its node
    KILLED = auto()


class ContainerEvent(_Member):
    ACQUIRE = auto()
    LAUNCH = auto()
    FINISH = auto()
    EXPIRE = auto()
    RELEASE = auto()
    KILL = auto()


_Held, _HeldDo = ContainerStage, ContainerEvent

CONTAINER_TRANSITIONS: Final[Mapping[tuple[ContainerStage, ContainerEvent], ContainerStage]] = {
    (_Held.ALLOCATED, _HeldDo.ACQUIRE): _Held.ACQUIRED,
    (_Held.ALLOCATED, _HeldDo.EXPIRE): _Held.EXPIRED,
    (_Held.ALLOCATED, _HeldDo.RELEASE): _Held.RELEASED,
    (_Held.ALLOCATED, _HeldDo.KILL): _Held.KILLED,
    (_Held.ACQUIRED, _HeldDo.LAUNCH): _Held.RUNNING,
    (_Held.ACQUIRED, _HeldDo.FINISH): _Held.COMPLETED,
    (_Held.ACQUIRED, _HeldDo.EXPIRE): _Held.EXPIRED,
    (_Held.ACQUIRED, _HeldDo.RELEASE): _Held.RELEASED,
    (_Held.ACQUIRED, _HeldDo.KILL): _Held.KILLED,
    (_Held.RUNNING, _HeldDo.LAUNCH): _Held.RUNNING,
    (_Held.RUNNING, _HeldDo.FINISH): _Held.COMPLETED,
    (_Held.RUNNING, _HeldDo.RELEASE): _Held.RELEASED,
    (_Held.RUNNING, _HeldDo.KILL): _Held.KILLED,
}
