"""Which disks take containers: each folder must be writable and below the configured share of use.

A node with no good folder for files or none for logs is unhealthy: the ResourceManager gives it nothing, and what
still arrives is refused with the reason. Folders come back by themselves when their disk does.
"""

import os
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nm.heartbeat import NodeHealth

_MAX_PERCENT_KEY: Final = "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage"


@dataclass(frozen=True, slots=True)
class DiskReport:
    good_local: tuple[Path, ...]
    good_log: tuple[Path, ...]
    #: one sentence per bad folder; empty when all are good
    complaints: tuple[str, ...]
    #: epoch ms
    checked_ms: int

    def health(self, folders: int) -> NodeHealth:
        """Sums up the report; `folders`: how many there are in all, for its words."""
        is_healthy = bool(self.good_local) and bool(self.good_log)
        bad = f"{len(self.complaints)}/{folders} folders are bad: " if self.complaints else ""
        return NodeHealth(is_healthy, bad + "; ".join(self.complaints), self.checked_ms)


def check_disks(
    local_dirs: Sequence[Path],
    log_dirs: Sequence[Path],
    *,
    max_percent: float,
    used_percent: Callable[[Path], float] | None = None,
) -> DiskReport:
    """Checks that each folder is writable and its disk not too full. Blocking."""
    complaints: list[str] = []
    good: list[tuple[Path, ...]] = []
    for folders in (local_dirs, log_dirs):
        fine = []
        for folder in folders:
            complaint = _complaint(folder, max_percent, used_percent or _used_percent)
            if complaint is None:
                fine.append(folder)
            else:
                complaints.append(complaint)
        good.append(tuple(fine))
    return DiskReport(good[0], good[1], tuple(complaints), int(time.time() * 1000))


def _complaint(folder: Path, max_percent: float, used_percent: Callable[[Path], float]) -> str | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        used = used_percent(folder)
        probe = folder / f".health-{uuid.uuid4().hex}"
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        return f"{folder}: {error.strerror or error}"
    if used > max_percent:
        return (
            f"{folder}: used space {used:.1f}% is above the threshold of {max_percent:.1f}%, free some space or raise "
            f"{_MAX_PERCENT_KEY}"
        )
    return None


def _used_percent(folder: Path) -> float:
    found = os.statvfs(folder)
    usable = found.f_blocks - found.f_bfree + found.f_bavail
    return 100.0 * (usable - found.f_bavail) / usable if usable else 100.0
