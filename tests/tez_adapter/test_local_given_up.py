"""Jobs in one process that may do without some of their tasks, as on a cluster."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tez_adapter.client.local import run_local
from yaqd.config import ConfigError, Configuration
from yaqd.mapreduce import Counters, Job, JobError


class Lines(Job):
    """Fails for some lines, or ends its process."""

    def map(self, key: int, value: str) -> Iterator[tuple[str, int]]:
        if value == "dies":
            os._exit(3)
        assert value != "bad"
        yield value, 1

    def reduce(self, key: str, values: Iterator[int]) -> Iterator[tuple[str, int]]:
        assert key != "worse"
        yield key, sum(values)


def run(folder: Path, lines: list[str], reduces: int, said: list[str], **percent: str) -> Counters:
    (folder / "in").mkdir()
    for number, line in enumerate(lines):
        (folder / "in" / str(number)).write_text(f"{line}\n")
    settings = {f"mapreduce.{phase}.failures.maxpercent": value for phase, value in percent.items()}
    conf = Configuration.load(environ={}, overrides={**settings, "yaq.input.combine-small-files": "false"})
    return run_local(Lines, [str(folder / "in")], str(folder / "out"), conf, reduces, notify=said.append)


def written(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((folder / "out").iterdir()) if path.name != "_SUCCESS"}


def test_maps_are_left_out_and_told(tmp_path: Path) -> None:
    said: list[str] = []
    counters = run(tmp_path, ["a", "bad", "b", "dies"], 1, said, map="50")
    assert written(tmp_path) == {"part-r-00000": "a\t1\nb\t1\n"}
    assert "exit status 3" in said[0] and said[1].startswith("a map task is left out: AssertionError")
    assert said[2] == "2 of 4 map tasks failed and were left out (mapreduce.map.failures.maxpercent)"
    counted = {counter.name: counter.value for counter in counters}
    assert counted["NUM_FAILED_MAPS"] == 2 and counted["TOTAL_LAUNCHED_MAPS"] == 4


def test_a_map_that_writes_output_itself_leaves_none(tmp_path: Path) -> None:
    run(tmp_path, ["a", "dies", "b"], 0, [], map="34")  # the largest split comes first
    assert written(tmp_path) == {"part-m-00001": "a\t1\n", "part-m-00002": "b\t1\n"}


def test_reduces_are_left_out_too(tmp_path: Path) -> None:
    said: list[str] = []
    run(tmp_path, ["worse"], 1, said, reduce="100")
    assert written(tmp_path) == {}
    assert said[-1] == "1 of 1 reduce tasks failed and were left out (mapreduce.reduce.failures.maxpercent)"


def test_one_failure_too_many_fails_the_job_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="AssertionError"):
        run(tmp_path, ["bad", "a", "bad"], 1, [], map="66")
    assert not (tmp_path / "out").exists()


def test_a_share_that_is_none_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"failures\.maxpercent"):
        run(tmp_path, ["a"], 1, [], map="101")
    assert not (tmp_path / "out").exists()
