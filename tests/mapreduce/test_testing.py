"""Jobs on lists: what `yaqd.testing.run` gives is what a cluster would."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.mapreduce import Counter, Counters, Job, JobError, Param, load_job
from yaqd.testing import run

_EXAMPLES = Path(__file__).parents[2] / "examples"


class Words(Job):
    min_length = Param(int, default=1)
    lines = Counter()

    def map(self, key: Any, value: Any) -> Iterable[Any]:
        self.lines.increment()
        for word in value.split():
            if len(word) >= self.min_length:
                yield word, 1

    def reduce(self, key: Any, values: Any) -> Iterable[Any]:
        yield key, sum(values)

    combine = reduce


def test_words_are_counted() -> None:
    assert run(Words, ["a b", "", "a"]) == [("a", 2), ("b", 1)]


@given(st.lists(st.text("abc ", max_size=12)), st.integers(1, 4), st.integers(1, 4), st.integers(0, 3))
def test_the_answer_depends_on_no_number_of_tasks_or_combines(
    lines: list[str], splits: int, reduces: int, combines: int
) -> None:
    counters = Counters()
    got = run(Words, lines, splits=splits, reduces=reduces, combines=combines, counters=counters)
    words = [word for line in lines for word in line.split()]
    assert sorted(got) == sorted((word, words.count(word)) for word in set(words))
    assert counters.get("Words", "lines") == len(lines)


def test_options_are_values_or_what_d_would_say() -> None:
    assert run(Words, ["a bb"], min_length=2) == run(Words, ["a bb"], min_length="2") == [("bb", 1)]
    with pytest.raises(JobError, match="Words has no option length: it has min_length"):
        run(Words, [], length=2)


def test_a_pair_counts_as_it_was_at_its_yield() -> None:
    class Reuses(Job):
        reduces = 0

        def map(self, key: Any, value: Any) -> Iterable[Any]:
            for tag in value:
                record["tag"] = tag
                yield tag, record

    record: dict[str, str] = {}
    wanted = [("a", {"tag": "a"}), ("b", {"tag": "b"})]
    assert run(Reuses, ["ab"]) == run(Reuses, ["ab"], reduces=1) == wanted


def test_keys_are_sorted_as_on_a_cluster_and_ranges_in_order() -> None:
    class Sorts(Job):
        partitioner = "range"

        def map(self, key: Any, value: Any) -> Iterable[Any]:
            yield value, key

    got = run(Sorts, [(1, 3), (2, "x"), (3, 1.5), (4, -7), (5, None), (6, (1, 2)), (7, 3)], reduces=3)
    assert [key for key, _ in got] == [None, -7, 3, 3, 1.5, "x", (1, 2)]


def test_what_a_cluster_refuses_is_refused() -> None:
    class NoPairs(Job):
        def map(self, key: Any, value: Any) -> Iterable[Any]:
            yield value

    class Beyond(Job):
        def partition(self, key: Any, partitions: int) -> int:
            return partitions

    class Sets(Job):
        def map(self, key: Any, value: Any) -> Iterable[Any]:
            yield value, {value}

    with pytest.raises(JobError, match="must yield pairs"):
        run(NoPairs, ["ab"])
    with pytest.raises(JobError, match="0 to 1 exist"):
        run(Beyond, ["a"], reduces=2)
    with pytest.raises(Exception, match="set"):
        run(Sets, ["a"])


def test_what_a_method_raises_comes_as_it_is() -> None:
    class Divides(Job):
        def map(self, key: Any, value: Any) -> Iterable[Any]:
            yield 1 // int(value), 1

    with pytest.raises(ZeroDivisionError):
        run(Divides, ["0"])


@pytest.mark.parametrize("script", ["wordcount.py", "mean.py", "sort_lines.py"])
def test_an_example_gives_on_lists_what_it_gives_in_a_local_run(script: str, tmp_path: Path) -> None:
    from tez_adapter.client.local import run_local
    from yaqd.config import Configuration
    from yaqd.mapreduce.text import line_of

    job = load_job(_EXAMPLES / script)
    lines = ["b\t2", "a\t1", "b\t4", "c\t0.5", "a\t1"]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    run_local(job, [str(tmp_path / "in.txt")], str(tmp_path / "out"), Configuration.load(), 1)
    want = (tmp_path / "out" / "part-r-00000").read_bytes()
    got = b"".join(line_of(key, value, b"\t") for key, value in run(job, lines))
    assert got == want
