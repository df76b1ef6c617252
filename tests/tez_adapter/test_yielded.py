"""Pairs count as they were when they were yielded, whatever is done to their objects afterwards."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tez_adapter.client.local import run_local
from tez_adapter.client.submit import submit_mapreduce
from yaqd.config import Configuration
from yaqd.mapreduce import Job

CONF = Configuration.load(environ={})
TAGS = ("a", "b", "c")
LINES = 300


def dict_value(job: Any, number: int) -> Iterator[tuple[Any, Any]]:
    record: dict[str, Any] = {"n": number}
    for tag in TAGS:
        record["tag"] = tag
        yield tag, record


def list_in_tuple(job: Any, number: int) -> Iterator[tuple[Any, Any]]:
    inner: list[Any] = []
    for tag in TAGS:
        inner.append(number)
        yield tag, (tag, inner)


def list_key(job: Any, number: int) -> Iterator[tuple[Any, Any]]:
    key = ["", 0]
    for tag in TAGS:
        key[:] = [tag, number % 7]
        yield key, number


def list_in_tuple_key(job: Any, number: int) -> Iterator[tuple[Any, Any]]:
    inner = [0]
    for tag in TAGS:
        inner[0] = number % 5
        yield (tag, inner), number
    inner[0] = -1


def bytes_that_change(job: Any, number: int) -> Iterator[tuple[Any, Any]]:
    buffer = bytearray(b"x")
    for tag in TAGS:
        buffer[0] = ord(tag)
        yield buffer, memoryview(buffer)


class Text(str):
    __slots__ = ()


def subclasses(job: Any, number: int) -> Iterator[tuple[Any, Any]]:
    class Row(dict[str, int]):
        pass

    row = Row()
    for tag in TAGS:
        row[tag] = number
        yield Text(tag), row
    row.clear()


def late(job: Any, number: int) -> Iterator[tuple[Any, Any]]:
    """What cannot change comes first, for longer than any batch."""
    if number < LINES - 2:
        for _ in range(60):
            yield "n", 1
    else:
        yield from dict_value(job, number)


def last_pairs(job: Any, number: int) -> Iterator[tuple[Any, Any]]:
    """One object for all of the task's records."""
    job.kept = getattr(job, "kept", None) or {"seen": []}
    job.kept["seen"].append(number)
    yield "first" if number % 2 else "second", job.kept
    job.kept["seen"] = job.kept["seen"][-3:]


MAPS = [dict_value, list_in_tuple, list_key, list_in_tuple_key, bytes_that_change, subclasses, late, last_pairs]


class Changes(Job):
    """Its map and cleanup yield objects that they go on with."""

    yields: Callable[[Any, int], Iterator[tuple[Any, Any]]]

    def map(self, key: int, value: str) -> Iterator[tuple[Any, Any]]:
        return type(self).yields(self, int(value))

    def cleanup(self) -> Iterator[tuple[Any, Any]]:
        record = {"end": 0}
        for number in range(3):
            record["end"] = number
            yield "z", record


class Reduces(Changes):
    """So does its reduce; keys and values in an order that does not depend on the merge."""

    def reduce(self, key: Any, values: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        shown = [f"{as_json(key)}"]
        for value in sorted(map(as_json, values)):
            shown[1:] = [value]
            yield shown, None
        shown.clear()

    def cleanup(self) -> Iterator[tuple[Any, Any]]:
        return super().cleanup() if self.task.phase == "map" else iter(())


class Combines(Reduces):
    """So does its combiner, with one list for all keys."""

    def combine(self, key: Any, values: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        held: list[Any] = []
        for value in values:
            held[:] = [value]
            yield key, held[0]
            if isinstance(value, dict):
                value.clear()
        if isinstance(key, list):
            key.clear()


def as_json(value: Any) -> str:
    return json.dumps(plain(value), sort_keys=True)


def plain(value: Any) -> Any:
    """A copy as JSON has it: bytes as what they say, tuples as lists."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in sorted(value.items())}
    return value


def expected(job: type[Changes]) -> list[tuple[Any, Any]]:
    """What plain Python makes of it: each pair copied when it is yielded."""
    one = job()
    found = []
    for number in range(LINES):
        found += [(plain(key), plain(value)) for key, value in one.map(number, str(number))]
    return found + [(plain(key), plain(value)) for key, value in one.cleanup()]


def lines(output: Path) -> list[str]:
    return "".join(part.read_text() for part in sorted(output.glob("part-*"))).splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("yields", MAPS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("base", [Reduces, Combines])
def test_what_is_shuffled(base: type[Changes], yields: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(f"{number}\n" for number in range(LINES)))
    job = type("ChangesSo", (base,), {"yields": staticmethod(yields)})
    run_local(job, [f"{tmp_path}/in"], f"{tmp_path}/out", CONF, 2)
    wanted = sorted(text([as_json(key), as_json(value)]) for key, value in expected(job))
    assert sorted(lines(tmp_path / "out")) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("yields", MAPS, ids=lambda f: f.__name__)
def test_what_is_written(yields: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(f"{number}\n" for number in range(LINES)))
    job = type("ChangesSo", (Changes,), {"yields": staticmethod(yields)})
    run_local(job, [f"{tmp_path}/in"], f"{tmp_path}/out", CONF, 0)
    assert sorted(lines(tmp_path / "out")) == sorted(f"{text(key)}\t{text(value)}" for key, value in expected(job))


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def test_cleanup_alone(tmp_path: Path) -> None:
    """Records pass untouched, so that only the last pairs are objects."""

    class Last(Job):
        def cleanup(self) -> Iterable[tuple[Any, Any]]:
            return dict_value(self, 1) if self.task.phase == "map" else ()

    (tmp_path / "in").write_text("")
    (tmp_path / "some").write_text("x\n")
    run_local(Last, [f"{tmp_path}/some"], f"{tmp_path}/out", CONF, 1)
    assert [line.split("\t")[1] for line in lines(tmp_path / "out")] == [
        "x",
        *(json.dumps({"n": 1, "tag": tag}, separators=(",", ":")) for tag in TAGS),
    ]


SCRIPT = """
from yaqd.mapreduce import Job
class Tags(Job):
    def map(self, key, value):
        record = {"n": int(value)}
        for tag in "abc":
            record["tag"] = tag
            yield tag, record
    def reduce(self, key, values):
        shown = [key, 0, 0]
        for value in values:
            shown[1] += value["tag"] == key
            shown[2] += value["n"]
        yield shown, None
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_on_a_cluster(cluster: Configuration, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(f"{number}\n" for number in range(LINES)))
    (tmp_path / "tags.py").write_text(SCRIPT)
    job = submit_mapreduce(cluster, f"{tmp_path}/tags.py", inputs=[f"{tmp_path}/in"], output=f"{tmp_path}/out")
    assert job.wait(timeout_s=90).state == "SUCCEEDED"
    job.close()
    assert lines(tmp_path / "out") == [f'["{tag}",{LINES},{sum(range(LINES))}]' for tag in TAGS]
