"""A disk that charges for reads: the kernel lets the processes of a group make only so many in a second.

cgroup version 1 calls it `blkio.throttle.read_iops_device`, version 2 `io.max`. A page cache and read-ahead hide what a
disk charges, so whoever measures with this drops files from the one and forbids the other.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup")


class NoThrottle(Exception):
    """Why the kernel cannot be asked to."""


@contextmanager
def read_throttle(folder: Path, reads_per_s: int) -> Iterator[Path]:
    """A group whose processes read that often from the disk of this folder, at most: its `cgroup.procs` takes them.

    Raises NoThrottle."""
    device = _disk_of(folder)
    group, setting, value = _group(device, reads_per_s)
    try:
        group.mkdir()
    except OSError as error:
        raise NoThrottle(f"{group} cannot be made: {error.strerror}") from None
    try:
        try:
            (group / setting).write_text(value)
        except OSError as error:
            raise NoThrottle(f"{group / setting} refuses {value!r}: {error.strerror}") from None
        yield group
    finally:
        group.rmdir()


def _disk_of(folder: Path) -> str:
    """major:minor of the whole disk."""
    number = folder.stat().st_dev
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not place.exists():
        raise NoThrottle(f"{folder} is on no disk of the kernel's")
    here = place.resolve()
    return (here if (here / "queue").exists() else here.parent).joinpath("dev").read_text().strip()


def _group(device: str, reads_per_s: int) -> tuple[Path, str, str]:
    """The group's folder, the file of its limit, and what is to be written there."""
    name = f"yaq-bench-{os.getpid()}"
    if (_ROOT / "blkio").is_dir():
        return _ROOT / "blkio" / name, "blkio.throttle.read_iops_device", f"{device} {reads_per_s}"
    if "io" in _words(_ROOT / "cgroup.subtree_control"):
        return _ROOT / name, "io.max", f"{device} riops={reads_per_s}"
    raise NoThrottle("neither cgroup v1's blkio nor v2's io controller is there, or it is not ours to use")


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
