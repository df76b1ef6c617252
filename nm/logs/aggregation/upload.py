"""Bringing an application's logs from this node's disks to the file system, as the application's user. Blocking.

The user's folders are made where they are missing. The file is written as `.tmp` and renamed when it is complete, so
that readers, who skip `.tmp`, see it whole or not at all.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from nm.logs.files import OpenLog, open_log
from yaqd.config import Configuration
from yaqd.model import ApplicationId, ContainerId, NodeId
from yaqd.storage import FileSystem, PathExists, PathNotFound, StorageError, get_filesystem
from yaqd.storage.paths import join, name_of
from yaqd.storage.tfile import AggregatedLogWriter, LogContent, RemoteLogs
from yaqd.storage.tfile.layout import node_file

_ROOT_MODE: Final = 0o1777
_FOLDER_MODE: Final = 0o770
_FILE_MODE: Final = 0o640
_READ_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Upload:
    """What one upload needs to know; plain values, so that another process can do it."""

    user: str
    application: str
    node: str
    compression: str
    acls: dict[str, str]
    log_dirs: list[str]
    #: container and file name, those of a container together; none: only the folders are made
    files: list[tuple[str, str]]
    #: epoch ms for the file's name in rolling mode, else None
    time_ms: int | None
    #: names the file where one with its name stands already, epoch ms
    now_ms: int
    #: of this node and application, the new one among them
    files_max: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Upload":
        return cls(**{**fields, "files": [(container, name) for container, name in fields["files"]]})


def make_root(conf: Configuration, remote: RemoteLogs, group: str) -> str | None:
    """Makes the folder that all users' folders stand in; a warning where it is not as it should be. StorageError."""
    filesystem = get_filesystem(remote.root, conf)
    try:
        mode = filesystem.status(remote.root).mode
        if mode != _ROOT_MODE:
            return f"{remote.root} has mode {mode:o}, not {_ROOT_MODE:o}: users may not be able to write there"
        return None
    except PathNotFound:
        filesystem.mkdirs(remote.root, _ROOT_MODE)
        filesystem.set_mode(remote.root, _ROOT_MODE)
    if group:
        try:
            filesystem.set_group(remote.root, group)
        except StorageError as error:
            return f"{remote.root} cannot be given to group {group}: {error}"
    return None


def upload(work: Upload, conf: Configuration) -> str | None:
    """Uploads the logs and returns the new file's name; None when there was nothing to write. Raises StorageError."""
    remote = RemoteLogs.read(conf)
    application = ApplicationId.parse(work.application)
    filesystem = get_filesystem(remote.root, conf, user=work.user)
    try:
        folders = remote.folders(work.user, application)
    except ValueError as error:
        raise StorageError(str(error)) from None
    _make_folders(filesystem, folders)
    if not work.files:
        return None
    name = node_file(NodeId.parse(work.node))
    folder = folders[-1]
    if work.time_ms is not None:
        _delete_oldest(filesystem, folder, name, work.files_max - 1)
        name = f"{name}_{work.time_ms}"
    final = join(folder, name)
    unfinished = f"{final}.tmp"
    _write(filesystem, unfinished, work)
    filesystem.set_mode(unfinished, _FILE_MODE)
    try:
        filesystem.rename(unfinished, final)
    except PathExists:  # an earlier life of this node has uploaded too: nothing is lost, readers read both
        final = f"{final}_{work.now_ms}"
        filesystem.rename(unfinished, final)
    return final


def _make_folders(filesystem: FileSystem, folders: tuple[str, ...]) -> None:
    """From the first that stands, downwards; the modes of those that stood above it are their owners' business."""
    missing: list[str] = []
    for folder in reversed(folders):
        try:
            mode = filesystem.status(folder).mode
        except PathNotFound:
            missing.append(folder)
            continue
        if mode != _FOLDER_MODE:
            filesystem.set_mode(folder, _FOLDER_MODE)
        break
    for folder in reversed(missing):
        filesystem.mkdirs(folder, _FOLDER_MODE)
        filesystem.set_mode(folder, _FOLDER_MODE)  # the umask may have taken bits away


def _delete_oldest(filesystem: FileSystem, folder: str, name: str, keep: int) -> None:
    mine = [
        status
        for status in filesystem.list(folder)
        if name_of(status.path).startswith(f"{name}_") and not status.path.endswith(".tmp")
    ]
    mine.sort(key=lambda status: (status.mtime_ms, status.path))
    for status in mine[: max(0, len(mine) - keep)]:
        filesystem.delete(status.path)


def _write(filesystem: FileSystem, path: str, work: Upload) -> None:
    out = filesystem.create(path, overwrite=True)
    try:
        logs = AggregatedLogWriter(out.write, owner=work.user, acls=work.acls, compression=work.compression)
        for container, files in groupby(work.files, key=lambda file: file[0]):
            contents = _contents([Path(root) for root in work.log_dirs], container, [name for _, name in files])
            first = next(contents, None)
            if first is not None:
                logs.add_container(container, _chained(first, contents))
        logs.close()
        out.close()
    except BaseException:
        out.abort()
        raise


def _chained(first: LogContent, others: Iterator[LogContent]) -> Iterator[LogContent]:
    yield first
    yield from others


def _contents(log_dirs: list[Path], container: str, names: list[str]) -> Iterator[LogContent]:
    """Each file as it is when its turn comes; those that are gone by then are left out."""
    container_id = ContainerId.parse(container)
    for name in names:
        log = open_log(log_dirs, container_id, name)
        if log is None:
            continue
        try:
            yield LogContent(name, log.size_bytes, _pieces(log))
        finally:
            log.close()


def _pieces(log: OpenLog) -> Iterator[bytes]:
    offset = 0
    while offset < log.size_bytes:
        data = log.read(min(_READ_BYTES, log.size_bytes - offset), offset)
        if not data:
            return
        offset += len(data)
        yield data
