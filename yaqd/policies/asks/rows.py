"""What masters ask for, row by row, and how near to it a container is."""

from enum import IntEnum

from yaqd.model import ExecutionType, Resource
from yaqd.model.values import value
from yaqd.policies.asks.placement import Placement


class Locality(IntEnum):
    """How near a container is to what was asked; NONE when no place was preferred."""

    NONE = 0
    NODE = 1
    RACK = 2
    OFF_SWITCH = 3


@value()
class AskRow:
    """One row of an application master's wishes (Hadoop's ResourceRequest).

    It replaces the previous row of the same priority, request id and name; `count` is what is still wanted in all.
    """

    #: a lower number is served first
    priority: int
    #: -1 when the master does not use request ids
    allocation_request_id: int
    #: a host, a rack or `*`; only the count of `*` says how many containers are due
    resource_name: str
    capability: Resource
    count: int
    relax_locality: bool = True
    execution_type: ExecutionType = ExecutionType.GUARANTEED
    #: tags, and beside which others; None for an ordinary request
    placement: Placement | None = None
