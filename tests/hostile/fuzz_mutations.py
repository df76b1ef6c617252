"""From recorded conversations to hostile ones; everything follows from the random numbers handed in."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, cast

from google.protobuf.message import DecodeError

from tests.hostile.fuzz_corpus import Conversation
from tests.hostile.fuzz_messages import METHODS, damage
from yaqd.ipc.errors import ProtocolViolation
from yaqd.ipc.frames import delimited, frame, read_delimited
from yaqd.ipc.wire import CALL_SASL, parse
from yaqd.proto import rpc_pb2 as rpc

_LENGTH = struct.Struct(">i")
_CALLS_MAX = 40
#: calls that end the application, after which the fuzzer has to start another: kept rare
_ENDS = (b"finishApplicationMaster", b"taskFailed", b"taskDone", b"stopContainers")
_ENDS_SHARE = 0.02
#: larger ones say nothing more and take the time of many small ones
_MESSAGE_BYTES_MAX = 100_000
_SPECIAL_IDS = (-1, -2, -3, -4, -5, -33, -34, -(2**31), 2**31 - 1)
_LENGTHS = (0, -1, -(2**31), 2**31 - 1, 1, 3, 129 << 20, 1 << 20)
_VARINTS = (
    b"\x80",
    b"\xff\xff\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x80\x80\x80\x01",
    b"\x00",
    b"\x7f",
)


@dataclass(frozen=True, slots=True)
class Script:
    """What one connection sends."""

    chunks: tuple[bytes, ...]
    #: the server has to hang up by itself once it has read them
    breaks: bool
    #: for reports
    what: str


# Frames of calls ------------------------------------------------------------------------------------------------------


def _rebuilt(call: bytes, change: Callable[[rpc.RpcRequestHeader, bytes, bytes], tuple[bytes, bytes]]) -> bytes:
    """The call with its header changed in place and its RequestHeader and body replaced."""
    try:
        head, position = read_delimited(call, _LENGTH.size)
        header = parse(rpc.RpcRequestHeader, head)
        request, position = read_delimited(call, position)
        body, _ = read_delimited(call, position)
    except ProtocolViolation:
        return call
    request, body = change(header, request, body)
    return frame(delimited(header.SerializePartialToString()), delimited(request), delimited(body))


def _damaged_message(call: bytes, random: Random) -> bytes:
    def change(header: rpc.RpcRequestHeader, request: bytes, body: bytes) -> tuple[bytes, bytes]:
        named = rpc.RequestHeader.FromString(request)
        method = METHODS.get((named.declaringClassProtocolName, named.methodName))
        if method is None:
            return request, body
        message = method.request.FromString(body)
        for _ in range(random.choice((1, 1, 2, 4))):
            damage(message, random)
        damaged = message.SerializePartialToString()
        return request, damaged if len(damaged) <= _MESSAGE_BYTES_MAX else body

    try:
        return _rebuilt(call, change)
    except DecodeError:
        return call


def _damaged_body(call: bytes, random: Random) -> bytes:
    def change(header: rpc.RpcRequestHeader, request: bytes, body: bytes) -> tuple[bytes, bytes]:
        return request, _flipped(body, random) if random.random() < 0.5 else body[: random.randrange(len(body) + 1)]

    return _rebuilt(call, change)


def _damaged_request_header(call: bytes, random: Random) -> bytes:
    def change(header: rpc.RpcRequestHeader, request: bytes, body: bytes) -> tuple[bytes, bytes]:
        named = rpc.RequestHeader.FromString(request)
        damage(named, random)
        return named.SerializePartialToString(), body

    try:
        return _rebuilt(call, change)
    except DecodeError:
        return call


def _other_method(call: bytes, random: Random) -> bytes:
    """The body of one call under the name of another."""

    def change(header: rpc.RpcRequestHeader, request: bytes, body: bytes) -> tuple[bytes, bytes]:
        protocol, name = random.choice(list(METHODS))
        named = rpc.RequestHeader(
            methodName=name, declaringClassProtocolName=protocol, clientProtocolVersion=random.choice((1, 1, 1, 0, 2))
        )
        return named.SerializeToString(), body

    return _rebuilt(call, change)


def _flipped(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


#: leave the framing whole: the server answers each such call, or drops the peer for its header
_CALL_MUTATIONS = (
    _damaged_message,
    _damaged_message,
    _damaged_message,
    _damaged_body,
    _damaged_request_header,
    _other_method,
    lambda call, random: call[: _LENGTH.size] + _flipped(call[_LENGTH.size :], random),
)


# The last frame -------------------------------------------------------------------------------------------------------


def _lying_length(call: bytes, random: Random) -> tuple[bytes, bool]:
    length = random.choice(_LENGTHS)
    return _LENGTH.pack(length) + call[_LENGTH.size :], length <= 0 or length > 128 << 20


def _lying_varint(call: bytes, random: Random) -> tuple[bytes, bool]:
    payload = random.choice(_VARINTS) + call[_LENGTH.size + 1 :]
    return frame(payload), payload[0] >= 0x80


def _special_call(call: bytes, random: Random) -> tuple[bytes, bool]:
    number = random.choice(_SPECIAL_IDS)
    header = rpc.RpcRequestHeader(
        rpcKind=cast(Any, random.choice((0, 1, 2))),
        rpcOp=cast(Any, random.choice((0, 0, 0, 1, 2))),
        callId=number,
        clientId=bytes(16),
    )
    payload = delimited(header.SerializeToString()) + random.randbytes(random.choice((0, 3, 50)))
    return frame(payload), header.rpcOp != 0 or (number < 0 and number != -4)


def _long_client_id(call: bytes, random: Random) -> tuple[bytes, bool]:
    header = rpc.RpcRequestHeader(
        rpcKind=rpc.RPC_PROTOCOL_BUFFER,
        rpcOp=rpc.RPC_FINAL_PACKET,
        callId=1,
        clientId=bytes(random.choice((65, 5000))),
    )
    return frame(delimited(header.SerializeToString())), True


def _trailing_bytes(call: bytes, random: Random) -> tuple[bytes, bool]:
    return frame(call[_LENGTH.size :] + b"\0"), True


def _noise(call: bytes, random: Random) -> tuple[bytes, bool]:
    return random.randbytes(random.choice((1, 5, 60, 3000))), False


def _cut(call: bytes, random: Random) -> tuple[bytes, bool]:
    return call[: random.randrange(len(call))], False


_LAST_MUTATIONS = (_lying_length, _lying_varint, _special_call, _long_client_id, _trailing_bytes, _noise, _cut)


def calls_script(conversation: Conversation, random: Random) -> tuple[tuple[bytes, ...], bool, str]:
    """Calls of an admitted peer: some as recorded, some damaged, swapped, doubled or left out, perhaps a broken end."""
    calls = [c for c in conversation.calls if not any(end in c for end in _ENDS) or random.random() < _ENDS_SHARE]
    calls = calls or list(conversation.calls)
    start, count = random.randrange(len(calls)), random.randrange(1, _CALLS_MAX)
    chosen = calls[start : start + count] if random.random() < 0.5 else random.choices(calls, k=count)
    for _ in range(len(chosen) // 4):
        a, b = random.randrange(len(chosen)), random.randrange(len(chosen))
        chosen[a], chosen[b] = chosen[b], random.choice((chosen[a], chosen[b]))
    names = []
    for index, call in enumerate(chosen):
        if random.random() < 0.6:
            mutation = random.choice(_CALL_MUTATIONS)
            chosen[index] = mutation(call, random)
            names.append(mutation.__name__)
    breaks = False
    if random.random() < 0.5:
        last = random.choice(_LAST_MUTATIONS)
        chosen[-1], breaks = last(random.choice(calls), random)
        names.append(last.__name__)
    return tuple(chosen), breaks, "+".join(names) or "replay"


# Openings -------------------------------------------------------------------------------------------------------------


def _sasl(random: Random) -> bytes:
    """Any SASL message, in whatever state the server is."""
    message = rpc.RpcSasl(state=cast(Any, random.choice(rpc.RpcSasl.SaslState.values())))
    if random.random() < 0.6:
        message.token = random.choice(
            (
                b"",
                random.randbytes(30),
                b'charset=utf-8,username="AAAA",realm="default",nonce="x",nc=00000001,cnonce="y",digest-uri="/default",'
                b"maxbuf=65536,response=00000000000000000000000000000000,qop=auth",
                b'username="' + b"A" * 40_000 + b'"',
                b'a="' + b"\\" * 5000,
                b"," * 3000,
            )
        )
    for _ in range(random.choice((0, 1, 1, 1, 2, 500))):
        message.auths.add(
            method=random.choice(("TOKEN", "SIMPLE", "KERBEROS", "")),
            mechanism=random.choice(("DIGEST-MD5", "GSSAPI", "")),
            protocol="",
            serverId=random.choice(("default", "", "x" * 300)),
        )
    header = rpc.RpcRequestHeader(
        rpcKind=rpc.RPC_PROTOCOL_BUFFER,
        rpcOp=rpc.RPC_FINAL_PACKET,
        callId=CALL_SASL,
        clientId=b"",
        retryCount=-1,
    )
    return frame(delimited(header.SerializeToString()), delimited(message.SerializePartialToString()))


def opening_script(conversation: Conversation, random: Random) -> Script:
    """A peer that is not admitted: a damaged preamble, SASL out of order, a context that is none, calls too early."""
    opening = list(conversation.opening)
    kind = random.choice(("preamble", "sasl", "order", "context", "early", "frames"))
    calls = conversation.calls[: random.randrange(3)]
    breaks = False
    if kind == "preamble":
        opening[0] = _flipped(opening[0], random) if random.random() < 0.7 else random.randbytes(7)
    elif kind == "sasl":
        opening = [b"hrpc\x09\x00\xdf", *(_sasl(random) for _ in range(random.randrange(1, 6)))]
    elif kind == "order":
        random.shuffle(opening)
    elif kind == "context":
        opening[-1] = opening[-1][: _LENGTH.size] + _flipped(opening[-1][_LENGTH.size :], random)
    elif kind == "early":
        opening, breaks = opening[:1], bool(conversation.calls)
        calls = conversation.calls[:2]
    else:
        opening[-1], breaks = random.choice(_LAST_MUTATIONS)(opening[-1], random)
        breaks = breaks and len(opening) > 1
    return Script((*opening, *calls), breaks, f"opening:{kind}")


# HTTP -----------------------------------------------------------------------------------------------------------------

_METHODS = (b"GET", b"HEAD", b"POST", b"PUT", b"OPTIONS", b"TRACE", b"CONNECT", b"get", b"\0", b"PRI", b"G" * 9000)
_PATHS = (
    b"/../../../../etc/passwd",
    b"/%2e%2e/%2e%2e/etc/passwd",
    b"/..%2f..%2fetc%2fpasswd",
    b"//etc/passwd",
    b"/%00",
    b"/a\0b",
    b"http://127.0.0.1:1/",
    b"*",
    b"/" + b"a" * 9000,
    b"/?" + b"a=b&" * 3000,
    b"/%",
    b"/%zz",
    b"/\xff\xfe",
)
_HEADERS = (
    b"Content-Length: -1",
    b"Content-Length: 99999999999",
    b"Content-Length: 5\r\nContent-Length: 6",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nContent-Length: 3",
    b"Range: bytes=0-,5-",
    b"Expect: 100-continue",
    b"Upgrade: websocket\r\nConnection: Upgrade",
    b"Connection: keep-alive",
    b"X: " + b"x" * 20_000,
    b"\r\n".join(b"H%d: y" % i for i in range(2000)),
    b": no name",
    b"no colon",
    b" folded",
    b"Host: a\r\nHost: b",
    b"UrlHash: AAAA",
    b"name: mapreduce\r\nversion: 9",
)
#: in place of what a query says: where numbers, names and paths are expected
_VALUES = (
    b"",
    b"-1",
    b"0" * 12 + b"9" * 5000,
    b"9" * 5000,
    b"9" * 19,
    b"1_0",
    b"%2B1",
    b"1e9",
    b"0x10",
    b"%D9%A3",
    b"\xb2",
    b"%00",
    b"%0a",
    b"%ff%fe",
    b"..%2f..%2fx",
    b"," * 3000,
    b"a" * 300,
)


def http_script(requests: Sequence[bytes], random: Random) -> Script:
    """A few requests on one connection, pipelined, at least one of them damaged."""
    chunks, names = [], []
    for _ in range(random.choice((1, 1, 2, 4, 8))):
        name = random.choice(("replay", "flip", "cut", "method", "path", "segment", "value", "header", "body", "noise"))
        chunks.append(_damaged_request(random.choice(requests), name, random))
        names.append(name)
    return Script(tuple(chunks), False, "http:" + "+".join(names))


def _damaged_request(request: bytes, name: str, random: Random) -> bytes:
    line, _, rest = request.partition(b"\r\n")
    method, _, tail = line.partition(b" ")
    path, _, version = tail.rpartition(b" ")
    if name == "flip":
        return _flipped(request, random)
    if name == "cut":
        return request[: random.randrange(len(request))]
    if name == "method":
        method = random.choice(_METHODS)
    elif name == "path":
        path = random.choice(_PATHS)
    elif name == "segment":
        parts = path.split(b"/")
        parts[random.randrange(len(parts))] = random.choice(_PATHS).lstrip(b"/")[:3000]
        path = b"/".join(parts)
    elif name == "value":
        path = _with_a_value(path, random)
    elif name == "header":
        rest = random.choice(_HEADERS) + b"\r\n" + rest
    elif name == "body":
        return request + random.choice((b"0\r\n\r\n", b"ffffffffffffffff\r\n", b"-1\r\n", random.randbytes(200)))
    elif name == "noise":
        return random.randbytes(random.choice((1, 10, 3000)))
    return b" ".join((method, path, version)) + b"\r\n" + rest


def _with_a_value(path: bytes, random: Random) -> bytes:
    """The path with one value of its query replaced; one is made up where it has none."""
    place, _, query = path.partition(b"?")
    pairs = query.split(b"&") if query else [random.choice((b"size=", b"limit=", b"user.name=", b"startedTimeBegin="))]
    chosen = random.randrange(len(pairs))
    pairs[chosen] = pairs[chosen].partition(b"=")[0] + b"=" + random.choice(_VALUES)
    return place + b"?" + b"&".join(pairs)
