"""Both ends of the protocol without a socket between them: every conversation whole and one byte at a time."""

import pytest

from tests.ipc.ipc_bytes import (
    ADDRESS,
    CLIENT_ID,
    METHOD,
    OPEN,
    TOKEN,
    OneToken,
    Pair,
    call_frame,
    client,
    context,
    fatal,
    server,
    special,
)
from yaqd.ipc import errors
from yaqd.ipc.caller import Caller
from yaqd.ipc.frames import FrameDecoder, delimited, frame, read_delimited
from yaqd.ipc.server_connection import Code
from yaqd.ipc.wire import AUTH_SASL, preamble
from yaqd.proto import rpc_pb2 as rpc
from yaqd.security import Token


@pytest.fixture(params=[1, 3, 65536], ids=lambda step: f"{step}-bytes")
def step(request: pytest.FixtureRequest) -> int:
    return int(request.param)


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


def test_the_service_acl_turns_away() -> None:
    def acl(caller: Caller, protocol: str) -> None:
        raise errors.Authorization(f"{caller.user} may not use {protocol}")

    end = server(acl=acl)
    end.feed(OPEN + call_frame())
    assert end.next_call() is None
    header = fatal(end.take_output())
    assert header.errorMsg == f"alice may not use {METHOD.protocol}" and header.errorDetail == 15
