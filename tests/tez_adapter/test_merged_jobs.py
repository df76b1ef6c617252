"""Our own jobs with their map outputs merged: on a real cluster, with the real mergers and shuffle services."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import psutil
import pytest

from tests.tez_adapter.tez_merged import (
    HELD,
    MERGED,
    SPLIT,
    WORDS,
    counts,
    expected,
    finish,
    mergers,
    run,
    shuffle_of,
    until,
)
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.submit import submit_mapreduce
from tez_adapter.history import read_history
from yaqd.config import Configuration

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("merging") / "c"


@pytest.fixture(scope="module")
def merging(running: Callable[..., AbstractContextManager[Configuration]], folder: Path) -> Iterator[Configuration]:
    with running(folder, 2, "-D", "yaq.riffle.enabled=true") as conf:
        yield conf.with_overrides({"mapreduce.input.fileinputformat.split.maxsize": SPLIT})


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
