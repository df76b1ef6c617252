"""Names in a job's class that were meant for Job's: refused where the job would do nothing, else told."""

from pathlib import Path

import pytest

from yaqd.mapreduce import Job, JobError, load_job
from yaqd.mapreduce.misnamed import misnamed_notes

MAP = "def map(self, key, value): yield value, 1"


def job(folder: Path, *lines: str, base: str = "Job") -> type[Job]:
    path = folder / "job.py"
    body = "".join(f"    {line}\n" for line in lines)
    path.write_text(f"from yaqd.mapreduce import Job, Param\nclass Base(Job): pass\nclass A({base}):\n{body}    pass\n")
    return load_job(path, "A")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["def mapper(self, key, value): yield value, 1"], "A has a method mapper; did you mean map?"),
        (["def Map(self, key, value): yield value, 1"], "A has a method Map; did you mean map?"),
        (["def mpa(self, key, value): yield value, 1"], "A has a method mpa; did you mean map?"),
        (["def reducer(self, key, values): yield key, 1"], "A has a method reducer; did you mean reduce?"),
        (["def combiner(self, key, values): yield key, 1"], "A has a method combiner; did you mean combine?"),
        (["def clean_up(self): yield 1, 1"], "A has a method clean_up; did you mean cleanup?"),
        (["partitoner = 'range'"], "A has an attribute partitoner; did you mean partitioner?"),
        (["ouput_format = 'json'"], "A has an attribute ouput_format; did you mean output_format?"),
        (
            ["def mapper(self, key, value): pass", "def reducer(self, key, values): self.mapper(1, 2)"],
            "A has a method mapper and a method reducer; did you mean map and reduce?",
        ),
        (["def setup(self): list(map(int, ()))", "def mapper(self, k, v): pass"], "a method mapper; did you mean map?"),
        ([MAP, "def partitioner(self, key, partitions): return 0"], "method partitioner; did you mean partition?"),
    ],
)
def test_a_job_that_would_do_nothing_of_its_own_is_refused(tmp_path: Path, lines: list[str], said: str) -> None:
    with pytest.raises(JobError) as caught:
        job(tmp_path, *lines)
    assert str(caught.value).startswith(f"{tmp_path}/job.py: ") and said in str(caught.value)


def test_names_of_a_class_between_count_too(tmp_path: Path) -> None:
    path = tmp_path / "job.py"
    path.write_text(
        "from yaqd.mapreduce import Job\nclass _B(Job):\n    def mapper(self, k, v): pass\nclass A(_B):\n    pass\n"
    )
    with pytest.raises(JobError, match="A has a method mapper; did you mean map"):
        load_job(path)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["partitioner = 'range'", "reduces = 3"],
        ["top = Param(int, default=1)", "names = Param(str, default='')"],
        ["def setup(self): self.map = self.mapper", "def mapper(self, key, value): yield value, 1"],
        ["def setup(self): setattr(self, 'map', self.mapped)", "def mapped(self, key, value): yield value, 1"],
        ["def setup(self): self.seen = self.naming", "naming = 'x'", "def words(self): pass"],
        ["def mapper(self, key, value): yield value, 1", "map = mapper"],
        ["steps = 0", "def step(self): self.steps += 1"],
    ],
)
def test_an_identity_that_is_meant_is_none_of_them(tmp_path: Path, lines: list[str]) -> None:
    assert misnamed_notes(job(tmp_path, *lines)) == []


@pytest.mark.parametrize(
    ("line", "kind", "meant"),
    [
        ("def reducer(self, key, values): pass", "a method", "reduce"),
        ("def redcue(self, key, values): pass", "a method", "reduce"),
        ("def mapper_final(self): pass", "a method", "cleanup"),
        ("def setUp(self): pass", "a method", "setup"),
        ("ouput_format = 'json'", "an attribute", "output_format"),
        ("inputFormat = 'json'", "an attribute", "input_format"),
        ("input_fromat = 'json'", "an attribute", "input_format"),
        ("partitoner = 'range'", "an attribute", "partitioner"),
        ("reducers = 4", "an attribute", "reduces"),
    ],
)
def test_a_job_that_works_is_told_of_names_that_nothing_reads(tmp_path: Path, line: str, kind: str, meant: str) -> None:
    name = line.removeprefix("def ").partition("(")[0].partition(" ")[0]
    said = f"A has {kind} {name}, which nothing reads; did you mean {meant}?"
    assert misnamed_notes(job(tmp_path, MAP, line)) == [said]


@pytest.mark.parametrize("name", ["parse", "maps", "mapped", "reduced", "words", "partitions", "combined", "setups"])
@pytest.mark.parametrize("form", ["def {}(self): pass", "{} = 'x'", "{} = 7"])
def test_names_of_a_jobs_own_are_no_mistakes(tmp_path: Path, name: str, form: str) -> None:
    assert misnamed_notes(job(tmp_path, MAP, form.format(name))) == []


@pytest.mark.parametrize("name", ["names", "input_formats", "counter", "counters", "task", "NAMES"])
def test_attributes_of_a_jobs_own_are_no_mistakes(tmp_path: Path, name: str) -> None:
    assert misnamed_notes(job(tmp_path, MAP, f"{name} = 'x'")) == []


@pytest.mark.parametrize(
    "lines",
    [
        ["def map(self, key, value): yield from self.reducer(key, value)", "def reducer(self, k, v): yield k, v"],
        ["def map(self, key, value): return [(v, self.reducers) for v in value]", "reducers = 4"],
        ["def map(self, key, value): yield getattr(self, 'reducer')", "def reducer(self, k, v): yield k, v"],
        ["def map(self, key, value): yield self.mean", "mean = property(lambda self: self.NAME)", "NAME = 'x'"],
    ],
)
def test_what_the_jobs_own_lines_read_is_no_mistake(tmp_path: Path, lines: list[str]) -> None:
    assert misnamed_notes(job(tmp_path, *lines)) == []
