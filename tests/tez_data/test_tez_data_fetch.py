"""The fetcher against a small shuffle service on loopback, honest and otherwise."""

import http.server
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from riffle_merger.format import SpillIndex
from riffle_merger.format.vint import write_vint
from tez_adapter.data import (
    Fetcher,
    FetchFailed,
    FetchFailure,
    FetchSettings,
    MapLocation,
    MapOutput,
    ReduceInput,
    WriteFailed,
)
from tez_adapter.data.shufflehttp import sign, url_path

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


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(tmp_path / "node")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """The peer hung up, as some tests want it to."""

    with Server(("127.0.0.1", 0), Handler) as server:
        service.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield service
        server.shutdown()
        thread.join()


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


def test_the_signature_is_hadoops() -> None:
    path = url_path("job_1_0001", 0, ["attempt_1_0001_m_000000_0"])
    url_hash = sign(b"secret", f"13562{path}".encode())
    assert url_hash == "h7JhRRGIi2BtCiSfabak5CPLuLM="
    assert sign(b"secret", url_hash.encode()) == "mI8W83sxzAODfk6Kcf4Eiy3y/G0="
    assert url_path("job_1_0001", 0, ["m"], "a&b") == "/mapOutput?job=job_1_0001&reduce=0&map=m&merged=a%26b"


def test_many_maps_come_in_few_requests(tmp_path: Path, service: Service) -> None:
    for index in range(45):
        write_map(service.root, index)
    with Reducer(tmp_path, service, 45) as reducer:
        for index in range(45):
            reducer.add(index)
        assert reducer.fetcher.wait(20)
        assert reducer.values() == expected(45)
        assert reducer.fetcher.progress() == 1.0
        assert all(len(batch) <= 20 for batch in service.requests)
        assert reducer.input.counters["SHUFFLED_MAPS"] == 45


def test_input_larger_than_memory_goes_to_disk(tmp_path: Path, service: Service) -> None:
    for index in range(4):
        write_map(service.root, index, pairs=5000)
    with Reducer(tmp_path, service, 4, memory_bytes=100_000) as reducer:
        for index in range(4):
            reducer.add(index)
        assert reducer.fetcher.wait(20)
        assert reducer.input.disk_bytes > 0
        assert reducer.values() == expected(4, 5000)
    assert list((tmp_path / "reduce").iterdir()) == []


def test_outputs_of_this_node_are_read_in_place(tmp_path: Path, service: Service) -> None:
    write_map(service.root, 0)
    with Reducer(tmp_path, service, 1, local_dirs=[str(tmp_path / "none"), str(service.root)]) as reducer:
        reducer.add(0)
        assert reducer.fetcher.wait(20)
        assert reducer.values() == expected(1)
        assert service.requests == []


def test_a_damaged_local_output_is_asked_for_over_the_wire(tmp_path: Path, service: Service) -> None:
    write_map(service.root, 0)
    write_map(tmp_path / "mine", 0)
    (tmp_path / "mine" / "output" / attempt(0) / "file.out").write_bytes(b"damaged")
    with Reducer(tmp_path, service, 1, local_dirs=[str(tmp_path / "mine")]) as reducer:
        reducer.add(0)
        assert reducer.fetcher.wait(20)
        assert reducer.values() == expected(1)


def flip_last(name: str, header: bytes, segment: bytes) -> bytes:
    return header + segment[:-1] + bytes([segment[-1] ^ 1])


def other_attempt(name: str, header: bytes, segment: bytes) -> bytes:
    return header.replace(name.encode(), attempt(9).encode()) + segment


def huge_length(name: str, header: bytes, segment: bytes) -> bytes:
    return write_vint(len(name)) + name.encode() + write_vint(1 << 60) + write_vint(1) + write_vint(1) + segment


def negative_length(name: str, header: bytes, segment: bytes) -> bytes:
    return write_vint(len(name)) + name.encode() + write_vint(-5) + write_vint(1) + write_vint(1) + segment


