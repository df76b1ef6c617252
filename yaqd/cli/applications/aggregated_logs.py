"""Container logs as NodeManagers have uploaded them, stock or ours: Hadoop's TFiles on the default file system."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from yaqd.config import Configuration

if TYPE_CHECKING:
    from yaqd.model import ApplicationId


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """One file of one container, or in rolling mode one state of it."""

    container: str
    #: host:port
    node: str
    name: str
    bytes: int


def read_uploaded(
    conf: Configuration, owner: str, application_id: "ApplicationId", complain: Callable[[str], None]
) -> Iterator[tuple[UploadedFile, Iterator[bytes]]]:
    """Yield every file of every node in the order of upload, with its bytes, to be read before the next.

    `complain` hears of a node's file that cannot be read, or not to its end; the others are read. Raises StorageError
    where the folder itself cannot be.
    """
    from yaqd.storage import StorageError, get_filesystem
    from yaqd.storage.tfile import AggregatedLogReader, RemoteLogs, StoredFile
    from yaqd.storage.tfile.layout import node_of

    remote = RemoteLogs.read(conf)
    filesystem = get_filesystem(remote.root, conf)
    for found in remote.find(filesystem, owner, application_id):
        try:
            for file, content in AggregatedLogReader(StoredFile(filesystem, found.path)).files():
                yield UploadedFile(file.container, node_of(found.path), file.name, file.size_bytes), content
        except StorageError as error:
            complain(str(error))


def has_logs_of(conf: Configuration, owner: str, application_id: "ApplicationId") -> bool:
    """Return whether the user's folder has anything of the application.

    Raises StorageError where it cannot be looked at.
    """
    from yaqd.storage import get_filesystem
    from yaqd.storage.tfile import RemoteLogs

    remote = RemoteLogs.read(conf)
    return bool(remote.find(get_filesystem(remote.root, conf), owner, application_id))


def owner_of(conf: Configuration, application_id: "ApplicationId") -> str | None:
    """Return whose logs of the application there are, oneself first.

    It is for an application that the ResourceManager has forgotten.
    """
    from yaqd.storage import get_filesystem
    from yaqd.storage.paths import hadoop_user
    from yaqd.storage.tfile import RemoteLogs

    remote = RemoteLogs.read(conf)
    filesystem = get_filesystem(remote.root, conf)
    if remote.find(filesystem, hadoop_user(), application_id):
        return hadoop_user()
    return next(remote.owners(filesystem, application_id), None)
