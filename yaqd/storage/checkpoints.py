"""Checkpoints of a job in a folder on any storage: whole or not at all, the last two kept, a sum inside.

A file holds a header (JSON, small), pieces of bytes, and the SHA-256 of all before it. One that was cut short or
changed is passed over, and the one before it serves.
"""

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from yaqd.storage.errors import CorruptFile, PathNotFound, StorageError
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
    """Blocking. Every method raises StorageError."""

    def __init__(self, files: FileSystem, folder: str, *, bytes_max: int) -> None:
        """`bytes_max`: of the checkpoints that are kept, together."""
        self._files, self._folder, self._bytes_max = files, folder, bytes_max

    def save(self, checkpoint: Checkpoint) -> int:
        """Write one; return its bytes. Older ones than the last two go. Raises CheckpointTooLarge."""
        parts = checkpoint.dump()
        size = sum(map(len, parts))
        if size * _KEPT > self._bytes_max:
            raise CheckpointTooLarge(
                f"a checkpoint of {size} bytes is more than half of the {self._bytes_max} bytes that a job's may take",
                path=self._folder,
            )
        writer = self._files.create(f"{self._folder}/{_PREFIX}{checkpoint.iteration:012d}", overwrite=True)
        try:
            for part in parts:
                writer.write(part)
        except BaseException:
            writer.abort()
            raise
        writer.close()
        for path in self._paths()[:-_KEPT]:
            self._files.delete(path)
        return size

    def remove_unfinished(self) -> None:
        """Remove what a writer that was killed has left. One that still writes fails then."""
        for entry in self._files.list(self._folder):
            if name_of(entry.path).startswith(_UNFINISHED):
                self._files.delete(entry.path)

    def last(self) -> tuple[Checkpoint | None, tuple[str, ...]]:
        """Return the last whole one, None where there is none; and a line for each that is damaged."""
        lines: list[str] = []
        for path in reversed(self._paths()):
            try:
                return Checkpoint.parse(self._read(path), path), tuple(lines)
            except CorruptFile as error:
                lines.append(str(error))
            except PathNotFound:
                continue  # whoever keeps the last two has removed it
        return None, tuple(lines)

    def _read(self, path: str) -> bytes:
        if self._files.status(path).length > self._bytes_max:
            raise CorruptFile(f"{path} is larger than {self._bytes_max} bytes", path=path)
        return b"".join(self._files.open_range(path, 0))

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
