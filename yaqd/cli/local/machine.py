"""What this machine has for containers: memory and cores, within the limits of the control group we run in."""

import os
from pathlib import Path

MB = 1 << 20
#: The rest is for the operating system, its file cache and the daemons.
CONTAINER_SHARE = 0.8
NODE_MEMORY_STEP_MB = 128
NODE_MEMORY_MIN_MB = 256
_GROUP = Path("/sys/fs/cgroup")


def memory_bytes() -> int:
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in (_GROUP / "memory.max", _GROUP / "memory/memory.limit_in_bytes"):
        limit = _number(file)
        if limit is not None:
            return min(physical, limit)
    return physical


def cores() -> int:
    """Count the cores that this process may use, rounded up where a quota gives it a part of one."""
    usable = len(os.sched_getaffinity(0))
    try:
        quota, period = (_GROUP / "cpu.max").read_text().split()
        if quota != "max":
            usable = min(usable, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        pass
    return max(1, usable)


def node_memory_mb(nodes: int) -> int:
    """Return what each of `nodes` NodeManagers may offer, MB."""
    share = int(memory_bytes() * CONTAINER_SHARE) // MB // nodes
    return max(NODE_MEMORY_MIN_MB, share // NODE_MEMORY_STEP_MB * NODE_MEMORY_STEP_MB)


def node_vcores(nodes: int) -> int:
    """Share out one virtual core more than the machine has cores: a job manager mostly waits."""
    return -(-(cores() + 1) // nodes)


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
