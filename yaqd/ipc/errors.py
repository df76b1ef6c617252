"""What can go wrong in a call, by who is to blame.

`RemoteException` is the peer's considered answer: a Java class name and a message, the same pair that Java
clients turn into an exception. Everything under `RpcError` means that no such answer came: the peer was not
there (`RpcConnectionError`), too slow (`RpcTimeout`), hung up on our token (`RpcAuthenticationError`), or broke the
protocol (`ProtocolViolation`).
Handlers raise the subclasses; the client raises the same subclass at the other end.
"""

from typing import ClassVar, Final

_YARN: Final = "org.apache.hadoop.yarn.exceptions."


class RpcError(Exception):
    """No answer from the peer; the message names the peer and what to look at."""


class RpcConnectionError(RpcError):
    """The connection could not be made, or was lost.

    `sent`: the request may have reached the peer, so calling again is safe only for idempotent calls.
    """

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent


class RpcAuthenticationError(RpcError):
    """The server hung up on the proof of a token without a word, as stock servers do: the token is not good there."""


class RpcTimeout(RpcError):
    """The deadline of the call passed without an answer."""


class ProtocolViolation(RpcError):
    """The peer sent bytes that Hadoop's RPC does not allow. The connection is of no further use."""


class RemoteException(Exception):
    """An error that travels: `class_name` is the Java class that clients look up, `message` the text."""

    #: the Java class of a subclass; "" in the base, where the instance names it
    JAVA_CLASS: ClassVar[str] = ""

    def __init__(self, class_name: str, message: str) -> None:
        super().__init__(message)
        self.class_name = class_name
        self.message = message

    def __str__(self) -> str:
        return f"{self.class_name.rpartition('.')[2]}: {self.message}"


class NamedRemoteException(RemoteException):
    """A remote exception whose class is known here: constructed from its message alone."""

    def __init__(self, message: str) -> None:
        super().__init__(self.JAVA_CLASS, message)


class YarnError(NamedRemoteException):
    JAVA_CLASS = _YARN + "YarnException"


class ApplicationNotFound(YarnError):
    JAVA_CLASS = _YARN + "ApplicationNotFoundException"


class ApplicationAttemptNotFound(YarnError):
    JAVA_CLASS = _YARN + "ApplicationAttemptNotFoundException"


class ApplicationMasterNotRegistered(YarnError):
    JAVA_CLASS = _YARN + "ApplicationMasterNotRegisteredException"


class InvalidApplicationMasterRequest(YarnError):
    JAVA_CLASS = _YARN + "InvalidApplicationMasterRequestException"


class InvalidResourceRequest(YarnError):
    JAVA_CLASS = _YARN + "InvalidResourceRequestException"


class InvalidLabelResourceRequest(InvalidResourceRequest):
    JAVA_CLASS = _YARN + "InvalidLabelResourceRequestException"


class InvalidResourceBlacklistRequest(YarnError):
    JAVA_CLASS = _YARN + "InvalidResourceBlacklistRequestException"


class ContainerNotFound(YarnError):
    JAVA_CLASS = _YARN + "ContainerNotFoundException"


class FeatureNotEnabled(YarnError):
    JAVA_CLASS = _YARN + "YARNFeatureNotEnabledException"


class InvalidContainer(YarnError):
    JAVA_CLASS = _YARN + "InvalidContainerException"


class InvalidAuxService(YarnError):
    JAVA_CLASS = _YARN + "InvalidAuxServiceException"


class NMNotYetReady(YarnError):
    JAVA_CLASS = _YARN + "NMNotYetReadyException"


class InvalidToken(NamedRemoteException):
    JAVA_CLASS = "org.apache.hadoop.security.token.SecretManager$InvalidToken"


class AccessControl(NamedRemoteException):
    JAVA_CLASS = "org.apache.hadoop.security.AccessControlException"


class Authorization(NamedRemoteException):
    JAVA_CLASS = "org.apache.hadoop.security.authorize.AuthorizationException"


class SaslFailure(NamedRemoteException):
    JAVA_CLASS = "javax.security.sasl.SaslException"


class Standby(NamedRemoteException):
    JAVA_CLASS = "org.apache.hadoop.ipc.StandbyException"


class Retriable(NamedRemoteException):
    JAVA_CLASS = "org.apache.hadoop.ipc.RetriableException"


class NoSuchProtocol(NamedRemoteException):
    JAVA_CLASS = "org.apache.hadoop.ipc.RpcNoSuchProtocolException"


class NoSuchMethod(NamedRemoteException):
    JAVA_CLASS = "org.apache.hadoop.ipc.RpcNoSuchMethodException"


class VersionMismatch(NamedRemoteException):
    JAVA_CLASS = "org.apache.hadoop.ipc.RPC$VersionMismatch"


class ServerError(NamedRemoteException):
    """The server could not read or serve the request as RPC; the application never saw it."""

    JAVA_CLASS = "org.apache.hadoop.ipc.RpcServerException"


class UnsupportedOperation(NamedRemoteException):
    JAVA_CLASS = "java.lang.UnsupportedOperationException"


class IllegalArgument(NamedRemoteException):
    JAVA_CLASS = "java.lang.IllegalArgumentException"


class RemoteIOError(NamedRemoteException):
    JAVA_CLASS = "java.io.IOException"


class RemoteFailure(NamedRemoteException):
    """A fault of the server itself: a handler raised what it should not have."""

    JAVA_CLASS = "java.lang.RuntimeException"


def _named(base: type[NamedRemoteException]) -> dict[str, type[NamedRemoteException]]:
    found = {base.JAVA_CLASS: base}
    for sub in base.__subclasses__():
        found |= _named(sub)
    return found


_BY_JAVA_CLASS: Final = _named(NamedRemoteException)


def remote_exception(class_name: str, message: str) -> RemoteException:
    """Return the exception that `class_name` stands for; unknown classes keep their name in the base class."""
    known = _BY_JAVA_CLASS.get(class_name)
    if known is None or not class_name:
        return RemoteException(class_name, message)
    return known(message)
