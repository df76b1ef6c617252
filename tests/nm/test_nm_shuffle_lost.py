"""What reducers are told of map outputs that were on the node and are not any more."""

import http.client
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from nm_shuffle_served import APPLICATION, KEY, USER, Served, job_token, segments, settle

from nm.shuffle.jobs import ShuffleJob, ShuffleJobs
from nm.shuffle.server import ShuffleLimits

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
