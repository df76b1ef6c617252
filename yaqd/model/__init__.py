"""The vocabulary every room shares: identifiers, resources, states."""

from yaqd.model.ids import ApplicationAttemptId, ApplicationId, BadIdentifier, ContainerId, NodeId
from yaqd.model.resources import Resource
from yaqd.model.states import (
    ANY_HOST,
    DEFAULT_RACK,
    ContainerState,
    ContainerSubState,
    ContainerType,
    ExecutionType,
    ExitStatus,
    FinalApplicationStatus,
    LocalResourceType,
    LocalResourceVisibility,
    NodeAction,
    NodeState,
    YarnApplicationAttemptState,
    YarnApplicationState,
)

__all__ = [
    "ANY_HOST",
    "DEFAULT_RACK",
    "ApplicationAttemptId",
    "ApplicationId",
    "BadIdentifier",
    "ContainerId",
    "ContainerState",
    "ContainerSubState",
    "ContainerType",
    "ExecutionType",
    "ExitStatus",
    "FinalApplicationStatus",
    "LocalResourceType",
    "LocalResourceVisibility",
    "NodeAction",
    "NodeId",
    "NodeState",
    "Resource",
    "YarnApplicationAttemptState",
    "YarnApplicationState",
]
