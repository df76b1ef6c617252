"""Generated inputs, the same bytes for the same seed and size, kept in the cache between runs.

Text: words drawn from a Zipf distribution over a made-up vocabulary, as natural text has it (a few words very often,
a long tail once), ten to a line. Records: TeraSort's hundred bytes, in printable form so that GNU sort reads them as
lines too. Beside each input stands what a right answer must show, so that every timed run is also checked.
"""

import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from .stock.artifacts import cache_root

RECORD_BYTES = 100
KEY_BYTES = 10
_VOCABULARY = 100_000
_LINE_WORDS = 10
_BATCH_LINES = 100_000
_BATCH_RECORDS = 200_000


@dataclass(frozen=True, slots=True)
class Digest:
    """What a set of lines or records adds up to, whatever their order."""

    count: int
    #: Sum of each line's CRC-32, without its line end.
    crc_sum: int

    def __add__(self, other: "Digest") -> "Digest":
        return Digest(self.count + other.count, self.crc_sum + other.crc_sum)


class WrongAnswer(Exception):
    """A timed run produced something else than its input demands."""


def text_file(size: int, seed: int = 1) -> tuple[Path, Digest]:
    """A text of at most `size` bytes, cut at a line end; and the digest of its `word TAB count` lines."""
    path = cache_root() / "inputs" / f"text-{seed}-{size}.txt"
    return path, _generated(path, lambda stream: _write_text(stream, size, seed))


def record_file(records: int, seed: int = 1) -> tuple[Path, Digest]:
    """TeraSort records: 10 printable key bytes, filler, a line feed as byte 100; and the digest of all records."""
    path = cache_root() / "inputs" / f"records-{seed}-{records}.dat"
    return path, _generated(path, lambda stream: _write_records(stream, records, seed))


def hash_file(lines: int, seed: int = 1) -> tuple[Path, Digest]:
    """Lines of a hundred bytes as `sha256sum` prints them, of files that are not there; and their digest."""
    path = cache_root() / "inputs" / f"hashes-{seed}-{lines}.txt"
    return path, _generated(path, lambda stream: _write_hashes(stream, lines, seed))


def digest(lines: Iterable[bytes]) -> Digest:
    """The digest of lines."""
    count = total = 0
    for line in lines:
        count += 1
        total += zlib.crc32(line)
    return Digest(count, total)


def check_word_counts(parts: Iterable[bytes], expected: Digest) -> None:
    """Checks the part files of a word count."""
    found = digest(line for part in parts for line in part.splitlines())
    if found != expected:
        raise WrongAnswer(f"word count is wrong: {found}, expected {expected}")


def check_line_order(parts: Iterable[bytes], expected: Digest) -> None:
    """Checks that the lines of the part files, taken in order, are all there and in order."""
    last, found = b"", Digest(0, 0)
    for part in parts:
        lines = part.splitlines()
        if lines != sorted(lines) or (lines and lines[0] < last):
            raise WrongAnswer("sort is wrong: lines out of order")
        last = lines[-1] if lines else last
        found += digest(lines)
    if found != expected:
        raise WrongAnswer(f"sort is wrong: {found}, expected {expected}")


def check_total_order(parts: Iterable[bytes], expected: Digest) -> None:
    """Checks that the part files, taken in order, hold all records in the order of their keys."""
    last = b""
    count = total = 0
    for part in parts:
        records = np.frombuffer(part, np.uint8).reshape(-1, RECORD_BYTES)
        keys = np.ascontiguousarray(records[:, :KEY_BYTES]).view(f"S{KEY_BYTES}").ravel()
        if len(keys) and (bytes(keys[0]) < last or bool((keys[1:] < keys[:-1]).any())):
            raise WrongAnswer("sort is wrong: keys out of order")
        last = bytes(keys[-1]) if len(keys) else last
        count += len(keys)
        total += _crc_sum(part)
    if Digest(count, total) != expected:
        raise WrongAnswer(f"sort is wrong: {Digest(count, total)}, expected {expected}")


def _generated(path: Path, write: Callable[[BinaryIO], Digest]) -> Digest:
    note = path.with_suffix(".json")
    if not note.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        with unfinished.open("wb") as stream:
            made = write(stream)
        unfinished.rename(path)
        note.write_text(json.dumps(asdict(made)))
    return Digest(**json.loads(note.read_text()))


def _vocabulary(random: np.random.Generator) -> list[bytes]:
    words: dict[bytes, None] = {}
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
    while len(words) < _VOCABULARY:
        # Frequent words are short, so lengths grow with the rank.
        longest = 3 + min(9, len(words) // 200)
        words.setdefault(letters[random.integers(0, 26, random.integers(2, longest + 1))].tobytes())
    return list(words)


def _write_text(stream: BinaryIO, size: int, seed: int) -> Digest:
    random = np.random.default_rng(seed)
    words = _vocabulary(random)
    spelled = np.array(words, dtype=object)
    lengths = np.array([len(word) + 1 for word in words])
    share = np.cumsum(1.0 / (np.arange(_VOCABULARY) + 2.7))
    share /= share[-1]
    counts = np.zeros(_VOCABULARY, np.int64)
    left = size
    while left > 0:
        chosen = np.searchsorted(share, random.random((_BATCH_LINES, _LINE_WORDS)))
        ends = np.cumsum(lengths[chosen].sum(axis=1))
        fitting = int(np.searchsorted(ends, left, side="right"))
        chosen = chosen[:fitting]
        stream.write(b"".join(b" ".join(line) + b"\n" for line in spelled[chosen].tolist()))
        counts += np.bincount(chosen.ravel(), minlength=_VOCABULARY)
        left = left - int(ends[fitting - 1]) if fitting == _BATCH_LINES else 0
    return digest(words[i] + b"\t%d" % counts[i] for i in np.flatnonzero(counts))


def _write_records(stream: BinaryIO, records: int, seed: int) -> Digest:
    random = np.random.default_rng(seed)
    total = 0
    for start in range(0, records, _BATCH_RECORDS):
        batch = _records(random, start, min(_BATCH_RECORDS, records - start))
        stream.write(batch)
        total += _crc_sum(batch)
    return Digest(records, total)


def _write_hashes(stream: BinaryIO, lines: int, seed: int) -> Digest:
    found = Digest(0, 0)
    for start in range(0, lines, _BATCH_LINES):
        numbers = range(start, min(lines, start + _BATCH_LINES))
        batch = [
            b"%s  /data/%012d/%013d" % (sha256(b"%d %d" % (seed, number)).hexdigest().encode(), seed, number)
            for number in numbers
        ]
        stream.write(b"\n".join(batch) + b"\n")
        found += digest(batch)
    return found


def _records(random: np.random.Generator, start: int, count: int) -> bytes:
    rows = np.empty((count, RECORD_BYTES), np.uint8)
    rows[:, :KEY_BYTES] = random.integers(0x20, 0x7F, (count, KEY_BYTES), np.uint8)
    rows[:, KEY_BYTES : KEY_BYTES + 2] = 0x20
    numbers: NDArray[np.int64] = np.arange(start, start + count)
    for place in range(20):
        rows[:, 31 - place] = 0x30 + numbers // 10**place % 10 if place < 18 else 0x30
    rows[:, 32:99] = 0x41 + random.integers(0, 26, (count, 1), np.uint8)
    rows[:, 99] = 0x0A
    return rows.tobytes()


def _crc_sum(records: bytes) -> int:
    view = memoryview(records)
    return sum(zlib.crc32(view[at : at + RECORD_BYTES - 1]) for at in range(0, len(view), RECORD_BYTES))
