"""A shuffle service with the folder that it serves from, and a client that asks it as Hadoop's fetcher does."""

import base64
import hashlib
import hmac
import http.client
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from nm.resources.directories import NodeDirectories
from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.limits import MergedLimits, ShuffleLimits
from nm.shuffle.merged.segment import MergedFile
from nm.shuffle.outputs import MapOutputs
from nm.shuffle.server import ShuffleService
from riffle_merger.format import IndexEntry, SpillIndex
from riffle_merger.format.merged import DATA_SUFFIX, INDEX_SUFFIX, MERGED_FOLDER, MergedIndex
from yaqd.model import ApplicationId
from yaqd.security import JOB_TOKEN, Token
from yaqd.security.writable import WritableReader, encode_text

KEY = b"secret"
APPLICATION = ApplicationId(1, 1)
JOB = "job_1_0001"
USER = "alice"


def job_token(key: bytes = KEY) -> bytes:
    return Token(encode_text(JOB), key, JOB_TOKEN, JOB).to_writable()


def write_output(folder: Path, parts: list[bytes]) -> None:
    """As a map task does: the file of that many segments, then its index."""
    folder.mkdir(parents=True)
    start, entries, body = 0, [], b""
    for part in parts:
        stored = part + struct.pack(">I", zlib.crc32(part))
        entries.append(IndexEntry(start, len(part), len(stored)))
        body += stored
        start += len(stored)
    (folder / "file.out").write_bytes(body)
    (folder / "file.out.index").write_bytes(SpillIndex(entries).to_bytes())


def ask(port: int, target: str, key: bytes = KEY) -> tuple[http.client.HTTPResponse, bytes]:
    """A signed request on a connection of its own."""
    digest = hmac.digest(key, f"{port}{target}".encode(), "sha1")
    headers = {"UrlHash": base64.b64encode(digest).decode(), "name": "mapreduce", "version": "1.0.0"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", target, headers=headers)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


class Served:
    """A service, the folder it serves from, and a client's signature."""

    def __init__(
        self,
        root: Path,
        jobs: ShuffleJobs,
        limits: ShuffleLimits,
        cache_bytes: int,
        merging: MergedLimits = MergedLimits(),
    ) -> None:
        directories = self.directories = NodeDirectories([root / "a", root / "b"], [])
        self.output_dir = directories.app_dir(root / "b", USER, APPLICATION) / "output"
        self.outputs = MapOutputs(directories, index_cache_bytes=cache_bytes, open_files_max=4)
        self.service = ShuffleService("127.0.0.1", 0, jobs=jobs, outputs=self.outputs, limits=limits, merging=merging)
        self.service.start()

    def write(self, map_id: str, parts: list[bytes]) -> None:
        write_output(self.output_dir / map_id, parts)

    def merge(self, name: str, maps: list[str]) -> MergedFile:
        """Writes and publishes what a merger would have made of the outputs."""
        file = self.write_merged(name, maps)
        self.publish(file)
        return file

    def publish(self, file: MergedFile) -> None:
        self.service.publish(JOB, file)
        is_published = threading.Event()
        self.service.loop.call_soon_threadsafe(is_published.set)
        assert is_published.wait(30), "else a request that comes at once may still be answered from the originals"

    def write_merged(self, name: str, maps: list[str]) -> MergedFile:
        indexes = [SpillIndex.load(self.output_dir / map_id / "file.out.index") for map_id in maps]
        files = [(self.output_dir / map_id / "file.out").read_bytes() for map_id in maps]
        rows = []
        for partition in range(len(indexes[0])):
            entries = [index[partition] for index in indexes]
            rows.append([file[e.start : e.start + e.part_length] for file, e in zip(files, entries, strict=True)])
        lengths = [[(index[p].raw_length, index[p].part_length) for index in indexes] for p in range(len(rows))]
        checksums = [[int.from_bytes(segment[-4:], "big") for segment in row] for row in rows]
        folder = self.output_dir.parent / MERGED_FOLDER
        folder.mkdir(exist_ok=True)
        data, index = folder / f"{name}{DATA_SUFFIX}", folder / f"{name}{INDEX_SUFFIX}"
        data.write_bytes(b"".join(segment for row in rows for segment in row))
        index.write_bytes(MergedIndex.build(maps, lengths, checksums).to_bytes())
        return MergedFile(data, index, tuple(maps))

    def target(self, maps: list[str], reduce: object = 0, more: str = "") -> str:
        return f"/mapOutput?job={JOB}&reduce={reduce}&map={','.join(maps)}{more}"

    def headers(self, target: str, key: bytes = KEY) -> dict[str, str]:
        digest = hmac.digest(key, f"{self.service.port}{target}".encode(), "sha1")
        return {"UrlHash": base64.b64encode(digest).decode(), "name": "mapreduce", "version": "1.0.0"}

    def get(
        self, target: str, *, headers: dict[str, str] | None = None, method: str = "GET"
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=10)
        try:
            connection.request(method, target, headers=self.headers(target) if headers is None else headers)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()


def fetch(served: Served, reduce: int, maps: list[str]) -> str:
    """Check sum of the answer."""
    response, body = served.get(served.target(maps, reduce))
    assert response.status == 200
    return hashlib.sha256(body).hexdigest()


def slow_client(served: Served, maps: list[str], reduce: int) -> socket.socket:
    """Asks for all and takes nothing by itself, little at a time."""
    target = served.target(maps, reduce)
    lines = "".join(f"{name}: {value}\r\n" for name, value in served.headers(target).items())
    client = socket.socket()
    client.settimeout(20)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", served.service.port))
    client.sendall(f"GET {target} HTTP/1.1\r\n{lines}\r\n".encode())
    return client


def stalled_client(served: Served, maps: list[str], reduce: int) -> socket.socket:
    """Asks for all and takes a byte of it."""
    listener = served.service._listener
    assert listener is not None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # the kernel takes less than one segment of a client
    client = slow_client(served, maps, reduce)
    assert client.recv(1)
    # once set it no longer grows by itself, and what it is by default has long answers wait for late acknowledgements
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    return client


def until(condition: Callable[[], bool]) -> None:
    """Looks until it holds; fails where it does not in 20 s."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def settle(served: Served) -> None:
    """A connection counts its reads when it is closed."""
    until(lambda: not served.service.statistics.connections)


def segments(body: bytes) -> list[tuple[str, int, int, int, bytes]]:
    reader = WritableReader(body)
    found = []
    while reader.remaining:
        map_id, part, raw, reduce = reader.text(), reader.vlong(), reader.vlong(), reader.vint()
        found.append((map_id, part, raw, reduce, reader.raw(max(0, part))))
    return found
