"""Map outputs as tasks leave them, for the tests of what is done with them."""

import struct
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from riffle_merger.format import IndexEntry, SpillIndex


def sealed(body: bytes | None) -> bytes:
    """A stored segment; None is one of no bytes at all."""
    return b"" if body is None else body + struct.pack(">I", zlib.crc32(body))


def write_output(app_dir: Path, map_id: str, bodies: Sequence[bytes | None], *, gap: int = 0) -> list[bytes]:
    """`output/<map_id>/file.out` and its index, with `gap` bytes between the segments; the segments."""
    folder = app_dir / "output" / map_id
    folder.mkdir(parents=True)
    segments, entries, data = [sealed(body) for body in bodies], [], bytearray()
    for segment in segments:
        entries.append(IndexEntry(len(data), 3 * len(segment), len(segment)))
        data += segment + b"?" * gap
    (folder / "file.out").write_bytes(data)
    (folder / "file.out.index").write_bytes(SpillIndex(entries).to_bytes())
    return segments


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python `work` takes, whatever the machine's speed."""
    count, before = 0, sys.gettrace()

    def trace(*_: object) -> Any:
        nonlocal count
        count += 1
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
