"""States and codes that travel on the wire, with Hadoop's numbers (yarn_protos, ContainerExitStatus)."""

from enum import IntEnum


class ExecutionType(IntEnum):
    GUARANTEED = 1
    OPPORTUNISTIC = 2


class ContainerType(IntEnum):
    APPLICATION_MASTER = 1
    TASK = 2


class ContainerState(IntEnum):
    """Never report NEW: a stock ResourceManager takes it as a completion."""

    NEW = 1
    RUNNING = 2
    COMPLETE = 3


class ContainerSubState(IntEnum):
    SCHEDULED = 1
    RUNNING = 2
    PAUSED = 3
    COMPLETING = 4
    DONE = 5


class YarnApplicationState(IntEnum):
    NEW = 1
    NEW_SAVING = 2
    SUBMITTED = 3
    ACCEPTED = 4
    RUNNING = 5
    FINISHED = 6
    FAILED = 7
    KILLED = 8

    @property
    def is_final(self) -> bool:
        return self >= YarnApplicationState.FINISHED


class YarnApplicationAttemptState(IntEnum):
    NEW = 1
    SUBMITTED = 2
    SCHEDULED = 3
    ALLOCATED_SAVING = 4
    ALLOCATED = 5
    LAUNCHED = 6
    FAILED = 7
    RUNNING = 8
    FINISHING = 9
    FINISHED = 10
    KILLED = 11


class FinalApplicationStatus(IntEnum):
    UNDEFINED = 0
    SUCCEEDED = 1
    FAILED = 2
    KILLED = 3
    ENDED = 4


class NodeState(IntEnum):
    NEW = 1
    RUNNING = 2
    UNHEALTHY = 3
    DECOMMISSIONED = 4
    LOST = 5
    REBOOTED = 6
    DECOMMISSIONING = 7
    SHUTDOWN = 8


class NodeAction(IntEnum):
    NORMAL = 0
    RESYNC = 1
    SHUTDOWN = 2


class LocalResourceType(IntEnum):
    ARCHIVE = 1
    FILE = 2
    PATTERN = 3


class LocalResourceVisibility(IntEnum):
    PUBLIC = 1
    PRIVATE = 2
    APPLICATION = 3


class ExitStatus(IntEnum):
    """Exit statuses beside the process's own 0..255."""

    SUCCESS = 0
    INVALID = -1000
    ABORTED = -100
    DISKS_FAILED = -101
    PREEMPTED = -102
    KILLED_EXCEEDED_VMEM = -103
    KILLED_EXCEEDED_PMEM = -104
    KILLED_BY_APPMASTER = -105
    KILLED_BY_RESOURCEMANAGER = -106
    KILLED_AFTER_APP_COMPLETION = -107
    KILLED_BY_CONTAINER_SCHEDULER = -108
    KILLED_FOR_EXCESS_LOGS = -109


ANY_HOST = "*"
DEFAULT_RACK = "/default-rack"
