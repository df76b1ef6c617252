"""From the paths a user gives (files, folders, patterns) to the files a job reads, by Hadoop's rules.

Names that begin with `_` or `.` are skipped in folders and patterns. A folder inside an input folder is read with
`mapreduce.input.fileinputformat.input.dir.recursive`, skipped with `...nonrecursive.ignore.subdirs`, and otherwise an
error. Links to folders are not followed below the input path, so that no circle is walked.
"""

import fnmatch
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from yaqd.config import Configuration
from yaqd.storage.errors import NotAFile, PathNotFound, StorageError
from yaqd.storage.filesystem import FileStatus, FileSystem
from yaqd.storage.opening import get_filesystem
from yaqd.storage.paths import join, locate, name_of

_MAGIC: Final = re.compile(r"[*?\[{]")
_RECURSIVE: Final = "mapreduce.input.fileinputformat.input.dir.recursive"
_IGNORE_FOLDERS: Final = "mapreduce.input.fileinputformat.input.dir.nonrecursive.ignore.subdirs"
#: folders within folders
DEPTH_MAX: Final = 200
#: words that a pattern's braces may stand for
_ALTERNATIVES_MAX: Final = 1000


def list_inputs(inputs: Iterable[str], conf: Configuration) -> list[FileStatus]:
    """Return the files of all inputs, in the order given, folders in name order, each file once for each time it is
    named."""
    files: list[FileStatus] = []
    any_input = False
    for text in inputs:
        any_input = True
        filesystem = get_filesystem(text, conf)
        matches = glob(filesystem, str(locate(text, conf)))
        if not matches:
            kind = "matches no file" if _MAGIC.search(text) else "does not exist"
            raise PathNotFound(f"input path {locate(text, conf)} {kind}: check the path", path=text)
        for status in matches:
            files += _files_below(filesystem, status, conf) if status.is_dir else [status]
    if not any_input:
        raise StorageError("no input path given: name at least one file or folder")
    return files


def is_hidden(path: str) -> bool:
    """Return whether a job skips it in a folder."""
    return name_of(path).startswith(("_", "."))


def glob(filesystem: FileSystem, pattern: str) -> list[FileStatus]:
    """Return what a pattern with `*`, `?`, `[...]` and `{a,b}` matches, sorted by path; hidden names are not matched.

    A path without these characters is itself, whatever its name, or nothing. A file whose name contains them is found
    by its literal name first.
    """
    try:
        return [filesystem.status(pattern)]
    except (PathNotFound, NotAFile):
        if not _MAGIC.search(pattern):
            return []
    found: dict[str, FileStatus] = {}
    for alternative in _alternatives(pattern):
        root = filesystem.uri + "/"
        for status in _matches(filesystem, root, alternative.removeprefix(root).split("/")):
            found[status.path] = status
    return [found[path] for path in sorted(found)]


def _matches(filesystem: FileSystem, folder: str, parts: list[str]) -> Iterator[FileStatus]:
    plain = 0
    while plain < len(parts) and not _MAGIC.search(parts[plain]):
        plain += 1
    base = join(folder, *parts[:plain]) if plain else folder
    try:
        if plain == len(parts):
            yield filesystem.status(base)
            return
        entries = filesystem.list(base)
    except (PathNotFound, NotAFile):
        return
    matcher = re.compile(fnmatch.translate(parts[plain].replace("[^", "[!")))
    for entry in entries:
        name = name_of(entry.path)
        if is_hidden(name) or not matcher.match(name):
            continue
        if plain + 1 == len(parts):
            yield entry
        elif entry.is_dir:
            yield from _matches(filesystem, entry.path, parts[plain + 1 :])


def _alternatives(pattern: str) -> list[str]:
    """The pattern once for each choice of its braces, inner ones first."""
    done: list[str] = []
    pending = [pattern]
    while pending:
        text = pending.pop()
        match = _braces().search(text)
        if match is None:
            done.append(text)
        else:
            pending += [text[: match.start()] + word + text[match.end() :] for word in match[1].split(",")]
        if len(done) + len(pending) > _ALTERNATIVES_MAX:
            raise StorageError(f"input path {pattern!r} has too many alternatives in braces: use a simpler pattern")
    return done


@lru_cache(maxsize=1)
def _braces() -> re.Pattern[str]:
    return re.compile(r"\{([^{}]*)\}")


def _files_below(filesystem: FileSystem, folder: FileStatus, conf: Configuration) -> list[FileStatus]:
    is_recursive = conf.get_bool(_RECURSIVE, False)
    skips_folders = conf.get_bool(_IGNORE_FOLDERS, False)
    files: list[FileStatus] = []
    pending = [(folder, 0)]
    while pending:
        current, depth = pending.pop()
        if depth > DEPTH_MAX:
            raise StorageError(f"folders in {folder.path} are nested more than {DEPTH_MAX} deep", path=folder.path)
        inner = []
        for entry in filesystem.list(current.path):
            if is_hidden(entry.path):
                continue
            if not entry.is_dir:
                files.append(entry)
            elif is_recursive:
                if not entry.is_symlink:
                    inner.append((entry, depth + 1))
            elif not skips_folders:
                raise NotAFile(
                    f"input {folder.path} holds a folder, {name_of(entry.path)}: set {_RECURSIVE}=true to read it, "
                    f"or {_IGNORE_FOLDERS}=true to skip it",
                    path=entry.path,
                )
        pending += reversed(inner)
    return files
