"""Bounds on cores by cgroup v2, below the groups of containers (`nm.resources.groups`).

The controller `cpu` is handed down only by a group without processes, so that a NodeManager that is in one moves itself
and all it has started into a group below. It does so only where nobody else is there, as in a unit of systemd with
Delegate=yes. The kernel's topmost group needs no such move.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nm.resources.groups import ContainerGroups
from nm.throttle.quota import quota_and_period
from yaqd.model.child_processes import children_of

_CPU: Final = "cpu"


class QuotaV2:
    """One group for each application, in which its containers' groups are."""

    def __init__(self, groups: ContainerGroups) -> None:
        self._groups = groups

    @property
    def root(self) -> Path:
        return self._groups.root

    @classmethod
    def open(cls, groups: ContainerGroups) -> "QuotaV2":
        """Have the kernel hand the controller down, before any container starts. Blocking. Raises OSError."""
        hand_down(_CPU, groups.root)
        quota = cls(groups)
        groups.by_application = True
        try:
            quota.bound("trial", 1.0)
            quota.free("trial")
            (groups.root / "trial").rmdir()
        except OSError:
            groups.by_application = False
            raise
        return quota

    def bound(self, application: str, cores: float) -> None:
        """Hold what is in the application's group to so many cores. Blocking."""
        self._groups.bounded.add(application)
        folder = self.root / application
        folder.mkdir(exist_ok=True)
        quota_us, period_us = quota_and_period(cores)
        _write(folder / "cpu.max", f"{quota_us} {period_us}")

    def put(self, application: str, pids: Iterable[int]) -> None:
        """Do nothing: its containers start there."""

    def free(self, application: str) -> None:
        """Bound it no longer. Blocking."""
        self._groups.bounded.discard(application)
        try:
            _write(self.root / application / "cpu.max", "max")
        except FileNotFoundError:
            pass  # nothing of it is there any more

    def close(self) -> None:
        """Free all. Blocking."""
        for application in list(self._groups.bounded):
            self.free(application)


def hand_down(controller: str, root: Path) -> None:
    """Let groups below `root` be bounded by a controller; `root` is in the group of this process. Raises OSError."""
    own = root.parent
    if controller not in (own / "cgroup.controllers").read_text().split():
        raise FileNotFoundError(f"the controller {controller} of cgroup v2 is not handed down to {own}")
    try:
        _write(own / "cgroup.subtree_control", f"+{controller}")
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        _leave(own, own / f"{root.name}-daemon")
        _write(own / "cgroup.subtree_control", f"+{controller}")
    _write(root / "cgroup.subtree_control", f"+{controller}")


def _leave(own: Path, below: Path) -> None:
    """Move this process and what it has started to a group below."""
    inside = _pids(own)
    if strangers := set(inside) - _descendants(os.getpid()):
        raise PermissionError(f"processes {sorted(strangers)[:5]}, which are not the NodeManager's, are in {own}")
    below.mkdir(exist_ok=True)
    try:
        for pid in inside:
            _write(below / "cgroup.procs", str(pid))
    except OSError:
        for pid in _pids(below):
            _write(own / "cgroup.procs", str(pid))
        below.rmdir()
        raise


def _pids(folder: Path) -> list[int]:
    return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]


def _descendants(pid: int) -> set[int]:
    found, pending = {pid}, [pid]
    while pending:
        new = children_of(pending.pop()) - found
        found |= new
        pending += new
    return found


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
