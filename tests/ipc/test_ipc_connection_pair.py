"""Both ends of the protocol without a socket between them: every conversation whole and one byte at a time."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yaqd.ipc import errors
from yaqd.ipc.caller import Caller
from yaqd.ipc.client_connection import ClientConnection, Reply
from yaqd.ipc.frames import FrameDecoder, delimited, frame, read_delimited
from yaqd.ipc.server_connection import Admission, Call, Code, ServerConnection
from yaqd.ipc.wire import AUTH_NONE, AUTH_SASL, preamble
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


@pytest.fixture(params=[1, 3, 65536], ids=lambda step: f"{step}-bytes")
def step(request: pytest.FixtureRequest) -> int:
    return int(request.param)


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


def test_simple_without_a_token(step: int) -> None:
    pair = Pair(client(), server(), step)
    pair.open()
    pair.call(3)
    assert pair.server.caller == Caller("alice", None, "SIMPLE", None, None, ADDRESS)


def test_a_token_where_anybody_is_let_in_falls_back_to_simple(step: int) -> None:
    pair = Pair(client(TOKEN), server(), step)
    pair.open()
    pair.call()
    assert pair.server.caller == Caller("alice", None, "SIMPLE", None, None, ADDRESS)


def test_a_token_names_its_user(step: int) -> None:
    for allow_simple in (True, False):
        pair = Pair(client(TOKEN), server(secrets=OneToken(), allow_simple=allow_simple), step)
        pair.open()
        pair.call(2)
        assert pair.server.caller == Caller(
            "appattempt_1_0001_000001", None, "TOKEN", b"identifier", "TestToken", ADDRESS
        )


def test_a_server_that_sends_its_challenge_later(step: int) -> None:
    """Some servers advertise TOKEN without a challenge; the client opens with an empty token then."""
    end = server(secrets=OneToken(), allow_simple=False)
    pair = Pair(client(TOKEN), end, step)
    end.feed(pair.client.start())
    assert end.next_call() is None
    offer = b"".join(end.take_output())
    decoder = FrameDecoder()
    decoder.feed(offer)
    payload = decoder.next_frame()
    assert payload is not None
    head, position = read_delimited(payload, 0)
    message = rpc.RpcSasl.FromString(read_delimited(payload, position)[0])
    message.auths[0].ClearField("challenge")
    pair.to_client(frame(delimited(head), delimited(message.SerializeToString())))
    pair.call()
    assert pair.server.caller is not None and pair.server.caller.auth == "TOKEN"


@pytest.mark.parametrize(
    "token", [Token(b"identifier", b"wrong", "TestToken", ""), Token(b"other", b"password", "TestToken", "")]
)
def test_a_bad_token_is_an_invalid_token(token: Token) -> None:
    pair = Pair(client(token), server(secrets=OneToken(), allow_simple=False), 65536)
    with pytest.raises(errors.InvalidToken):
        pair.open()
    assert pair.server.is_closed and pair.server.caller is None


def test_simple_at_a_token_port_is_told_what_is_needed() -> None:
    pair = Pair(client(), server(secrets=OneToken(), allow_simple=False), 65536)
    with pytest.raises(errors.AccessControl, match="TOKEN"):
        pair.open()


def test_a_server_that_does_not_know_the_token_cannot_play_the_server() -> None:
    """Mutual proof: a SUCCESS without the right rspauth is refused by the client."""
    end = client(TOKEN)
    end.start()
    header = rpc.RpcResponseHeader(callId=(-33) & 0xFFFFFFFF, status=rpc.RpcResponseHeader.SUCCESS)
    offer = rpc.RpcSasl(state=rpc.RpcSasl.NEGOTIATE)
    offer.auths.add(
        method="TOKEN",
        mechanism="DIGEST-MD5",
        protocol="",
        serverId="default",
        challenge=b'realm="default",nonce="n",qop="auth",charset=utf-8,algorithm=md5-sess',
    )
    end.receive(frame(delimited(header.SerializeToString()), delimited(offer.SerializeToString())))
    for proof in (b"", b"rspauth=" + b"0" * 32):
        done = rpc.RpcSasl(state=rpc.RpcSasl.SUCCESS, token=proof)
        with pytest.raises(errors.SaslFailure, match="did not prove"):
            end.receive(frame(delimited(header.SerializeToString()), delimited(done.SerializeToString())))
    assert not end.is_ready


def test_a_method_that_was_not_offered_cannot_be_chosen() -> None:
    end = server(secrets=OneToken(), allow_simple=False)
    end.feed(preamble(AUTH_SASL) + special(-33, rpc.RpcSasl(state=rpc.RpcSasl.NEGOTIATE)))
    assert end.next_call() is None
    end.take_output()
    choice = rpc.RpcSasl(state=rpc.RpcSasl.INITIATE)
    choice.auths.add(method="SIMPLE", mechanism="")
    end.feed(special(-33, choice))
    assert end.next_call() is None
    assert fatal(end.take_output()).exceptionClassName == errors.AccessControl.JAVA_CLASS


def special(call_id: int, message: object, **fields: object) -> bytes:
    header = rpc.RpcRequestHeader(rpcKind=2, rpcOp=0, callId=call_id, clientId=CLIENT_ID)
    for name, value in fields.items():
        setattr(header, name, value)
    body = message if isinstance(message, bytes) else delimited(message.SerializeToString())  # type: ignore[attr-defined]
    return frame(delimited(header.SerializeToString()), body)


def context(user: str = "alice", **fields: str) -> bytes:
    info = rpc.UserInformation(effectiveUser=user, **fields)  # type: ignore[arg-type]
    return special(-3, rpc.IpcConnectionContext(userInfo=info, protocol=METHOD.protocol))


def call_frame(call_id: int = 0, **fields: object) -> bytes:
    header = rpc.RequestHeader(
        methodName="getQueueInfo", declaringClassProtocolName=METHOD.protocol, clientProtocolVersion=1
    )
    return special(call_id, delimited(header.SerializeToString()) + delimited(b""), **fields)


OPEN = preamble(AUTH_NONE) + context()


def test_the_bytes_of_a_java_client_without_authentication() -> None:
    """Preamble, context and first call in one flush, as a Java client sends them."""
    end = server()
    end.feed(b"hrpc\x09\x00\x00" + context() + call_frame())
    call = end.next_call()
    assert call is not None and call.call_id == 0 and call.client_id == CLIENT_ID
    end.succeed(call, b"")
    payload = b"".join(end.take_output())
    head, position = read_delimited(payload, 4)
    header = rpc.RpcResponseHeader.FromString(head)
    assert (header.callId, header.status, header.serverIpcVersionNum) == (0, 0, 9)
    assert header.clientId == CLIENT_ID and header.retryCount == -1
    assert payload[position:] == b"\0"  # an empty message is still one byte


def test_an_error_has_no_body_and_spares_the_connection() -> None:
    end = server()
    end.feed(OPEN + call_frame(7))
    call = end.next_call()
    assert call is not None
    end.fail(call, errors.ApplicationNotFound("no such application"), Code.ERROR_APPLICATION)
    payload = b"".join(end.take_output())
    head, position = read_delimited(payload, 4)
    assert position == len(payload)
    header = rpc.RpcResponseHeader.FromString(head)
    assert header.callId == 7 and header.status == rpc.RpcResponseHeader.ERROR and header.errorDetail == 1
    assert header.exceptionClassName == "org.apache.hadoop.yarn.exceptions.ApplicationNotFoundException"
    end.feed(call_frame(8))
    assert end.next_call() is not None


def test_duplicate_call_ids_are_two_calls() -> None:
    end = server()
    end.feed(OPEN + call_frame(5) + call_frame(5))
    first, second = end.next_call(), end.next_call()
    assert first is not None and second is not None and first.call_id == second.call_id == 5


def test_pings_are_taken_silently() -> None:
    end = server()
    end.feed(OPEN + special(-4, b"") + call_frame(1))
    call = end.next_call()
    assert call is not None and call.call_id == 1
    assert end.take_output() == []


@pytest.mark.parametrize(
    ("sent", "class_name", "call_id"),
    [
        (b"hrpc\x08\x00\x00", errors.VersionMismatch.JAVA_CLASS, -1),
        (b"HELO", errors.VersionMismatch.JAVA_CLASS, -1),
        (b"\x16\x03\x01\x02\x00", errors.VersionMismatch.JAVA_CLASS, -1),
        (b"hrpc\x09\x00\x51", errors.AccessControl.JAVA_CLASS, -1),
        (preamble(AUTH_NONE) + b"\xff\xff\xff\xff", errors.ServerError.JAVA_CLASS, -1),
        (preamble(AUTH_NONE) + b"\0\0\0\0", errors.ServerError.JAVA_CLASS, -1),
        (preamble(AUTH_NONE) + struct.pack(">i", 1 << 20), errors.ServerError.JAVA_CLASS, -1),
        (OPEN + struct.pack(">i", (128 << 20) + 1), errors.ServerError.JAVA_CLASS, -1),
        (OPEN + frame(b"\x05abc"), errors.ServerError.JAVA_CLASS, -1),
        (OPEN + frame(delimited(b"\xff\xff\xff")), errors.ServerError.JAVA_CLASS, -1),
        (OPEN + frame(delimited(b"\x08\x02")), errors.ServerError.JAVA_CLASS, -1),
        (OPEN + frame(b"\xff\xff\xff\xff\xff\xff"), errors.ServerError.JAVA_CLASS, -1),
        (OPEN + call_frame(3, rpcKind=1), errors.ServerError.JAVA_CLASS, 3),
        (OPEN + call_frame(3, rpcKind=0), errors.ServerError.JAVA_CLASS, 3),
        (OPEN + call_frame(3, rpcOp=1), errors.ServerError.JAVA_CLASS, 3),
        (OPEN + call_frame(3, clientId=b"x" * 65), errors.ServerError.JAVA_CLASS, 3),
        (OPEN + special(3, b"\x05abc"), errors.ServerError.JAVA_CLASS, 3),
        (OPEN + special(3, delimited(b"") + delimited(b"") + b"more"), errors.ServerError.JAVA_CLASS, 3),
        (OPEN + context(), errors.ServerError.JAVA_CLASS, -3),
        (OPEN + special(-33, rpc.RpcSasl(state=rpc.RpcSasl.NEGOTIATE)), errors.ServerError.JAVA_CLASS, -33),
        (OPEN + special(-7, b""), errors.ServerError.JAVA_CLASS, -7),
        (preamble(AUTH_NONE) + call_frame(0), errors.ServerError.JAVA_CLASS, 0),
        (preamble(AUTH_SASL) + context(), errors.ServerError.JAVA_CLASS, -3),
        (
            preamble(AUTH_SASL) + special(-33, rpc.RpcSasl(state=rpc.RpcSasl.INITIATE)),
            errors.SaslFailure.JAVA_CLASS,
            -33,
        ),
        (preamble(AUTH_NONE) + context(""), errors.Authorization.JAVA_CLASS, -1),
        (preamble(AUTH_NONE) + context("../../etc"), errors.Authorization.JAVA_CLASS, -1),
        (preamble(AUTH_NONE) + context("a\nb"), errors.Authorization.JAVA_CLASS, -1),
        (preamble(AUTH_NONE) + context("alice", realUser="x/y"), errors.Authorization.JAVA_CLASS, -1),
    ],
)
def test_violations_end_with_one_fatal_answer(sent: bytes, class_name: str, call_id: int) -> None:
    end = server()
    end.feed(sent)
    assert end.next_call() is None
    header = fatal(end.take_output())
    assert header.exceptionClassName == class_name and header.errorMsg
    assert header.callId == call_id & 0xFFFFFFFF
    assert end.is_closed and end.failure
    end.feed(call_frame())
    assert end.next_call() is None  # nothing more is taken from it


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", b"GET "])
def test_an_http_request_is_told_that_this_is_the_wrong_port(sent: bytes) -> None:
    end = server()
    end.feed(sent)
    assert end.next_call() is None
    (answer,) = end.take_output()
    assert answer.startswith(b"HTTP/1.1 404 ") and b"Hadoop RPC" in answer
    assert end.is_closed and "HTTP" in (end.failure or "")


def test_a_preamble_that_is_still_coming_is_waited_for() -> None:
    end = server()
    for byte in b"hrpc\x09\x00":
        end.feed(bytes((byte,)))
        assert end.next_call() is None
    assert not end.is_closed


def test_the_service_acl_turns_away() -> None:
    def acl(caller: Caller, protocol: str) -> None:
        raise errors.Authorization(f"{caller.user} may not use {protocol}")

    end = server(acl=acl)
    end.feed(OPEN + call_frame())
    assert end.next_call() is None
    header = fatal(end.take_output())
    assert header.errorMsg == f"alice may not use {METHOD.protocol}" and header.errorDetail == 15


@pytest.mark.parametrize(
    "reply",
    [
        frame(delimited(b"\x08\x00\x10\x01") + b"\0"),  # bytes after an error header
        frame(delimited(b"\x08\x00\x10\x00")),  # success without a body
        frame(delimited(b"\x08\x00\x10\x00\x3a\x01x") + b"\0"),  # another client's id
        frame(delimited(b"\x08\x00")),  # no status
        frame(delimited(b"\x08\xdf\xff\xff\xff\x0f\x10\x00") + b"\0"),  # SASL although none was asked for
        b"\xff\xff\xff\xff",
    ],
)
def test_replies_a_server_must_not_send(reply: bytes) -> None:
    end = client()
    end.start()
    with pytest.raises(errors.ProtocolViolation):
        end.receive(reply)


CONVERSATION = OPEN + call_frame(0) + special(-4, b"") + call_frame(1)
SASL_CONVERSATION = preamble(AUTH_SASL) + special(-33, rpc.RpcSasl(state=rpc.RpcSasl.NEGOTIATE)) + context()


@settings(max_examples=300)
@given(
    st.sampled_from([CONVERSATION, SASL_CONVERSATION]),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6),
    st.integers(0, 400),
    st.booleans(),
)
def test_mutated_and_truncated_bytes_never_raise_in_the_server(
    conversation: bytes, changes: list[tuple[int, int]], length: int, with_tokens: bool
) -> None:
    damaged = bytearray(conversation)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    end = server(secrets=OneToken() if with_tokens else None)
    end.feed(bytes(damaged[:length]))
    while (call := end.next_call()) is not None:
        end.succeed(call, b"")
    assert end.is_closed == (end.failure is not None)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4), st.integers(0, 400))
def test_mutated_replies_raise_nothing_but_the_protocols_errors(changes: list[tuple[int, int]], length: int) -> None:
    end = server(secrets=OneToken(), allow_simple=False)
    peer = client(TOKEN)
    end.feed(peer.start())
    assert end.next_call() is None
    damaged = bytearray(b"".join(end.take_output()))
    for at, value in changes:
        damaged[at % len(damaged)] = value
    try:
        peer.receive(bytes(damaged[:length]))
    except (errors.ProtocolViolation, errors.RemoteException):
        pass


def test_text_that_is_not_utf8_is_refused_while_parsing() -> None:
    """Otherwise it would reach handlers as bytes where they expect str."""
    end = server()
    end.feed(preamble(AUTH_NONE) + special(-3, b"\x06\x12\x04\x0a\x02\xff\xff"))
    assert end.next_call() is None
    assert "UTF-8" in fatal(end.take_output()).errorMsg
