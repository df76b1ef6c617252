"""Local jobs that fail: what is said, and of which function."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tez_adapter.tez_local import WordCount, WordCountPlain, conf
from tez_adapter.client.local import run_local
from yaqd.mapreduce import Job, JobError

#: a number of records that makes more than one batch
LAST = 20_000


class Broken(Job):
    def map(self, key: int, value: str) -> Iterator[tuple[Any, int]]:
        yield int(value), 1


class BadKey(Job):
    def map(self, key: int, value: str) -> Iterator[tuple[Any, int]]:
        yield {value}, 1


class NoPairs(Job):
    def map(self, key: int, value: str) -> Any:
        yield value


def failure(job: type[Job], tmp_path: Path) -> JobError:
    (tmp_path / "in").write_text("1\nx\n")
    with pytest.raises(JobError) as caught:
        run_local(job, [str(tmp_path / "in")], str(tmp_path / "out"), conf())
    assert not (tmp_path / "out").exists()
    return caught.value


def test_a_map_that_raises_is_shown_with_its_own_frames(tmp_path: Path) -> None:
    error = failure(Broken, tmp_path)
    assert str(error) == "ValueError: invalid literal for int() with base 10: 'x'"
    assert "yield int(value), 1" in error.detail and "/in:0+4" in error.detail
    assert "map_task.py" not in error.detail


class OfTheJob(Exception):
    pass


class Unspeakable(ValueError):
    def __str__(self) -> str:
        raise TypeError


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OfTheJob("\udc80"), r"OfTheJob: \udc80"),
        (OfTheJob("so"), "OfTheJob: so"),
        (OfTheJob(), "OfTheJob"),
        (Unspeakable("x"), "Unspeakable: <its __str__() fails>"),
    ],
    ids=["bytes", "text", "none", "fails"],
)
def test_an_exception_is_named_once(error: Exception, said: str, tmp_path: Path) -> None:
    class Raises(Job):
        def map(self, key: int, value: str) -> Iterator[tuple[Any, int]]:
            raise error
            yield value, 1

    caught = failure(Raises, tmp_path)
    assert str(caught) == said
    shown = caught.detail.splitlines()
    assert any("raise error" in line for line in shown)
    assert type(error) is Unspeakable or not any("OfTheJob" in line for line in shown)


class PartitionsByHalves(WordCount):
    def partition(self, key: str, partitions: int) -> Any:
        return 0.5


class StopsInReduce(WordCountPlain):
    def reduce(self, key: str, values: Iterable[int]) -> Iterator[tuple[str, int]]:
        yield key, next(iter(()))


class RaisesOfAnother(Job):
    def map(self, key: int, value: str) -> Iterator[tuple[str, int]]:
        try:
            yield value, int("no number")
        except ValueError as error:
            raise OfTheJob("so") from error


def test_a_failure_ends_with_a_line_that_says_something(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("1\nx\n")
    details = {}
    for job in (PartitionsByHalves, StopsInReduce, RaisesOfAnother):
        with pytest.raises(JobError) as caught:
            run_local(job, [str(tmp_path / "in")], str(tmp_path / "out"), conf(), 2)
        details[job] = (str(caught.value), caught.value.detail.splitlines())
    said, shown = details[PartitionsByHalves]
    assert said == "ValueError: partition() returned 0.5, which is not a whole number" and len(shown) == 1
    said, shown = details[StopsInReduce]
    assert said == "RuntimeError: generator raised StopIteration"
    assert [line.strip() for line in shown[-2:]][1] == "StopIteration" and "Traceback" in shown[1]
    said, shown = details[RaisesOfAnother]
    assert said.endswith("OfTheJob: so")
    assert "The above exception was the direct cause of the following exception:" in shown
    assert shown[-1].strip() == 'raise OfTheJob("so") from error'


@pytest.mark.slow
@pytest.mark.parametrize("reduces", [0, 1])
@pytest.mark.parametrize("record", [100, LAST], ids=["amid", "last"])
def test_a_stop_iteration_out_of_map_is_no_end_of_its_input(reduces: int, record: int, tmp_path: Path) -> None:
    class Stops(Job):
        def map(self, key: int, value: str) -> list[tuple[str, int]]:
            if value == str(record):
                next(iter(()))
            return [(value, 1)]

    (tmp_path / "in").write_text("".join(f"{number}\n" for number in range(LAST + 1)))
    with pytest.raises(JobError, match=r"^map\(\) raised StopIteration.* give next\(\) a default"):
        run_local(Stops, [str(tmp_path / "in")], str(tmp_path / "out"), conf(), reduces)


def test_what_cannot_travel_is_named(tmp_path: Path) -> None:
    assert "cannot serialize builtins.set {'1'}" in str(failure(BadKey, tmp_path))
    assert "map() must yield pairs" in str(failure(NoPairs, tmp_path))


class YieldsStrings(WordCount):
    def map(self, key: int, value: str) -> Iterator[Any]:
        yield "ab"

    combine = Job.combine  # type: ignore[assignment]


class ReducesToStrings(WordCount):
    combine = Job.combine  # type: ignore[assignment]

    def reduce(self, key: str, values: Iterable[int]) -> Iterator[Any]:
        yield key


class ReducesToNumbers(ReducesToStrings):
    def reduce(self, key: str, values: Iterable[int]) -> Iterator[Any]:
        yield sum(values)


class ReturnsOnePair(ReducesToStrings):
    def reduce(self, key: str, values: Iterable[int]) -> Any:
        return key, sum(values)


class CombinesToNothing(WordCount):
    def combine(self, key: str, values: Iterable[int]) -> Any:
        return None


class CombinesToNumbers(WordCount):
    def combine(self, key: str, values: Iterable[int]) -> Iterator[Any]:
        yield sum(values)


class WritesNumbers(YieldsStrings):
    reduces = 0

    def map(self, key: int, value: str) -> Iterator[Any]:
        yield 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "said"),
    [
        (YieldsStrings, "map() must yield pairs of key and value: 'ab' is of type str; write `yield key, value`"),
        (ReducesToStrings, "reduce() must yield pairs of key and value: '1' is of type str; write"),
        (ReducesToNumbers, "reduce() must yield pairs of key and value: cannot unpack non-iterable int object"),
        (ReturnsOnePair, "reduce() must yield pairs of key and value: '1' is of type str; write"),
        (CombinesToNothing, "combine() must yield pairs of key and value: 'NoneType' object is not iterable"),
        (CombinesToNumbers, "combine() must yield pairs of key and value: cannot unpack non-iterable int object"),
        (WritesNumbers, "map() must yield pairs of key and value: cannot unpack non-iterable int object"),
    ],
)
def test_what_is_no_pair_is_said_of_the_function_that_made_it(job: type[Job], said: str, tmp_path: Path) -> None:
    """Also where it would have been taken for one: "ab" for the key "a" with the value "b"."""
    error = failure(job, tmp_path)
    assert str(error).startswith(said) and "TypeError" not in error.detail


class CleansUpOnePair(WordCount):
    def cleanup(self) -> Any:
        return ("ab", "cd")


@pytest.mark.parametrize("reduces", [0, 1])
def test_a_pair_in_place_of_pairs_is_refused_of_cleanup_too(tmp_path: Path, reduces: int) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    with pytest.raises(JobError, match=r"cleanup\(\) must yield pairs of key and value: 'ab' is of type str") as caught:
        run_local(CleansUpOnePair, [str(tmp_path / "in.txt")], str(tmp_path / "out"), conf(), reduces)
    assert "reading" not in str(caught.value)


@pytest.mark.parametrize("amount", [0.5, 1 << 63, "1"])
def test_a_count_that_is_no_whole_number_is_named(amount: Any, tmp_path: Path) -> None:
    class Counts(Job):
        def setup(self) -> None:
            self.counters.find("books", "read").value = amount

    assert (
        str(failure(Counts, tmp_path)) == f"counter 'read' of 'books' is {amount!r}: count in whole numbers of 64 bits"
    )
