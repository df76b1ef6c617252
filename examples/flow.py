"""Which words each kind of line has most: a flow of four steps, two outputs, and a side.

yaq dag plan examples/flow.py --path lines=README.md
yaq dag local examples/flow.py --path lines=README.md --path top=top --path shares=shares
yaq dag submit examples/flow.py --path lines=README.md --path top=top --path shares=shares
"""

from collections.abc import Iterable, Iterator

from yaqd.mapreduce import Flow, Job, Param


class Words(Job):
    """Words, with the kind of line that they stand in."""

    def map(self, key: int, value: str) -> Iterator[tuple[tuple[str, str], int]]:
        kind = "heading" if value.startswith("#") else "row" if value.startswith("|") else "text"
        for word in value.lower().split():
            if word.isalpha():
                yield (kind, word), 1


class Count(Job):
    def reduce(self, key: tuple[str, str], values: Iterable[int]) -> Iterator[tuple[tuple[str, str], int]]:
        yield key, sum(values)

    combine = reduce


class Top(Job):
    """The most frequent words of each kind of line."""

    many = Param(int, default=3, help="words of each kind")

    def map(self, key: tuple[str, str], value: int) -> Iterator[tuple[str, tuple[int, str]]]:
        kind, word = key
        yield kind, (-value, word)

    def reduce(self, key: str, values: Iterable[tuple[int, str]]) -> Iterator[tuple[str, str]]:
        yield key, " ".join(f"{word}:{-count}" for count, word in sorted(values)[: self.many])


class Total(Job):
    def map(self, key: tuple[str, str], value: int) -> Iterator[tuple[str, int]]:
        yield key[0], value

    def reduce(self, key: str, values: Iterable[int]) -> Iterator[tuple[str, int]]:
        yield key, sum(values)


class Share(Job):
    """What part of the words of its kind each is; every task gets the totals."""

    def setup(self) -> None:
        self.totals = dict(self.task.sides["totals"])

    def map(self, key: tuple[str, str], value: int) -> Iterator[tuple[tuple[str, str], str]]:
        yield key, f"{value / self.totals[key[0]]:.4f}"


flow = Flow("words")
counts = flow.read("lines").then(Words).then(Count, reduces=2)
counts.then(Top).write("top")
counts.then(Share, sides={"totals": counts.then(Total)}).write("shares")
