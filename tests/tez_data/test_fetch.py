"""The fetcher against a small shuffle service on loopback, honest and otherwise."""

import threading
from pathlib import Path
from typing import Any

import pytest

from riffle_merger.format.vint import write_vint
from tests.tez_data.tez_shuffle_service import Reducer, Service, attempt, cut, expected, lost_header, write_map
from tez_adapter.data import (
    FetchFailed,
    FetchSettings,
    MapLocation,
    WriteFailed,
)
from tez_adapter.data.shufflehttp import sign, url_path


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
