"""Whole jobs in one process, against what a few lines of plain Python find in the same input."""

import gzip
import random
import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tez_adapter.tez_local import WordCount, WordCountPlain, conf, parts
from tez_adapter.client.local import run_local
from tez_adapter.client.staging import SubmitError
from yaqd.mapreduce import Counters, Job, JobError, TaskCounter
from yaqd.mapreduce.counters import FILE_SYSTEM_GROUP, INPUT_GROUP, OUTPUT_GROUP, TASK_GROUP
from yaqd.storage import StorageError


def write_text(folder: Path, lines: int) -> dict[str, int]:
    """Three files; the words in them."""
    words = random.Random(7)
    tally: Tally[str] = Tally()
    for number in range(3):
        text = ""
        for _ in range(lines):
            line = [f"w{int(words.paretovariate(0.6)) % 5000}é" for _ in range(words.randrange(9))]
            tally.update(line)
            text += " ".join(line) + words.choice(("\n", "\r\n"))
        (folder / f"in{number}.txt").write_text(text, newline="")
    return dict(tally)


@pytest.mark.slow
@pytest.mark.parametrize("job", [WordCount, WordCountPlain])
@pytest.mark.parametrize("reduces", [1, 3])
def test_word_count(tmp_path: Path, job: type[Job], reduces: int) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    wanted = write_text(folder, 800)
    seen: list[tuple[str, int, int]] = []
    counters = run_local(
        job,
        [str(folder)],
        str(tmp_path / "out"),
        conf(**{"mapreduce.input.fileinputformat.split.maxsize": "9000"}),
        reduces,
        progress=lambda *step: seen.append(step),
    )
    found = parts(tmp_path / "out")
    assert len(found) == reduces
    pairs = [line.split("\t") for part in found for line in part.decode().splitlines()]
    assert {word: int(count) for word, count in pairs} == wanted and len(pairs) == len(wanted)
    for part in found:
        assert part.splitlines() == sorted(part.splitlines(), key=lambda line: line.split(b"\t")[0])
    total = sum(wanted.values())
    task = {name: counters.get(TASK_GROUP, name) for name in TaskCounter}
    assert task[TaskCounter.MAP_INPUT_RECORDS] == 2400
    assert task[TaskCounter.MAP_OUTPUT_RECORDS] == total
    assert task[TaskCounter.REDUCE_INPUT_GROUPS] == task[TaskCounter.REDUCE_OUTPUT_RECORDS] == len(wanted)
    if job is WordCount:
        assert task[TaskCounter.COMBINE_INPUT_RECORDS] >= total > task[TaskCounter.REDUCE_INPUT_RECORDS]
    else:
        assert task[TaskCounter.REDUCE_INPUT_RECORDS] == total
    sizes = [sum(len(part) for part in found), sum(path.stat().st_size for path in folder.iterdir())]
    assert counters.get(FILE_SYSTEM_GROUP, "FILE_BYTES_WRITTEN") == sizes[0]
    assert counters.get(FILE_SYSTEM_GROUP, "FILE_BYTES_READ") >= sizes[1]
    assert counters.get(job.__name__ if "blank" in vars(job) else "WordCount", "blank") > 0
    maps = len({step[1] for step in seen if step[0] == "map"})
    assert maps > 3 and seen[-1] == ("reduce", reduces, reduces)


def test_bytes_of_files_are_counted_as_they_lie_there(tmp_path: Path) -> None:
    """Compressed ones, as on Hadoop."""
    source = tmp_path / "in.gz"
    source.write_bytes(gzip.compress(b"one two three\n" * 1000))
    settings = {"mapreduce.output.fileoutputformat.compress": "true"}
    counters = run_local(WordCount, [str(source)], str(tmp_path / "out"), conf(**settings), 1)
    (part,) = (tmp_path / "out").glob("part-*")
    assert counters.get(OUTPUT_GROUP, "BYTES_WRITTEN") == part.stat().st_size
    assert counters.get(INPUT_GROUP, "BYTES_READ") == source.stat().st_size


class ByCustomPartition(WordCount):
    def partition(self, key: str, partitions: int) -> int:
        return len(key) % partitions


