"""The border between messages and the vocabulary: one function each way per record.

Reading protobuf fields costs more than parsing them, and protobuf types never reach a policy: whatever
comes off the wire is turned into `yaqd.model` values here, once.
"""

from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource
from yaqd.proto import yarn_common_pb2 as pb

_MEMORY = "memory-mb"
_VCORES = "vcores"


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
    """Field 1 stays unset, as Java leaves it."""
    message = pb.ContainerId(id=value.id)
    attempt = message.app_attempt_id
    attempt.attemptId = value.attempt_id.attempt
    attempt.application_id.id = value.attempt_id.application_id.id
    attempt.application_id.cluster_timestamp = value.attempt_id.application_id.cluster_timestamp
    return message


def node_id(message: pb.NodeId) -> NodeId:
    return NodeId(message.host, message.port)


def node_id_pb(value: NodeId) -> pb.NodeId:
    return pb.NodeId(host=value.host, port=value.port)


def resource(message: pb.Resource) -> Resource:
    """`memory` and `virtual_cores` are authoritative; further types come from the map."""
    if not message.resource_value_map:
        return Resource(message.memory, message.virtual_cores)
    extras = {e.key: e.value for e in message.resource_value_map if e.key not in (_MEMORY, _VCORES)}
    if not extras:
        return Resource(message.memory, message.virtual_cores)
    return Resource(message.memory, message.virtual_cores, extras)


def resource_pb(value: Resource) -> pb.Resource:
    message = pb.Resource(memory=value.memory_mb, virtual_cores=value.vcores)
    for name, amount in sorted(value.extras.items()):
        message.resource_value_map.add(key=name, value=amount, units="", type=pb.COUNTABLE)
    return message
