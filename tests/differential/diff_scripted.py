"""Streaming tasks as Hadoop's documentation and sources tell them."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from tests.differential.diff_case import Case, Scripts
from tests.differential.diff_formats import Broken, as_read, as_text, items, map_input
from tests.differential.diff_reading import LINE_END, Range
from tests.differential.diff_tasks import Failed, Tasks, unmarked

#: Hadoop Streaming writes to a program by so many bytes; of a broken pipe it hears at each write but the last
_BUFFER_BYTES = 128 * 1024
_STOP_READING = ("head -n 2", "true")


class Scripted(Tasks):
    """The tasks of a streaming job."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        assert isinstance(case.program, Scripts)
        self._scripts = case.program
        ends = ("map.input", "map.output", "reduce.input", "reduce.output")
        self._read, self._held, self._reduce_read, self._written = (
            case.defines.get(f"stream.{end}", "text") for end in ends
        )

    def name(self, letter: str, index: int) -> str:
        return f"part-{index:05d}"

    def map(self, index: int, split: Sequence[Range]) -> list[Any]:
        owned = ((offset, unmarked(offset, line)) for _, offset, line in self.lines(split))
        if self._read == "text":
            lines = b"".join(line + b"\n" for _, line in owned)
        else:
            lines = b"".join(map_input(offset, line, self._read) for offset, line in owned)
        path, start, length = split[0]
        environment = {
            "mapreduce_map_input_file": f"file:{path}",
            "mapreduce_map_input_start": str(start),
            "mapreduce_map_input_length": str(length),
        }
        pairs = list(self._pairs(self._piped(self._scripts.mapper, lines, environment), "map"))
        self.count("TaskCounter", "MAP_OUTPUT_RECORDS", len(pairs))
        if not self.case.reduces:
            return [self._line(pair, self._held) for pair in pairs]
        parts = [(java_hash(key) % self.case.reduces, key, value) for key, value in pairs]
        return self._combined(parts) if self._scripts.combiner else parts

    def _combined(self, pairs: list[tuple[int, bytes, bytes]]) -> list[tuple[int, bytes, bytes]]:
        """Whatever keys the combiner writes, they stay in the partition of what it read; cut as a reducer's are."""
        found = []
        for part, mine in groupby(sorted(pairs), key=lambda pair: pair[0]):
            read = self._reducer_input([(key, value) for _, key, value in mine])
            written = self._piped(self._scripts.combiner, read, {})
            found += [(part, key, value) for key, value in self._pairs(written, "reduce")]
        return found

    def reduce(self, partition: int, pairs: list[list[Any]]) -> bytes:
        self.count("TaskCounter", "REDUCE_INPUT_RECORDS", len(pairs))
        self.count("TaskCounter", "REDUCE_INPUT_GROUPS", len({key for key, _ in pairs}))
        ordered = sorted((key, value) for key, value in pairs)
        written = self._held
        if self._scripts.reducer:
            out = self._pairs(self._piped(self._scripts.reducer, self._reducer_input(ordered), {}), "reduce")
            if not pairs:
                return b""  # what a reducer writes that was given nothing, Hadoop Streaming drops
            ordered, written = list(out), self._written
        self.count("TaskCounter", "REDUCE_OUTPUT_RECORDS", len(ordered))
        return b"".join(self._line(pair, written) for pair in ordered)

    def _reducer_input(self, pairs: Sequence[tuple[bytes, bytes]]) -> bytes:
        if self._reduce_read == "text":
            return b"".join(b"%b\t%b\n" % pair for pair in pairs)
        return b"".join(as_read(item, self._held, self._reduce_read) for pair in pairs for item in pair)

    def _line(self, pair: tuple[bytes, bytes], written: str) -> bytes:
        return b"%b\t%b\n" % (as_text(pair[0], written), as_text(pair[1], written))

    def _piped(self, command: str, data: bytes, environment: Mapping[str, str]) -> bytes:
        own = {**os.environ, **environment}
        if len(data) > _BUFFER_BYTES and command in _STOP_READING:
            raise Failed("stopped reading")
        try:
            done = subprocess.run(split_command(command), input=data, capture_output=True, env=own)
        except FileNotFoundError:
            raise Failed("cannot start") from None
        if done.returncode:
            raise Failed(f"status {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}")
        for line in done.stderr.decode("utf-8", "replace").splitlines():
            if line.startswith("reporter:counter:"):
                group, name, amount = line.removeprefix("reporter:counter:").split(",")
                self.count(group, name, int(amount))
        return done.stdout

    def _pairs(self, data: bytes, phase: str) -> Iterator[tuple[bytes, bytes]]:
        written = self._held if phase == "map" else self._written
        if written != "text":
            try:
                found = items(data, written)
            except Broken:
                raise Failed("does not write what") from None
            yield from zip(found[::2], found[1::2], strict=True)
            return
        separator = self.case.defines.get(f"stream.{phase}.output.field.separator", "\t").encode()
        fields = int(self.case.defines.get(f"stream.num.{phase}.output.key.fields", "1"))
        for line in LINE_END.sub(b"\n", data).removesuffix(b"\n").split(b"\n") if data else ():
            pieces = line.split(separator)
            yield separator.join(pieces[:fields]), separator.join(pieces[fields:])


def split_command(command: str) -> list[str]:
    """The words of a command as Hadoop Streaming tells them apart: quotes end a word, a backslash is like any other."""
    words, quote, start = [], "", 0
    for at, char in enumerate(command):
        before = quote
        if char in "'\"" and quote in ("", char):
            quote = char if not quote else ""
        if quote != before or (char == " " and not quote):
            words.append(command[start:at])
            start = at + 1
    return [word for word in (*words, command[start:]) if word]


def java_hash(key: bytes) -> int:
    """Of Hadoop's Text, made positive as its HashPartitioner does."""
    found = 1
    for byte in key:
        found = (31 * found + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
    return found & 0x7FFFFFFF
