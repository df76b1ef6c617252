"""The files of a merge: opening map outputs that containers have made, and letting a merged file appear whole.

Containers may write into their application's folder, so no link is followed on the way to a file: every component is
opened relative to the one before.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from riffle_merger.format.errors import NO_ROOM, FormatError
from riffle_merger.format.index import SpillIndex
from riffle_merger.format.merged import DATA_SUFFIX, INDEX_SUFFIX, MERGED_FOLDER, MergedIndex
from riffle_merger.merger.errors import MergeError, NotMergeable
from riffle_merger.merger.window import Counts, Input, write_view
from riffle_merger.plan.buffers import WRITE_BYTES

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_MODE = 0o640
_FOLDER_MODE = 0o710
_TEMPORARY = "."


@dataclass(frozen=True, slots=True)
class Survey:
    """What a merge is going to take, before anything is opened for long. Bytes."""

    data_bytes: int
    index_bytes: int


def survey(folders: Sequence[Path], map_ids: Sequence[str]) -> Survey:
    """Sums up what these outputs have in bytes. Blocking. Raises NotMergeable when an output is missing."""
    data_bytes = index_bytes = 0
    for map_id in map_ids:
        with _output_folder(folders, map_id) as (folder, _):
            try:
                data_bytes += os.stat("file.out", dir_fd=folder, follow_symlinks=False).st_size
                index_bytes += os.stat("file.out.index", dir_fd=folder, follow_symlinks=False).st_size
            except OSError as error:
                raise NotMergeable(f"{map_id}: {error.strerror}") from None
    return Survey(data_bytes, index_bytes)


@contextlib.contextmanager
def _output_folder(folders: Sequence[Path], map_id: str) -> Iterator[tuple[int, Path]]:
    """A descriptor of the map output's folder, and the application's folder that it is in."""
    for root in folders:
        with contextlib.ExitStack() as stack:
            try:
                folder = _open_folder(stack, root, None)
                for name in ("output", map_id):
                    folder = _open_folder(stack, name, folder)
                os.stat("file.out.index", dir_fd=folder, follow_symlinks=False)
            except OSError:
                continue
            yield folder, root
            return
    raise NotMergeable(f"no output of {map_id} on this node")


def _open_folder(stack: contextlib.ExitStack, path: Path | str, parent: int | None) -> int:
    descriptor = os.open(path, _FOLDER_FLAGS, dir_fd=parent)
    stack.callback(os.close, descriptor)
    return descriptor


def open_inputs(
    stack: contextlib.ExitStack, folders: Sequence[Path], map_ids: Sequence[str], counts: Counts
) -> tuple[list[Input], Path]:
    """Opens all inputs, checked against each other and their indexes. Blocking. Raises NotMergeable.

    Returns them, and the application's folder of the first. They are closed with the stack.
    """
    inputs, home = [], None
    for map_id in map_ids:
        with _output_folder(folders, map_id) as (folder, root):
            inputs.append(_open_input(stack, folder, map_id, counts))
            home = home or root
    if home is None:
        raise NotMergeable("no map outputs are named")
    partitions = {len(source.index) for source in inputs}
    if len(partitions) != 1:
        raise NotMergeable(f"the outputs have {sorted(partitions)} partitions")
    return inputs, home


def _open_input(stack: contextlib.ExitStack, folder: int, map_id: str, counts: Counts) -> Input:
    try:
        with open(os.open("file.out.index", _READ_FLAGS, dir_fd=folder), "rb") as file:
            index = SpillIndex.read(file, name=map_id)
        counts.read()
        descriptor = os.open("file.out", _READ_FLAGS, dir_fd=folder)
        stack.callback(os.close, descriptor)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotMergeable(f"{map_id}: file.out is no file")
        index.check_file(status.st_size, name=map_id)
        stored_bytes = index.stored_bytes
        if stored_bytes > status.st_size:  # a few bytes named often would become a merged file of any size
            raise NotMergeable(
                f"{map_id}: its segments lie over each other: the index names {stored_bytes} bytes, "
                f"the file has {status.st_size}"
            )
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    except FormatError as error:
        raise NotMergeable(str(error)) from None
    except OSError as error:
        raise NotMergeable(f"{map_id}: {error.strerror}") from None
    return Input(map_id, descriptor, index)


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _percent_with(length: int, folder: int) -> float:
    """How full a disk is, of what users may have, once it has taken so many bytes more."""
    found = os.statvfs(folder)
    used = found.f_blocks - found.f_bfree + length / found.f_frsize
    return 100 * used / max(1, used + max(0, found.f_bavail - length / found.f_frsize))


class Output:
    """A merged file that nobody sees until `publish`; leaving the context without it leaves nothing."""

    def __init__(self, home: Path, name: str, length: int, *, disk_max_percent: float = 100.0) -> None:
        """`home`: the application's folder on the disk that takes the file, unless that would make the disk fuller
        than `disk_max_percent`. Blocking. Raises MergeError."""
        self.path = home / MERGED_FOLDER / f"{name}{DATA_SUFFIX}"
        self._name = name
        self._stack = contextlib.ExitStack()
        self._temporaries: list[str] = []
        #: bytes written before the stretch that is being written, and in it
        self._begun = self._stretch = 0
        try:
            parent = _open_folder(self._stack, home, None)
            with contextlib.suppress(FileExistsError):
                os.mkdir(MERGED_FOLDER, _FOLDER_MODE, dir_fd=parent)
            self._folder = _open_folder(self._stack, MERGED_FOLDER, parent)
            if any(_exists(self._name + suffix, self._folder) for suffix in (DATA_SUFFIX, INDEX_SUFFIX)):
                raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
            if _percent_with(length, self._folder) > disk_max_percent:
                raise OSError(errno.ENOSPC, f"its disk would be fuller than {disk_max_percent:.0f}%")
            self.descriptor = self._create(DATA_SUFFIX)
            if length:
                os.posix_fallocate(self.descriptor, 0, length)
        except OSError as error:
            self.close()
            raise self.failed(error) from None

    def write(self, view: memoryview, counts: Counts, *, sync: bool) -> None:
        """Adds to the file. What is added makes requests of WRITE_BYTES, begun with `end_stretch`. Blocking. Raises
        MergeError."""
        try:
            write_view(self.descriptor, view, self._begun + self._stretch)
        except OSError as error:
            raise self.failed(error) from None
        self._stretch += len(view)
        if self._stretch >= WRITE_BYTES:
            self.end_stretch(counts, sync=sync)

    def end_stretch(self, counts: Counts, *, sync: bool) -> None:
        """Counts what was written since the last time as one request. `sync`: the disk begins with it at once."""
        if not self._stretch:
            return
        try:
            if sync:  # what is dirty is not dropped by this, but put on its way
                os.posix_fadvise(self.descriptor, self._begun, self._stretch, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            raise self.failed(error) from None
        counts.written()
        self._begun, self._stretch = self._begun + self._stretch, 0

    def publish(self, index: MergedIndex, counts: Counts, *, sync: bool) -> None:
        """Has the merged file appear, then its index. Blocking. Raises MergeError.

        `sync`: both are on the disk before.
        """
        try:
            index.check_file(os.fstat(self.descriptor).st_size, name=str(self.path))
            descriptor = self._create(INDEX_SUFFIX)
            with open(descriptor, "wb", buffering=0, closefd=False) as file:
                data = index.to_bytes()
                if file.write(data) != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            counts.written()
            if sync:
                os.fsync(self.descriptor)
                os.fsync(descriptor)
            for suffix in (DATA_SUFFIX, INDEX_SUFFIX):
                temporary = f"{_TEMPORARY}{self._name}{suffix}"
                os.rename(temporary, self._name + suffix, src_dir_fd=self._folder, dst_dir_fd=self._folder)
                self._temporaries.remove(temporary)
        except FormatError as error:
            raise MergeError(str(error)) from None
        except OSError as error:
            raise self.failed(error) from None

    def failed(self, error: OSError) -> MergeError:
        full = f"; {NO_ROOM}" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return MergeError(f"{self.path}: {error.strerror}{full}")

    def close(self) -> None:
        for temporary in self._temporaries:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=self._folder)
        self._temporaries.clear()
        self._stack.close()

    def _create(self, suffix: str) -> int:
        name = f"{_TEMPORARY}{self._name}{suffix}"
        descriptor = os.open(name, _WRITE_FLAGS, _FILE_MODE, dir_fd=self._folder)
        self._stack.callback(os.close, descriptor)
        self._temporaries.append(name)
        return descriptor


def clear_temporaries(folders: Sequence[Path]) -> int:
    """Deletes what a merger that was killed left half-written in an application's folders; how many files. Blocking."""
    count = 0
    for root in folders:
        with contextlib.ExitStack() as stack:
            try:
                folder = _open_folder(stack, MERGED_FOLDER, _open_folder(stack, root, None))
                names = os.listdir(folder)  # noqa: PTH208
            except OSError:
                continue
            # a data file without its index was between the two renames: nobody will ever look at it
            published = {name.removesuffix(INDEX_SUFFIX) for name in names if name.endswith(INDEX_SUFFIX)}
            for name in names:
                is_orphan = name.endswith(DATA_SUFFIX) and name.removesuffix(DATA_SUFFIX) not in published
                if name.startswith(_TEMPORARY) or is_orphan:
                    with contextlib.suppress(OSError):
                        os.unlink(name, dir_fd=folder)
                        count += 1
    return count
