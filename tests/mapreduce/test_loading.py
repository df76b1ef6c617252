"""A job script becomes its class, or one line that says what is wrong with it."""

import os
import sys
from pathlib import Path

import pytest

from yaqd.mapreduce import Job, JobError, load_job, split_script

WORD_COUNT = """
from yaqd.mapreduce import Job
class WordCount(Job):
    def map(self, key, value):
        for word in value.split():
            yield word, 1
    def reduce(self, key, values):
        yield key, sum(values)
    combine = reduce
"""


def script(folder: Path, text: str, name: str = "job.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def failure(path: Path, class_name: str | None = None) -> JobError:
    with pytest.raises(JobError) as caught:
        load_job(path, class_name)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_script_with_one_job(tmp_path: Path) -> None:
    job = load_job(script(tmp_path, WORD_COUNT))
    assert job.__name__ == "WordCount"
    assert (job.overrides_map, job.overrides_combine, job.overrides_reduce, job.overrides_partition) == (
        True,
        True,
        True,
        False,
    )
    assert list(job().map(0, "a b")) == [("a", 1), ("b", 1)]


def test_a_script_is_read_as_it_is_now_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "job.py"
    for reduces in (1, 2):  # of the same length, and of the same time
        path.write_text(f"from yaqd.mapreduce import Job\n\n\nclass J(Job):\n    reduces = {reduces}\n")
        os.utime(path, (1, 1))
        assert load_job(path).reduces == reduces
    assert list(tmp_path.iterdir()) == [path]


def test_overrides_are_seen_through_base_classes(tmp_path: Path) -> None:
    text = WORD_COUNT.replace("class WordCount", "class _Base") + "class Count(_Base):\n    pass\n"
    job = load_job(script(tmp_path, text))
    assert job.__name__ == "Count" and job.overrides_map and not Job.overrides_map


def test_imports_from_the_import_path_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, WORD_COUNT.replace("class WordCount", "class Base"), "base_of_test_job.py")
    text = "from base_of_test_job import Base\nclass Mine(Base):\n    pass\n"
    assert "No module named 'base_of_test_job'; tasks have" in str(failure(script(tmp_path, text)))
    monkeypatch.syspath_prepend(tmp_path)
    assert load_job(script(tmp_path, text)).__name__ == "Mine"


def test_a_class_by_name(tmp_path: Path) -> None:
    path = script(tmp_path, WORD_COUNT + "class Other(WordCount):\n    pass\n")
    assert load_job(f"{path}:Other").__name__ == "Other"
    assert load_job(path, "WordCount").__name__ == "WordCount"
    assert "has no job class Nope: it has WordCount, Other" in str(failure(path, "Nope"))
    assert str(failure(path)).endswith(f"has 2 job classes (WordCount, Other): name one, as in {path}:Other")


@pytest.mark.parametrize(
    ("text", "path", "name"),
    [
        ("a/job.py:Count", "a/job.py", "Count"),
        ("a/job.py", "a/job.py", None),
        ("hdfs://h:1/job.py", "hdfs://h:1/job.py", None),
        ("job.py:", "job.py:", None),
    ],
)
def test_script_and_class(text: str, path: str, name: str | None) -> None:
    assert split_script(text) == (path, name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "has no job class: define a subclass of yaqd.mapreduce.Job"),
        ("from yaqd.mapreduce import Job\n", "has no job class"),
        ("import nonsuch_module_at_all\n", "does not import: ModuleNotFoundError: No module named"),
        ("def broken(:\n", "does not import: SyntaxError"),
        ("raise SystemExit(3)\n", "does not import: SystemExit: 3"),
        (WORD_COUNT + "    input_format = 'xml'\n", "unknown input format 'xml'"),
        (WORD_COUNT + "    output_format = 'csv'\n", "unknown output format 'csv'"),
        (WORD_COUNT + "    reduces = -1\n", "reduces is -1"),
        (WORD_COUNT + "    partitioner = 'best'\n", "partitioner is 'best'"),
        (WORD_COUNT + "    name = 5\n", "name is 5: give text"),
        (WORD_COUNT + "    def map(self, value): yield value\n", "define it as map(self, key, value)"),
        (WORD_COUNT + "    from yaqd.mapreduce import Param\n    task = Param(int)\n", "task cannot be an option"),
        (WORD_COUNT + "    from yaqd.mapreduce import Param\n    name = Param(str)\n", "name cannot be an option"),
        (WORD_COUNT + "    cleanup = 3\n", "WordCount.cleanup is no method"),
        (
            WORD_COUNT + "    def setup(self): yield\n",
            "WordCount.setup() has a yield, so it would never run: leave the yield out; cleanup() may yield pairs",
        ),
        (
            WORD_COUNT + "    def partition(self, key, partitions): yield 0\n",
            "WordCount.partition() has a yield, so it would never run: write `return NUMBER` in place of the yield",
        ),
        (WORD_COUNT + "    async def setup(self): pass\n", "setup is an async method, which no task awaits"),
        (WORD_COUNT + "    async def map(self, key, value): yield 1, 2\n", "map is an async method"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, message: str) -> None:
    assert message in str(failure(script(tmp_path, text)))


def test_missing_script(tmp_path: Path) -> None:
    assert "no job script at" in str(failure(tmp_path / "none.py"))
    assert "no Python file" in str(failure(script(tmp_path, WORD_COUNT, "job.txt")))


def test_the_traceback_shows_the_authors_frames_only(tmp_path: Path) -> None:
    error = failure(script(tmp_path, "def load():\n    return {}['x']\nload()\n"))
    assert str(error).endswith("does not import: KeyError: 'x'")
    assert error.detail.count("File ") == 2 and "job.py" in error.detail
    assert "importlib" not in error.detail and "loading.py" not in error.detail


def test_an_init_that_no_task_can_call_is_refused_and_one_that_it_can_is_not(tmp_path: Path) -> None:
    head = "from yaqd.mapreduce import Job\nclass Own(Job):\n    def __init__(self"
    said = str(failure(script(tmp_path, f"{head}):\n        self.seen = {{}}\n")))
    assert "Own.__init__(self) cannot be called by a task: do in setup(self) what a task begins with" in said
    assert (
        load_job(script(tmp_path, f"{head}, *args):\n        super().__init__(*args)\n", "fits.py")).__name__ == "Own"
    )


def test_cleanup_may_yield(tmp_path: Path) -> None:
    assert load_job(script(tmp_path, WORD_COUNT + "    def cleanup(self): yield 'a', 1\n")).__name__ == "WordCount"
