"""The life of a container on a node: one enum of stages, one table of transitions.

    NEW -> LOCALIZING -> SCHEDULED -> LAUNCHING -> RUNNING -> COMPLETING -> DONE

LOCALIZING fetches files; SCHEDULED waits in the node queue; LAUNCHING has asked the executor; COMPLETING gathers
diagnostics. RELAUNCHING waits to run a failed process again, where the launch context asks for that. A kill goes to
COMPLETING from wherever nothing runs. It goes through KILLING where a process must end first, and through ABORTING
where a process may be about to exist. A pair that is not in the table is not legal: it is logged with both names, and
ignored.
"""

from enum import Enum, auto

from yaqd.model import ContainerState, ContainerSubState


class Stage(Enum):
    NEW = auto()
    LOCALIZING = auto()
    SCHEDULED = auto()
    LAUNCHING = auto()
    #: killed while the executor was starting it
    ABORTING = auto()
    RUNNING = auto()
    KILLING = auto()
    RELAUNCHING = auto()
    #: its process is being ended to make way for another one, of a restart or another launch context
    REPLACING = auto()
    COMPLETING = auto()
    DONE = auto()


class Event(Enum):
    START = auto()
    LOCALIZED = auto()
    LOCALIZATION_FAILED = auto()
    TURN = auto()
    REFUSED = auto()
    LAUNCHED = auto()
    LAUNCH_FAILED = auto()
    KILL = auto()
    EXITED = auto()
    #: exited, and is granted another try
    FAILED = auto()
    RELAUNCH = auto()
    REPLACE = auto()
    #: a replacement failed by itself, and what it replaced runs again
    ROLLED_BACK = auto()
    COMPLETED = auto()


class Action(Enum):
    """What the owner of the containers does after a transition."""

    NOTHING = auto()
    LOCALIZE = auto()
    ENQUEUE = auto()
    LAUNCH = auto()
    TELL_RUNNING = auto()
    KILL_PROCESS = auto()
    RELAUNCH_LATER = auto()
    COMPLETE = auto()
    REPORT = auto()


TRANSITIONS: dict[tuple[Stage, Event], tuple[Stage, Action]] = {
    (Stage.NEW, Event.START): (Stage.LOCALIZING, Action.LOCALIZE),
    (Stage.LOCALIZING, Event.LOCALIZED): (Stage.SCHEDULED, Action.ENQUEUE),
    (Stage.LOCALIZING, Event.LOCALIZATION_FAILED): (Stage.COMPLETING, Action.COMPLETE),
    (Stage.LOCALIZING, Event.KILL): (Stage.COMPLETING, Action.COMPLETE),
    (Stage.SCHEDULED, Event.TURN): (Stage.LAUNCHING, Action.LAUNCH),
    (Stage.SCHEDULED, Event.REFUSED): (Stage.COMPLETING, Action.COMPLETE),
    (Stage.SCHEDULED, Event.KILL): (Stage.COMPLETING, Action.COMPLETE),
    (Stage.LAUNCHING, Event.LAUNCHED): (Stage.RUNNING, Action.TELL_RUNNING),
    (Stage.LAUNCHING, Event.LAUNCH_FAILED): (Stage.COMPLETING, Action.COMPLETE),
    (Stage.LAUNCHING, Event.KILL): (Stage.ABORTING, Action.NOTHING),
    (Stage.ABORTING, Event.LAUNCHED): (Stage.KILLING, Action.KILL_PROCESS),
    (Stage.ABORTING, Event.LAUNCH_FAILED): (Stage.COMPLETING, Action.COMPLETE),
    (Stage.ABORTING, Event.KILL): (Stage.ABORTING, Action.NOTHING),
    (Stage.RUNNING, Event.EXITED): (Stage.COMPLETING, Action.COMPLETE),
    (Stage.RUNNING, Event.KILL): (Stage.KILLING, Action.KILL_PROCESS),
    (Stage.RUNNING, Event.FAILED): (Stage.RELAUNCHING, Action.RELAUNCH_LATER),
    (Stage.RELAUNCHING, Event.RELAUNCH): (Stage.LAUNCHING, Action.LAUNCH),
    (Stage.RELAUNCHING, Event.KILL): (Stage.COMPLETING, Action.COMPLETE),
    (Stage.RUNNING, Event.REPLACE): (Stage.REPLACING, Action.KILL_PROCESS),
    (Stage.RUNNING, Event.ROLLED_BACK): (Stage.LAUNCHING, Action.LAUNCH),
    (Stage.REPLACING, Event.EXITED): (Stage.LAUNCHING, Action.LAUNCH),
    (Stage.REPLACING, Event.KILL): (Stage.KILLING, Action.NOTHING),
    (Stage.KILLING, Event.EXITED): (Stage.COMPLETING, Action.COMPLETE),
    (Stage.KILLING, Event.KILL): (Stage.KILLING, Action.NOTHING),
    (Stage.COMPLETING, Event.COMPLETED): (Stage.DONE, Action.REPORT),
    # what was already under way when the kill came
    (Stage.COMPLETING, Event.LOCALIZED): (Stage.COMPLETING, Action.NOTHING),
    (Stage.COMPLETING, Event.LOCALIZATION_FAILED): (Stage.COMPLETING, Action.NOTHING),
    (Stage.DONE, Event.LOCALIZED): (Stage.DONE, Action.NOTHING),
    (Stage.DONE, Event.LOCALIZATION_FAILED): (Stage.DONE, Action.NOTHING),
    (Stage.COMPLETING, Event.TURN): (Stage.COMPLETING, Action.NOTHING),
    (Stage.COMPLETING, Event.KILL): (Stage.COMPLETING, Action.NOTHING),
    (Stage.DONE, Event.KILL): (Stage.DONE, Action.NOTHING),
}

#: what the wire says of each stage, as Hadoop's NodeManager: never NEW, which its ResourceManager takes as an end
ON_THE_WIRE: dict[Stage, tuple[ContainerState, ContainerSubState]] = {
    Stage.NEW: (ContainerState.RUNNING, ContainerSubState.SCHEDULED),
    Stage.LOCALIZING: (ContainerState.RUNNING, ContainerSubState.SCHEDULED),
    Stage.SCHEDULED: (ContainerState.RUNNING, ContainerSubState.SCHEDULED),
    Stage.LAUNCHING: (ContainerState.RUNNING, ContainerSubState.SCHEDULED),
    Stage.ABORTING: (ContainerState.RUNNING, ContainerSubState.SCHEDULED),
    Stage.RUNNING: (ContainerState.RUNNING, ContainerSubState.RUNNING),
    Stage.RELAUNCHING: (ContainerState.RUNNING, ContainerSubState.SCHEDULED),
    Stage.KILLING: (ContainerState.RUNNING, ContainerSubState.RUNNING),
    Stage.REPLACING: (ContainerState.RUNNING, ContainerSubState.RUNNING),
    Stage.COMPLETING: (ContainerState.RUNNING, ContainerSubState.COMPLETING),
    Stage.DONE: (ContainerState.COMPLETE, ContainerSubState.DONE),
}
