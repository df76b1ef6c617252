"""Five steps, one after the other: as one flow, and as a job for each, which read one another's text.

How often each word stands, how many words begin alike, and which of the numbers of these are most frequent.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from yaqd.mapreduce import Flow, Job

Pairs = Iterator[tuple[Any, Any]]


class Words(Job):
    """How often each word stands."""

    reduces = 2

    def map(self, key: Any, value: Any) -> Pairs:
        for word in value.split():
            yield word, 1

    def reduce(self, key: Any, values: Iterable[int]) -> Pairs:
        yield key, sum(values)

    combine = reduce


class Beginnings(Job):
    """How many words begin with the same three letters, and how often they stand."""

    reduces = 2

    def map(self, key: Any, value: Any) -> Pairs:
        yield key[:3], value

    def reduce(self, key: Any, values: Iterable[int]) -> Pairs:
        found = list(values)
        yield key, (len(found), sum(found))


class Lengths(Job):
    """How often words stand whose beginning is shared by so many."""

    reduces = 2

    def map(self, key: Any, value: Any) -> Pairs:
        yield (value[0], key[:1]), value[1]

    def reduce(self, key: Any, values: Iterable[int]) -> Pairs:
        yield key, sum(values)


class Widest(Job):
    """For each number, the first letter that stands most often."""

    reduces = 1

    def map(self, key: Any, value: Any) -> Pairs:
        yield key[0], (value, key[1])

    def reduce(self, key: Any, values: Iterable[Any]) -> Pairs:
        yield key, max(tuple(value) for value in values)


class Order(Job):
    """Numbers by how often their words stand."""

    reduces = 1

    def map(self, key: Any, value: Any) -> Pairs:
        yield (-value[0], key), value[1]

    def reduce(self, key: Any, values: Iterable[Any]) -> Pairs:
        yield key[1], next(iter(values))


STEPS = (Words, Beginnings, Lengths, Widest, Order)


def _read(line: str) -> tuple[Any, Any]:
    """Return the pair of a line that the job before has written."""
    text, _, number = line.partition("\t")
    return json.loads(text) if text[:1] in "[-0123456789" else text, json.loads(number)


class BeginningsAlone(Beginnings):
    def map(self, key: Any, value: Any) -> Pairs:
        return super().map(*_read(value))


class LengthsAlone(Lengths):
    def map(self, key: Any, value: Any) -> Pairs:
        return super().map(*_read(value))


class WidestAlone(Widest):
    def map(self, key: Any, value: Any) -> Pairs:
        return super().map(*_read(value))


class OrderAlone(Order):
    def map(self, key: Any, value: Any) -> Pairs:
        return super().map(*_read(value))


flow = Flow("chain")
_stream = flow.read("text")
for _step in STEPS:
    _stream = _stream.then(_step)
_stream.write("result")
