"""Both ends of a connection without a socket, and the frames that they send."""

from yaqd.ipc import errors
from yaqd.ipc.client_connection import ClientConnection, Reply
from yaqd.ipc.frames import FrameDecoder, delimited, frame, read_delimited
from yaqd.ipc.server_connection import Admission, Call, ServerConnection
from yaqd.ipc.wire import AUTH_NONE, preamble
from yaqd.proto import rpc_pb2 as rpc
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol
from yaqd.security import Token

METHOD = ApplicationClientProtocol.getQueueInfo
TOKEN = Token(b"identifier", b"password", "TestToken", "")
ADDRESS = ("127.0.0.1", 12345)
CLIENT_ID = bytes(range(16))


class OneToken:
    """Secrets that know exactly one token."""

    kind = "TestToken"

    def password(self, kind: str | None, identifier: bytes) -> bytes:
        if identifier != TOKEN.identifier:
            raise errors.InvalidToken("unknown token")
        return TOKEN.password

    def user(self, identifier: bytes) -> str:
        return "appattempt_1_0001_000001"


def random_bytes(count: int) -> bytes:
    return bytes((i * 7 + count) & 0xFF for i in range(count))


def server(*, secrets: OneToken | None = None, allow_simple: bool = True, acl: object = None) -> ServerConnection:
    return ServerConnection(Admission(secrets, allow_simple, acl, random_bytes), ADDRESS)  # type: ignore[arg-type]


def client(token: Token | None = None) -> ClientConnection:
    return ClientConnection(
        user="alice", protocol=METHOD.protocol, client_id=CLIENT_ID, random=random_bytes, token=token
    )


class Pair:
    """A client and a server with a link that carries `step` bytes at a time; the server answers with the queue name."""

    def __init__(self, client_end: ClientConnection, server_end: ServerConnection, step: int) -> None:
        self.client, self.server, self.step = client_end, server_end, step
        self.replies: list[Reply] = []
        self.calls: list[Call] = []

    def to_server(self, data: bytes) -> None:
        for at in range(0, len(data), self.step):
            self.server.feed(data[at : at + self.step])
            while (call := self.server.next_call()) is not None:
                self.calls.append(call)
                self.server.succeed(call, service.GetQueueInfoResponse().SerializeToString())
        self.to_client(b"".join(self.server.take_output()))

    def to_client(self, data: bytes) -> None:
        for at in range(0, len(data), self.step):
            replies, output = self.client.receive(data[at : at + self.step])
            self.replies += replies
            if output:
                self.to_server(output)

    def open(self) -> None:
        self.to_server(self.client.start())

    def call(self, count: int = 1) -> None:
        requests = [self.client.request(METHOD, service.GetQueueInfoRequest(queueName="root")) for _ in range(count)]
        self.to_server(b"".join(encoded for _, encoded in requests))
        assert [reply.call_id for reply in self.replies[-count:]] == [call_id for call_id, _ in requests]


def fatal(output: list[bytes]) -> rpc.RpcResponseHeader:
    """Return the header of the only frame in the output, which must be a FATAL one with nothing behind it."""
    decoder = FrameDecoder()
    decoder.feed(b"".join(output))
    payload = decoder.next_frame()
    assert payload is not None and decoder.pending_bytes == 0
    head, position = read_delimited(payload, 0)
    assert position == len(payload)
    header = rpc.RpcResponseHeader.FromString(head)
    assert header.status == rpc.RpcResponseHeader.FATAL
    return header


def special(call_id: int, message: object, **fields: object) -> bytes:
    header = rpc.RpcRequestHeader(
        rpcKind=rpc.RPC_PROTOCOL_BUFFER, rpcOp=rpc.RPC_FINAL_PACKET, callId=call_id, clientId=CLIENT_ID
    )
    for name, value in fields.items():
        setattr(header, name, value)
    body = message if isinstance(message, bytes) else delimited(message.SerializeToString())  # type: ignore[attr-defined]
    return frame(delimited(header.SerializeToString()), body)


def context(user: str = "alice", **fields: str) -> bytes:
    info = rpc.UserInformation(effectiveUser=user, **fields)
    return special(-3, rpc.IpcConnectionContext(userInfo=info, protocol=METHOD.protocol))


def call_frame(call_id: int = 0, **fields: object) -> bytes:
    header = rpc.RequestHeader(
        methodName="getQueueInfo", declaringClassProtocolName=METHOD.protocol, clientProtocolVersion=1
    )
    return special(call_id, delimited(header.SerializeToString()) + delimited(b""), **fields)


OPEN = preamble(AUTH_NONE) + context()


def opening() -> bytes:
    """What a peer without a token sends first."""
    header = rpc.RpcRequestHeader(
        rpcKind=rpc.RPC_PROTOCOL_BUFFER, rpcOp=rpc.RPC_FINAL_PACKET, callId=-3, clientId=bytes(16)
    )
    context = rpc.IpcConnectionContext(userInfo=rpc.UserInformation(effectiveUser="eve"), protocol=METHOD.protocol)
    return preamble(AUTH_NONE) + frame(delimited(header.SerializeToString()), delimited(context.SerializeToString()))
