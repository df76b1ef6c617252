"""Peers that waste a live ResourceManager's time, memory and descriptors, while another is answered."""

import asyncio
import contextlib
import http.client
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.rm.rm_harness import LOOPBACK, Harness, cluster
from yaqd.ipc import BlockingRpcClient
from yaqd.ipc.client_connection import ClientConnection
from yaqd.ipc.limits import affordable_connections
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

METRICS = Client.getClusterMetrics
_ADDRESSES = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
SHORT = {
    "yaq.ipc.server.handshake-timeout-ms": "700",
    "yaq.ipc.server.progress-timeout-ms": "700",
    "yaq.ipc.server.idle-timeout-ms": "60000",
}


def opening(user: str = "eve") -> tuple[ClientConnection, bytes]:
    connection = ClientConnection(user=user, protocol=Client.NAME, client_id=bytes(16), random=bytes)
    return connection, connection.start()


class GoodClient:
    """Calls over and over in a thread of its own, and notes how long each call takes."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.waits_s: list[float] = []
        self.failure: Exception | None = None
        self._undisturbed_s = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            while not (self.waits_s and self._stopped.wait(0.02)):
                self._call()
        except Exception as error:
            self.failure = error

    def _call(self) -> None:
        began = time.monotonic()
        # a connection for each call: whoever comes new has to get in as well
        with BlockingRpcClient(LOOPBACK, self._port, user="alice", timeout_s=20) as client:
            client.call(METRICS, pb.GetClusterMetricsRequest())
        self.waits_s.append(time.monotonic() - began)

    def __enter__(self) -> "GoodClient":
        for _ in range(5):
            self._call()
        #: what the machine does to a client without any attack; it may be busy with other things
        self._undisturbed_s, self.waits_s = max(self.waits_s), []
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        assert self.failure is None, self.failure
        # the attackers share this process with this client, so a few may be late
        waits = sorted(self.waits_s)
        assert waits[len(waits) * 9 // 10 - 1] < 1.0 + 10 * self._undisturbed_s, (self._undisturbed_s, waits)


async def in_thread(work: Callable[[], None]) -> None:
    await asyncio.to_thread(work)


@contextlib.contextmanager
def sockets(port: int, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(stack.enter_context(socket.create_connection((LOOPBACK, port), timeout=20)))
        yield made


def frames_of(data: bytes) -> tuple[bytes, int]:
    """Return what is behind the last whole frame, and how many whole ones there are."""
    begin = frames = 0
    while len(data) - begin >= 4 and len(data) - begin - 4 >= (length := int.from_bytes(data[begin : begin + 4])):
        begin, frames = begin + 4 + length, frames + 1
    return data[begin:], frames


@pytest.fixture
async def rm() -> AsyncIterator[Harness]:
    async with cluster(SHORT) as harness:
        yield harness


def is_closed(peer: socket.socket) -> bool:
    """Whether the other end has hung up; whatever it said before is read and forgotten."""
    peer.settimeout(20)
    try:
        while peer.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def drip(peers: list[socket.socket], data: bytes, until: Callable[[], bool]) -> None:
    """A byte from each now and then, so that no connection is ever idle."""
    for position in range(len(data)):
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.send(data[position : position + 1])
        if until():
            return
        time.sleep(0.1)


@pytest.mark.parametrize("after_opening", [False, True], ids=["handshake", "frame"])
async def test_peers_that_drip(rm: Harness, after_opening: bool) -> None:
    server = rm.manager.servers.client
    connection, head = opening()
    _, call = connection.request(METRICS, pb.GetClusterMetricsRequest())

    def attack() -> None:
        with GoodClient(server.port), sockets(server.port, 150) as peers:
            if after_opening:
                for peer in peers:
                    peer.sendall(head)
            dropped = server.statistics().dropped
            drip(peers, call if after_opening else head, lambda: server.statistics().dropped >= dropped + 150)
            assert all(is_closed(peer) for peer in peers)

    await in_thread(attack)
    assert server.statistics().dropped == 150


async def test_half_open_connections_are_given_up(rm: Harness) -> None:
    """Peers that connect and say nothing, or stop in the middle."""
    server = rm.manager.servers.client

    def attack() -> None:
        with GoodClient(server.port), sockets(server.port, 200) as peers:
            for number, peer in enumerate(peers):
                peer.sendall(b"hrpc\x09\0\0\0\0"[: number % 10])
            assert all(is_closed(peer) for peer in peers)

    await in_thread(attack)
    assert server.statistics().dropped == 200


async def test_thousands_of_idle_connections() -> None:
    async with cluster(
        {"yaq.ipc.server.handshake-timeout-ms": "15000", "yaq.ipc.server.progress-timeout-ms": "500"}
    ) as rm:
        server = rm.manager.servers.client
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        count = min(2000, server.connections_max, (soft - 512) // 3)  # both ends are in this process
        connection, head = opening()
        _, call = connection.request(METRICS, pb.GetClusterMetricsRequest())

        def attack() -> None:
            with GoodClient(server.port), sockets(server.port, count) as peers:
                for peer in peers:
                    peer.sendall(head + call)
                for peer in peers:
                    assert peer.recv(4096)
                assert server.statistics().connections >= count
                time.sleep(1.0)  # longer than a frame may take: an admitted peer may rest between two
                assert server.statistics().connections >= count and server.statistics().dropped == 0

        await in_thread(attack)
        await rm.until(lambda: server.statistics().connections == 0)
        assert server.statistics().buffered_bytes == 0


async def test_connections_beyond_the_limit_leave_the_other_ports_alone() -> None:
    async with cluster({**SHORT, "yaq.ipc.server.connections-max": "50"}) as rm:
        server, other = rm.manager.servers.client, rm.manager.servers.admin

        def attack() -> None:
            with sockets(server.port, 300):
                deadline = time.monotonic() + 20
                while server.statistics().refused < 250 and time.monotonic() < deadline:
                    time.sleep(0.01)
                assert server.statistics().connections <= 50
                with socket.create_connection((LOOPBACK, other.port)) as admin:
                    admin.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    assert is_closed(admin)

        await in_thread(attack)
        assert server.statistics().refused == 250


def test_a_server_takes_no_more_connections_than_the_process_has_descriptors_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for soft, affordable in ((1024, 192), (100, 64), (resource.RLIM_INFINITY, 10_000), (1 << 20, 10_000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert affordable_connections(10_000) == affordable
    assert affordable_connections(10) == 10


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[int]:
    """A ResourceManager in a process of its own; its client port."""
    settings = {
        **{f"yarn.resourcemanager.{name}": f"{LOOPBACK}:0" for name in _ADDRESSES},
        "yaq.rm.state-store.path": str(tmp_path / "state.sqlite"),
    }
    words = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
    command = [sys.executable, "-m", "yaqd.cli", "rm", "start", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        ready = dict(word.split("=", 1) for word in process.stdout.readline().split() if "=" in word)
        yield int(ready["client"].rpartition(":")[2])
        process.terminate()


def test_a_hundred_thousand_calls_of_one_peer_do_not_hold_up_another(daemon: int) -> None:
    connection, head = opening()
    count = 100_000
    calls = head + b"".join(connection.request(METRICS, pb.GetClusterMetricsRequest())[1] for _ in range(count))
    received = list[bytes]()

    def read(peer: socket.socket) -> None:
        # only counted here: what reads a hundred thousand answers is itself in the good client's way, in this process
        left, frames = b"", 0
        while frames < count:
            received.append(peer.recv(1 << 16))
            left, more = frames_of(left + received[-1])
            frames += more

    with GoodClient(daemon), socket.create_connection((LOOPBACK, daemon), timeout=60) as peer:
        answers = threading.Thread(target=read, args=(peer,))
        answers.start()
        peer.sendall(calls)
        answers.join()
    replies, _ = connection.receive(b"".join(received))
    assert len(replies) == count


async def test_web_peers_that_drip() -> None:
    async with cluster({**SHORT, "hadoop.http.idle_timeout.ms": "800"}) as rm:
        web, server = rm.manager.web, rm.manager.servers.client
        assert web is not None
        port = web.port
        request = b"GET /ws/v1/cluster/info HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 50

        def attack() -> None:
            with GoodClient(server.port), sockets(port, 100) as dripping, sockets(port, 100) as silent:
                began = time.monotonic()
                drip(dripping, request, lambda: time.monotonic() - began > 3)
                assert all(is_closed(peer) for peer in dripping + silent)
                assert time.monotonic() - began < 15

        await in_thread(attack)


async def test_headers_that_never_end(rm: Harness) -> None:
    """Over RPC and HTTP: refused before they are held, and before they are over."""
    server, web = rm.manager.servers.client, rm.manager.web
    assert web is not None
    head = opening()[1]
    claims = (
        b"hrpc\x09\0\0\x7f\xff\xff\xff",  # a context of 2 GB
        b"hrpc\x09\0\0\0\1\0\1" + b"x" * 65_537,  # and of a little more than a handshake needs
        head + b"\0\0\0\x06\x85\xff\xff\xff\x0f\0",  # a request header of 4 GB in a frame of six bytes
        head + b"\x10\0\0\0",  # a frame of 256 MB
    )

    def attack() -> None:
        with GoodClient(server.port):
            for claim in claims:
                with socket.create_connection((LOOPBACK, server.port)) as peer:
                    peer.sendall(claim)
                    assert is_closed(peer), claim[:20]
            for line in (b"GET /" + b"a" * (1 << 20), b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * (1 << 20)):
                with socket.create_connection((LOOPBACK, web.port)) as peer:
                    with contextlib.suppress(OSError):
                        peer.sendall(line)
                    assert is_closed(peer)
            answer = http.client.HTTPConnection(LOOPBACK, web.port, timeout=10)
            answer.request("GET", "/ws/v1/cluster/info")
            assert answer.getresponse().status == 200
            answer.close()

    await in_thread(attack)
    assert server.statistics().buffered_bytes == 0
