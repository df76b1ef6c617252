"""Memory that processes of this node can have, files that the kernel keeps at hand included.

A node in a container has less than its machine: its control groups say so, in version 1 or 2 of the kernel's files, and
what lies above them does too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil

_ROOT: Final = Path("/sys/fs/cgroup")
#: names of limit, use, and the part of the use that files make up, which the kernel gives up for others
_VERSIONS: Final = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")),
    2: ("memory.max", "memory.current", ("inactive_file", "active_file")),
}


def available_bytes(proc: Path = Path("/proc"), groups: Path = _ROOT) -> int:
    """Return what can still be had without taking it from other processes. Blocking."""
    found = [
        int(psutil.virtual_memory().available),
        *(room for room in map(_room, _groups(proc, groups)) if room is not None),
    ]
    return max(0, min(found))


def _groups(proc: Path, root: Path) -> Iterator[tuple[int, Path]]:
    """Version and folder of this process's group of memory, and of all that it is in.

    In a container the kernel may name the group as its machine sees it, and show its files at the root.
    """
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if number == "0":
            version, top = 2, root
        elif "memory" in controllers.split(","):
            version, top = 1, root / "memory"
        else:
            continue
        here = top / name.lstrip("/")
        while here != top:
            yield version, here
            here = here.parent
        yield version, top


def _room(group: tuple[int, Path]) -> int | None:
    """None where there is no such group, or no limit."""
    version, folder = group
    limit, use, of_files = _VERSIONS[version]
    try:
        most = (folder / limit).read_text().strip()
        if not most.isdecimal():
            return None
        used = int((folder / use).read_text())
        words = (line.split() for line in (folder / "memory.stat").read_text().splitlines())
        files = sum(int(value) for name, value in words if name in of_files)
    except (OSError, ValueError):
        return None
    return int(most) - max(0, used - files)
