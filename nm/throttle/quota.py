"""The kernel's own bound on processor time: a control group for each application, where this process may make them.

Here by cgroup v1: groups in the hierarchy of the controller `cpu` (`cpu.cfs_quota_us`), below the one that the
NodeManager is in. `nm.throttle.quota_v2` has the other one.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

#: the kernel hands out the quota anew so often, us; it takes no quota below the least and no period beyond the most
_PERIOD_US: Final = 100_000
_PERIOD_MOST_US: Final = 1_000_000
_QUOTA_LEAST_US: Final = 1_000
#: what starts others faster than it is moved stays
_MOVES_MOST: Final = 20
_TRIAL: Final = "trial"


class CpuQuota(Protocol):
    """Bounds applications by name. Everything is blocking, shortly, and raises OSError where the kernel refuses."""

    def bound(self, application: str, cores: float) -> None:
        """Hold what is in the application's group to so many cores."""
        ...

    def put(self, application: str, pids: Iterable[int]) -> None:
        """Bring processes into the group; what they start follows them."""
        ...

    def free(self, application: str) -> None:
        """Bound it no longer."""
        ...

    def close(self) -> None:
        """Free all."""
        ...


def quota_and_period(cores: float) -> tuple[int, int]:
    """Compute both in us; a longer period where the quota of the usual one is less than the kernel takes."""
    period = min(max(_PERIOD_US, round(_QUOTA_LEAST_US / max(cores, 1e-9))), _PERIOD_MOST_US)
    return max(_QUOTA_LEAST_US, round(cores * period)), period


class QuotaV1:
    """Groups in the hierarchy of cgroup v1's controller `cpu`, the only ones that this process has made."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def open(cls, local_dir: Path) -> "QuotaV1":
        """Make the groups' folder, and try one out. Blocking. Raises OSError where that cannot be done."""
        root = _own_v1_group() / f"yaqd-{hashlib.blake2b(os.fsencode(local_dir), digest_size=6).hexdigest()}"
        quota = cls(root)
        quota.close()  # of another life
        root.mkdir(exist_ok=True)
        try:
            quota.bound(_TRIAL, 1.0)
            quota.free(_TRIAL)
        except OSError:
            quota.close()
            raise
        return quota

    def bound(self, application: str, cores: float) -> None:
        folder = self.root / application
        folder.mkdir(exist_ok=True)
        quota, period = quota_and_period(cores)
        _write(folder / "cpu.cfs_quota_us", -1)  # a period that is too short for the former quota is refused
        _write(folder / "cpu.cfs_period_us", period)
        _write(folder / "cpu.cfs_quota_us", quota)

    def put(self, application: str, pids: Iterable[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                _write(self.root / application / "cgroup.procs", pid)

    def free(self, application: str) -> None:
        _emptied(self.root / application)

    def close(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            for entry in list(os.scandir(self.root)):
                if entry.is_dir():
                    _emptied(Path(entry.path))
            self.root.rmdir()


def _own_v1_group() -> Path:
    """Find the group of the controller `cpu` that this process is in. Raises OSError where none is mounted."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        if "cpu" not in controllers.split(","):
            continue
        for mounted in Path("/proc/self/mountinfo").read_text().splitlines():
            fields, _, kind = mounted.partition(" - ")
            top, mount = fields.split()[3:5]
            is_cpu = kind.split()[0] == "cgroup" and "cpu" in kind.split()[2].split(",")
            if is_cpu and Path(group).is_relative_to(top) and ".." not in Path(group).parts:
                return Path(mount) / Path(group).relative_to(top)
    raise FileNotFoundError("the controller cpu of cgroup v1 is not mounted")


def _emptied(folder: Path) -> None:
    """Move what is in a group to the one above, and remove it; nothing where there is none."""
    try:
        for _ in range(_MOVES_MOST):
            for pid in (pids := (folder / "cgroup.procs").read_text().split()):
                with contextlib.suppress(ProcessLookupError):
                    _write(folder.parent.parent / "cgroup.procs", int(pid))
            if not pids:
                break
        folder.rmdir()
    except FileNotFoundError:
        pass


def _write(path: Path, number: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, f"{number}\n".encode())
    finally:
        os.close(descriptor)
