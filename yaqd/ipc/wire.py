"""Names and numbers of Hadoop RPC version 9 that both ends share."""

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from google.protobuf.message import DecodeError, Message

from yaqd.ipc.errors import ProtocolViolation, RemoteException
from yaqd.ipc.frames import delimited, frame
from yaqd.proto import rpc_pb2 as rpc

MAGIC: Final = b"hrpc"
IPC_VERSION: Final = 9
#: magic, version, service class, auth protocol
PREAMBLE_BYTES: Final = 7
AUTH_NONE: Final = 0
#: -33 as an unsigned byte
AUTH_SASL: Final = 0xDF

CALL_AUTHORIZATION_FAILED: Final = -1
CALL_CONTEXT: Final = -3
CALL_PING: Final = -4
CALL_SASL: Final = -33

CLIENT_ID_BYTES: Final = 16
UINT32: Final = 0xFFFF_FFFF

RPC_KIND_PROTOBUF: Final = rpc.RPC_PROTOCOL_BUFFER

#: (count) -> that many random bytes; handed in so that a connection can be replayed
RandomBytes = Callable[[int], bytes]


class TokenCredential(Protocol):
    """What a client needs of a token."""

    @property
    def identifier(self) -> bytes: ...
    @property
    def password(self) -> bytes: ...
    @property
    def kind(self) -> str: ...
    @property
    def service(self) -> str: ...


class TokenSecrets(Protocol):
    """What a server needs to know of the tokens it accepts."""

    @property
    def kind(self) -> str:
        """The kind of token, as in "NMToken"; reported in Caller.token_kind."""
        ...

    def password(self, kind: str | None, identifier: bytes) -> bytes:
        """Return the password that belongs to the identifier. DIGEST-MD5 does not carry the kind: it is None there.

        Raises InvalidToken.
        """
        ...

    def user(self, identifier: bytes) -> str:
        """Return the user that the (verified) identifier names. Raises InvalidToken."""
        ...


def preamble(auth: int) -> bytes:
    return MAGIC + bytes((IPC_VERSION, 0, auth))


MessageT = TypeVar("MessageT", bound=Message)


def parse(kind: type[MessageT], data: bytes) -> MessageT:
    """Parse a message and insist on its required fields, which the parser alone does not.

    Raises ProtocolViolation.
    """
    try:
        message = kind.FromString(data)
    except DecodeError as error:
        raise ProtocolViolation(f"{kind.__name__}: {error}") from None
    if not message.IsInitialized():
        raise ProtocolViolation(f"{kind.__name__}: {missing_fields(message)}")
    return message


def missing_fields(message: Any) -> str:
    """Name the required fields that an incomplete message lacks (a method that protobuf's type stubs leave out)."""
    return f"required fields missing: {', '.join(message.FindInitializationErrors())}"


def error_frame(
    call_id: int,
    error: RemoteException,
    detail: "rpc.RpcResponseHeader.RpcErrorCode",
    *,
    fatal: bool = False,
    client_id: bytes = b"",
    retry_count: int = -1,
) -> bytes:
    """Return a response frame that carries an error: a header and nothing after it."""
    header = rpc.RpcResponseHeader(
        callId=call_id & UINT32,
        status=rpc.RpcResponseHeader.FATAL if fatal else rpc.RpcResponseHeader.ERROR,
        serverIpcVersionNum=IPC_VERSION,
        exceptionClassName=error.class_name,
        errorMsg=error.message,
        errorDetail=detail,
        clientId=client_id,
        retryCount=retry_count,
    )
    return frame(delimited(header.SerializeToString()))
