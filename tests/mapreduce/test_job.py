"""Options, counters and formats of jobs."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.mapreduce import (
    Counter,
    Counters,
    FileSystemCounter,
    InputFormat,
    InputKind,
    Job,
    JobCounter,
    JobError,
    OutputKind,
    Param,
    TaskCounter,
    TooManyCounters,
    declared_params,
    parse_params,
)
from yaqd.mapreduce.text import line_of, text_of


class Sample(Job):
    top = Param(int, default=10, help="words to keep")
    deep = Param(bool, default=False)
    pattern = Param(str, name="sample.pattern", help="what to look for")
    skipped = Counter(help="lines without words")
    odd = Counter("ODD", group="Lines")


def test_options_have_types_defaults_and_names() -> None:
    assert list(declared_params(Sample)) == ["top", "deep", "sample.pattern"]
    job = Sample(parse_params(Sample, {"sample.pattern": "x", "deep": "TRUE", "mapreduce.job.reduces": "3"}))
    assert (job.top, job.deep, job.pattern) == (10, True, "x")
    assert isinstance(Sample.top, Param)


def test_a_base_classes_option_can_be_given_a_value() -> None:
    class Fixed(Sample):
        pattern = "always"

    assert list(declared_params(Fixed)) == ["top", "deep"]
    assert Fixed(parse_params(Fixed, {})).pattern == "always"


def test_bad_options_are_one_line() -> None:
    with pytest.raises(JobError, match=r"needs the option sample\.pattern \(what to look for\): give it with -D"):
        parse_params(Sample, {})
    with pytest.raises(JobError, match="option top='many' is no int"):
        parse_params(Sample, {"sample.pattern": "x", "top": "many"})
    with pytest.raises(JobError, match="true or false expected"):
        parse_params(Sample, {"sample.pattern": "x", "deep": "perhaps"})
    with pytest.raises(JobError, match="Sample has no option tpo: did you mean top"):
        parse_params(Sample, {"sample.pattern": "x", "tpo": "3"})
    with pytest.raises(JobError, match=r"option sample\.pattern of Sample is not set"):
        _ = Sample().pattern


def test_declared_counters_count_under_their_group() -> None:
    job = Sample()
    job.skipped.increment()
    job.skipped.increment(4)
    job.odd.increment()
    job.counters.increment("Mine", "total", 2)
    assert job.counters.to_json() == {"Lines": {"ODD": 1}, "Mine": {"total": 2}, "Sample": {"skipped": 5}}
    assert Sample().counters.get("Sample", "skipped") == 0


names = st.text(min_size=1, max_size=8)
tallies = st.dictionaries(names, st.dictionaries(names, st.integers(0, 2**60), min_size=1, max_size=3), max_size=4)


@pytest.mark.slow
@given(tallies, tallies)
def test_merging_adds(left: dict[str, dict[str, int]], right: dict[str, dict[str, int]]) -> None:
    counters = Counters.from_json(left)
    counters.merge(Counters.from_json(right))
    for group in left.keys() | right.keys():
        for name in left.get(group, {}).keys() | right.get(group, {}).keys():
            assert counters.get(group, name) == left.get(group, {}).get(name, 0) + right.get(group, {}).get(name, 0)
    again = Counters.from_json(json.loads(json.dumps(counters.to_json())))
    assert again.to_json() == counters.to_json()


def test_standard_counters_have_hadoops_names() -> None:
    counters = Counters()
    counters.task(TaskCounter.MAP_INPUT_RECORDS).increment(3)
    counters.job(JobCounter.TOTAL_LAUNCHED_MAPS).increment()
    counters.file_system("hdfs", FileSystemCounter.BYTES_READ).increment(9)
    assert counters.to_json() == {
        "org.apache.hadoop.mapreduce.FileSystemCounter": {"HDFS_BYTES_READ": 9},
        "org.apache.hadoop.mapreduce.JobCounter": {"TOTAL_LAUNCHED_MAPS": 1},
        "org.apache.hadoop.mapreduce.TaskCounter": {"MAP_INPUT_RECORDS": 3},
    }


def test_a_name_that_is_no_text_is_the_same_counter_each_time() -> None:
    counters = Counters(counters_max=2)
    for _ in range(5):
        counters.increment("status", 404)  # type: ignore[arg-type]
        counters.increment("words", "bad \udc80")
    assert counters.to_json() == {"status": {"404": 5}, "words": {"bad ?": 5}}


def test_counters_are_bounded_but_for_the_standard_ones() -> None:
    counters = Counters(counters_max=2)
    counters.increment("words", "a")
    counters.increment("words", "b")
    counters.increment("words", "a")
    with pytest.raises(TooManyCounters, match=r"more than 2 counters .*mapreduce\.job\.counters\.max"):
        counters.increment("words", "c")
    counters.task(TaskCounter.SPILLED_RECORDS).increment()
    with pytest.raises(JobError, match="bad counter name"):
        counters.increment("words", "x" * 65)
    with pytest.raises(JobError, match="bad counter group name"):
        counters.increment("", "x")


@pytest.mark.parametrize(
    ("name", "kind", "key_bytes", "record_bytes", "shown"),
    [
        ("text", InputKind.TEXT, 0, 0, "text"),
        ("bytes", InputKind.BYTES, 0, 0, "bytes"),
        ("fixed:100", InputKind.FIXED, 0, 100, "fixed:100"),
        ("fixed:10+90", InputKind.FIXED, 10, 100, "fixed:10+90"),
        ("fixed:10+0", InputKind.FIXED, 10, 10, "fixed:10+0"),
    ],
)
def test_input_formats(name: str, kind: InputKind, key_bytes: int, record_bytes: int, shown: str) -> None:
    found = InputFormat.parse(name)
    assert (found.kind, found.key_bytes, found.record_bytes, str(found)) == (kind, key_bytes, record_bytes, shown)


@pytest.mark.parametrize("name", ["", "TEXT", "fixed", "fixed:", "fixed:0", "fixed:0+0", "fixed:0+9", "fixed:-1"])
def test_bad_input_formats(name: str) -> None:
    with pytest.raises(JobError, match="input format"):
        InputFormat.parse(name)


def test_output_formats() -> None:
    assert OutputKind.of("raw") is OutputKind.RAW
    with pytest.raises(JobError, match="unknown output format 'fixed:1'"):
        OutputKind.of("fixed:1")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("wörd", "wörd".encode()),
        (b"\xff\x00".decode("utf-8", "surrogateescape"), b"\xff\x00"),
        (b"\xff", b"\xff"),
        (bytearray(b"x"), b"x"),
        (-12, b"-12"),
        (0.1, b"0.1"),
        (float("nan"), b"nan"),
        (True, b"true"),
        (None, b""),
        (("a", 1, None, b"\xff"), b'["a",1,null,"\xff"]'),
        ({"b": [1.5], 2: "x"}, b'{"b":[1.5],"2":"x"}'),
    ],
)
def test_text_of_values(value: object, written: bytes) -> None:
    assert text_of(value) == written


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ((word for word in "ab"), "of type generator: it shows itself by its address"),
        (map(str, [1]), "of type map"),
        (object(), "of type object"),
        (lambda: None, "of type function"),
        ({"b", "a"}, "of type set: the order of a set differs"),
        ({"words": {1}}, "cannot write {1} of type set: within a list or dict"),
        ([object()], "of type object: within a list or dict"),
        ({1: 3, "1": 4}, "two keys that are '1' in JSON"),
        ({None: 3, "null": 4}, "two keys that are 'null' in JSON"),
    ],
)
def test_what_has_no_text_is_refused(value: object, said: str) -> None:
    with pytest.raises(JobError, match=re.escape(said)):
        text_of(value)


def test_numbers_of_numpy_are_numbers_within_lists_too() -> None:
    assert text_of([np.int64(3), np.float32(0.5), np.bool_(True)]) == b"[3,0.5,true]"


def test_none_takes_its_tab_along() -> None:
    assert line_of("k", 1) == b"k\t1\n"
    assert line_of(None, "v") == b"v\n"
    assert line_of("k", None) == b"k\n"
    assert line_of("k", "v", b", ") == b"k, v\n"
    with pytest.raises(JobError, match="lone surrogate"):
        text_of("\ud800")


def test_the_default_partition_is_the_same_in_every_process() -> None:
    job = Job()
    assert [job.partition(key, 7) for key in ("a", "b", 1, (1, "x"))] == [5, 0, 2, 4]
    assert all(0 <= job.partition(number, 5) < 5 for number in range(100))


def test_a_method_counts_however_the_job_came_by_it() -> None:
    class Late(Job):
        def setup(self) -> None:
            self.combine = self.reduce  # type: ignore[method-assign]

    assert not (Late.overrides_map or Late.overrides_reduce)
    Late.map = lambda self, key, value: [(value, 1)]  # type: ignore[method-assign]
    assert Late.overrides_map and Late().overrides_map and not Job.overrides_map
    job = Late()
    assert not job.overrides_combine
    Late.reduce = lambda self, key, values: [(key, sum(values))]
    job.setup()
    assert job.overrides_combine and job.overrides_reduce and not job.overrides_partition
