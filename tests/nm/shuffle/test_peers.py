"""Peers of the shuffle service that are many, slow or endless."""

import contextlib
import http.client
import os
import select
import socket
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.limits import ShuffleLimits
from nm.shuffle.request import RequestRefused, parse_request
from nm.shuffle.rooms import UNFINISHED_BYTES_MAX
from tests.nm.nm_shuffle_served import Served, segments


def test_too_many_connections_are_told_to_come_back(served: Served) -> None:
    served.write("m0", [b"zero"])
    held = [socket.create_connection(("127.0.0.1", served.service.port)) for _ in range(3)]
    while served.service.statistics.connections < 3:
        time.sleep(0.001)
    response, _ = served.get(served.target(["m0"]))
    assert (response.status, response.getheader("Retry-After")) == (429, "1000")
    for connection in held:
        connection.close()
    while served.service.statistics.connections:
        time.sleep(0.001)
    assert served.get(served.target(["m0"]))[0].status == 200


def test_endless_head_is_cut_off(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.service.port), timeout=10) as client:
        with pytest.raises(OSError):
            for _ in range(100):
                client.sendall(b"x" * 65536)
        served.write("m0", [b"zero"])
    assert served.get(served.target(["m0"]))[0].status == 200


def test_endless_heads_of_many_have_one_room(tmp_path: Path, jobs: ShuffleJobs) -> None:
    """Nothing in them is verified: whoever reaches the port can send them."""
    served = Served(tmp_path, jobs, ShuffleLimits(100, False, 5.0), 4096)
    served.write("m0", [b"zero"])
    with contextlib.ExitStack() as stack:
        stack.callback(served.service.stop)
        clients = []
        for _ in range(60):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", served.service.port), timeout=10))
            clients.append(client)
            with contextlib.suppress(OSError):  # its answer may come before the last of this has gone
                client.sendall(b"GET /" + b"x" * 400_000)
        refused = 60 - UNFINISHED_BYTES_MAX // 400_000
        poller = select.poll()
        for client in clients:
            poller.register(client, select.POLLIN)
        deadline = time.monotonic() + 20
        while len(poller.poll(100)) < refused and time.monotonic() < deadline:
            pass
        assert refused <= len(poller.poll(0)) < 60, "the others are waited for"
        assert served.service.unfinished.bytes <= UNFINISHED_BYTES_MAX
        assert served.get(served.target(["m0"]))[0].status == 200, "a short one is always waited for"
        for client in clients:
            client.close()
        deadline = time.monotonic() + 10
        while served.service.unfinished.bytes and time.monotonic() < deadline:
            time.sleep(0.01)
        assert served.service.unfinished.bytes == 0


def test_a_request_that_drips_is_not_waited_for(served: Served) -> None:
    served.service.limits = ShuffleLimits(100, False, 0.2, stall_timeout_s=0.5)
    served.write("m0", [b"zero"])
    with (
        socket.create_connection(("127.0.0.1", served.service.port), timeout=10) as drips,
        socket.create_connection(("127.0.0.1", served.service.port), timeout=10) as silent,
    ):
        began = time.monotonic()
        with pytest.raises(OSError):
            for byte in served.target(["m0"] * 50).encode():
                drips.sendall(bytes((byte,)))
                time.sleep(0.05)
        assert time.monotonic() - began < 5
        assert silent.recv(1) == b""
        assert served.get(served.target(["m0"]))[0].status == 200


def test_long_answers_go_out_beside_each_other_and_before_short_ones_on_one_connection(served: Served) -> None:
    served.service.limits = ShuffleLimits(100, False, 30.0, stall_timeout_s=60)  # a client may be slow to go on
    content = {f"m{number}": os.urandom(3 << 20) for number in range(4)}
    for map_id, data in content.items():
        served.write(map_id, [data, b"short"])

    def fetch(maps: list[str]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", served.service.port, timeout=10)
        for reduce in (0, 1, 0):
            target = served.target(maps, reduce, "&keepAlive=true")
            connection.request("GET", target, headers=served.headers(target))
            found = segments(connection.getresponse().read())
            assert [s[4][:-4] for s in found] == [b"short" if reduce else content[map_id] for map_id in maps]
            done.append(sum(len(s[4]) for s in found))
        connection.close()

    done: list[int] = []
    asked = (["m0", "m1"], ["m2", "m3", "m1"], ["m3", "m2"])  # more files at once than are kept open
    threads = [threading.Thread(target=fetch, args=(list(maps),)) for maps in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 9
    while served.service.statistics.connections:
        time.sleep(0.001)
    assert 0 < served.service.statistics.sent_bytes - sum(done) < 9 * 1000


@pytest.mark.parametrize("is_stopped", [False, True], ids=["stalls", "service-stops"])
def test_a_long_answer_that_nobody_reads_is_given_up(served: Served, is_stopped: bool) -> None:
    served.service.limits = ShuffleLimits(100, False, 0.2, stall_timeout_s=0.3)
    served.write("m0", [os.urandom(24 << 20)])
    target = served.target(["m0"])
    lines = "".join(f"{name}: {value}\r\n" for name, value in served.headers(target).items())
    with socket.create_connection(("127.0.0.1", served.service.port), timeout=10) as stalled:
        stalled.sendall(f"GET {target} HTTP/1.1\r\n{lines}\r\n".encode())
        assert stalled.recv(1)
        if is_stopped:
            served.service.stop()
        else:
            while served.service.statistics.connections:
                time.sleep(0.001)
            assert 0 < served.service.statistics.sent_bytes < 24 << 20
            assert served.get(served.target(["m0"]))[0].status == 200
    links = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if os.path.lexists(entry)]
    assert len([link for link in links if link.endswith("m0/file.out")]) == (0 if is_stopped else 1)


@given(st.binary(max_size=300))
def test_no_bytes_break_the_parser(head: bytes) -> None:
    with pytest.raises(RequestRefused):
        parse_request(head, port=1, jobs=ShuffleJobs())


def test_concurrent_fetches_each_get_their_own(served: Served) -> None:
    served.service.limits = ShuffleLimits(100, False, 5)
    served.service._connections_max = 100
    parts = [os.urandom(200_000) for _ in range(8)]
    served.write("m0", parts)
    wrong: list[int] = []

    def fetch(reduce: int) -> None:
        _, body = served.get(served.target(["m0"], reduce))
        if segments(body)[0][4][:-4] != parts[reduce]:
            wrong.append(reduce)

    threads = [threading.Thread(target=fetch, args=(n % 8,)) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
