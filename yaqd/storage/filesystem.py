"""One face for every file system: what jobs, daemons and tools may do with files.

All calls block; daemons run them in threads, tasks and commands call them directly. Paths are absolute paths or full
URIs as text. Every error is a `StorageError`. A file appears under its name when its writer is closed: whole, or not at
all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

#: size of the pieces that `open_range` yields, at most
CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FileStatus:
    #: full URI
    path: str
    #: bytes; 0 for a folder
    length: int
    is_dir: bool
    mtime_ms: int
    #: bytes that a split of this file has by default; 0 for a folder
    block_size: int
    owner: str
    group: str
    #: permission bits, such as 0o644
    mode: int
    is_symlink: bool = False


@dataclass(frozen=True, slots=True)
class BlockLocation:
    """A piece of a file and the hosts that keep it."""

    offset: int
    length: int
    hosts: tuple[str, ...]


class ByteReader(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...
    def close(self) -> None: ...


class PositionedReader(Protocol):
    """An open file, read at any place; each call is one request to whoever keeps the file. For one thread at a time."""

    #: bytes of the file when it was opened
    length: int

    def read_at(self, offset: int, length: int) -> bytes:
        """Return so many bytes from there on. Raise StorageError where the file has fewer."""
        ...

    def stream_at(self, offset: int, length: int) -> Iterator[bytes]:
        """Return the same bytes in pieces, of which none is much larger than CHUNK_BYTES. Close it to stop reading."""
        ...

    def close(self) -> None: ...


class ByteWriter(Protocol):
    """Appends; `close` publishes the file, `abort` leaves nothing behind."""

    def write(self, data: bytes | bytearray, /) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class FileSystem(Protocol):
    #: scheme://authority
    uri: str
    #: file or hdfs: the prefix of its counters
    scheme: str

    def open(self, path: str) -> ByteReader: ...

    def open_range(self, path: str, start: int, length: int | None = None) -> Iterator[bytes]:
        """Return the bytes from `start`, `length` of them or all to the end, in pieces of up to CHUNK_BYTES.

        Ends early where the file does. Close the iterator to stop reading.
        """
        ...

    def open_at(self, path: str) -> PositionedReader: ...

    def create(
        self, path: str, *, overwrite: bool = False, make_parents: bool = True, replication: int = 0
    ) -> ByteWriter:
        """Create a file. `replication`: copies, where a file system keeps several; 0: as configured. Without
        `make_parents` the folder must be there: who writes into one that may be deleted meanwhile does not bring it
        back."""
        ...

    def mkdirs(self, path: str, mode: int = 0o755, *, make_parents: bool = True) -> None:
        """Make a folder. One that stands already is no error. PathNotFound without the one above it, unless
        `make_parents`."""
        ...

    def rename(self, src: str, dst: str, *, overwrite: bool = False) -> None:
        """Move a file or folder in one step. PathExists if `dst` stands, unless `overwrite` (files only)."""
        ...

    def delete(self, path: str, recursive: bool = False) -> bool:
        """Return whether there was something to delete. StorageError for a folder with entries unless `recursive`."""
        ...

    def set_mode(self, path: str, mode: int) -> None:
        """Set exactly these permission bits, whatever the umask; a sticky bit is 0o1000."""
        ...

    def set_group(self, path: str, group: str) -> None: ...

    def check_may_create_in(self, folder: str) -> None:
        """Raise PathDenied unless the caller may make files and folders in a folder that is there."""
        ...

    def exists(self, path: str) -> bool: ...
    def status(self, path: str) -> FileStatus: ...

    def block_locations(self, path: str, start: int, length: int) -> list[BlockLocation]: ...

    def list(self, path: str) -> list[FileStatus]:
        """Return what stands in a folder, sorted by name; the file itself for a file."""
        ...
