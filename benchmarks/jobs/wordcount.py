"""Word count, record by record: what a user writes first."""

from collections.abc import Iterable, Iterator

from yaqd.mapreduce import Job, Pair


class WordCount(Job):
    def map(self, key: int, value: str) -> Iterable[Pair]:
        for word in value.split():
            yield word, 1

    def reduce(self, key: str, values: Iterator[int]) -> Iterable[Pair]:
        yield key, sum(values)

    combine = reduce
