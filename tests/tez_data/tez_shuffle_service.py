"""A shuffle service that does as a test says, and a reducer that fetches from it."""

import http.server
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from riffle_merger.format import SpillIndex
from riffle_merger.format.vint import write_vint
from tez_adapter.data import (
    Fetcher,
    FetchFailure,
    FetchSettings,
    MapLocation,
    MapOutput,
    ReduceInput,
)
from tez_adapter.data.shufflehttp import sign

JOB = "job_1_0001"
SECRET = b"secret"
QUICK = FetchSettings(retry_delay_s=0.001, retry_delay_max_s=0.002, connect_timeout_s=5, read_timeout_s=5, tries_max=3)


def attempt(index: int, number: int = 0) -> str:
    return f"attempt_1_0001_m_{index:06d}_{number}"


def lost_header(name: str, reduce: int = 1) -> bytes:
    return write_vint(len(name)) + name.encode() + 2 * write_vint(-1) + write_vint(reduce)


@dataclass
class Service:
    """A ShuffleHandler over a folder; `spoil` may change (attempt, header and segment) of what is sent."""

    root: Path
    port: int = 0
    requests: list[list[str]] = field(default_factory=list)
    spoil: Callable[[str, bytes, bytes], bytes] = lambda attempt, header, segment: header + segment
    refuse: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    reply_key: bytes = SECRET
    lost: set[str] = field(default_factory=set)
    #: as our nodes do, with what is there
    says_what_is_lost: bool = False

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        url_hash = handler.headers["UrlHash"]
        assert url_hash == sign(SECRET, f"{self.port}{handler.path}".encode())
        query = parse_qs(urlsplit(handler.path).query)
        attempts = query["map"][0].split(",")
        self.requests.append(attempts)
        if self.refuse:
            status, headers = self.refuse.pop()
            handler.send_response(status)
            for item in headers.items():
                handler.send_header(*item)
            handler.end_headers()
            return
        if self.lost.intersection(attempts) and not self.says_what_is_lost:
            handler.send_error(500, "one of them is not available")
            return
        partition = int(query["reduce"][0])
        body = b"".join(self.part(name, partition) for name in attempts if name not in self.lost)
        lost = [name for name in attempts if name in self.lost]
        if len(lost) > 1:  # as the service tells stock reducers
            lost.insert(0, "several map outputs are lost")
        body += b"".join(lost_header(name, partition) for name in lost)
        handler.send_response(200)
        handler.send_header("ReplyHash", sign(self.reply_key, url_hash.encode()))
        handler.send_header("name", "mapreduce")
        handler.send_header("version", "1.0.0")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def part(self, name: str, reduce: int) -> bytes:
        entry = SpillIndex.load(self.root / "output" / name / "file.out.index")[reduce]
        data = (self.root / "output" / name / "file.out").read_bytes()
        numbers = write_vint(entry.part_length) + write_vint(entry.raw_length) + write_vint(reduce)
        header = write_vint(len(name)) + name.encode() + numbers
        return self.spoil(name, header, data[entry.start : entry.start + entry.part_length])


def write_map(root: Path, index: int, number: int = 0, pairs: int = 20) -> None:
    output = MapOutput(root / "output" / attempt(index, number), 2, codec="none")
    for i in range(pairs):
        output.collect(b"key%d" % i, b"map%d" % index)
    output.close()


class Reducer:
    """A fetcher with its input and its failures, closed at the end."""

    def __init__(
        self, tmp_path: Path, service: Service, maps: int, memory_bytes: int = 1 << 20, **options: Any
    ) -> None:
        self.failures: list[FetchFailure] = []
        self.service = service
        self.input = ReduceInput(tmp_path / "reduce", memory_bytes=memory_bytes)
        options = {"settings": QUICK, "on_failure": self.failures.append, **options}
        self.fetcher = Fetcher(self.input, job_id=JOB, partition=1, maps=maps, secret=SECRET, **options)

    def __enter__(self) -> "Reducer":
        return self

    def __exit__(self, *_: object) -> None:
        self.fetcher.close()
        self.input.close()

    def add(self, index: int, number: int = 0) -> None:
        self.fetcher.add(MapLocation(index, attempt(index, number), "127.0.0.1", self.service.port))

    def values(self) -> dict[bytes, list[bytes]]:
        return {key: sorted(values) for key, values in self.input.groups()}


def expected(maps: int, pairs: int = 20) -> dict[bytes, list[bytes]]:
    keys = [b"key%d" % i for i in range(pairs)]
    return {k: sorted(b"map%d" % m for m in range(maps)) for k in keys if zlib.crc32(k) % 2 == 1}


def cut(name: str, header: bytes, segment: bytes) -> bytes:
    return header + segment[: len(segment) // 2]
