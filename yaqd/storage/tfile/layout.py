"""Where aggregated logs lie, as Hadoop's LogAggregationTFileController and LogAggregationUtils name it.

`ROOT/USER/bucket-SUFFIX/BUCKET/APPLICATION/HOST_PORT`, and `ROOT/USER/SUFFIX/APPLICATION/…` from before there were
buckets, which readers look into too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from yaqd.config import Configuration
from yaqd.model import ApplicationId, NodeId
from yaqd.storage.errors import PathNotFound, StorageError
from yaqd.storage.filesystem import FileStatus, FileSystem
from yaqd.storage.paths import join, name_of, qualify

_CONTROLLER: Final = "TFile"
_BUCKETS: Final = 10_000
#: being written, or left behind by a writer that died
_UNFINISHED: Final = ".tmp"
_PLAIN_USER: Final = re.compile(r"[^/\0]{1,255}\Z")


@dataclass(frozen=True, slots=True)
class RemoteLogs:
    #: full URI
    root: str
    #: last part of the name of a user's folder
    suffix: str
    older_suffix: str
    include_older: bool

    @classmethod
    def read(cls, conf: Configuration) -> "RemoteLogs":
        """Read where logs are. Raises ConfigError, and StorageError for a folder that is no path."""
        prefix = f"yarn.log-aggregation.{_CONTROLLER}.remote-app-log-dir"
        common = conf.get("yarn.nodemanager.remote-app-log-dir-suffix") or "logs"
        root = conf.get(prefix) or conf.require("yarn.nodemanager.remote-app-log-dir")
        suffix = conf.get(f"{prefix}-suffix") or f"{common}-{_CONTROLLER.lower()}"
        include_older = conf.get_bool("yarn.nodemanager.remote-app-log-dir-include-older")
        return cls(qualify(root, conf), suffix, common, include_older)

    def folders(self, user: str, application: ApplicationId) -> tuple[str, ...]:
        """List the folders from the user's down to the application's, in which the nodes' files stand.

        Raises ValueError for a user whose name is no folder's.
        """
        if not _PLAIN_USER.match(user) or user in (".", ".."):
            raise ValueError(f"user name {user[:80]!r} cannot be a folder's name")
        folders = [self.root]
        for name in (user, f"bucket-{self.suffix}", f"{application.id % _BUCKETS:04d}", str(application)):
            folders.append(join(folders[-1], name))
        return tuple(folders[1:])

    def places(self, user: str, application: ApplicationId) -> list[str]:
        """Return the folders in which the application's files may stand."""
        own = self.folders(user, application)
        return [own[-1], join(own[0], self.older_suffix, str(application))] if self.include_older else [own[-1]]

    def find(self, filesystem: FileSystem, user: str, application: ApplicationId) -> list[FileStatus]:
        """Return the complete files of all nodes, by name. [] where there are none. Raises StorageError.

        Where there is nothing under the configured names, all of the user's folders are tried: other nodes may have
        been configured with another suffix.
        """
        found = _files(filesystem, self.places(user, application))
        if not found:
            found = _files(filesystem, self._other_places(filesystem, user, application))
        return sorted(found, key=lambda status: name_of(status.path))

    def _other_places(self, filesystem: FileSystem, user: str, application: ApplicationId) -> list[str]:
        tried = self.places(user, application)
        places = []
        for status in _listed(filesystem, join(self.root, user)):
            if status.is_dir:
                places.append(join(status.path, f"{application.id % _BUCKETS:04d}", str(application)))
                places.append(join(status.path, str(application)))
        return [place for place in places if place not in tried]

    def owners(self, filesystem: FileSystem, application: ApplicationId) -> Iterator[str]:
        """Return users who have a folder of the application, for one that the ResourceManager has forgotten."""
        for status in filesystem.list(self.root) if filesystem.exists(self.root) else []:
            user = name_of(status.path)
            try:
                if status.is_dir and self.find(filesystem, user, application):
                    yield user
            except StorageError:
                continue  # somebody else's folder


def _files(filesystem: FileSystem, places: list[str]) -> list[FileStatus]:
    found: list[FileStatus] = []
    for place in places:
        listed = _listed(filesystem, place)
        found.extend(status for status in listed if not status.is_dir and _is_complete(name_of(status.path)))
    return found


def _is_complete(name: str) -> bool:
    """No file that is being written; nor one that Hadoop's local file system keeps checksums in, `.NAME.crc`."""
    return not name.endswith(_UNFINISHED) and not name.startswith(".")


def _listed(filesystem: FileSystem, place: str) -> list[FileStatus]:
    try:
        return filesystem.list(place)
    except PathNotFound:
        return []


def node_file(node: NodeId) -> str:
    """Return the name of a node's file; readers look for exactly this in it."""
    return str(node).replace(":", "_")


def node_of(path: str) -> str:
    """Return the node that a file is of, `host:port`; its name where that says none."""
    # in rolling mode the time of the upload follows, in milliseconds: far longer than a port
    found = re.match(r"(.+?)_(\d{1,5})(?:_\d{10,})?\Z", name_of(path))
    return f"{found[1]}:{found[2]}" if found else name_of(path)
