"""The records of an exploration (AppStatDB of the paper): a log in pieces on any storage, each whole or not there.

A piece holds the records of one write, a line each with its sum, and says where in the log it stands. Pieces are put
together as they become many. What is damaged ends the log: later records count on those before them.
"""

import json
import logging
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from yaqd.storage.errors import PathNotFound, StorageError
from yaqd.storage.filesystem import FileSystem
from yaqd.storage.paths import name_of

log = logging.getLogger(__name__)

VERSION: Final = 1
_PREFIX: Final = "log-"
_NAME: Final = re.compile(r"log-(\d{12})-(\d{12})")
#: of names that writers use until a file is whole
_UNFINISHED: Final = f".{_PREFIX}"
#: pieces of about one size that are put together
_MERGED: Final = 64

Record = Mapping[str, Any]


class OtherVersion(StorageError):
    """Another version of this program wrote the log."""


@dataclass(frozen=True, slots=True)
class Piece:
    first: int
    #: the number after its last record
    end: int
    #: how often it was put together
    level: int = 0

    @property
    def name(self) -> str:
        return f"{_PREFIX}{self.first:012d}-{self.end:012d}"


class ExplorationLog:
    """Blocking. Every method raises StorageError."""

    def __init__(self, files: FileSystem, folder: str) -> None:
        self._files, self._folder = files, folder
        self._pieces: list[Piece] = []

    @property
    def count(self) -> int:
        """Records so far."""
        return self._pieces[-1].end if self._pieces else 0

    # ---- reading

    def read(self) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
        """Return all records, and a line where some were damaged; these are left out, and all after them.

        Raises OtherVersion.
        """
        records: list[dict[str, Any]] = []
        notes: list[str] = []
        self._pieces = []
        found = self._found()
        while (piece := _next(found, len(records))) is not None:
            read, note = self._read_piece(piece)
            records += read
            if len(read) == piece.end - piece.first:
                self._pieces.append(piece)
                continue
            if read:
                self._pieces.append(Piece(piece.first, piece.first + len(read)))
            notes.append(note)
            break
        beyond = [piece for piece in found if piece.end > len(records) and piece not in self._pieces]
        if beyond and not notes:
            notes.append(f"records {len(records)} to {beyond[0].first - 1} are missing in {self._folder}")
        return records, tuple(f"{note}; {len(records)} records before it count" for note in notes)

    def _found(self) -> list[Piece]:
        try:
            entries = self._files.list(self._folder)
        except PathNotFound:
            return []
        names = [_NAME.fullmatch(name_of(entry.path)) for entry in entries if not entry.is_dir]
        return [Piece(int(name[1]), int(name[2])) for name in names if name is not None]

    def _read_piece(self, piece: Piece) -> tuple[list[dict[str, Any]], str]:
        path = f"{self._folder}/{piece.name}"
        lines = b"".join(self._files.open_range(path, 0)).split(b"\n")
        header = _parsed(lines[0])
        if header is None:
            return [], f"{path} is damaged in its first line"
        if header.get("version") != VERSION:
            raise OtherVersion(f"{path} has version {header.get('version')!r}; this program reads {VERSION}", path=path)
        records: list[dict[str, Any]] = []
        for place, line in enumerate(lines[1 : 1 + piece.end - piece.first], 2):
            record = _parsed(line)
            if record is None:
                return records, f"{path} is damaged in line {place}"
            records.append(record)
        return records, f"{path} was cut short"

    def repair(self, records: Sequence[Record]) -> None:
        """Have storage hold these records and nothing else, so that new ones can follow."""
        known = {piece.name for piece in self._pieces}
        for entry in self._files.list(self._folder):
            name = name_of(entry.path)
            if name.startswith(_UNFINISHED) or (_NAME.fullmatch(name) and name not in known):
                self._files.delete(entry.path)
        for piece in self._pieces:
            if not self._files.exists(f"{self._folder}/{piece.name}"):
                self._write(piece, _lines(records[piece.first : piece.end]))

    # ---- writing

    def append(self, records: Sequence[Record]) -> None:
        """Write records behind the others; all of them are there then, or none."""
        piece = Piece(self.count, self.count + len(records))
        self._write(piece, _lines(records))
        self._pieces.append(piece)
        level = 0
        while self._is_many(level):
            try:
                self._merge(level)
            except StorageError as error:  # the records are there; what is put together saves reads alone
                log.warning("pieces of the records stay apart: %s", error)
                return
            level += 1

    def _write(self, piece: Piece, body: bytes) -> None:
        header = _line({"exploration": True, "version": VERSION, "first": piece.first})
        writer = self._files.create(f"{self._folder}/{piece.name}", overwrite=True)
        try:
            writer.write(header + body)
        except BaseException:
            writer.abort()
            raise
        writer.close()

    def _is_many(self, level: int) -> bool:
        return len(self._pieces) >= _MERGED and all(piece.level == level for piece in self._pieces[-_MERGED:])

    def _merge(self, level: int) -> None:
        parts = self._pieces[-_MERGED:]
        bodies = []
        for part in parts:
            data = b"".join(self._files.open_range(f"{self._folder}/{part.name}", 0))
            bodies.append(data[data.index(b"\n") + 1 :])
        merged = Piece(parts[0].first, parts[-1].end, level + 1)
        self._write(merged, b"".join(bodies))
        self._pieces[-_MERGED:] = [merged]
        for part in parts:
            self._files.delete(f"{self._folder}/{part.name}")


def _next(found: Iterable[Piece], first: int) -> Piece | None:
    """Return the longest piece that begins there: shorter ones were put together in it."""
    able = [piece for piece in found if piece.first == first and piece.end > first]
    return max(able, key=lambda piece: piece.end, default=None)


def _line(record: Record) -> bytes:
    body = json.dumps(record, separators=(",", ":")).encode("ascii")
    return b"%08x %b\n" % (zlib.crc32(body), body)


def _lines(records: Iterable[Record]) -> bytes:
    return b"".join(map(_line, records))


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line; None for a damaged one."""
    body = line[9:]
    if line[:9] != b"%08x " % zlib.crc32(body):
        return None
    try:
        record = json.loads(body)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