def test_partition_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a bb ccc dd e ff\n")
    run_local(ByCustomPartition, [str(tmp_path / "in")], str(tmp_path / "out"), conf(), 2)
    assert parts(tmp_path / "out") == [b"bb\t1\ndd\t1\nff\t1\n", b"a\t1\nccc\t1\ne\t1\n"]


def test_parameters_and_last_pairs_of_cleanup(tmp_path: Path) -> None:
    class InMemory(WordCount):
        def setup(self) -> None:
            self.tally: Tally[str] = Tally()

        def map(self, key: int, value: str) -> Iterator[tuple[str, int]]:
            self.tally.update(word for word in value.split() if len(word) >= self.shortest)
            return iter(())

        def cleanup(self) -> Any:
            return self.tally.items() if self.task.phase == "map" else [("total-tasks", self.task.index)]

    (tmp_path / "in").write_text("a bb a bb bb c")
    run_local(InMemory, [str(tmp_path / "in")], str(tmp_path / "out"), conf(), 1, {"shortest": 2})
    assert parts(tmp_path / "out") == [b"bb\t3\ntotal-tasks\t0\n"]


def test_without_reduces_the_map_output_is_the_output(tmp_path: Path) -> None:
    class Grep(Job):
        def map(self, key: int, value: str) -> Iterator[tuple[int, str]]:
            if re.search("x", value):
                yield key, value

    (tmp_path / "in").write_text("ax\nb\n\ncx")
    counters = run_local(Grep, [str(tmp_path / "in")], str(tmp_path / "out"), conf(), 0)
    assert parts(tmp_path / "out") == [b"0\tax\n6\tcx\n"]
    assert (tmp_path / "out" / "part-m-00000").exists()
    assert counters.get(TASK_GROUP, TaskCounter.MAP_OUTPUT_RECORDS) == 2


class Identity(Job):
    input_format = "bytes"


def test_the_identity_sorts_lines_by_offset(tmp_path: Path) -> None:
    lines = [b"l%d\xff" % number for number in range(5000)]
    (tmp_path / "in").write_bytes(b"\n".join(lines))
    setting = {"mapreduce.input.fileinputformat.split.maxsize": "8000"}  # a process for each of some maps
    run_local(Identity, [str(tmp_path / "in")], str(tmp_path / "out"), conf(**setting))
    text = parts(tmp_path / "out")[0]
    offsets = [0]
    for line in lines[:-1]:
        offsets.append(offsets[-1] + len(line) + 1)
    assert text == b"".join(b"%d\t%b\n" % pair for pair in zip(offsets, lines, strict=True))


class TeraSort(Job):
    input_format = "fixed:10+90"
    output_format = "raw"
    partitioner = "range"


def test_total_order_of_fixed_records(tmp_path: Path) -> None:
    rng = random.Random(3)
    records = [rng.randbytes(10) + b"%090d" % number for number in range(3000)]
    (tmp_path / "in").write_bytes(b"".join(records))
    setting = {"mapreduce.input.fileinputformat.split.maxsize": "50000"}
    run_local(TeraSort, [str(tmp_path / "in")], str(tmp_path / "out"), conf(**setting), 4)
    found = parts(tmp_path / "out")
    assert b"".join(found) == b"".join(sorted(records))
    assert all(40_000 < len(part) < 110_000 for part in found)


def test_a_map_that_fails_on_the_sample_of_a_total_order_is_told_as_the_jobs_own(tmp_path: Path) -> None:
    class Late(Job):
        partitioner = "range"

        def map(self, key: int, value: str) -> Iterator[tuple[str, int]]:
            if key:
                raise ValueError(f"late at {key}") if value == "b" else SystemExit(3)
            yield value, 1

    for second, told in (("b", "ValueError: late at 2"), ("c", "SystemExit: 3")):
        (tmp_path / "in").write_text(f"a\n{second}\n")
        with pytest.raises(JobError, match=f"on a sample of the input: {told}") as failed:
            run_local(Late, [str(tmp_path / "in")], str(tmp_path / "out"), conf(), 2)
        assert "in map" in failed.value.detail and "scripts.py" not in failed.value.detail


class ByFile(Job):
    partitioner = "range"
    reduces = 3

    def setup(self) -> None:
        assert self.task.input_path or self.task.phase == "reduce"

    def map(self, key: int, value: str) -> Iterator[tuple[str, str]]:
        yield self.task.input_path.rpartition("/")[2], f"{self.task.input_start}+{self.task.input_length} {value}"


