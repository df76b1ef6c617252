"""A file system of a few megabytes, to be filled: what a full disk says comes from the kernel, not from a limit."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: in a namespace of its own, for as long as its input is open
_IN_NAMESPACE = 'mount -t tmpfs -o size="$1" small "$2" && echo mounted && exec cat'


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A tmpfs of `size` bytes: mounted at `folder` where this user may, else in a namespace of users and mounts, which
    others reach by way of the process that holds it. Skips the test where the kernel allows neither."""
    folder.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", f"size={size}", "small", str(folder)]
    mounted = subprocess.run(options, capture_output=True, text=True, check=False)
    if mounted.returncode == 0:
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        return
    with _held(folder, size) as (holder, refused):
        if holder is None:
            pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}; {refused}")
        yield Path(f"/proc/{holder}/root{folder}")


@contextmanager
def _held(folder: Path, size: int) -> Iterator[tuple[int | None, str]]:
    """The process in whose namespace it is mounted, or why it cannot be."""
    if shutil.which("unshare") is None:
        yield None, "there is no unshare(1)"
        return
    pipe = subprocess.PIPE
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _IN_NAMESPACE, "sh", str(size), str(folder)]
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as holder:
        assert holder.stdin is not None and holder.stdout is not None and holder.stderr is not None
        if holder.stdout.readline() == "mounted\n":
            yield holder.pid, ""
            holder.stdin.close()
        else:
            yield None, holder.stderr.read().strip()


def leave_free(disk: Path, free: int) -> Path:
    """Fills the disk but for so many bytes, whole pages; the file that does, to be deleted."""
    filler = disk / "filler"
    found = os.statvfs(disk)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, found.f_bavail * found.f_frsize - free)
    return filler
