"""A word count for local runs, and how such runs are configured and read."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from yaqd.config import Configuration
from yaqd.mapreduce import Counter, Job, Param


def conf(**settings: str) -> Configuration:
    return Configuration.load(environ={}, overrides={key.replace("_", "."): value for key, value in settings.items()})


class WordCount(Job):
    shortest = Param(int, default=1)
    blank = Counter()

    def map(self, key: int, value: str) -> Iterator[tuple[str, int]]:
        if not value:
            self.blank.increment()
        for word in value.split():
            if len(word) >= self.shortest:
                yield word, 1

    def reduce(self, key: str, values: Iterable[int]) -> Iterator[tuple[str, int]]:
        yield key, sum(values)

    combine = reduce


class WordCountPlain(WordCount):
    combine = Job.combine  # type: ignore[assignment]


def parts(output: Path) -> list[bytes]:
    assert (output / "_SUCCESS").read_bytes() == b""
    assert not (output / "_temporary").exists()
    return [path.read_bytes() for path in sorted(output.glob("part-*"))]
