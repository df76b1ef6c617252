"""The shuffle service over real sockets: Hadoop's protocol, hostile requests, bounds."""

import base64
import hmac
import http.client
import os
import socket
import struct
import time
import zlib
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote

import pytest

from nm.shuffle import request
from nm.shuffle.jobs import BadServiceData, ShuffleJob, ShuffleJobs
from nm.shuffle.outputs import MapOutput
from nm.shuffle.request import MAX_MAP_IDS, parse_request
from riffle_merger.format import IndexEntry, SpillIndex
from tests.nm.nm_shuffle_served import APPLICATION, JOB, KEY, USER, Served, job_token, segments
from yaqd.model import ApplicationId


def test_hashes_are_hadoops(jobs: ShuffleJobs) -> None:
    head = (
        b"GET /mapOutput?job=job_1_0001&reduce=0&map=attempt_1_0001_m_000000_0 HTTP/1.1\r\n"
        b"URLHASH: h7JhRRGIi2BtCiSfabak5CPLuLM=\r\nname: mapreduce\r\nVersion: 1.0.0"
    )
    assert parse_request(head, port=13562, jobs=jobs).reply_hash == "mI8W83sxzAODfk6Kcf4Eiy3y/G0="


def test_segments_come_in_request_order_with_their_headers(served: Served) -> None:
    big = os.urandom(3 << 20)
    served.write("m0", [b"zero", b"", b"x"])
    served.write("m1", [b"a", big, b"y"])
    served.write("m2", [b"b", b"small", b"z"])
    response, body = served.get(served.target(["m2", "m1", "m0"], 1))
    assert response.status == 200
    assert response.getheader("name") == "mapreduce" and response.getheader("Connection") == "close"
    found = segments(body)
    assert [s[0] for s in found] == ["m2", "m1", "m0"]
    assert [(s[2], s[3]) for s in found] == [(5, 1), (len(big), 1), (0, 1)]
    assert [s[4][:-4] for s in found] == [b"small", big, b""]
    reply = hmac.digest(KEY, served.headers(served.target(["m2", "m1", "m0"], 1))["UrlHash"].encode(), "sha1")
    assert response.getheader("ReplyHash") == base64.b64encode(reply).decode()


def test_many_maps_over_few_descriptors_and_a_small_index_cache(served: Served) -> None:
    names = [f"attempt_1_0001_m_{n:06d}_0" for n in range(200)]
    for name in names:
        served.write(name, [name.encode(), os.urandom(20_000)])
    for reduce in (0, 1, 0):
        _, body = served.get(served.target(names, reduce))
        assert [s[0] for s in segments(body)] == names
    assert served.outputs.index_bytes <= 4096


def test_keep_alive_when_asked_and_idle_connections_closed(served: Served) -> None:
    served.write("m0", [b"zero"])
    target = served.target(["m0"], more="&keepAlive=true")
    connection = http.client.HTTPConnection("127.0.0.1", served.service.port, timeout=10)
    for _ in range(3):
        connection.request("GET", target, headers=served.headers(target))
        response = connection.getresponse()
        assert response.getheader("Keep-Alive") == "timeout=0" and segments(response.read())
    assert connection.sock is not None and connection.sock.recv(1) == b""  # closed once idle for the timeout


