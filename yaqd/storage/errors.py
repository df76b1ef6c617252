"""What can go wrong with files, by what a caller may do about it. Each message is one line: what, where, what to do."""


class StorageError(Exception):
    """A file system refused, failed or cannot be reached."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        #: the path it is about, "" if none
        self.path = path


class PathNotFound(StorageError):
    """There is no such file or folder."""


class PathExists(StorageError):
    """Something stands where a new file or folder should go."""


class PathDenied(StorageError):
    """The user may not do this there."""


class NotAFile(StorageError):
    """A folder where a file is needed, or the other way round."""


class StorageFull(StorageError):
    """No space, or a quota reached."""


class StorageUnavailable(StorageError):
    """The file system's service does not answer, or its library does not load."""


class StorageNotReady(StorageUnavailable):
    """The service answers that it cannot serve yet: a NameNode that has just started, in safe mode."""


class CorruptFile(StorageError):
    """Bytes that are not what their format says."""