def other_partition(name: str, header: bytes, segment: bytes) -> bytes:
    return header[:-1] + b"\x00" + segment


def cut(name: str, header: bytes, segment: bytes) -> bytes:
    return header + segment[: len(segment) // 2]


def another_lost(name: str, header: bytes, segment: bytes) -> bytes:
    return lost_header(attempt(9))


SPOILS = [flip_last, other_attempt, huge_length, negative_length, other_partition, cut, another_lost]


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_lying_service_is_a_reported_failure_each_time(tmp_path: Path, service: Service, spoil: Any) -> None:
    write_map(service.root, 0)
    service.spoil = spoil
    with Reducer(tmp_path, service, 1) as reducer:
        reducer.add(0)
        with pytest.raises(FetchFailed, match=attempt(0)):
            reducer.fetcher.wait(20)
        assert [f.tries for f in reducer.failures] == [1, 2, 3]
        assert reducer.input.counters["FAILED_SHUFFLE"] == 3


def test_a_service_without_the_token_is_refused(tmp_path: Path, service: Service) -> None:
    write_map(service.root, 0)
    service.reply_key = b"guess"
    with Reducer(tmp_path, service, 1) as reducer:
        reducer.add(0)
        with pytest.raises(FetchFailed, match="ReplyHash"):
            reducer.fetcher.wait(20)


def test_a_rerun_attempt_replaces_a_lost_one(tmp_path: Path, service: Service) -> None:
    write_map(service.root, 0)
    write_map(service.root, 1, number=1)
    service.spoil = lambda name, header, segment: cut(name, header, segment) if name == attempt(1) else header + segment
    lost = threading.Event()

    def withdraw(_: FetchFailure) -> None:
        reducer.fetcher.withdraw(attempt(1))  # before it is tried again: a few milliseconds use up its tries
        lost.set()

    with Reducer(tmp_path, service, 2, on_failure=withdraw) as reducer:
        write_map(service.root, 1)
        reducer.add(1)
        reducer.add(0)
        assert lost.wait(20)
        reducer.add(1, number=1)
        assert reducer.fetcher.wait(20)
        assert reducer.values() == expected(2)


def test_a_second_attempt_of_a_done_map_adds_nothing(tmp_path: Path, service: Service) -> None:
    write_map(service.root, 0)
    write_map(service.root, 0, number=1)
    write_map(service.root, 1)
    with Reducer(tmp_path, service, 2) as reducer:
        reducer.add(0)
        reducer.add(0, number=1)
        reducer.add(1)
        assert reducer.fetcher.wait(20)
        assert reducer.values() == expected(2)


def test_a_busy_service_is_waited_for_without_a_failure(tmp_path: Path, service: Service) -> None:
    write_map(service.root, 0)
    service.refuse = [(429, {"Retry-After": "1", "Content-Length": "0"})] * 5
    with Reducer(tmp_path, service, 1) as reducer:
        reducer.add(0)
        assert reducer.fetcher.wait(20)
        assert reducer.failures == []
        assert len(service.requests) == 6


def test_a_dead_host_fails_all_its_maps(tmp_path: Path, service: Service) -> None:
    with Reducer(tmp_path, service, 2) as reducer:
        for index in range(2):
            reducer.fetcher.add(MapLocation(index, attempt(index), "127.0.0.1", 1))
        with pytest.raises(FetchFailed):
            reducer.fetcher.wait(20)
        assert {f.location.map_index for f in reducer.failures} == {0, 1}


@pytest.mark.parametrize("says_which", [False, True])
def test_of_outputs_asked_for_together_the_lost_one_alone_is_reported(
    tmp_path: Path, service: Service, says_which: bool
) -> None:
    for index in range(5):
        write_map(service.root, index)
    service.lost.add(attempt(3))
    service.says_what_is_lost = says_which
    with Reducer(tmp_path, service, 5) as reducer:
        reducer.fetcher.add(*(MapLocation(index, attempt(index), "127.0.0.1", service.port) for index in range(5)))
        with pytest.raises(FetchFailed):
            reducer.fetcher.wait(20)
        assert {failure.location.map_index for failure in reducer.failures} == {3}
        assert max(map(len, service.requests)) == 5
        assert not says_which or len(service.requests) == 3  # all, and twice the lost one


def test_all_that_are_lost_are_reported_at_once(tmp_path: Path, service: Service) -> None:
    for index in range(5):
        write_map(service.root, index)
    service.lost |= {attempt(1), attempt(3)}
    service.says_what_is_lost = True
    with Reducer(tmp_path, service, 5) as reducer:
        reducer.fetcher.add(*(MapLocation(index, attempt(index), "127.0.0.1", service.port) for index in range(5)))
        with pytest.raises(FetchFailed):
            reducer.fetcher.wait(20)
        assert [failure.location.map_index for failure in reducer.failures][:4] == [1, 3, 1, 3]
        assert service.requests[1] == [attempt(1), attempt(3)]


def test_an_answer_that_is_cut_after_what_is_lost_reports_that_alone(tmp_path: Path, service: Service) -> None:
    for index in range(5):
        write_map(service.root, index)
    service.spoil = lambda name, header, segment: (
        lost_header(name) + header[:9] if name == attempt(1) else header + segment
    )
    with Reducer(tmp_path, service, 5, settings=replace(QUICK, tries_max=1)) as reducer:
        reducer.fetcher.add(*(MapLocation(index, attempt(index), "127.0.0.1", service.port) for index in range(5)))
        with pytest.raises(FetchFailed):
            reducer.fetcher.wait(20)
        assert {failure.location.map_index for failure in reducer.failures} == {1}


@pytest.mark.parametrize(
    "of_second",
    [
        pytest.param(lost_header(attempt(1)), id="what follows has a length"),
        pytest.param(lost_header(attempt(1)) + lost_header(attempt(0)), id="another was sent"),
        pytest.param(lost_header(attempt(0)), id="it was sent"),
    ],
)
def test_what_was_sent_or_has_a_length_is_not_lost(tmp_path: Path, service: Service, of_second: bytes) -> None:
    for index in range(3):
        write_map(service.root, index)
    service.spoil = lambda name, header, segment: of_second if name == attempt(1) else header + segment
    with Reducer(tmp_path, service, 3, settings=replace(QUICK, tries_max=1)) as reducer:
        reducer.fetcher.add(*(MapLocation(index, attempt(index), "127.0.0.1", service.port) for index in range(3)))
        with pytest.raises(FetchFailed, match=attempt(1)):
            reducer.fetcher.wait(20)
        reducer.fetcher.close()  # and all is reported
        assert [failure.location.map_index for failure in reducer.failures] == [1]


def test_close_cuts_a_silent_peer(tmp_path: Path, service: Service) -> None:
    asked, let_go = threading.Event(), threading.Event()

    def stall(name: str, header: bytes, segment: bytes) -> bytes:
        asked.set()
        let_go.wait(20)
        return header + segment

    write_map(service.root, 0)
    service.spoil = stall
    with Reducer(tmp_path, service, 1, settings=FetchSettings(read_timeout_s=1000)) as reducer:
        reducer.add(0)
        assert asked.wait(20)
        reducer.fetcher.close()
        let_go.set()
        assert reducer.failures == []


def test_a_full_disk_ends_the_reducer_with_one_line(
    tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_map(service.root, 0, pairs=5000)

    def full(descriptor: int, data: memoryview) -> int:
        raise OSError(28, "No space left on device")

    with Reducer(tmp_path, service, 1, memory_bytes=1000) as reducer:
        monkeypatch.setattr("tez_adapter.data.reduceinput.os.write", full)
        reducer.add(0)
        with pytest.raises(WriteFailed, match="No space left on device; free space there"):
            reducer.fetcher.wait(20)
