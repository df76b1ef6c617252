"""Checkpoints of a job in a folder on any storage: whole or not at all, the last two kept, a sum inside.

A file holds a header (JSON, small), pieces of bytes, and the SHA-256 of all before it. One that was cut short or
changed is passed over, and the one before it serves. It is not one of the two that are kept, and goes first.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from yaqd.storage.errors import CorruptFile, PathNotFound, StorageError, StorageUnavailable
from yaqd.storage.filesystem import FileSystem
from yaqd.storage.paths import name_of

_MAGIC: Final = b"YAQCKPT1"
_HEADER: Final = struct.Struct(">I")
_HEADER_BYTES_MAX: Final = 1 << 20
_SUM_BYTES: Final = hashlib.sha256().digest_size
_PREFIX: Final = "checkpoint-"
#: of the hidden names that writers of all file systems use until a file is whole
_UNFINISHED: Final = f".{_PREFIX}"
_KEPT: Final = 2

T = TypeVar("T")


class CheckpointTooLarge(StorageError):
    """It does not fit the budget; what was there stays."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    #: iterations that are done
    iteration: int
    pieces: Sequence[bytes]
    #: what its owner wants to find beside it
    facts: Mapping[str, Any] = field(default_factory=dict)

    def dump(self) -> list[bytes]:
        """Return the file's bytes, in pieces. Raises CheckpointTooLarge."""
        header = json.dumps(
            {"iteration": self.iteration, "lengths": [len(piece) for piece in self.pieces], "facts": dict(self.facts)}
        ).encode("ascii")
        if len(header) > _HEADER_BYTES_MAX:
            raise CheckpointTooLarge(f"a checkpoint of {len(self.pieces)} pieces has too many of them", path="")
        parts = [_MAGIC, _HEADER.pack(len(header)), header, *self.pieces]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        return [*parts, digest.digest()]

    @classmethod
    def parse(cls, data: bytes, path: str) -> "Checkpoint":
        """Return what the bytes of a file hold. Raises CorruptFile."""
        start = len(_MAGIC) + _HEADER.size
        if len(data) < start + _SUM_BYTES or not data.startswith(_MAGIC):
            raise CorruptFile(f"{path} is no whole checkpoint: it has {len(data)} bytes", path=path)
        if hashlib.sha256(memoryview(data)[:-_SUM_BYTES]).digest() != data[-_SUM_BYTES:]:
            raise CorruptFile(f"{path} is damaged: its sum is another one", path=path)
        try:
            end = start + int(_HEADER.unpack_from(data, len(_MAGIC))[0])
            header = json.loads(data[start:end])
            lengths = [int(length) for length in header["lengths"]]
            found = cls(int(header["iteration"]), _cut(data, end, lengths), dict(header["facts"]))
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFile(f"{path} is damaged: {error!r}", path=path) from None
        return found


def _cut(data: bytes, start: int, lengths: Sequence[int]) -> list[bytes]:
    if min(lengths, default=0) < 0 or start + sum(lengths) != len(data) - _SUM_BYTES:
        raise ValueError("its pieces are not as long as it says")
    pieces = []
    for length in lengths:
        pieces.append(data[start : start + length])
        start += length
    return pieces


class CheckpointFolder:
    """Blocking. Every method raises StorageError.

    It remembers which checkpoints are whole and which are damaged, so whoever saves has one object for all of a job.
    """

    def __init__(self, files: FileSystem, folder: str, *, bytes_max: int) -> None:
        """`bytes_max`: of the checkpoints that are kept, together."""
        self._files, self._folder, self._bytes_max = files, folder, bytes_max
        #: names of those that are known to be whole; of others that are damaged or no use to their owner
        self._whole: set[str] = set()
        self._useless: set[str] = set()

    def save(self, checkpoint: Checkpoint) -> int:
        """Write one; return its bytes. Raises CheckpointTooLarge.

        Damaged ones go, and then whole ones that are older than the last two. One that cannot be read now stays,
        beside these two.
        """
        parts = checkpoint.dump()
        size = sum(map(len, parts))
        if size * _KEPT > self._bytes_max:
            raise CheckpointTooLarge(
                f"a checkpoint of {size} bytes is more than half of the {self._bytes_max} bytes that a job's may take",
                path=self._folder,
            )
        name = f"{_PREFIX}{checkpoint.iteration:012d}"
        writer = self._files.create(f"{self._folder}/{name}", overwrite=True)
        try:
            for part in parts:
                writer.write(part)
        except BaseException:
            writer.abort()
            raise
        writer.close()
        self._whole.add(name)
        self._useless.discard(name)
        self._remove_others()
        return size

    def _remove_others(self) -> None:
        whole = 0
        useless: list[str] = []
        older: list[str] = []
        for path in reversed(self._paths()):
            if whole < _KEPT and self._is_whole(path):
                whole += 1
            elif name_of(path) in self._useless:
                useless.append(path)
            elif whole == _KEPT:
                older.append(path)
        for path in (*useless, *reversed(older)):
            self._files.delete(path)
            self._whole.discard(name_of(path))
            self._useless.discard(name_of(path))

    def _is_whole(self, path: str) -> bool:
        """Return whether one is known to be whole. It is read where that is not known yet."""
        if name_of(path) not in self._whole | self._useless:
            with suppress(StorageError):
                self._read(path)
        return name_of(path) in self._whole

    def remove_unfinished(self) -> None:
        """Remove what a writer that was killed has left. One that still writes fails then."""
        for entry in self._files.list(self._folder):
            if name_of(entry.path).startswith(_UNFINISHED):
                self._files.delete(entry.path)

    def last(self) -> tuple[Checkpoint | None, tuple[str, ...]]:
        """Return the last whole one, None where there is none; and a line for each that is damaged."""
        return self.last_as(lambda checkpoint: checkpoint)

    def last_as(self, read: Callable[[Checkpoint], T]) -> tuple[T | None, tuple[str, ...]]:
        """Return what `read` makes of the last whole one. One that it raises ValueError for is passed over, too."""
        lines: list[str] = []
        for path in reversed(self._paths()):
            try:
                return read(self._read(path)), tuple(lines)
            except (CorruptFile, CheckpointTooLarge) as error:
                lines.append(str(error))
            except ValueError as error:
                self._has_no_use(path)
                lines.append(f"{path}: {error}")
            except PathNotFound:
                continue  # whoever keeps the last two has removed it
        return None, tuple(lines)

    def _read(self, path: str) -> Checkpoint:
        """Raises CorruptFile for one that is damaged, CheckpointTooLarge for one that may be whole."""
        length = self._files.status(path).length
        if length > self._bytes_max:
            raise CheckpointTooLarge(f"{path} is larger than {self._bytes_max} bytes", path=path)
        data = b"".join(self._files.open_range(path, 0))
        if len(data) != length:
            raise StorageUnavailable(f"{path} has {length} bytes, and {len(data)} could be read: try again", path=path)
        try:
            found = Checkpoint.parse(data, path)
        except CorruptFile:
            self._has_no_use(path)
            raise
        self._whole.add(name_of(path))
        return found

    def _has_no_use(self, path: str) -> None:
        self._whole.discard(name_of(path))
        self._useless.add(name_of(path))

    def _paths(self) -> list[str]:
        """By iteration."""
        try:
            entries = self._files.list(self._folder)
        except PathNotFound:
            return []
        return sorted(
            entry.path
            for entry in entries
            if not entry.is_dir
            and name_of(entry.path).startswith(_PREFIX)
            and name_of(entry.path)[len(_PREFIX) :].isdigit()
        )
