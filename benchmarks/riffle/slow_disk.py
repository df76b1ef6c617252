"""A slow disk and a small node, made real by the kernel: no code of ours says what a request costs.

The disk is a file system of its own in a file (a loop device, past the page cache of the disk below it). The kernel
lets all processes together read it so many times a second, and write it as often: cgroup version 1's `blkio.throttle.*`
of the root group, in which the kernel's own writing back of dirty pages is too. As any limit of that kind it counts
requests, of at most 1.25 MB here, wherever they lie; so reading one file from end to end costs nearly nothing beside
its bytes, and each small read elsewhere costs one of them.

The node is a control group of memory, page cache included, as a container's is.
"""

import errno
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.options import progress
from benchmarks.riffle.throttle import NoThrottle

_ROOT: Final = Path("/sys/fs/cgroup")
_BLKIO: Final = _ROOT / "blkio"
_MEMORY: Final = _ROOT / "memory"
_SECTOR: Final = 512
#: the kernel's own for a disk that says nothing; a loop device has more, from the file that it is in
_READ_AHEAD_KB: Final = 128
_LIMITS: Final = ("blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device")
#: for a group's processes to end, and between two looks
_PATIENCE_S: Final = 10.0
_PAUSE_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class DiskRequests:
    """What the kernel has asked of a disk."""

    reads: int
    read_bytes: int
    writes: int
    written_bytes: int

    def since(self, before: "DiskRequests") -> "DiskRequests":
        """Returns what was asked after that."""
        return DiskRequests(
            self.reads - before.reads,
            self.read_bytes - before.read_bytes,
            self.writes - before.writes,
            self.written_bytes - before.written_bytes,
        )

    def __str__(self) -> str:
        read, written = self.read_bytes / 1e6, self.written_bytes / 1e6
        return f"{self.reads:,} reads of {read:,.0f} MB and {self.writes:,} writes of {written:,.0f} MB"


@dataclass(frozen=True, slots=True)
class OwnDisk:
    folder: Path
    _counts: Path

    def requests(self) -> DiskRequests:
        """Returns what was asked of it so far, what is dirty included."""
        os.sync()
        fields = [int(word) for word in self._counts.read_text().split()]
        return DiskRequests(fields[0], fields[2] * _SECTOR, fields[4], fields[6] * _SECTOR)


@contextmanager
def own_disk(folder: Path, size_bytes: int, *, requests_per_s: int | None) -> Iterator["OwnDisk"]:
    """A disk of its own in a file in this folder, mounted beside it. `requests_per_s`: None: as fast as it is.

    Raises NoThrottle."""
    if not (_BLKIO / _LIMITS[0]).exists():
        raise NoThrottle("cgroup v1's blkio is not there, or not ours to use")
    with ExitStack() as stack:
        image, mounted = folder / "disk.img", folder / "disk"
        mounted.mkdir(parents=True)
        image.touch()
        os.truncate(image, size_bytes)
        stack.callback(image.unlink)
        device = _run("losetup", "--find", "--show", "--direct-io=on", str(image))
        stack.callback(_run, "losetup", "--detach", device)
        Path("/sys/block", Path(device).name, "queue", "read_ahead_kb").write_text(f"{_READ_AHEAD_KB}")
        _run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
        _run("mount", "-o", "noatime", device, str(mounted))
        stack.callback(_run, "umount", str(mounted))
        if requests_per_s is not None:
            number = Path("/sys/block", Path(device).name, "dev").read_text().strip()
            # told before: umount writes what is dirty, at full speed
            stack.callback(_limit, number, 0)
            _limit(number, requests_per_s)
        yield OwnDisk(mounted, Path("/sys/block", Path(device).name, "stat"))


def _limit(device: str, requests_per_s: int) -> None:
    """0: none."""
    for name in _LIMITS:
        try:
            (_BLKIO / name).write_text(f"{device} {requests_per_s}")
        except OSError as error:
            raise NoThrottle(f"{name} refuses {device} {requests_per_s}: {error.strerror}") from None


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NoThrottle(f"there is no {command[0]}") from error
    if done.returncode:
        raise NoThrottle(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


class SmallNode:
    """A control group of memory; whatever starts `inside` stays in it."""

    def __init__(self, name: str, memory_bytes: int) -> None:
        """Raises NoThrottle."""
        self._group = _MEMORY / f"{name}-{os.getpid()}"
        self._before = _own_group()
        try:
            self._group.mkdir()
            (self._group / "memory.limit_in_bytes").write_text(str(memory_bytes))
        except OSError as error:
            raise NoThrottle(f"{self._group}: {error.strerror}") from None

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Has this process in the group meanwhile."""
        self._enter(self._group)
        try:
            yield
        finally:
            self._enter(self._before)

    def remove(self, patience_s: float = _PATIENCE_S) -> None:
        """Removes the group once what was started in it has ended; leaves it, and says so, where that takes too long.

        What is measured by then is worth more than an empty group.
        """
        deadline = time.monotonic() + patience_s
        while True:
            try:
                self._group.rmdir()
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
            else:
                return
            if time.monotonic() >= deadline:
                left = ", ".join((self._group / "cgroup.procs").read_text().split())
                progress(f"{self._group} is left behind, with processes {left or 'that the kernel still ends'}")
                return
            # the kernel tells nobody of version 1's groups when one is empty
            time.sleep(_PAUSE_S)

    @staticmethod
    def _enter(group: Path) -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))


def _own_group() -> Path:
    """Raises NoThrottle."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, name = line.split(":", 2)
        if "memory" in controllers.split(","):
            return _MEMORY / name.lstrip("/")
    raise NoThrottle("cgroup v1's memory is not there")
