"""What a NodeManager checks before it starts a container, and how it says no: with Hadoop's exceptions and words.

InvalidToken means that the token itself is bad, which fails the whole call; the others concern one container. Nothing
here reads a clock.
"""

import hmac

from yaqd.ipc.errors import InvalidContainer, InvalidToken, YarnError
from yaqd.model import ApplicationAttemptId, NodeId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as pb
from yaqd.security.secrets import CONTAINER_TOKEN, ContainerTokenSecrets, parse_identifier


def check_nm_token(identifier: pb.NMTokenIdentifier, *, user: str, node_id: NodeId) -> None:
    """Check a token that has authenticated a connection: it is the caller's and for this node. Raises InvalidToken."""
    attempt_id = convert.attempt_id(identifier.appAttemptId)
    if str(attempt_id) != user:
        raise InvalidToken(f"Given NMToken for application : {attempt_id} is not the caller's, who is {user}")
    named = convert.node_id(identifier.nodeId)
    if named != node_id:
        raise InvalidToken(
            f"Given NMToken for application : {attempt_id} is not valid for current node manager."
            f"expected : {node_id} found : {named}"
        )


def check_container_password(
    token: common.Token, secrets: ContainerTokenSecrets, *, node_address: str
) -> pb.ContainerTokenIdentifier:
    """Check that the ResourceManager made the token, and for this node; return what it says. Raises InvalidToken.

    `node_address` is this NodeManager's own `host:port`, compared as a string.
    """
    if token.kind != CONTAINER_TOKEN:
        raise InvalidToken(f"container token of kind {token.kind[:80]!r}, expected {CONTAINER_TOKEN}")
    expected = secrets.password(token.kind, token.identifier)
    identifier = parse_identifier(pb.ContainerTokenIdentifier, token.identifier)
    container_id = convert.container_id(identifier.containerId)
    if not hmac.compare_digest(expected, token.password):
        raise InvalidToken(f"Invalid container token used for starting container on : {node_address}")
    if identifier.nmHostAddr != node_address:
        raise InvalidToken(
            f"Given Container {container_id} identifier is not valid for current Node manager. "
            f"Expected : {node_address} Found : {identifier.nmHostAddr}"
        )
    return identifier


def check_container_token(
    identifier: pb.ContainerTokenIdentifier,
    *,
    caller: ApplicationAttemptId,
    rm_identifier: int,
    now_ms: int,
) -> None:
    """Check what a genuine container token says: the caller's application, this ResourceManager, in time.

    Raises YarnError and InvalidContainer.
    """
    container_id = convert.container_id(identifier.containerId)
    if container_id.application_id != caller.application_id:
        raise YarnError(
            f"Unauthorized request to start container. \nNMToken for application attempt : {caller} was used for "
            f"starting container with container token issued for application attempt : {container_id.attempt_id}"
        )
    if identifier.expiryTimeStamp < now_ms:
        raise YarnError(
            f"Unauthorized request to start container. \nThis token is expired. current time is {now_ms} found "
            f"{identifier.expiryTimeStamp}\nNote: System times on machines may be out of sync. Check system time and "
            "time zones."
        )
    if identifier.rmIdentifier != rm_identifier:
        raise InvalidContainer(f" Container {container_id} rejected as it is allocated by a previous RM")
