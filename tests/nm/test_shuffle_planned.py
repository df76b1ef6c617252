"""What was found for readers that take nothing has one room, and what reducers ask for is never too much for it."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.limits import MergedLimits, ShuffleLimits
from nm.shuffle.request import MAX_MAP_IDS
from nm.shuffle.rooms import PLANNED_BYTES_MAX, PLANNED_SHORT_BYTES
from tests.nm.nm_shuffle_served import APPLICATION, USER, Served, job_token, settle, slow_client, until

MAPS = [f"attempt_1_0001_m_{number:06d}_0" for number in range(MAX_MAP_IDS)]
#: a segment that is sent by a call of its own
LENGTH = 17_000


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    jobs = ShuffleJobs()
    jobs.add(APPLICATION, USER, job_token())
    limits = ShuffleLimits(connections_max=2000, keep_alive=False, keep_alive_timeout_s=60, stall_timeout_s=60)
    served = Served(tmp_path, jobs, limits, 4 << 20, MergedLimits(4 << 20, 60, 4 << 20))
    yield served
    served.service.stop()


def status_of(served: Served, stack: contextlib.ExitStack, maps: list[str]) -> bytes:
    """Of a client that takes nothing more."""
    return stack.enter_context(slow_client(served, maps, 0)).recv(12)[-3:]


def rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, -1], ids=["unmerged", "merged-backwards"])
def test_readers_that_take_nothing_of_much_have_one_room(served: Served, order: int) -> None:
    for map_id in MAPS:
        served.write(map_id, [b"x" * LENGTH])
    if order < 0:
        served.merge("all", MAPS)
    served.service._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    room = served.service.planned
    with contextlib.ExitStack() as stack:
        assert status_of(served, stack, MAPS[::order]) == b"200"
        before, cost = rss(), room.bytes
        found = [status_of(served, stack, MAPS[::order]) for _ in range(500)]
        assert found.count(b"200") == PLANNED_BYTES_MAX // cost - 1 and set(found) == {b"200", b"429"}
        assert room.bytes <= PLANNED_BYTES_MAX
        assert rss() - before < PLANNED_BYTES_MAX + (24 << 20)
        assert status_of(served, stack, MAPS[:20]) == b"200", "what reducers ask for"
    settle(served)
    assert room.bytes == 0


def test_room_for_what_waits_is_given_back(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    names = MAPS[:100]
    for map_id in names:
        served.write(map_id, [b"x" * LENGTH])
    served.service._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    room = served.service.planned
    with contextlib.ExitStack() as stack:
        assert status_of(served, stack, names) == b"200"
        cost = room.bytes
        monkeypatch.setattr(room, "_bytes_max", cost * 2)
        with contextlib.ExitStack() as further:
            assert [status_of(served, further, names) for _ in range(3)] == [b"200", b"429", b"429"]
            response, _ = served.get(served.target(names))
            assert (response.status, response.getheader("Retry-After")) == (429, "1000")
            assert served.get(served.target(names[:20]))[0].status == 200
            until(lambda: room.bytes == cost * 2)  # an answer that a client has whole is counted a moment longer
        for _ in range(3):
            until(lambda: room.bytes <= cost)
            assert served.get(served.target(names))[0].status == 200
            assert served.get(served.target(["m0"]))[0].status == 500
    settle(served)
    assert room.bytes == 0


@pytest.mark.parametrize(("count", "is_merged"), [(20, False), (200, True)], ids=["stock", "ours"])
def test_what_reducers_ask_for_is_little(served: Served, count: int, is_merged: bool) -> None:
    names = MAPS[:count]
    for map_id in names:
        served.write(map_id, [b"x" * LENGTH])
    if is_merged:
        served.merge("all", names)
    served.service._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with contextlib.ExitStack() as stack:
        assert status_of(served, stack, names) == b"200"
        cost = served.service.planned.bytes
        assert 0 < cost <= (PLANNED_BYTES_MAX // 500 if is_merged else PLANNED_SHORT_BYTES)
