"""Reducers that take nothing, or little, of what is kept of merged files, and others beside them."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.limits import MergedLimits, ShuffleLimits
from tests.nm.nm_shuffle_served import APPLICATION, USER, Served, job_token, settle, stalled_client, until

MAPS = [f"attempt_1_0001_m_{number:06d}_0" for number in range(20)]
KEPT_BYTES = 4 << 20
#: and as many fresh ones
STALLED = 12
LIMITS = ShuffleLimits(connections_max=100, keep_alive=False, keep_alive_timeout_s=60, stall_timeout_s=60)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def served(tmp_path: Path, clock: Clock) -> Iterator[Served]:
    jobs = ShuffleJobs()
    jobs.add(APPLICATION, USER, job_token())
    served = Served(tmp_path, jobs, LIMITS, 1 << 20, MergedLimits(KEPT_BYTES, 60, 1 << 20))
    served.service.merged._kept._now = lambda: clock.now
    yield served
    served.service.stop()


def write(served: Served, length: int, reduces: int) -> list[bytes]:
    """What reducers are sent."""
    for map_id in MAPS:
        served.write(map_id, [os.urandom(length) for _ in range(reduces)])
    return [served.get(served.target(MAPS, reduce))[1] for reduce in range(reduces)]


def look_at_connections(served: Served) -> None:
    """As the service does every second."""
    done = threading.Event()

    def look() -> None:
        served.service._sweep()
        done.set()

    served.service.loop.call_soon_threadsafe(look)
    assert done.wait(20)


def rest_of(client: socket.socket) -> bytes:
    data = b""
    client.settimeout(20)
    while chunk := client.recv(1 << 20):
        data += chunk
    return data


def test_who_takes_nothing_holds_no_memory_that_others_read_with(served: Served, clock: Clock) -> None:
    before = write(served, 40_000, 2 * STALLED)
    settle(served)
    counts, merged = served.service.statistics.reads, served.service.merged
    served.merge("all", MAPS)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(stalled_client(served, MAPS, reduce)) for reduce in range(STALLED)]
        assert merged.kept_bytes > KEPT_BYTES * 3 / 4, "there is room for no other part of 800 KB"
        clock.now += 2
        look_at_connections(served)
        reads, read_bytes = counts.reads, counts.read_bytes
        for reduce in range(STALLED, 2 * STALLED):
            assert served.get(served.target(MAPS, reduce))[1] == before[reduce]
            assert merged.kept_bytes <= KEPT_BYTES
            clock.now += 2
        until(lambda: served.service.statistics.connections == STALLED)
        assert counts.reads - reads == STALLED, "each of the others' parts was read at once"
        assert counts.read_bytes - read_bytes == STALLED * len(MAPS) * 40_004
        for reduce, client in enumerate(clients):
            assert rest_of(client).endswith(before[reduce])
    settle(served)
    clock.now += 61
    look_at_connections(served)
    assert (counts.fallbacks, merged.kept_bytes) == (0, 0)


@pytest.mark.parametrize("length", [40_000, 250_000], ids=["service", "sender"])
def test_what_is_sent_for_long_goes_on_from_its_file(served: Served, clock: Clock, length: int) -> None:
    """Whichever thread sends it; of memory where the file cannot be opened."""
    (before,) = write(served, length, 1)
    file = served.merge("all", MAPS)
    merged = served.service.merged
    with stalled_client(served, MAPS, 0) as client:
        (kept,) = merged._kept._kept.values()
        assert kept.users == 1
        clock.now += 0.9
        look_at_connections(served)
        assert kept.users == 1, "it may go on yet"
        away = file.path.rename(file.path.with_suffix(".away"))
        served.outputs.files.forget(file.path)
        clock.now += 0.2
        look_at_connections(served)
        assert kept.users == 1 and not file.is_bad
        away.rename(file.path)
        look_at_connections(served)
        until(lambda: not kept.users)
        assert rest_of(client).endswith(before)
    settle(served)
