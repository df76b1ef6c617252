"""What a node's disk does, tried once when its merger starts, for who decides whether merging pays.

The kernel's word for whether a disk turns is often wrong: virtual machines say that all do. So a file without a name is
written past the page cache and read back the same way: whole, for the speed, and a page here and there, for what a
request costs. It is small, so a turning disk's arm moves less than it would in use. Its seek comes out a third too
short, perhaps.
"""

import mmap
import os
import random
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final, Self

_FILE_BYTES: Final = 32 << 20
_BUFFER_BYTES: Final = 4 << 20
_PAGE: Final = 4096
#: of one round of seeks, at most
_SEEKS: Final = 256
_SEEKS_S: Final = 0.25
_ROUNDS: Final = 3
#: a disk with less room is not written to for this
_FREE_BYTES_MIN: Final = 1 << 30
_FORMAT: Final = struct.Struct(">IQQ")


@dataclass(frozen=True, slots=True)
class DiskFacts:
    #: one small read somewhere else, microseconds
    seek_us: int
    #: read one after the other
    bytes_per_s: int
    #: memory of the node that was free or could be had when its merger started, bytes
    available_bytes: int

    def pack(self) -> bytes:
        return _FORMAT.pack(self.seek_us, self.bytes_per_s, self.available_bytes)

    @classmethod
    def unpack(cls, data: bytes) -> Self | None:
        """Unpack the facts; None where these are no facts of a disk."""
        if len(data) != _FORMAT.size:
            return None
        facts = cls(*_FORMAT.unpack(data))
        return facts if facts.bytes_per_s else None


def try_disk(folder: Path, available_bytes: int) -> DiskFacts | None:
    """Try the disk; leaves nothing. Blocking, for some two seconds on a slow disk.

    None where it cannot be tried: no such folder, a file system in memory or without direct access, too full.
    """
    flags = os.O_TMPFILE | os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC
    try:
        found = os.statvfs(folder)
        if found.f_bavail * found.f_frsize < _FREE_BYTES_MIN:
            return None
        descriptor = os.open(folder, flags, 0o600)
    except OSError:
        return None
    try:
        with mmap.mmap(-1, _BUFFER_BYTES) as buffer:
            for offset in range(0, _FILE_BYTES, _BUFFER_BYTES):
                os.pwrite(descriptor, buffer, offset)
            os.fsync(descriptor)
            return DiskFacts(_seek_us(descriptor), _bytes_per_s(descriptor, buffer), available_bytes)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _bytes_per_s(descriptor: int, buffer: mmap.mmap) -> int:
    started = time.perf_counter()
    for offset in range(0, _FILE_BYTES, _BUFFER_BYTES):
        os.preadv(descriptor, [buffer], offset)
    return max(1, round(_FILE_BYTES / (time.perf_counter() - started)))


def _seek_us(descriptor: int) -> int:
    """The middle round's mean: what else the disk does in one round counts for nothing.

    A disk that is let do so many requests a second takes some at once, and then none for a while. Most of its reads
    cost next to nothing, so no single read says what they cost together.
    """
    draw = random.Random(0)
    with mmap.mmap(-1, _PAGE) as page:
        means = [_round_s(descriptor, page, draw) for _ in range(_ROUNDS)]
    return max(1, round(median(means) * 1e6))


def _round_s(descriptor: int, page: mmap.mmap, draw: random.Random) -> float:
    """Seconds of a read somewhere in the file, on average."""
    count, spent, began = 0, 0.0, time.perf_counter()
    while count < _SEEKS and spent < _SEEKS_S:
        os.preadv(descriptor, [page], draw.randrange(_FILE_BYTES // _PAGE) * _PAGE)
        count, spent = count + 1, time.perf_counter() - began
    return spent / count
