"""Paths as users write them, and the file system each belongs to.

As Hadoop's Path: `scheme://authority/path`, a path without scheme belongs to `fs.defaultFS`, nothing is
percent-decoded, `.` and `..` are resolved in the text, and no path leaves the root.
"""

import getpass
import os
import posixpath
import re
from dataclasses import dataclass
from typing import Final

from yaqd.config import Configuration
from yaqd.storage.errors import StorageError

_URI: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<authority>[^/]*))?(?P<path>.*)\Z", re.DOTALL)
_PATH_CHARS_MAX: Final = 8000


@dataclass(frozen=True, slots=True)
class Location:
    """A file system and an absolute, normalized path on it."""

    scheme: str
    #: host:port, a name service, or "" for the local file system
    authority: str
    path: str

    @property
    def root(self) -> str:
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        return self.root + self.path


def locate(text: str, conf: Configuration) -> Location:
    """Return the place that a user's path names. A relative one starts at the working folder, or on HDFS at
    /user/NAME."""
    if not text or "\0" in text or len(text) > _PATH_CHARS_MAX:
        raise StorageError(f"bad path {text[:80]!r}: give a path of 1 to {_PATH_CHARS_MAX} characters without NUL")
    match = _URI.match(text)
    if match is not None and (match["authority"] is not None or match["path"].startswith("/")):
        scheme, authority, path = match["scheme"].lower(), match["authority"] or "", match["path"] or "/"
        if scheme != "file" and not authority:
            authority = _default_root(conf, scheme)
        return Location(scheme, "" if scheme == "file" else authority, normal_path(path))
    scheme, authority = _split_root(conf)
    if not text.startswith("/"):
        home = os.getcwd() if scheme == "file" else f"/user/{hadoop_user()}"  # noqa: PTH109 (text, not a Path)
        text = f"{home}/{text}"
    return Location(scheme, authority, normal_path(text))


def qualify(path: str, conf: Configuration) -> str:
    """Return the full URI of a path, such as hdfs://host:8020/x or file:///x."""
    return str(locate(path, conf))


def as_hadoop_writes(path: str) -> str:
    """Return a full URI as Java's Path has it as text: file:/x, with one slash where no authority is."""
    scheme, found, rest = path.partition(":///")
    return f"{scheme}:/{rest}" if found else path


def normal_path(path: str) -> str:
    """Return the path absolute, without `.`, `..`, doubled or trailing slashes."""
    return posixpath.normpath("/" + path.lstrip("/"))


def join(folder: str, *names: str) -> str:
    """Return a path below a folder; works on URIs too."""
    return "/".join((folder.rstrip("/"), *names))


def name_of(path: str) -> str:
    """Return the last component of a path or URI."""
    return path.rstrip("/").rpartition("/")[2]


def parent_of(path: str) -> str:
    """Return the folder that an absolute path stands in; "/" for the root itself."""
    return path.rstrip("/").rpartition("/")[0] or "/"


def hadoop_user() -> str:
    """Return whom Hadoop takes us for: HADOOP_USER_NAME, else the account we run as."""
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


def _split_root(conf: Configuration) -> tuple[str, str]:
    default = (conf.get("fs.defaultFS") or "file:///").strip()
    match = _URI.match(default)
    if match is None or (match["scheme"].lower() != "file" and not match["authority"]):
        raise conf.error("fs.defaultFS", "it names no file system", "use file:/// or hdfs://HOST:PORT")
    scheme = match["scheme"].lower()
    return scheme, "" if scheme == "file" else match["authority"]


def _default_root(conf: Configuration, scheme: str) -> str:
    """The authority for `hdfs:///x`: that of fs.defaultFS when it is of the same scheme."""
    default_scheme, authority = _split_root(conf)
    if default_scheme != scheme:
        raise StorageError(
            f"path {scheme}:///... names no host and fs.defaultFS is {default_scheme}: write {scheme}://HOST:PORT/..."
        )
    return authority
