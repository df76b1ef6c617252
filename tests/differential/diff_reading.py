"""Which lines of which files are a split's, told from whole files in memory."""

import bz2
import gzip
import re
from collections.abc import Iterator
from pathlib import Path

#: of one file: its path, first byte, bytes
Range = tuple[Path, int, int]
LINE_END = re.compile(rb"\r\n|\r|\n")
#: a member's first block begins behind its header
_BLOCK_AFTER = 4


def contents(path: Path) -> tuple[bytes, list[tuple[int, int]]]:
    """What the file holds, and of a packed one where its members begin: in the file, and in what they hold."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data), [(0, 0)]
    if path.suffix != ".bz2":
        return data, []
    held, members, rest = b"", [], data
    while rest:
        members.append((len(data) - len(rest), len(held)))
        unpacker = bz2.BZ2Decompressor()
        held += unpacker.decompress(rest)
        rest = unpacker.unused_data
    return held, members


def _unpacked_range(members: list[tuple[int, int]], start: int, length: int, end: int) -> tuple[int, int]:
    """A range of a packed file as one of what it holds: that of the members whose first block begins in it."""
    at = [held for place, held in members if place + _BLOCK_AFTER >= start]
    after = [held for place, held in members if place + _BLOCK_AFTER >= start + length]
    first, last = (found[0] if found else end for found in (at, after))
    return (first, last) if start else (0, last)


def owned_lines(path: Path, start: int, length: int) -> Iterator[tuple[int, bytes]]:
    """Lines that start in (start, start + length], those of a split at 0 also at 0; each with where it begins in what
    the file holds. In a split from the middle of a packed file that is counted from the split's start on, as nobody
    knows what lies before it."""
    data, members = contents(path)
    first, last = _unpacked_range(members, start, length, len(data)) if members else (start, start + length)
    if start and members and first == last:
        return  # no block begins in it
    moved = start - first if start and members else 0
    at = 0
    for match in LINE_END.finditer(data):
        if (first < at or at == start == 0) and at <= last:
            yield at + moved, data[at : match.start()]
        at = match.end()
    if at < len(data) and (first < at or at == start == 0) and at <= last:
        yield at + moved, data[at:]
