"""Bringing one resource to the node: checks at the source, copy, unpacking, modes. Blocking; runs in a fetch thread."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

from nm.containers.diagnostics import NO_ROOM, is_disk_full
from nm.launch.context import LocalResource
from nm.localizer.archives import ArchiveLimits, BadArchive, copy_into, set_modes, unpack
from yaqd.config import Configuration
from yaqd.model import LocalResourceType, LocalResourceVisibility
from yaqd.storage.errors import StorageError
from yaqd.storage.filesystem import FileStatus, FileSystem
from yaqd.storage.opening import get_filesystem

_WORLD_READ = 0o004
_WORLD_EXECUTE = 0o001


class FetchFailed(Exception):
    """The resource is not as the launch context says, or could not be read; the text is for diagnostics."""

    def __init__(self, text: str, *, is_disk_full: bool = False) -> None:
        super().__init__(text)
        #: nothing is wrong with it: this node has no room for it
        self.is_disk_full = is_disk_full


@dataclass(frozen=True, slots=True)
class Fetched:
    #: file or folder that the container's link points to
    path: Path
    #: on this node's disk
    size_bytes: int


def fetch(resource: LocalResource, folder: Path, conf: Configuration, limits: ArchiveLimits, *, user: str) -> Fetched:
    """Makes `folder` with the resource in it, whole or not at all. Raises FetchFailed."""
    partial = folder.with_name(folder.name + "_tmp")
    is_full = False
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        name, size = _fetch_into(resource, partial, conf, limits, user)
        partial.rename(folder)
        return Fetched(folder / name, size)
    except BadArchive as error:
        failure = f"Resource {resource.url}: {error}"
    except StorageError as error:
        failure = f"Resource {resource.url}: {error}"
    except OSError as error:
        is_full = is_disk_full(error)
        failure = f"Resource {resource.url} cannot be stored in {folder}: {error.strerror or error}"
        if is_full:
            failure += f"; {NO_ROOM}"
    except FetchFailed as error:
        failure = str(error)
    shutil.rmtree(partial, ignore_errors=True)
    raise FetchFailed(failure, is_disk_full=is_full)


def _fetch_into(
    resource: LocalResource, folder: Path, conf: Configuration, limits: ArchiveLimits, user: str
) -> tuple[str, int]:
    name = PurePosixPath(resource.url).name
    if not name or name in (".", ".."):
        raise FetchFailed(f"Resource {resource.url} names no file")
    system = get_filesystem(resource.url, conf, user=user)
    status = system.status(resource.url)
    if status.mtime_ms != resource.timestamp_ms:
        raise FetchFailed(
            f'Resource {resource.url} changed on src filesystem - expected: "{_iso8601(resource.timestamp_ms)}", '
            f'was: "{_iso8601(status.mtime_ms)}", current time: "{_iso8601(int(time.time() * 1000))}"'
        )
    is_public = resource.visibility is LocalResourceVisibility.PUBLIC
    if is_public:
        _check_public(system, resource.url, status, limits)
    target = folder / name
    if status.is_dir or resource.type is LocalResourceType.FILE:
        _copy(system, resource.url, status, target, _Budget(limits))
    else:
        _copy_archive(system, resource, status, target, limits)
    return name, set_modes(target, is_public=is_public)


def _copy_archive(
    system: FileSystem, resource: LocalResource, status: FileStatus, target: Path, limits: ArchiveLimits
) -> None:
    """Leaves a folder of the archive's name, or the plain file when the name is no archive's."""
    packed = target.parent / ".packed" / target.name
    packed.parent.mkdir()
    _copy(system, resource.url, status, packed, _Budget(limits))
    is_pattern = resource.type is LocalResourceType.PATTERN
    if not unpack(packed, target, limits, pattern=resource.pattern if is_pattern else ""):
        packed.rename(target)
    elif is_pattern and packed.name.lower().endswith(".jar"):
        copy_into(packed, target)
    shutil.rmtree(packed.parent)


class _Budget:
    def __init__(self, limits: ArchiveLimits) -> None:
        self._limits = limits
        self._entries = 0

    def entry(self) -> None:
        self._entries += 1
        if self._entries > self._limits.max_entries:
            raise FetchFailed(f"folder with more than {self._limits.max_entries} entries")


def _copy(system: FileSystem, url: str, status: FileStatus, target: Path, budget: _Budget) -> None:
    budget.entry()
    if status.is_dir:
        target.mkdir()
        for child in system.list(url):
            _copy(system, child.path, child, target / PurePosixPath(child.path).name, budget)
        return
    copied = 0
    with open(target, "xb") as file:
        write: Callable[[bytes], int] = file.write
        for chunk in system.open_range(url, 0):
            copied += write(chunk)
    if copied != status.length:
        raise FetchFailed(f"Resource {url} has {status.length} bytes, {copied} came")


def _check_public(system: FileSystem, url: str, status: FileStatus, limits: ArchiveLimits) -> None:
    """Everybody may read it at its source, with all that is below it, or it must not be shared between users here."""
    closed = _closed_below(system, url, status, _Budget(limits))
    parent = url.rpartition("/")[0]
    while closed is None and parent and not parent.endswith("/"):
        if not system.status(parent).mode & _WORLD_EXECUTE:
            closed = parent
        parent = parent.rpartition("/")[0]
    if closed is not None:
        raise FetchFailed(
            f"Resource {url} is not publicly accessible and as such cannot be part of the public cache. Let others "
            f"into {closed}, or make it PRIVATE."
        )


def _closed_below(system: FileSystem, url: str, status: FileStatus, budget: _Budget) -> str | None:
    """What others cannot read: the file, the folder, or the first such thing in it."""
    budget.entry()
    needed = _WORLD_READ | _WORLD_EXECUTE if status.is_dir else _WORLD_READ
    if status.mode & needed != needed:
        return url
    if not status.is_dir:
        return None
    below = (_closed_below(system, child.path, child, budget) for child in system.list(url))
    return next((closed for closed in below if closed is not None), None)


def _iso8601(epoch_ms: int) -> str:
    """In this machine's time zone, as Hadoop's `Times.formatISO8601`; a time that no calendar has stays a number."""
    try:
        moment = datetime.fromtimestamp(epoch_ms // 1000).astimezone()
    except (OverflowError, ValueError, OSError):
        return str(epoch_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{epoch_ms % 1000:03d}{moment:%z}"
