"""Recorded conversations: what real peers said to one kind of server, cut into the pieces that are mutated."""

import struct
from dataclasses import dataclass, field
from pathlib import Path

from yaqd.ipc.errors import ProtocolViolation
from yaqd.ipc.frames import read_delimited
from yaqd.ipc.wire import CALL_CONTEXT, PREAMBLE_BYTES, parse
from yaqd.proto import rpc_pb2 as rpc

_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Conversation:
    """One connection's bytes from its client: the opening (preamble, SASL, context) and then calls, frame by frame."""

    opening: tuple[bytes, ...]
    calls: tuple[bytes, ...]


@dataclass(slots=True)
class Corpus:
    #: server name, as in the recorded files -> conversations
    rpc: dict[str, list[Conversation]] = field(default_factory=dict)
    #: server name -> whole HTTP requests
    http: dict[str, list[bytes]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Corpus":
        corpus = cls()
        for path in sorted(folder.iterdir()):
            server = path.name.partition(".")[0]
            if server in ("tokens", "stop"):
                continue
            data = path.read_bytes()
            if data[:4] == b"hrpc":
                conversation = split(data)
                if conversation.calls:
                    corpus.rpc.setdefault(server, []).append(conversation)
            elif b"HTTP/1." in data[:4096]:
                requests = corpus.http.setdefault(server, [])
                if data not in requests:
                    requests.append(data)
        return corpus

    def __str__(self) -> str:
        counted = [f"{name}: {sum(len(c.calls) for c in found)} calls" for name, found in self.rpc.items()]
        return ", ".join(counted + [f"{name}: {len(found)} requests" for name, found in self.http.items()])


def call_id(frame: bytes) -> int:
    """The call id in a frame's header; raises ProtocolViolation when it is no frame of Hadoop RPC."""
    head, _ = read_delimited(frame, _LENGTH.size)
    return parse(rpc.RpcRequestHeader, head).callId


def split(data: bytes) -> Conversation:
    """Cut a client's bytes at the frames; the last one is dropped when it is not whole."""
    opening: list[bytes] = [data[:PREAMBLE_BYTES]]
    calls: list[bytes] = []
    position, is_open = PREAMBLE_BYTES, False
    while position + _LENGTH.size <= len(data):
        end = position + _LENGTH.size + _LENGTH.unpack_from(data, position)[0]
        if end > len(data):
            break
        frame = data[position:end]
        (calls if is_open else opening).append(frame)
        try:
            is_open = is_open or call_id(frame) == CALL_CONTEXT
        except ProtocolViolation:
            break
        position = end
    return Conversation(tuple(opening), tuple(calls))
