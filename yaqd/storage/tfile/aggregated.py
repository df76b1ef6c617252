"""The records of an aggregated log file, as Hadoop's AggregatedLogFormat: three of the application, one per container.

A container's value is its files one after the other: name, length in decimal, bytes. Java's writeUTF frames the texts,
the keys too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from yaqd.storage.tfile.primitives import BadTFile, ByteStream, decode_utf, encode_utf
from yaqd.storage.tfile.reader import ByteSource, TFileReader
from yaqd.storage.tfile.writer import TFileWriter

_VERSION_KEY: Final = "VERSION"
_ACL_KEY: Final = "APPLICATION_ACL"
_OWNER_KEY: Final = "APPLICATION_OWNER"
_VERSION: Final = b"\0\0\0\1"
_LENGTH_DIGITS_MAX: Final = 18
_ACL_ENTRIES_MAX: Final = 100
_PAD: Final = bytes(64 << 10)


@dataclass(frozen=True, slots=True)
class LogContent:
    """One file to write: what `pieces` holds beyond `size_bytes` is cut, what it lacks is filled with NULs."""

    name: str
    size_bytes: int
    pieces: Iterable[bytes]


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """One file of one container."""

    container: str
    name: str
    size_bytes: int


class AggregatedLogWriter:
    def __init__(
        self, write: Callable[[bytes], None], *, owner: str, acls: Mapping[str, str], compression: str = "none"
    ) -> None:
        """`acls` are texts by VIEW_APP and MODIFY_APP; empty when the launch context had none."""
        self._tfile = TFileWriter(write, compression=compression)
        self._tfile.append(encode_utf(_VERSION_KEY), [_VERSION])
        self._tfile.append(encode_utf(_ACL_KEY), [encode_utf(text) for entry in acls.items() for text in entry])
        self._tfile.append(encode_utf(_OWNER_KEY), [encode_utf(owner)])

    def add_container(self, container: str, files: Iterable[LogContent]) -> None:
        """Call it once for each container."""
        self._tfile.append(encode_utf(container), (piece for file in files for piece in _framed(file)))

    def close(self) -> None:
        self._tfile.close()


def _framed(file: LogContent) -> Iterator[bytes]:
    yield encode_utf(file.name) + encode_utf(str(file.size_bytes))
    missing = file.size_bytes
    for piece in file.pieces:
        if missing <= 0:
            return
        yield piece[:missing]
        missing -= len(piece)
    while missing > 0:  # it became shorter: the length is written already
        yield _PAD[:missing]
        missing -= len(_PAD)


class AggregatedLogReader:
    """What one node uploaded of one application, at once or in one cycle."""

    def __init__(self, source: ByteSource) -> None:
        """Raises BadTFile, or StorageError where the file cannot be read."""
        self._tfile = TFileReader(source)
        self._name = source.name
        #: "" and empty until `files` has passed their records, which stand first in what Hadoop writes
        self.owner = ""
        self.acls: dict[str, str] = {}

    def files(self) -> Iterator[tuple[LoggedFile, Iterator[bytes]]]:
        """Return each file with its bytes, to be read before the next one is asked for. Raises BadTFile."""
        missing = {_VERSION_KEY, _ACL_KEY, _OWNER_KEY}
        for key, value in self._tfile.records():
            name = _key_text(key)
            if name in missing:
                missing.discard(name)
                self._take_header(name, value)
            else:
                yield from _files(name, value)
        if missing:
            raise BadTFile(f"{self._name}: it has no record {', '.join(sorted(missing))}", path=self._name)

    def _take_header(self, name: str, value: ByteStream) -> None:
        if name == _VERSION_KEY:
            version = int.from_bytes(value.take(4), "big")
            if version != 1:
                raise BadTFile(f"{self._name}: log format {version} is not supported, only 1", path=self._name)
        elif name == _OWNER_KEY:
            self.owner = value.utf()
        else:
            while not value.is_at_end():
                kind = value.utf()
                self.acls[kind] = value.utf()
                if len(self.acls) > _ACL_ENTRIES_MAX:
                    raise BadTFile(f"{self._name}: more than {_ACL_ENTRIES_MAX} access control lists", path=self._name)


def _key_text(key: bytes) -> str:
    if int.from_bytes(key[:2], "big") != len(key) - 2:
        raise BadTFile(f"the key {key[:80]!r} is not a text of its length")
    return decode_utf(key[2:])


def _files(container: str, value: ByteStream) -> Iterator[tuple[LoggedFile, Iterator[bytes]]]:
    while not value.is_at_end():
        name = value.utf()
        digits = value.utf()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _LENGTH_DIGITS_MAX):
            raise BadTFile(f"{container}/{name[:80]}: its length is {digits[:40]!r}")
        content = value.pass_on(int(digits))
        yield LoggedFile(container, name, int(digits)), content
        for _ in content:
            pass