def test_pipelined_and_dribbled_requests(served: Served) -> None:
    served.write("m0", [b"zero", b"one"])
    first, second = (served.target(["m0"], r, "&keepAlive=true") for r in (0, 1))
    lines = b""
    for target in (first, second):
        headers = "".join(f"{name}: {value}\r\n" for name, value in served.headers(target).items())
        lines += f"GET {target} HTTP/1.1\r\n{headers}\r\n".encode()
    with socket.create_connection(("127.0.0.1", served.service.port), timeout=10) as client:
        for index in range(0, len(lines), 7):
            client.sendall(lines[index : index + 7])
        received = b""
        while received.count(b"HTTP/1.1 200") < 2 or not received.endswith(struct.pack(">I", zlib.crc32(b"one"))):
            chunk = client.recv(65536)
            assert chunk
            received += chunk


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"method": "POST"}, 405),
        ({"headers": {"name": "mapreduce", "version": "2.0.0"}}, 400),
        ({"headers": {}}, 400),
        ({"target": "/other?job=job_1_0001&reduce=0&map=m0"}, 400),
        ({"target": "/mapOutput?job=job_1_0001&map=m0"}, 400),
        ({"target": "/mapOutput?job=job_1_0001&reduce=-1&map=m0"}, 400),
        ({"target": "/mapOutput?job=job_1_0001&reduce=99999999999999999999&map=m0"}, 400),
        ({"target": "/mapOutput?job=job_1_0001&reduce=" + "0" * 12 + "9" * 5000 + "&map=m0"}, 400),
        ({"target": "/mapOutput?job=job_1_0001&reduce=%D9%A3&map=m0"}, 400),
        ({"target": "/mapOutput?job=job_1_0001&reduce=%C2%B2&map=m0"}, 400),
        ({"target": "/mapOutput?job=job_1_0001&reduce=0_0&map=m0"}, 400),
        ({"target": "/mapOutput?job=job_1_0001&reduce=0&map=m0%0am1"}, 400),
        ({"target": "/mapOutput?job=job_1_0001&reduce=0&map=../m0"}, 400),
        ({"target": "/mapOutput?job=job_1_0001&reduce=0&map=%2e%2e%2fm0"}, 400),
        ({"target": "/mapOutput?job=job_1_0001&reduce=0&map=" + "m" * 300}, 400),
        ({"target": "/mapOutput?job=job_1_0001&reduce=0&map=m0,m0"}, 400),
        ({"target": "/mapOutput?job=job_1_0001&reduce=0&map=m0&map=%6d0"}, 400),
        ({"target": "/mapOutput?job=job_1_0001&reduce=0&map=" + "m," * 250_000}, 413),
        ({"target": "/mapOutput?job=job_1_0001&reduce=0" + "&map=m" * 80_000}, 413),
        (
            {"target": "/mapOutput?job=job_1_0001&reduce=0&map=" + ",".join(f"m{n}" for n in range(MAX_MAP_IDS + 1))},
            413,
        ),
        ({"target": "/mapOutput?job=job_2_0001&reduce=0&map=m0"}, 401),
        ({"key": b"wrong"}, 401),
        ({"target": "/mapOutput?job=job_1_0001&reduce=0&map=gone"}, 500),
        ({"target": "/mapOutput?job=job_1_0001&reduce=7&map=m0"}, 500),
    ],
)
def test_refusals_have_hadoops_status(served: Served, change: dict[str, Any], status: int) -> None:
    served.write("m0", [b"zero"])
    target = str(change.get("target", served.target(["m0"])))
    headers = change.get("headers", served.headers(target, bytes(change.get("key", KEY))))
    response, _ = served.get(target, headers=headers, method=str(change.get("method", "GET")))
    assert response.status == status
    assert response.getheader("name") == "mapreduce" and response.getheader("Connection") == "close"


