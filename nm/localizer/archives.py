"""Unpacking archives that strangers made: nothing is written outside the target folder, and never more than the bounds.

Own loops over zipfile and tarfile members instead of `extractall`: sizes are counted as they are written, not
believed; names are checked as text; symbolic links are made last, so that no member is written through one, and each
must resolve inside the folder. Links that lead nowhere are left out. Devices, pipes and setuid bits are refused or
dropped.
"""

import logging
import os
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

log = logging.getLogger(__name__)

_CHUNK = 1 << 20
_MAX_NAME = 4096
_MAX_PATTERN = 1024
#: what the meaning of an expression's characters hangs on: escapes, classes, intersections, the flag x
_TOKENS = re.compile(r"\\.|\[\^?\]?|\]|&&|\(\?[A-Za-z]*x", re.DOTALL)


class BadArchive(Exception):
    """The archive is broken, too large or tries to leave its folder."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    #: sum of the unpacked sizes
    max_bytes: int
    #: files, folders and links
    max_entries: int


class _Unpacking:
    """Where one archive goes and what it has used of its limits."""

    def __init__(self, target: Path, limits: ArchiveLimits) -> None:
        self.target = target
        self._limits = limits
        self._bytes = 0
        self._entries = 0

    def place(self, name: str) -> Path:
        """The path of a member; counts it. Raises BadArchive for a name that leaves the folder."""
        self._entries += 1
        if self._entries > self._limits.max_entries:
            raise BadArchive(f"more than {self._limits.max_entries} entries")
        path = PurePosixPath(name)
        if len(name) > _MAX_NAME or "\0" in name or path.is_absolute() or ".." in path.parts:
            raise BadArchive(f"entry {name[:120]!r} leaves the archive's folder")
        return self.target / path

    def write(self, source: IO[bytes], place: Path, mode: int) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(place, flags, 0o600), "wb") as file:
            while chunk := source.read(_CHUNK):
                self._bytes += len(chunk)
                if self._bytes > self._limits.max_bytes:
                    raise BadArchive(f"it unpacks to more than {self._limits.max_bytes} bytes")
                file.write(chunk)
        place.chmod(mode & 0o777 or 0o644)


def unpack(archive: Path, target: Path, limits: ArchiveLimits, *, pattern: str = "") -> bool:
    """Unpacks by the lower-cased name as Hadoop does; False when the name is no archive's. Blocking.

    `pattern` limits a jar to the entries whose whole name matches. Raises BadArchive.
    """
    name = archive.name.lower()
    try:
        if name.endswith((".zip", ".jar")):
            target.mkdir()
            _unpack_zip(archive, _Unpacking(target, limits), _matcher(pattern) if name.endswith(".jar") else None)
        elif name.endswith((".tar", ".tar.gz", ".tgz")):
            target.mkdir()
            _unpack_tar(archive, _Unpacking(target, limits))
        else:
            return False
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise BadArchive(f"it cannot be read: {error}") from None
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise BadArchive(f"it holds one name as file and as folder: {error.filename}") from None
    return True


def _matcher(pattern: str) -> Callable[[str], object] | None:
    """A whole-name match for a client's Java expression, refused when it could take for ever, and when it would mean
    something else to Python."""
    if not pattern:
        return None
    unbounded = len(re.findall(r"(?<!\\)[*+{]", pattern))
    if len(pattern) > _MAX_PATTERN or unbounded > 3 or re.search(r"\)[*+{?]|\\[1-9]", pattern):
        raise BadArchive(f"pattern {pattern[:120]!r} repeats groups or repeats too often: use alternatives of prefixes")
    try:
        _refuse_other_meanings(pattern)
        # \d, \w, \s and (?i) are about ASCII alone in Java
        return re.compile(pattern, re.ASCII).fullmatch
    except (re.error, ValueError) as error:
        raise BadArchive(f"pattern {pattern[:120]!r}: {error}; only what Java and Python share is known here") from None


def _refuse_other_meanings(pattern: str) -> None:
    """ValueError for what both languages know and read differently. What Python does not know it refuses itself
    (\\p{..}, \\Q..\\E, (?<name>..))."""
    in_class = False
    for token in _TOKENS.findall(pattern):
        if token == "&&" and in_class:
            raise ValueError("&& is an intersection")
        if token[0] == "[" and in_class:
            raise ValueError("a class stands within a class")
        if token == r"\v":
            raise ValueError(r"\v is a class of characters")
        if token.startswith("(?") and not in_class:
            raise ValueError("blanks may not be left out of account")
        in_class = token[0] == "[" or (in_class and token != "]")


def _unpack_zip(archive: Path, unpacking: _Unpacking, matches: Callable[[str], object] | None) -> None:
    with zipfile.ZipFile(archive) as source:
        for member in source.infolist():
            if matches is not None and not matches(member.filename):
                continue
            place = unpacking.place(member.filename)
            if member.is_dir():
                place.mkdir(parents=True, exist_ok=True)
                continue
            with source.open(member) as file:
                unpacking.write(file, place, member.external_attr >> 16)


def _unpack_tar(archive: Path, unpacking: _Unpacking) -> None:
    links: list[tuple[Path, str]] = []
    with tarfile.open(archive) as source:
        for member in source:
            place = unpacking.place(member.name)
            if member.isdir():
                place.mkdir(parents=True, exist_ok=True)
            elif member.isreg():
                file = source.extractfile(member)
                assert file is not None
                unpacking.write(file, place, member.mode)
            elif member.issym():
                links.append((place, member.linkname))
            elif member.islnk():
                _copy_hard_link(unpacking, member.linkname, place)
            else:
                raise BadArchive(f"entry {member.name[:120]!r} is neither file, folder nor link")
    _make_links(unpacking.target, links)


def _copy_hard_link(unpacking: _Unpacking, name: str, place: Path) -> None:
    """Symbolic links do not exist yet, so the earlier member is a plain file or missing."""
    earlier = unpacking.place(name)
    if not earlier.is_file():
        raise BadArchive(f"hard link to {name[:120]!r}, which is no earlier file")
    with open(earlier, "rb") as source:
        unpacking.write(source, place, earlier.stat().st_mode)


def _make_links(target: Path, links: list[tuple[Path, str]]) -> None:
    root = os.path.realpath(target)
    made: list[Path] = []
    for place, destination in links:
        if len(destination) > _MAX_NAME or PurePosixPath(destination).is_absolute():
            raise BadArchive(f"link {place.name[:120]!r} leads out of the archive, to {destination[:120]!r}")
    for place, destination in links:
        if os.path.realpath(place.parent) != os.path.normpath(f"{root}/{place.parent.relative_to(target)}"):
            raise BadArchive(f"link {place.name[:120]!r} stands behind another link")
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink() or place.is_file():
            place.unlink()
        place.symlink_to(destination)
        made.append(place)
    for place in made:
        try:
            real = os.path.realpath(place, strict=True)
        except OSError:
            place.unlink(missing_ok=True)
            log.info("link %s of an archive leads nowhere and is left out", place.name)
            continue
        if real != root and not real.startswith(root + os.sep):
            raise BadArchive(f"link {place.name[:120]!r} leads out of the archive")


def set_modes(path: Path, *, is_public: bool) -> int:
    """Gives a localized file or tree Hadoop's modes; returns its size in bytes. Blocking."""
    file_mode, folder_mode = (0o555, 0o755) if is_public else (0o500, 0o700)
    if not path.is_dir():
        path.chmod(file_mode)
        return path.stat().st_size
    total = 0
    for folder, _, files in os.walk(path):
        Path(folder).chmod(folder_mode)
        for name in files:
            entry = Path(folder, name)
            if not entry.is_symlink():
                entry.chmod(file_mode)
                total += entry.stat().st_size
    return total


def copy_into(source: Path, folder: Path) -> None:
    """Keeps the archive itself beside what was unpacked from it, as Hadoop does for PATTERN."""
    shutil.copyfile(source, folder / source.name)
