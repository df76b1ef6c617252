"""One connection as the server sees it, without I/O: bytes in, calls out, and the bytes to answer with.

The life of a connection is a table: which kinds of frame each phase accepts. Anything else ends the connection with
one FATAL answer, which is what Hadoop's clients expect; an error of a single call never does.

```
PREAMBLE --hrpc 9 NONE--> CONTEXT --context--> CALLS
PREAMBLE --hrpc 9 SASL--> SASL --done--> CONTEXT
any --violation--> CLOSED
```
"""

import enum
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from yaqd.ipc import errors
from yaqd.ipc.caller import Caller, is_user_name
from yaqd.ipc.frames import FRAME_BYTES_MAX, FrameDecoder, delimited, encode_varint, frame, read_delimited
from yaqd.ipc.later import NotYetKnown
from yaqd.ipc.negotiation import ServerNegotiation
from yaqd.ipc.wire import (
    AUTH_NONE,
    AUTH_SASL,
    CALL_AUTHORIZATION_FAILED,
    CALL_CONTEXT,
    CALL_PING,
    CALL_SASL,
    IPC_VERSION,
    MAGIC,
    PREAMBLE_BYTES,
    RPC_KIND_PROTOBUF,
    UINT32,
    RandomBytes,
    TokenSecrets,
    error_frame,
    parse,
)
from yaqd.proto import rpc_pb2 as rpc

log = logging.getLogger(__name__)

Code = rpc.RpcResponseHeader
#: Java sends 16 bytes; a little room for others, none for abuse since every response echoes it
_CLIENT_ID_BYTES_MAX: Final = 64
#: before the peer is known: a SASL message or a connection context, never more
_HANDSHAKE_FRAME_BYTES_MAX: Final = 64 << 10

#: to a browser that was given the wrong port, as Hadoop's server answers it
_HTTP_ANSWER: Final = (
    b"HTTP/1.1 404 Not Found\r\nContent-type: text/plain\r\nConnection: close\r\n\r\n"
    b"This port speaks Hadoop RPC, not HTTP. The daemon's web pages are on another port.\r\n"
)

#: (caller, protocol) -> None, or raises Authorization, or NotYetKnown: then it is asked again
ServiceAcl = Callable[[Caller, str], None]


class Phase(enum.Enum):
    PREAMBLE = enum.auto()
    SASL = enum.auto()
    CONTEXT = enum.auto()
    CALLS = enum.auto()
    CLOSED = enum.auto()


#: special call ids that a phase accepts; ids from 0 are calls and belong to CALLS
_ACCEPTS: Final = {
    Phase.SASL: frozenset({CALL_SASL, CALL_PING}),
    Phase.CONTEXT: frozenset({CALL_CONTEXT, CALL_PING}),
    Phase.CALLS: frozenset({CALL_PING}),
}