@pytest.mark.parametrize(
    "query",
    [
        "job=job_1_0001&reduce=0&map=" + "%6d," * 120_000,
        "job=job_1_0001&reduce=0&map=../m0",
        "job=job_1_0001&reduce=x" + "&map=m" * 80_000,
        "job=job_1_0001&job=job_1_0001",
        "reduce=0&map=%6d0&job=job_1%5f0001",
        "reduce=0&map=%6d0&job=" + "%6a" * 150_000,
    ],
)
def test_nothing_of_a_strangers_request_is_taken_apart(
    served: Served, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unquoted: list[str] = []

    def unquote_known(value: str) -> str:
        unquoted.append(value)
        return unquote(value)

    monkeypatch.setattr(request, "unquote", unquote_known)
    target = f"/mapOutput?{query}"
    response, _ = served.get(target, headers=served.headers(target, b"wrong"))
    assert response.status == 401
    assert unquoted in (["job_1_0001"], ["job_1%5f0001"], [])
    assert served.get(target)[0].status in (400, 401, 413, 500)


@pytest.mark.parametrize("query", ["map=m0&job=job_1%5f0001&reduce=0", "reduce=0&xjob=2&map=m0&job=job_1_0001"])
def test_the_job_may_stand_anywhere(served: Served, query: str) -> None:
    served.write("m0", [b"zero"])
    assert served.get(f"/mapOutput?{query}")[0].status == 200
    assert served.get(f"/mapOutput?{query.replace('job', 'jab')}")[0].status == 400


def test_a_request_for_many_maps_does_not_keep_others_waiting(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.write("m0", [b"zero"])
    load, loaded = served.outputs.load, []

    def load_slowly(job: ShuffleJob, map_id: str) -> MapOutput:
        loaded.append(map_id)
        time.sleep(0.001)  # of a disk
        return load(job, "m0")

    monkeypatch.setattr(served.outputs, "load", load_slowly)
    target = served.target([f"many{number}" for number in range(300)])
    lines = "".join(f"{name}: {value}\r\n" for name, value in served.headers(target).items())
    with socket.create_connection(("127.0.0.1", served.service.port), timeout=10) as many:
        many.sendall(f"GET {target} HTTP/1.1\r\n{lines}\r\n".encode())
        while not loaded:
            time.sleep(0.001)
        assert served.get(served.target(["m0"]))[0].status == 200
        assert len(loaded) < 150
        assert many.recv(12) == b"HTTP/1.1 200"
    assert len(loaded) == 301


def test_a_job_that_ends_while_its_request_is_planned_is_forgotten(
    served: Served, jobs: ShuffleJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.write("m0", [b"zero"])
    load = served.outputs.load

    def load_and_end(job: ShuffleJob, map_id: str) -> MapOutput:
        time.sleep(0.01)  # of a disk: longer than a turn
        jobs.forget(APPLICATION)
        served.service.forget_job(JOB)
        return load(job, "m0")

    monkeypatch.setattr(served.outputs, "load", load_and_end)
    assert served.get(served.target(["m0", "m1"]))[0].status == 401
    assert served.outputs.index_bytes == 0


def test_a_hash_is_good_for_its_own_url_at_its_own_port_and_job(served: Served, jobs: ShuffleJobs) -> None:
    served.write("m0", [b"zero", b"one"])
    target = served.target(["m0"])
    signed = served.headers(target)
    response, _ = served.get(target, headers=signed)
    assert response.status == 200
    answered = str(response.getheader("ReplyHash"))
    elsewhere = hmac.digest(KEY, f"{served.service.port + 1}{target}".encode(), "sha1")
    jobs.add(ApplicationId(1, 2), USER, job_token(b"another's"))
    replayed = [
        (served.target(["m0"], 1), signed["UrlHash"]),
        (served.target(["m0", "m0"]), signed["UrlHash"]),
        (f"{target}&keepAlive=true", signed["UrlHash"]),
        (target.replace(JOB, "job_1_0002"), signed["UrlHash"]),
        (target, answered),
        (target, base64.b64encode(elsewhere).decode()),
        (target, signed["UrlHash"].rstrip("=")),
        (target, ""),
    ]
    for other, url_hash in replayed:
        response, body = served.get(other, headers={**signed, "UrlHash": url_hash})
        assert (response.status, b"zero" in body) == (401, False), (other, url_hash)


def test_links_out_of_the_application_and_lying_indexes_are_not_served(served: Served, tmp_path: Path) -> None:
    served.write("good", [b"zero"])
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("file.out", "file.out.index"):
        (outside / name).write_bytes((served.output_dir / "good" / name).read_bytes())
    (served.output_dir / "linked").symlink_to(outside)
    (served.output_dir / "half").mkdir()
    (served.output_dir / "half" / "file.out.index").symlink_to(outside / "file.out.index")
    (served.output_dir / "long").mkdir()
    (served.output_dir / "long" / "file.out").write_bytes(b"abc")
    (served.output_dir / "long" / "file.out.index").write_bytes(
        SpillIndex([IndexEntry(0, 1 << 40, 1 << 40)]).to_bytes()
    )
    for name in ("linked", "half", "long"):
        response, _ = served.get(served.target([name]))
        assert response.status == 500, name


def test_what_is_right_of_a_lying_index_is_served(served: Served) -> None:
    """As stock does; only merges want the whole index to be right."""
    served.write("m0", [b"zero", b"one"])
    folder = served.output_dir / "m0"
    first, second = SpillIndex.load(folder / "file.out.index")
    beyond = IndexEntry(second.start, second.raw_length, second.part_length + 1)
    (folder / "file.out.index").write_bytes(SpillIndex([first, first, beyond]).to_bytes())
    for reduce, status in ((0, 200), (1, 200), (2, 500), (3, 500)):
        response, body = served.get(served.target(["m0"], reduce))
        assert (response.status, b"zero" in body) == (status, status == 200), reduce


def test_an_index_that_is_a_folder_leaves_nothing_open(served: Served) -> None:
    (served.output_dir / "folder" / "file.out.index").mkdir(parents=True)
    response, _ = served.get(served.target(["folder"]))
    assert response.status == 500
    links = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if os.path.lexists(entry)]
    assert not [link for link in links if link.endswith("folder/file.out.index")]


def test_whatever_goes_wrong_is_answered_and_logged_once_a_minute(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    served.write("m0", [b"zero"])

    def fail(*_: object) -> NoReturn:
        raise ValueError("unforeseen\n" + "x" * 10_000)

    with monkeypatch.context() as patch:
        patch.setattr(served.outputs, "segment", fail)
        for _ in range(20):
            response, _ = served.get(served.target(["m0"]))
            assert (response.status, response.getheader("Connection")) == (400, "close")
    (fault,) = [r for r in caplog.records if r.levelname == "ERROR"]
    assert fault.getMessage().startswith("shuffle request of 127.0.0.1 failed\nTraceback")
    assert "ValueError: unforeseen" in fault.getMessage() and len(fault.getMessage()) < 5000
    with monkeypatch.context() as patch:
        patch.setattr(served.outputs, "open", fail)
        with pytest.raises(http.client.IncompleteRead):  # the head is out, the bytes never come
            served.get(served.target(["m0"]))
    assert served.get(served.target(["m0"]))[0].status == 200
    while served.service.statistics.connections:
        time.sleep(0.001)


def test_refusals_are_logged_once_a_minute(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(20):
        assert served.get(served.target(["m0"], "9" * 5000))[0].status == 400
    (line,) = [r.getMessage() for r in caplog.records if r.name.startswith("nm.shuffle")]
    assert line == "shuffle request of 127.0.0.1 refused: reduce is not a number"


def test_forgotten_job_lets_go_of_its_files(served: Served, jobs: ShuffleJobs) -> None:
    served.write("m0", [b"zero" * 10_000])
    served.get(served.target(["m0"]))
    assert served.outputs.index_bytes
    jobs.forget(APPLICATION)
    served.service.forget_job(JOB)
    assert served.get(served.target(["m0"]))[0].status == 401
    deadline = time.monotonic() + 10
    while served.outputs.index_bytes and time.monotonic() < deadline:  # its turn in the loop may come after a request
        time.sleep(0.001)
    assert served.outputs.index_bytes == 0
    links = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if os.path.lexists(entry)]
    assert not [link for link in links if link.endswith("m0/file.out")]


@pytest.mark.parametrize("data", [b"", b"\x7f", job_token()[:-9]])
def test_service_data_that_is_no_job_token(data: bytes) -> None:
    with pytest.raises(BadServiceData):
        ShuffleJobs().add(APPLICATION, USER, data)
