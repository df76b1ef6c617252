"""A shuffle client that does as little as it can, so that what is measured is the server.

Map outputs are files of random bytes with an index beside them, put where an application's containers put theirs; a
shuffle service never looks inside a segment, and a merger at its check sum alone. Each thread asks as Hadoop's fetcher
does: up to twenty maps in a request, the URL signed with the job's token, a new connection for each request unless the
server offers to keep it. Requests are written and signed before the clock starts. Every answer's length is checked;
bytes are compared in a pass that is not timed, and else dropped in the kernel.
"""

import os
import socket
import struct
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from riffle_merger.format import IndexEntry, SpillIndex
from tez_adapter.data.shufflehttp import sign, url_path
from yaqd.security import JOB_TOKEN, Token
from yaqd.security.writable import encode_text, encode_vint, encode_vlong

from .inputs import WrongAnswer
from .interop_sides import Side, addresses
from .stock.daemons import current_user
from .unmanaged_master import UnmanagedMaster, await_value

MAPS_PER_REQUEST = 20
#: mapreduce.reduce.shuffle.parallelcopies
_THREADS = 5
_RECEIVE_BYTES = 4 << 20
_HEAD_BYTES = 64 << 10
#: of a long answer, what a thread is woken for
_WAKE_BYTES = 1 << 20
_TIMEOUT_S = 60.0
_LONGEST_HEAD = 16 << 10


@dataclass(frozen=True, slots=True)
class Target:
    """A node's shuffle service and a job whose outputs may be put there."""

    host: str
    port: int
    job_id: str
    secret: bytes
    #: the application's folder on the node
    folder: Path


@dataclass(frozen=True, slots=True)
class MapOutputs:
    """Outputs of the same shape: `partitions` segments of `segment_bytes` each."""

    attempts: tuple[str, ...]
    partitions: int
    segment_bytes: int
    #: content of every output file
    content: bytes

    def answer(self, attempts: Sequence[str], partition: int) -> bytes:
        """The body that a right server sends."""
        start = partition * self.segment_bytes
        segment = self.content[start : start + self.segment_bytes]
        lengths = encode_vlong(self.segment_bytes) + encode_vlong(self.segment_bytes) + encode_vint(partition)
        return b"".join(encode_text(attempt) + lengths + segment for attempt in attempts)


def _first(folder: Path, pattern: str) -> Path | None:
    """None also where the node deletes an earlier job's files under the search."""
    try:
        return next(folder.glob(pattern), None)
    except FileNotFoundError:
        return None


@contextmanager
def shuffle_target(side: Side) -> Iterator[Target]:
    """An application with one container that sleeps, so that its node serves its outputs."""
    rm, scheduler = addresses(side)
    with UnmanagedMaster(rm, scheduler, current_user()) as master:
        application = master.application_id
        number = f"{application.cluster_timestamp}_{application.id:04d}"
        job, secret = f"job_{number}", os.urandom(20)
        container = master.get_container()
        token = Token(encode_text(job), secret, JOB_TOKEN, job).to_writable()
        started = master.start(container, "sleep 600", {"mapreduce_shuffle": token})
        metadata = {entry.key: entry.value for entry in started.services_meta_data}
        (port,) = struct.unpack(">i", metadata["mapreduce_shuffle"])
        pattern = f"**/appcache/application_{number}/container_*"
        place = await_value("the container's folder", lambda: _first(side.directory, pattern))
        yield Target(container.nodeId.host, port, job, secret, place.parent)


def write_outputs(target: Target, first: int, count: int, partitions: int, segment_bytes: int) -> MapOutputs:
    """Writes `count` outputs; `first` numbers them apart from others of the job. They share one file's content."""
    content = b"".join(_segment(segment_bytes) for _ in range(partitions))
    entries = [IndexEntry(number * segment_bytes, segment_bytes, segment_bytes) for number in range(partitions)]
    index = SpillIndex(entries).to_bytes()
    number = target.job_id.removeprefix("job_")
    attempts = tuple(f"attempt_{number}_m_{first + at:06d}_0" for at in range(count))
    for attempt in attempts:
        folder = target.folder / "output" / attempt
        folder.mkdir(parents=True)
        (folder / "file.out").write_bytes(content)
        (folder / "file.out.index").write_bytes(index)
    return MapOutputs(attempts, partitions, segment_bytes, content)


def _segment(size: int) -> bytes:
    """Random bytes and their check sum, as every stored segment ends."""
    body = os.urandom(size - 4)
    return body + zlib.crc32(body).to_bytes(4, "big")


