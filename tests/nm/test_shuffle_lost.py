"""What reducers are told of map outputs that were on the node and are not any more."""

import contextlib
import http.client
import os
import resource
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from nm.shuffle.files import OutputUnreadable
from nm.shuffle.jobs import ShuffleJob, ShuffleJobs
from nm.shuffle.limits import ShuffleLimits
from tests.nm.nm_shuffle_served import APPLICATION, JOB, KEY, USER, Served, job_token, segments, settle, until

SEVERAL = "several map outputs are lost"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    jobs = ShuffleJobs()
    jobs.add(APPLICATION, USER, job_token())
    served = Served(tmp_path, jobs, ShuffleLimits(100, keep_alive=False, keep_alive_timeout_s=5), 1 << 20)
    yield served
    served.service.stop()


@pytest.mark.parametrize("is_asked_before", [False, True])
def test_of_an_output_that_was_here_a_reducer_is_told_that_it_is_lost(served: Served, is_asked_before: bool) -> None:
    """Of one that never was as by a stock ShuffleHandler, which a reducer reports after its tenth failure."""
    for name in ("m0", "m1"):
        served.write(name, [b"zero", b"one"])
    job = ShuffleJob(APPLICATION, USER, KEY)
    if is_asked_before:
        assert served.get(served.target(["m0"]))[0].status == 200
    else:
        assert served.outputs.load(job, "m0")  # as the node's look at the folder does
    settle(served)
    served.outputs.files.forget(served.output_dir / "m0" / "file.out")
    shutil.rmtree(served.output_dir / "m0")
    if is_asked_before:  # its index is known, and says how long the answer is to be
        with pytest.raises(http.client.IncompleteRead):
            served.get(served.target(["m0"]))
    for reduce in range(2):
        response, body = served.get(served.target(["m0"], reduce))
        assert (response.status, segments(body)) == (200, [("m0", -1, -1, reduce, b"")])
    assert served.get(served.target(["gone"]))[0].status == 500
    assert [row[:2] for row in segments(served.get(served.target(["m0", "m1"]))[1])] == [("m1", 8), ("m0", -1)]


@pytest.mark.parametrize("lost", [1, 2, 3, 4])
def test_several_that_are_lost_are_told_at_once_where_twice_as_many_are_sent(served: Served, lost: int) -> None:
    """A reducer of which half of what it tried has failed gives up."""
    names = [f"m{number}" for number in range(9)]
    for name in names:
        served.write(name, [b"zero"])
    for name in names[:lost]:
        shutil.rmtree(served.output_dir / name)
    _, body = served.get(served.target(names))
    several = [SEVERAL] if 1 < lost <= (len(names) - lost) / 2 else []
    assert [row[0] for row in segments(body)] == [*names[lost:], *several, *names[:lost]]
    assert bool(several) == (lost in (2, 3))


def test_outputs_seen_are_remembered_in_a_bounded_number(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nm.shuffle.outputs._Seen._MAX", 5)
    names = [f"m{number}" for number in range(8)]
    for name in names:
        served.write(name, [b"zero"])
        served.outputs.load(ShuffleJob(APPLICATION, USER, KEY), name)
        shutil.rmtree(served.output_dir / name)
    assert [served.get(served.target([name]))[0].status for name in names] == [500] * 3 + [200] * 5


class Asked:
    """Requests whose connections are made, sent while the process has no descriptor left."""

    def __init__(self, served: Served, targets: list[str]) -> None:
        self._served = served
        self._targets = targets

    def answers(self) -> list[bytes]:
        statistics = self._served.service.statistics
        with contextlib.ExitStack() as stack:
            clients = [
                stack.enter_context(socket.create_connection(("127.0.0.1", self._served.service.port), timeout=20))
                for _ in self._targets
            ]
            until(lambda: statistics.connections >= len(clients))
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            try:
                return list(map(self._answer, clients, self._targets))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def _answer(self, client: socket.socket, target: str) -> bytes:
        lines = "".join(f"{name}: {value}\r\n" for name, value in self._served.headers(target).items())
        client.sendall(f"GET {target} HTTP/1.1\r\n{lines}\r\n".encode())
        data = b""
        while chunk := client.recv(1 << 16):
            data += chunk
        return data


@pytest.mark.parametrize("is_planned", [False, True], ids=["index", "file"])
@pytest.mark.parametrize("is_merged", [False, True], ids=["unmerged", "merged"])
@pytest.mark.parametrize("length", [100, 40_000, 5 << 20])
def test_what_cannot_be_opened_for_want_of_descriptors_is_not_said_to_be_lost(
    served: Served, is_planned: bool, is_merged: bool, length: int
) -> None:
    """A map would run again for what passes: the reducer tries again. Nor is a merged file given up for it."""
    names = ["m0", "m1"]
    for name in names:
        served.write(name, [os.urandom(length)])
    file = served.merge("all", names) if is_merged else None
    before = served.get(served.target(names))[1]
    settle(served)
    if not is_planned:
        served.outputs.forget_job(JOB)
        served.service.merged._indexes.clear()
    served.outputs.files.close()
    served.service.merged._kept.forget_where(lambda key, kept: True)
    targets = [served.target(names), served.target(names[1:])]
    for answer in Asked(served, targets).answers():
        assert answer.startswith(b"HTTP/1.1 500 ") and b"cannot be read now" in answer
    assert served.get(targets[0])[1] == before
    settle(served)
    assert file is None or not file.is_bad
    assert served.service.statistics.connections == 0


def test_what_one_disk_cannot_tell_is_not_known_to_be_lost(served: Served) -> None:
    """A name that is no name there, as what else a disk may answer that is not about the file."""
    served.write("m0", [b"zero"])
    assert served.get(served.target(["m0"]))[0].status == 200
    with pytest.raises(OutputUnreadable):
        served.outputs.load(ShuffleJob(APPLICATION, USER, KEY), "m" * 256)


@pytest.mark.parametrize("what", ["folder", "link", "file-above", "damaged"])
def test_what_stands_in_an_outputs_place_is_no_output(served: Served, what: str) -> None:
    served.write("m0", [b"zero"])
    served.outputs.load(ShuffleJob(APPLICATION, USER, KEY), "m0")
    index = served.output_dir / "m0" / "file.out.index"
    content = index.read_bytes()
    index.unlink()
    if what == "folder":
        index.mkdir()
    elif what == "link":
        index.symlink_to("file.out")
    elif what == "damaged":
        index.write_bytes(content[:-1])
    else:
        shutil.rmtree(index.parent)
        index.parent.write_bytes(b"")
    response, body = served.get(served.target(["m0"]))
    assert (response.status, segments(body)) == (200, [("m0", -1, -1, 0, b"")])


@pytest.mark.parametrize("is_merged", [False, True])
def test_a_partition_that_no_map_has_is_refused(served: Served, is_merged: bool) -> None:
    for name in ("m0", "m1"):
        served.write(name, [b"zero", b"one"])
    if is_merged:
        served.merge("all", ["m0", "m1"])
    for names in (["m0", "m1"], ["m1"]):
        assert served.get(served.target(names, 2))[0].status == 500
        assert served.get(served.target(names, 1))[0].status == 200
