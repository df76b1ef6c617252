"""Who is told to have made a mistake: by the exit code, and by the option that is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLED = """
from yaqd.mapreduce import Job
class Sampled(Job):
    partitioner = "range"
    reduces = 2
    def map(self, key, value):
        raise ValueError("of the job")
"""


def yaq(*words: object) -> tuple[int, str]:
    environment = {key: value for key, value in os.environ.items() if key != "HADOOP_CONF_DIR"}
    command = [sys.executable, "-m", "yaqd.cli", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("how", ["local", "submit"])
def test_a_map_that_fails_on_the_sample_is_the_jobs_failure(how: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SAMPLED)
    (tmp_path / "in").write_text("a\n")
    where = ("--input", tmp_path / "in", "--output", tmp_path / "out")
    code, said = yaq("mr", how, tmp_path / "job.py", *where)
    assert (code, "map() fails on a sample of the input: ValueError: of the job" in said) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "named"),
    [(("-partitioner", "my.Own"), "-partitioner: "), (("-D", "mapred.partitioner.class=my.Own"), "-D: ")],
)
def test_an_option_of_streaming_is_named_itself(words: tuple[str, ...], named: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n")
    least = ("-input", tmp_path / "in", "-output", tmp_path / "out", "-mapper", "cat")
    code, said = yaq("mr", "streaming", *least, *words)
    assert code == 2 and said.startswith(f"yaq: {named}") and "my.Own" in said
