"""One connection as the client sees it, without I/O: requests in, bytes to send out; bytes in, replies out."""

import enum
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import Message

from yaqd.ipc.errors import (
    ProtocolViolation,
    RemoteException,
    RpcAuthenticationError,
    RpcConnectionError,
    RpcError,
    remote_exception,
)
from yaqd.ipc.frames import FRAME_BYTES_MAX, FrameDecoder, delimited, encode_varint, frame, read_delimited
from yaqd.ipc.negotiation import ClientNegotiation
from yaqd.ipc.wire import (
    AUTH_NONE,
    AUTH_SASL,
    CALL_CONTEXT,
    CALL_PING,
    CALL_SASL,
    RPC_KIND_PROTOBUF,
    UINT32,
    RandomBytes,
    TokenCredential,
    parse,
    preamble,
)
from yaqd.proto import rpc_pb2 as rpc
from yaqd.proto.protocols import Method

_SUCCESS: Final = rpc.RpcResponseHeader.SUCCESS
_FATAL: Final = rpc.RpcResponseHeader.FATAL
_CALL_ID_MAX: Final = 0x7FFF_FFFF


class ClientPhase(enum.Enum):
    SASL = enum.auto()
    CALLS = enum.auto()
    CLOSED = enum.auto()


@dataclass(slots=True)
class Reply:
    """The answer to one call: an encoded response message, or an error."""

    call_id: int
    body: bytes
    error: RemoteException | None


class ClientConnection:
    """`start` the conversation, then `request` and `receive`. Any exception from `receive` ends the connection."""

    def __init__(
        self,
        *,
        user: str,
        protocol: str,
        client_id: bytes,
        random: RandomBytes,
        token: TokenCredential | None = None,
        real_user: str | None = None,
        frame_bytes_max: int = FRAME_BYTES_MAX,
    ) -> None:
        self._user = user
        #: who acts for `user`, where the server allows it
        self._real_user = real_user
        self._protocol = protocol
        self._client_id = client_id
        self._token = token
        self._negotiation = None if token is None else ClientNegotiation(token, random=random)
        self._decoder = FrameDecoder(frame_bytes_max)
        self._next_call_id = 0
        self._header = rpc.RpcRequestHeader(
            rpcKind=RPC_KIND_PROTOBUF, rpcOp=rpc.RPC_FINAL_PACKET, callId=0, clientId=client_id, retryCount=0
        )
        self._method_headers: dict[tuple[str, str, int], bytes] = {}
        self.phase = ClientPhase.SASL

    @property
    def is_ready(self) -> bool:
        """Calls may be sent."""
        return self.phase is ClientPhase.CALLS

    def start(self) -> bytes:
        """Return the opening bytes; without a token the connection is ready at once."""
        if self._negotiation is None:
            return preamble(AUTH_NONE) + self._context()
        return preamble(AUTH_SASL) + self._sasl_frame(self._negotiation.start())

    def _special(self, call_id: int, client_id: bytes, body: bytes) -> bytes:
        header = rpc.RpcRequestHeader(
            rpcKind=RPC_KIND_PROTOBUF,
            rpcOp=rpc.RPC_FINAL_PACKET,
            callId=call_id,
            clientId=client_id,
            retryCount=-1,
        )
        return frame(delimited(header.SerializeToString()), body)

    def _sasl_frame(self, message: rpc.RpcSasl) -> bytes:
        return self._special(CALL_SASL, b"", delimited(message.SerializeToString()))

    def _context(self) -> bytes:
        context = rpc.IpcConnectionContext(userInfo=rpc.UserInformation(), protocol=self._protocol)
        if self._negotiation is None or not self._negotiation.used_token:
            context.userInfo.effectiveUser = self._user
            if self._real_user is not None:
                context.userInfo.realUser = self._real_user
        self.phase = ClientPhase.CALLS
        return self._special(CALL_CONTEXT, self._client_id, delimited(context.SerializeToString()))

    def ping(self) -> bytes:
        return self._special(CALL_PING, self._client_id, b"")

    def request(self, method: Method[Any, Any], request: Message) -> tuple[int, bytes]:
        """Return the call id and the frame of a call. Raises protobuf's EncodeError for an incomplete request."""
        call_id = self._next_call_id
        self._next_call_id = (call_id + 1) & _CALL_ID_MAX
        key = (method.protocol, method.name, method.version)
        method_header = self._method_headers.get(key)
        if method_header is None:
            method_header = self._method_headers[key] = self._method_header(method)
        header = self._header
        header.callId = call_id
        head = header.SerializeToString()
        body = request.SerializeToString()
        return call_id, frame(encode_varint(len(head)), head, method_header, encode_varint(len(body)), body)

    @staticmethod
    def _method_header(method: Method[Any, Any]) -> bytes:
        header = rpc.RequestHeader(
            methodName=method.name,
            declaringClassProtocolName=method.protocol,
            clientProtocolVersion=method.version,
        )
        return delimited(header.SerializeToString())

    def receive(self, data: bytes | memoryview) -> tuple[list[Reply], bytes]:
        """Return the replies that `data` completes and the bytes to send now.

        Raises ProtocolViolation, RemoteException (a FATAL answer: all calls of the connection have failed).
        """
        self._decoder.feed(data)
        replies: list[Reply] = []
        output = b""
        while (payload := self._decoder.next_frame()) is not None:
            head, position = read_delimited(payload, 0)
            header = parse(rpc.RpcResponseHeader, head)
            if header.status == _FATAL:
                self.phase = ClientPhase.CLOSED
                raise self._error(header)
            if header.callId == CALL_SASL & UINT32:
                output += self._negotiate(header, payload, position)
            else:
                replies.append(self._reply(header, payload, position))
        return replies, output

    def closed(self, peer: str, reason: str) -> RpcError:
        """Return what it means that the connection ends now.

        A stock server that does not like a token just closes.
        """
        if self._token is not None and self._negotiation is not None and self._negotiation.awaits_verdict:
            service = self._token.service or "any service"
            return RpcAuthenticationError(
                f"{peer} refused the token of kind {self._token.kind} for {service}: it closed the connection on the "
                "token's proof; the token is wrong, expired or another server's"
            )
        return RpcConnectionError(f"connection to {peer} {reason}", sent=True)

    @staticmethod
    def _error(header: rpc.RpcResponseHeader) -> RemoteException:
        return remote_exception(header.exceptionClassName, header.errorMsg)

    def _reply(self, header: rpc.RpcResponseHeader, payload: bytes, position: int) -> Reply:
        if header.clientId and header.clientId != self._client_id:
            raise ProtocolViolation("reply to another client")
        if header.status != _SUCCESS:
            if position != len(payload):
                raise ProtocolViolation("bytes after an error header")
            return Reply(header.callId, b"", self._error(header))
        body, position = read_delimited(payload, position)
        if position != len(payload):
            raise ProtocolViolation("bytes after a response")
        return Reply(header.callId, body, None)

    def _negotiate(self, header: rpc.RpcResponseHeader, payload: bytes, position: int) -> bytes:
        if self._negotiation is None or self._negotiation.is_done:
            raise ProtocolViolation("SASL message out of turn")
        if header.status != _SUCCESS:
            raise self._error(header)
        body, _ = read_delimited(payload, position)
        answer = self._negotiation.receive(parse(rpc.RpcSasl, body))
        output = b"" if answer is None else self._sasl_frame(answer)
        if self._negotiation.is_done:
            output += self._context()
        return output