class _Request(NamedTuple):
    """One that is ready to be sent, and how long its answer's body has to be."""

    attempts: Sequence[str]
    partition: int
    message: bytes
    body_bytes: int


@dataclass(slots=True)
class _Requests:
    """What is still to be asked for, and what went wrong; shared by the threads."""

    waiting: list[_Request]
    errors: list[BaseException] = field(default_factory=list)


def fetch_all(
    target: Target, outputs: MapOutputs, *, maps_per_request: int, rounds: int, compares: bool = False
) -> float:
    """Fetches every segment `rounds` times; returns the seconds that it took.

    With `compares` each thread's first answer is compared byte for byte, which takes time of its own.
    """
    attempts = outputs.attempts
    batches = [attempts[at : at + maps_per_request] for at in range(0, len(attempts), maps_per_request)]
    once = [
        _Request(batch, partition, _request(target, batch, partition), _body_bytes(outputs, batch, partition))
        for partition in range(outputs.partitions)
        for batch in batches
    ]
    requests = _Requests(once * rounds)
    threads = [threading.Thread(target=_work, args=(target, outputs, requests, compares)) for _ in range(_THREADS)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    if requests.errors:
        raise requests.errors[0]
    return seconds


def _work(target: Target, outputs: MapOutputs, requests: _Requests, compares: bool) -> None:
    buffer = bytearray(_RECEIVE_BYTES)
    connection: socket.socket | None = None
    try:
        while not requests.errors:
            try:
                request = requests.waiting.pop()
            except IndexError:
                return
            connection = connection or _connect(target)
            connection.sendall(request.message)
            expected = outputs.answer(request.attempts, request.partition) if compares else None
            keeps = _receive(connection, memoryview(buffer), request.body_bytes, expected)
            compares = False
            if not keeps:
                connection.close()
                connection = None
    except (OSError, WrongAnswer) as error:
        requests.errors.append(error)
    finally:
        if connection is not None:
            connection.close()


def _connect(target: Target) -> socket.socket:
    """Blocking, with the time limit in the kernel: Python's own asks before each receive whether there is anything."""
    connection = socket.create_connection((target.host, target.port), timeout=_TIMEOUT_S)
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", int(_TIMEOUT_S), 0))
    return connection


def _body_bytes(outputs: MapOutputs, attempts: Sequence[str], partition: int) -> int:
    lengths = 2 * len(encode_vlong(outputs.segment_bytes)) + len(encode_vint(partition)) + outputs.segment_bytes
    return sum(len(encode_text(attempt)) + lengths for attempt in attempts)


def _request(target: Target, attempts: Sequence[str], partition: int) -> bytes:
    path = url_path(target.job_id, partition, list(attempts))
    signature = sign(target.secret, f"{target.port}{path}".encode())
    return (
        f"GET {path} HTTP/1.1\r\nHost: {target.host}:{target.port}\r\nUrlHash: {signature}\r\n"
        "name: mapreduce\r\nversion: 1.0.0\r\n\r\n"
    ).encode("ascii")


def _receive(connection: socket.socket, buffer: memoryview, length: int, expected: bytes | None) -> bool:
    """Reads one answer; True where the connection can be used again."""
    received = bytearray()
    while (end := received.find(b"\r\n\r\n")) < 0:
        size = connection.recv_into(buffer, _HEAD_BYTES)
        if not size or len(received) > _LONGEST_HEAD:
            raise WrongAnswer("the shuffle service closed the connection without an answer")
        received += buffer[:size]
    head = bytes(received[:end]).lower()
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise WrongAnswer(f"the shuffle service answered {bytes(received[:300])!r}")
    got = len(received) - end - 4
    is_right = expected is None or expected.startswith(received[end + 4 :])
    # What nobody looks at is counted and dropped in the kernel.
    flags = socket.MSG_WAITALL | (0 if expected else socket.MSG_TRUNC)
    while got < length:
        left = min(length - got, len(buffer))
        if length >= _WAKE_BYTES:  # waking a thread for every packet would cost the server more than sending it
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _WAKE_BYTES if left >= _WAKE_BYTES else 1)
        size = connection.recv_into(buffer, left, flags)
        if not size:
            raise WrongAnswer(f"the shuffle service sent {length - got} bytes too few")
        if expected is not None:
            is_right = is_right and expected.startswith(buffer[:size], got)
        got += size
    if length >= _WAKE_BYTES:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    if got > length or not is_right:
        raise WrongAnswer("the shuffle service sent something else than was asked for")
    return b"connection: keep-alive" in head or b"keep-alive:" in head
