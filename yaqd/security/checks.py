"""What a NodeManager checks before it starts a container, and why it says no.

Each function returns None when all is well, else one line for the application master. Nothing here reads a clock.
"""

import hmac

from yaqd.ipc.errors import InvalidToken
from yaqd.model import ApplicationId, NodeId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as pb
from yaqd.security.secrets import CONTAINER_TOKEN, ContainerTokenSecrets


def check_nm_token(identifier: pb.NMTokenIdentifier, *, user: str, node_id: NodeId) -> str | None:
    """Check a token that has authenticated a connection: it is the caller's and for this node."""
    attempt_id = convert.attempt_id(identifier.appAttemptId)
    if str(attempt_id) != user:
        return f"NMToken is for {attempt_id}, the caller is {user}"
    named = convert.node_id(identifier.nodeId)
    if named != node_id:
        return f"NMToken is for node {named}, this is {node_id}"
    return None


def check_container_password(token: common.Token, secrets: ContainerTokenSecrets) -> str | None:
    """Check that the ResourceManager made the token."""
    if token.kind != CONTAINER_TOKEN:
        return f"container token of kind {token.kind[:80]!r}, expected {CONTAINER_TOKEN}"
    try:
        expected = secrets.password(token.kind, token.identifier)
    except InvalidToken as error:
        return error.message
    if not hmac.compare_digest(expected, token.password):
        return "container token has a wrong password: it was not made by this node's ResourceManager, or was changed"
    return None


def check_container_token(
    identifier: pb.ContainerTokenIdentifier,
    *,
    node_address: str,
    application_id: ApplicationId,
    rm_identifier: int,
    now_ms: int,
) -> str | None:
    """Check what a genuine container token says: this node, the caller's application, this ResourceManager, in time.

    `node_address` is this NodeManager's own `host:port`, compared as a string; `application_id` is the caller's.
    """
    container_id = convert.container_id(identifier.containerId)
    if identifier.nmHostAddr != node_address:
        return f"{container_id} is for node {identifier.nmHostAddr}, this is {node_address}"
    if container_id.application_id != application_id:
        return f"{container_id} belongs to another application than the caller's, {application_id}"
    if identifier.rmIdentifier != rm_identifier:
        return f"{container_id} was allocated by a ResourceManager ({identifier.rmIdentifier}) that is no longer there"
    if identifier.expiryTimeStamp < now_ms:
        late_s = (now_ms - identifier.expiryTimeStamp) / 1000
        return f"{container_id}: token expired {late_s:.1f} s ago; compare the clocks of the hosts"
    return None