class Fatal(Exception):
    """Ends the connection: the error to send, under which call id and code."""

    def __init__(self, error: errors.RemoteException, detail: Code.RpcErrorCode, call_id: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.detail = detail
        self.call_id = call_id


@dataclass(slots=True)
class Call:
    """A request, its body still encoded. (Not frozen: one is made per call.)"""

    call_id: int
    client_id: bytes
    retry_count: int
    #: encoded RequestHeader: protocol, method, version
    header: bytes
    #: encoded request message
    body: bytes


@dataclass(frozen=True, slots=True)
class Admission:
    """What a server demands of a peer before the first call."""

    secrets: TokenSecrets | None
    allow_simple: bool
    service_acl: ServiceAcl | None
    random: RandomBytes
    frame_bytes_max: int = FRAME_BYTES_MAX


class ServerConnection:
    """Feed it bytes, take calls, send what `take_output` returns; close after that once `is_closed`."""

    def __init__(self, admission: Admission, address: tuple[str, int]) -> None:
        self._admission = admission
        self._address = address
        self._decoder = FrameDecoder(min(_HANDSHAKE_FRAME_BYTES_MAX, admission.frame_bytes_max))
        self._negotiation: ServerNegotiation | None = None
        self._output: list[bytes] = []
        self._success = rpc.RpcResponseHeader(
            callId=0, status=rpc.RpcResponseHeader.SUCCESS, serverIpcVersionNum=IPC_VERSION
        )
        self.phase = Phase.PREAMBLE
        #: the peer has said who it is, and is not admitted yet
        self._context: rpc.IpcConnectionContext | None = None
        #: what must be known before it can be; once it is, take it away and go on
        self.waits_for: NotYetKnown | None = None
        #: set when the peer is admitted
        self.caller: Caller | None = None
        #: why the connection was closed, for one log line; None while it is healthy
        self.failure: str | None = None

    @property
    def is_closed(self) -> bool:
        return self.phase is Phase.CLOSED

    @property
    def pending_bytes(self) -> int:
        """Bytes received of frames that are not complete, or not yet taken."""
        return self._decoder.pending_bytes

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        self._decoder.feed(data)

    def take_output(self) -> list[bytes]:
        """Return what is to be sent, in order, and forget it."""
        output, self._output = self._output, []
        return output

    def next_call(self) -> Call | None:
        """Return the next call, or None: more bytes are needed, `waits_for` is set, or the connection is closed."""
        try:
            if self.phase is Phase.PREAMBLE:
                self._read_preamble()
            if self._context is not None and self.waits_for is None:
                self._admit(self._context)
            while self.phase not in (Phase.CLOSED, Phase.PREAMBLE) and self.waits_for is None:
                payload = self._decoder.next_frame()
                if payload is None:
                    return None
                call = self._read_frame(payload)
                if call is not None:
                    return call
        except Fatal as fatal:
            self._close(fatal)
        except errors.ProtocolViolation as violation:
            self._close(
                Fatal(errors.ServerError(str(violation)), Code.FATAL_INVALID_RPC_HEADER, CALL_AUTHORIZATION_FAILED)
            )
        return None

    def _close(self, fatal: Fatal) -> None:
        self.phase = Phase.CLOSED
        self.failure = str(fatal.error)
        self._output.append(error_frame(fatal.call_id, fatal.error, fatal.detail, fatal=True))

    def _read_preamble(self) -> None:
        head = self._decoder.peek(PREAMBLE_BYTES)
        if not MAGIC.startswith(head[:4]):
            if head[:4] == b"GET "[: len(head)]:
                if len(head) < 4:
                    return
                self.phase, self.failure = Phase.CLOSED, "an HTTP request; this port speaks Hadoop RPC"
                self._output.append(_HTTP_ANSWER)
                return
            raise Fatal(
                errors.VersionMismatch(f"expected {MAGIC!r} and version {IPC_VERSION}, got {head!r}"),
                Code.FATAL_VERSION_MISMATCH,
                CALL_AUTHORIZATION_FAILED,
            )
        if len(head) > 4 and head[4] != IPC_VERSION:
            raise Fatal(
                errors.VersionMismatch(f"Server IPC version {IPC_VERSION} cannot communicate with version {head[4]}"),
                Code.FATAL_VERSION_MISMATCH,
                CALL_AUTHORIZATION_FAILED,
            )
        if len(head) < PREAMBLE_BYTES:
            return
        self._decoder.skip(PREAMBLE_BYTES)
        self._choose_auth(head[6])

    def _choose_auth(self, auth: int) -> None:
        admission = self._admission
        if auth == AUTH_SASL:
            self._negotiation = ServerNegotiation(
                admission.secrets, allow_simple=admission.allow_simple, random=admission.random
            )
            self.phase = Phase.SASL
        elif auth != AUTH_NONE:
            raise self._unauthorized(errors.AccessControl(f"unknown authentication protocol {auth}"))
        elif not admission.allow_simple:
            raise self._unauthorized(
                errors.AccessControl("SIMPLE authentication is not enabled. Available: [TOKEN]"),
            )
        else:
            self.phase = Phase.CONTEXT

    @staticmethod
    def _unauthorized(error: errors.RemoteException, call_id: int = CALL_AUTHORIZATION_FAILED) -> Fatal:
        return Fatal(error, Code.FATAL_UNAUTHORIZED, call_id)

    def _read_frame(self, payload: bytes) -> Call | None:
        head, position = read_delimited(payload, 0)
        try:
            header = parse(rpc.RpcRequestHeader, head)
        except errors.ProtocolViolation as violation:
            raise Fatal(
                errors.ServerError(str(violation)), Code.FATAL_DESERIALIZING_REQUEST, CALL_AUTHORIZATION_FAILED
            ) from None
        call_id = header.callId
        self._check_header(header, call_id)
        try:
            if call_id >= 0 and self.phase is Phase.CALLS:
                request_header, position = read_delimited(payload, position)
                body = _last_message(payload, position)
                return Call(call_id, header.clientId, header.retryCount, request_header, body)
            if call_id not in _ACCEPTS[self.phase]:
                raise self._unexpected(call_id)
            if call_id == CALL_SASL:
                self._negotiate(payload, position)
            elif call_id == CALL_CONTEXT:
                self._read_context(payload, position)
            return None
        except errors.ProtocolViolation as violation:
            raise Fatal(errors.ServerError(str(violation)), Code.FATAL_DESERIALIZING_REQUEST, call_id) from None

    @staticmethod
    def _check_header(header: rpc.RpcRequestHeader, call_id: int) -> None:
        if header.rpcOp != rpc.RPC_FINAL_PACKET:
            why = f"rpc operation {header.rpcOp} is not implemented"
        elif call_id >= 0 and header.rpcKind != RPC_KIND_PROTOBUF:
            why = f"rpc kind {header.rpcKind} is not served here, only {RPC_KIND_PROTOBUF} (protobuf)"
        elif len(header.clientId) > _CLIENT_ID_BYTES_MAX:
            why = f"client id of {len(header.clientId)} bytes"
        else:
            return
        raise Fatal(errors.ServerError(why), Code.FATAL_INVALID_RPC_HEADER, call_id)

    def _unexpected(self, call_id: int) -> Fatal:
        if call_id >= 0:
            why = "call before the connection context"
        elif call_id == CALL_CONTEXT:
            why = "connection context out of turn"
        elif call_id == CALL_SASL:
            why = "SASL message out of turn"
        else:
            why = f"unknown out of band call {call_id}"
        return Fatal(errors.ServerError(why), Code.FATAL_INVALID_RPC_HEADER, call_id)

    def _negotiate(self, payload: bytes, position: int) -> None:
        message = parse(rpc.RpcSasl, _last_message(payload, position))
        assert self._negotiation is not None
        try:
            answer = self._negotiation.receive(message)
        except errors.RemoteException as error:
            raise self._unauthorized(error, CALL_SASL) from None
        if answer is not None:
            header = rpc.RpcResponseHeader(
                callId=CALL_SASL & UINT32, status=rpc.RpcResponseHeader.SUCCESS, serverIpcVersionNum=IPC_VERSION
            )
            self._output.append(
                frame(delimited(header.SerializeToString()), delimited(answer.SerializeToString())),
            )
        if self._negotiation.is_done:
            self.phase = Phase.CONTEXT

    def _read_context(self, payload: bytes, position: int) -> None:
        self._context = parse(rpc.IpcConnectionContext, _last_message(payload, position))
        self._admit(self._context)

    def _admit(self, context: rpc.IpcConnectionContext) -> None:
        try:
            caller = self._identify(context.userInfo)
            if self._admission.service_acl is not None:
                self._admission.service_acl(caller, context.protocol)
            elif caller.real_user is not None and caller.auth == "SIMPLE":
                raise errors.Authorization(f"User: {caller.real_user} is not allowed to impersonate {caller.user}")
        except NotYetKnown as missing:
            self.waits_for = missing
            return
        except errors.RemoteException as error:
            raise self._unauthorized(error) from None
        self._context = None
        self.caller = caller
        self.phase = Phase.CALLS
        self._decoder.max_frame_bytes = self._admission.frame_bytes_max

    def _identify(self, given: rpc.UserInformation) -> Caller:
        """Return who the peer is: the token's user where there is a token, else who it says it is."""
        identifier = self._negotiation.identifier if self._negotiation is not None else None
        user, real_user = given.effectiveUser, given.realUser or None
        auth: Literal["SIMPLE", "TOKEN"] = "SIMPLE"
        kind = None
        if identifier is not None:
            assert self._admission.secrets is not None
            user, real_user, auth = self._admission.secrets.user(identifier), None, "TOKEN"
            kind = self._admission.secrets.kind
        for name in (user, real_user):
            if name is not None and not is_user_name(name):
                raise errors.Authorization(f"not a user name: {name[:80]!r}")
        return Caller(user, real_user, auth, identifier, kind, self._address)

    def succeed(self, call: Call, body: bytes) -> None:
        """Queue the response message of a call."""
        header = self._success
        header.callId = call.call_id
        header.clientId = call.client_id
        header.retryCount = call.retry_count
        head = header.SerializeToString()
        self._output.append(frame(encode_varint(len(head)), head, encode_varint(len(body)), body))

    def fail(self, call: Call, error: errors.RemoteException, detail: Code.RpcErrorCode) -> None:
        """Queue an error for this call only."""
        self._output.append(
            error_frame(call.call_id, error, detail, client_id=call.client_id, retry_count=call.retry_count)
        )


def _last_message(payload: bytes, position: int) -> bytes:
    """The delimited message that ends a frame. Raises ProtocolViolation when bytes follow it."""
    message, end = read_delimited(payload, position)
    if end != len(payload):
        raise errors.ProtocolViolation(f"{len(payload) - end} bytes after the message")
    return message
