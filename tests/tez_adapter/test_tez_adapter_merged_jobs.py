"""Our own jobs with their map outputs merged: on a real cluster, with the real mergers and shuffle services."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.submit import submit_mapreduce
from tez_adapter.history import read_history
from yaqd.config import Configuration

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

COUNT = """
from yaqd.mapreduce import Job
class Count(Job):
    def map(self, key, value):
        for word in value.split():
            yield word, 1
    def reduce(self, key, values):
        yield key, sum(values)
"""
#: a map that waits for a file while reduces read what the others made; every task's process says that it is there
HELD = """
import os, pathlib, time
from yaqd.mapreduce import Job
HERE = pathlib.Path({here!r})
if not os.environ.get("CONTAINER_ID", "_000001").endswith("_000001"):  # a task, not its master nor the client
    (HERE / f"process-{{os.getpid()}}").touch()
class Count(Job):
    def map(self, key, value):
        if value == "held":
            (HERE / f"holds-{{os.getpid()}}").touch()
            while not (HERE / "go").exists():
                time.sleep(0.02)
        for word in value.split():
            yield word, 1
    def reduce(self, key, values):
        yield key, sum(values)
"""
MERGED = {"yaq.riffle.policy": "files", "yaq.riffle.files": "4", "yaq.riffle.best-effort": "1.0"}
WORDS = "".join(f"a b c{i % 10} d{i % 7}\n" for i in range(4000))
SPLIT = str(len(WORDS) // 24 + 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("merging") / "c"


@pytest.fixture(scope="module")
def merging(running: Callable[..., AbstractContextManager[Configuration]], folder: Path) -> Iterator[Configuration]:
    with running(folder, 2, "-D", "yaq.riffle.enabled=true") as conf:
        yield conf.with_overrides({"mapreduce.input.fileinputformat.split.maxsize": SPLIT})


def until(condition: Callable[[], Any], timeout_s: float = 30.0) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return found


def run(conf: Configuration, write: Callable[[str, str], str], output: Path, reduces: int = 3) -> SubmittedJob:
    return submit_mapreduce(
        conf, write("count.py", COUNT), inputs=[write("in.txt", WORDS)], output=str(output), reduces=reduces
    )


def finish(job: SubmittedJob) -> None:
    try:
        status = job.wait(timeout_s=120)
        assert status.state == "SUCCEEDED", status
    finally:
        job.close()


def counts(output: Path) -> dict[str, int]:
    lines = (line.split("\t") for part in output.glob("part-*") for line in part.read_text().splitlines())
    return {word: int(count) for word, count in lines}


def expected() -> dict[str, int]:
    words = WORDS.split()
    return {word: words.count(word) for word in set(words)}


def shuffle_of(conf: Configuration, job: SubmittedJob) -> dict[str, Any]:
    found: dict[str, Any] = read_history(conf, job.application_id).end["shuffle"]
    return found


def explained(folder: Path, job: SubmittedJob) -> str:
    words = [sys.executable, "-m", "yaqd.cli", "explain", "--conf", str(folder / "conf"), str(job.application_id)]
    return subprocess.run(words, check=True, timeout=60, capture_output=True, text=True).stdout


def test_a_jobs_outputs_are_merged_and_its_bytes_are_right(
    merging: Configuration, write: Callable[[str, str], str], tmp_path: Path, folder: Path
) -> None:
    conf = merging.with_overrides(MERGED)
    job = run(conf, write, tmp_path / "out")
    finish(job)
    assert counts(tmp_path / "out") == expected()
    summary = shuffle_of(conf, job)
    assert summary["merged_outputs"] >= 20, json.dumps(summary)
    assert summary["files"] <= 8
    assert set(summary["merges"]) == {"done"}
    text = explained(folder, job)
    assert "Map outputs: 4 files, as configured" in text
    assert f"each reduce read {summary['files']} files instead of {summary['reads']}" in text


def test_merges_are_of_no_more_outputs_than_nodes_have_room_for_in_an_index(
    merging: Configuration, write: Callable[[str, str], str], tmp_path: Path, folder: Path
) -> None:
    conf = merging.with_overrides(MERGED | {"yaq.riffle.shuffle.index-memory": "2k"})
    job = run(conf, write, tmp_path / "out")
    finish(job)
    assert counts(tmp_path / "out") == expected()
    summary = shuffle_of(conf, job)
    assert 15 <= summary["merged_outputs"] <= 3 * summary["merged_files"], json.dumps(summary)
    text = explained(folder, job)
    assert "3 files, as configured (so many map outputs to one merged file)\n  the index of one merged file " in text
    assert "has room for 3 outputs of 3 parts (yaq.riffle.shuffle.index-memory)\n" in text


def test_a_small_job_is_left_alone_by_itself(
    merging: Configuration, write: Callable[[str, str], str], tmp_path: Path, folder: Path
) -> None:
    job = run(merging, write, tmp_path / "out")
    finish(job)
    assert counts(tmp_path / "out") == expected()
    summary = shuffle_of(merging, job)
    assert summary["policy"] == "no merging"
    assert "s of each node's disk predicted" in summary["reason"]
    assert summary["files"] == summary["reads"] >= 24
    assert "Map outputs: no merging, chosen automatically" in explained(folder, job)


@pytest.mark.parametrize(
    ("reduces", "values", "said"),
    [
        (3, {"yaq.riffle.enabled": "false"}, "no merging, as configured\n  yaq.riffle.enabled is false\n"),
        (0, {}, "no merging, as configured\n  the job has no reduces"),
        (
            *(3, {"yaq.riffle.policy": "block-size", "yaq.riffle.block-size": "1"}),
            "blocks of 1 bytes, as configured\n  nothing was merged: 24 of 24 outputs",
        ),
        (
            *(3, {"mapreduce.input.fileinputformat.split.maxsize": "1g"}),
            "no merging, chosen automatically\n",
        ),
        (
            *(3, {"yaq.riffle.policy": "files", "yaq.riffle.shuffle.index-memory": "1k"}),
            "no merging, as configured\n  nothing was merged: the index of a merged file has no room for two outputs",
        ),
        (
            *(3, {"yaq.riffle.shuffle.index-memory": "1k"}),
            "no merging, chosen automatically\n  nothing was merged: the index of a merged file has no room for two",
        ),
    ],
)
def test_why_nothing_of_it_was_merged_is_said(
    merging: Configuration,
    write: Callable[[str, str], str],
    tmp_path: Path,
    folder: Path,
    reduces: int,
    values: dict[str, str],
    said: str,
) -> None:
    job = run(merging.with_overrides(values), write, tmp_path / "out", reduces)
    during = explained(folder, job)
    finish(job)
    text = explained(folder, job)
    assert f"Map outputs: {said}" in text
    assert ("one map output has nothing to be merged with" in text) == ("1g" in values.values())
    assert "merged by their nodes" not in during + text


def mergers(folder: Path) -> list[psutil.Process]:
    """Of this cluster: the NodeManagers' children that run the merger."""
    nodes = [psutil.Process(int(file.read_text().split()[0])) for file in (folder / "run").glob("nodemanager*.pid")]
    found = []
    for child in (child for node in nodes for child in node.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # over, or not waited for yet
            if "riffle_merger.service" in child.cmdline():
                found.append(child)
    return found


def test_outputs_of_maps_that_ended_before_the_mergers_listened_are_merged_too(
    merging: Configuration, write: Callable[[str, str], str], tmp_path: Path, folder: Path
) -> None:
    for merger in mergers(folder):
        merger.kill()  # they are there again a second or two later
    job = run(merging.with_overrides(MERGED), write, tmp_path / "out")
    finish(job)
    assert counts(tmp_path / "out") == expected()
    summary = shuffle_of(merging, job)
    assert summary["merged_outputs"] >= 20, json.dumps(summary)


def test_a_job_whose_mergers_are_killed_again_and_again_ends_with_the_right_bytes(
    merging: Configuration, write: Callable[[str, str], str], tmp_path: Path, folder: Path
) -> None:
    conf = merging.with_overrides(MERGED | {"yaq.input.combine-small-files": "false"})
    source = write("held.py", HELD.format(here=str(tmp_path)))
    inputs = [write("in.txt", WORDS), write("held.txt", "held\n")]
    job = submit_mapreduce(conf, source, inputs=inputs, output=str(tmp_path / "out"), reduces=3)
    until(lambda: any(vertex.done for vertex in job.status().vertices))  # there is something to merge
    killed: set[int] = set()

    def kill() -> bool:
        for merger in mergers(folder):
            with suppress(psutil.NoSuchProcess):
                merger.kill()
                killed.add(merger.pid)
        return len(killed) >= 6

    until(kill)
    (tmp_path / "go").touch()
    finish(job)
    summary = shuffle_of(conf, job)
    assert counts(tmp_path / "out") == expected() | {"held": 1}
    attempts = [a for a in read_history(conf, job.application_id).attempts if a["vertex"] == "map"]
    assert not [a for a in attempts if a["state"] == "FAILED"]
    assert sorted(a["task"] for a in attempts if a["state"] == "SUCCEEDED") == list(range(summary["reads"]))
