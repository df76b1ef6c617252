"""The border between messages and the vocabulary: one function each way per record.

Reading protobuf fields costs more than parsing them, and protobuf types never reach a policy: whatever
comes off the wire is turned into `yaqd.model` values here, once.
"""

from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource
from yaqd.proto import yarn_common_pb2 as pb

_MEMORY = "memory-mb"
_VCORES = "vcores"
#: Hadoop's units (UnitsConversionUtil): so many single ones, and so many to a single one
_UNITS: dict[str, int] = {unit: 1000**power for power, unit in enumerate("kMGTP", start=1)} | {
    f"{unit}i": 1024**power for power, unit in enumerate("KMGTP", start=1)
}
_PARTS: dict[str, int] = {unit: 1000**power for power, unit in enumerate("munp", start=1)}


def application_id(message: pb.ApplicationId) -> ApplicationId:
    return ApplicationId(message.cluster_timestamp, message.id)


def application_id_pb(value: ApplicationId) -> pb.ApplicationId:
    return pb.ApplicationId(id=value.id, cluster_timestamp=value.cluster_timestamp)


def attempt_id(message: pb.ApplicationAttemptId) -> ApplicationAttemptId:
    return ApplicationAttemptId(application_id(message.application_id), message.attemptId)


def attempt_id_pb(value: ApplicationAttemptId) -> pb.ApplicationAttemptId:
    message = pb.ApplicationAttemptId(attemptId=value.attempt)
    message.application_id.id = value.application_id.id
    message.application_id.cluster_timestamp = value.application_id.cluster_timestamp
    return message


def container_id(message: pb.ContainerId) -> ContainerId:
    return ContainerId(attempt_id(message.app_attempt_id), message.id)


def container_id_pb(value: ContainerId) -> pb.ContainerId:
    """Write the id. Field 1 stays unset, as Java leaves it."""
    message = pb.ContainerId()
    put_container_id(message, value)
    return message


def put_container_id(message: pb.ContainerId, value: ContainerId) -> None:
    """Fill a field of a larger message: half the cost of making one and copying it there."""
    message.id = value.id
    attempt = message.app_attempt_id
    attempt.attemptId = value.attempt_id.attempt
    application = attempt.application_id
    application.id = value.attempt_id.application_id.id
    application.cluster_timestamp = value.attempt_id.application_id.cluster_timestamp


def node_id(message: pb.NodeId) -> NodeId:
    return NodeId(message.host, message.port)


def node_id_pb(value: NodeId) -> pb.NodeId:
    return pb.NodeId(host=value.host, port=value.port)


def resource(message: pb.Resource) -> Resource:
    """Read amounts. `memory` and `virtual_cores` are authoritative.

    Further types come from the map, in single units.
    """
    if not message.resource_value_map:
        return Resource(message.memory, message.virtual_cores)
    extras = {}
    for entry in message.resource_value_map:
        if entry.key not in (_MEMORY, _VCORES) and entry.value:
            extras[entry.key] = _single_units(entry.value, entry.units)
    if not extras:
        return Resource(message.memory, message.virtual_cores)
    return Resource(message.memory, message.virtual_cores, extras)


def _single_units(value: int, unit: str) -> int:
    """Parts of one count as a whole; a unit that Hadoop does not have counts as none."""
    return value * _UNITS.get(unit, 1) if unit not in _PARTS else -(-value // _PARTS[unit])


def resource_pb(value: Resource) -> pb.Resource:
    message = pb.Resource()
    put_resource(message, value)
    return message


def put_resource(message: pb.Resource, value: Resource) -> None:
    """Fill a field of a larger message."""
    message.memory = value.memory_mb
    message.virtual_cores = value.vcores
    if value.extras:
        for name, amount in sorted(value.extras.items()):
            message.resource_value_map.add(key=name, value=amount, units="", type=pb.COUNTABLE)
