"""Bytes that break the protocol: one clear answer, and nothing raised."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.ipc.ipc_bytes import (
    OPEN,
    TOKEN,
    OneToken,
    call_frame,
    client,
    context,
    fatal,
    server,
    special,
)
from yaqd.ipc import errors
from yaqd.ipc.frames import delimited, frame
from yaqd.ipc.wire import AUTH_NONE, AUTH_SASL, preamble
from yaqd.proto import rpc_pb2 as rpc


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


@settings(max_examples=examples(300))
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


@settings(max_examples=examples(300))
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