def test_a_sample_knows_the_file_of_its_records(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "in" / name).write_text("x\n" * 9)
    run_local(ByFile, [f"{tmp_path}/in"], f"{tmp_path}/out", conf())
    assert parts(tmp_path / "out") == [f"{name}\t0+18 x\n".encode() * 9 for name in ("a", "b", "c")]


@pytest.mark.parametrize("method", ["setup", "map"])
def test_a_sample_that_misses_a_file_says_where_it_is_taken(tmp_path: Path, method: str) -> None:
    class Reads(Job):
        partitioner = "range"

    def read(*_: Any) -> Iterable[tuple[Any, Any]]:
        Path("shipped").read_text()
        return ()

    setattr(Reads, method, read)
    (tmp_path / "in").write_text("a\n")
    where = "FileNotFoundError: .*shipped'; keys are sampled where the job is submitted, without the files of --files"
    with pytest.raises(JobError, match=where):
        run_local(Reads, [f"{tmp_path}/in"], f"{tmp_path}/out", conf(), 2)


values = st.one_of(
    st.integers(),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    st.floats(allow_nan=False),
    st.none(),
)


#: each example starts some processes, so few of many pairs
@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12, deadline=None)
@given(pairs=st.lists(st.tuples(st.one_of(st.tuples(values, values), values), values), max_size=60), data=st.data())
def test_any_keys_group_as_a_dict_of_their_encodings(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[Any, Any]], data: st.DataObject
) -> None:
    from yaqd.mapreduce.serde import decode_key, encode_key

    class Emit(Job):
        def map(self, key: int, value: str) -> Iterable[tuple[Any, Any]]:
            return pairs[int(value) :: 2]

        def reduce(self, key: Any, values: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
            yield encode_key(key).hex(), [encode_key(value).hex() for value in values]

    folder = tmp_path_factory.mktemp("any")
    (folder / "in").write_text("0\n1\n")
    run_local(Emit, [str(folder / "in")], str(folder / "out"), conf(), data.draw(st.integers(1, 3)))
    wanted: dict[str, list[str]] = {}
    for key, value in pairs[0::2] + pairs[1::2]:
        wanted.setdefault(encode_key(key).hex(), []).append(encode_key(value).hex())
    lines = b"".join(parts(folder / "out")).decode().splitlines()
    found = {key: re.findall("[0-9a-f]+", rest) for key, rest in (line.split("\t") for line in lines)}
    assert {key: sorted(rest) for key, rest in found.items()} == {key: sorted(rest) for key, rest in wanted.items()}
    assert all(decode_key(bytes.fromhex(key)) is not ... for key in found)


def test_the_limit_of_counters_is_of_each_task(tmp_path: Path) -> None:
    class Counts(Job):
        reduces = 0

        def setup(self) -> None:
            for number in range(100):
                self.counters.increment(f"of {self.task.index}", str(number))

    source = tmp_path / "in"
    source.mkdir()
    for name in "ab":
        (source / name).write_text("x\n")
    apart = conf(**{"yaq.input.combine-small-files": "false"})
    counters = run_local(Counts, [str(source)], str(tmp_path / "out"), apart)
    assert [len([cell for cell in counters if cell.group == f"of {index}"]) for index in range(2)] == [100, 100]
    few = apart.with_overrides({"mapreduce.job.counters.max": "99"})
    with pytest.raises(JobError, match="more than 99 counters at 'of 0' '99'"):
        run_local(Counts, [str(source)], str(tmp_path / "few"), few)


def test_nothing_starts_on_missing_input_or_standing_output(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not exist: check the path"):
        run_local(WordCount, [str(tmp_path / "none")], str(tmp_path / "out"), conf())
    assert not (tmp_path / "out").exists()
    (tmp_path / "in").write_text("a")
    (tmp_path / "out").mkdir()
    with pytest.raises(StorageError, match="exists already: delete it"):
        run_local(WordCount, [str(tmp_path / "in")], str(tmp_path / "out"), conf())
    assert list((tmp_path / "out").iterdir()) == []
    with pytest.raises(SubmitError, match=r"^output folder file:///proc/out cannot be made: /proc: nobody can make"):
        run_local(WordCount, [str(tmp_path / "in")], "/proc/out", conf())
    with pytest.raises(SubmitError, match=r"/in/out cannot be made: .*/in is a file: no folder can be made below it"):
        run_local(WordCount, [str(tmp_path / "in")], str(tmp_path / "in" / "out"), conf())


def test_an_empty_input_has_an_empty_output(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("")
    counters: Counters = run_local(WordCount, [str(tmp_path / "in")], str(tmp_path / "out"), conf(), 2)
    assert parts(tmp_path / "out") == [b"", b""]
    assert counters.get(TASK_GROUP, TaskCounter.MAP_INPUT_RECORDS) == 0


class SkipsByNone(WordCount):
    """`return` is missing in front of a bare `yield`, which is a pair that is none."""

    def map(self, key: int, value: str) -> Iterator[Any]:
        if value == "nothing":
            yield
        yield from ((word, 1) for word in value.split())


class SkipsByNoneInLists(SkipsByNone):
    """Keys that are encoded, after as many as one look takes."""

    def map(self, key: int, value: str) -> Iterator[Any]:
        for pair in super().map(key, value):
            yield None if pair is None else ([pair[0]], pair[1])


@pytest.mark.parametrize("job", [SkipsByNone, SkipsByNoneInLists])
@pytest.mark.parametrize("before", [0, 8192, 8193])
def test_a_none_is_no_end_of_what_a_map_with_a_combiner_yields(job: type[Job], before: int, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n" * before + "nothing\nb c\n")
    with pytest.raises(
        JobError, match=r"^map\(\) must yield pairs of key and value: cannot unpack non-iterable NoneType"
    ):
        run_local(job, [f"{tmp_path}/in"], f"{tmp_path}/out", conf())


class PartitionsByFile(Job):
    reduces = 2
    asks = "input_path"

    def map(self, key: int, value: str) -> Iterator[tuple[str, int]]:
        yield value, self.task.partitions

    def partition(self, key: str, partitions: int) -> int:
        return len(str(getattr(self.task, self.asks))) % partitions


@pytest.mark.parametrize("combiner", [Job.combine, lambda self, key, values: [(key, max(values))]])
def test_partition_is_of_a_key_and_knows_no_file(combiner: Any, tmp_path: Path) -> None:
    """The record at hand is a later one by then."""
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"of {name}\n")
    inputs = [f"{tmp_path}/a", f"{tmp_path}/b"]
    job = type("ByFile", (PartitionsByFile,), {"combine": combiner})
    with pytest.raises(JobError, match=r"^partition\(\) cannot ask for self.task.input_path: it is asked about a key"):
        run_local(job, inputs, f"{tmp_path}/out", conf())
    counting = type("ByPhase", (job,), {"asks": "partitions"})
    run_local(counting, inputs, f"{tmp_path}/out", conf())
    assert sorted(b"".join(parts(tmp_path / "out")).splitlines()) == [b"of a\t2", b"of b\t2"]


class NamesItsFile(Job):
    reduces = 0

    def setup(self) -> None:
        self.seen: list[str] = []

    def map(self, key: int, value: str) -> Iterator[tuple[str, Any]]:
        if value == "wrong":
            raise ValueError(value)
        name = self.task.input_path.rpartition("/")[2]
        self.seen.append(name)
        yield value, [name, self.task.input_start, self.task.input_length]

    def cleanup(self) -> Iterator[tuple[str, Any]]:
        yield "files", len(set(self.seen))


def test_files_that_share_a_task_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(1, 4):
        (tmp_path / f"in/f{number}").write_text(f"of f{number}\n" * number)
    run_local(NamesItsFile, [f"{tmp_path}/in"], f"{tmp_path}/out", conf())
    (text,) = parts(tmp_path / "out")
    lines = [f'of f{number}\t["f{number}",0,{6 * number}]' for number in range(1, 4) for _ in range(number)]
    assert sorted(text.decode().splitlines()) == sorted([*lines, "files\t3"])
    (tmp_path / "in/f2").write_text("fine\nwrong\n")
    with pytest.raises(JobError) as caught:
        run_local(NamesItsFile, [f"{tmp_path}/in"], f"{tmp_path}/out2", conf())
    assert caught.value.detail.splitlines()[0].endswith("/in/f2:0+11")
