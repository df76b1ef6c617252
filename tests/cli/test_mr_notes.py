"""What is said of a job's options that do nothing, before it runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from yaqd.cli.app import yaq
from yaqd.cli.jobs.mr import local
from yaqd.config import ConfigError

SCRIPT = """\
from yaqd.mapreduce import Job, Param


class Plain(Job):
    pass


class WithOption(Plain):
    shortest = Param(int, default=1)
    limit = Param(int, default=1, name="mapreduce.limit")


class Misspelt(Job):
    ouput_format = "json"

    def map(self, key, value):
        yield key, value


class Hadoops(Job):
    def mapper(self, key, value):
        yield value, 1
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-D", "min_lenght=4"), "yaq: -D min_lenght: Plain has no such option, so it sets nothing\n"),
        (
            ("-D", "reduces=4"),
            "yaq: -D reduces: Plain has no such option, so it sets nothing; did you mean mapreduce.job.reduces?\n",
        ),
        (("-D", "my.own.key=4", "-D", "mapreduce.job.reduces=1"), ""),
        (("-D", "big=5", "-D", "my.size=${big}"), ""),
        (
            ("-D", "mapreduce.job.reduces=3", "--reduces", "2"),
            "yaq: --reduces 2 counts, and not -D mapreduce.job.reduces=3\n",
        ),
        (("-D", "mapreduce.job.reduces=2", "--reduces", "2"), ""),
    ],
)
def test_options_that_set_nothing_are_named(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    result = run(tmp_path, "Plain", *words)
    assert (result.stderr, len(list((tmp_path / "out").glob("part-*")))) == (said, 2 if "2" in words else 1)


def test_an_option_that_a_job_declares_is_none_of_them(tmp_path: Path) -> None:
    assert run(tmp_path, "WithOption", "-D", "shortest=4", "-D", "mapreduce.limit=4").stderr == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("textinputformat.record.delimiter", ";"),
        ("mapreduce.output.basename", "foo"),
        ("mapreduce.job.skiprecords", "true"),
        ("mapreduce.job.output.key.comparator.class", "X"),
    ],
)
def test_what_would_make_another_answer_is_refused_without_a_cluster_too(tmp_path: Path, key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(key)):
        run(tmp_path, "Plain", "-D", f"{key}={value}")
    assert not (tmp_path / "out").exists()


def test_what_only_tunes_hadoop_is_named_without_a_cluster_too(tmp_path: Path) -> None:
    said = run(tmp_path, "Plain", "-D", "mapreduce.task.io.sort.factor=7").stderr
    assert said == (
        "yaq: -D mapreduce.task.io.sort.factor sets nothing here: it is for "
        "buffers and threads of Hadoop's sort and shuffle\n"
    )


@pytest.mark.slow
def test_a_note_is_given_once_by_a_program_that_starts_again_with_a_seed(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "in").write_text("a\n")
    words = ["mr", "local", f"{tmp_path}/job.py:Plain", "--input", f"{tmp_path}/in", "--output", f"{tmp_path}/out"]
    environment = {key: value for key, value in os.environ.items() if key not in ("HADOOP_CONF_DIR", "PYTHONHASHSEED")}
    command = [sys.executable, "-m", "yaqd.cli", *words, "--quiet", "-D", "mapred.reduce.tasks=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=True)
    assert done.stderr == "yaq: -D: note: mapred.reduce.tasks: old name; write mapreduce.job.reduces\n"


def test_a_name_in_the_class_that_nothing_reads_is_named(tmp_path: Path) -> None:
    said = run(tmp_path, "Misspelt").stderr
    assert said == "yaq: Misspelt has an attribute ouput_format, which nothing reads; did you mean output_format?\n"


@pytest.mark.parametrize("command", ["local", "submit"])
def test_a_job_whose_methods_have_other_names_is_refused_before_anything_runs(tmp_path: Path, command: str) -> None:
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "in").write_text("a\n")
    words = ["mr", command, f"{tmp_path}/job.py:Hadoops", "--input", f"{tmp_path}/in", "--output", f"{tmp_path}/out"]
    done = CliRunner().invoke(yaq, words)
    assert (done.exit_code, done.stderr) == (
        2,
        f"yaq: {tmp_path}/job.py: Hadoops has a method mapper; did you mean map?\n",
    )
    assert not (tmp_path / "out").exists()


def test_a_traceback_shows_the_lines_of_a_script_with_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = "        yield int(value), 'é'"
    Path("job.py").write_text(
        f"from yaqd.mapreduce import Job\nclass Numbers(Job):\n    def map(self, key, value):\n{line}\n"
    )
    Path("in").write_text("a\n")
    said = CliRunner().invoke(yaq, ["mr", "local", "job.py", "--input", "in", "--output", "out"]).stderr
    assert f'  File "job.py", line 4, in map\n    {line.strip()}\n' in said


def run(folder: Path, job: str, *words: str) -> Result:
    (folder / "job.py").write_text(SCRIPT)
    (folder / "in").write_text("a\n")
    where = ("--input", str(folder / "in"), "--output", str(folder / "out"), "--json")
    result = CliRunner().invoke(local, [f"{folder / 'job.py'}:{job}", *where, *words])
    if result.exception is not None:
        raise result.exception
    return result
