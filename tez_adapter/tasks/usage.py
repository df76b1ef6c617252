"""What a task has used of its machine, by Hadoop's counters: its own process and what it has run.

What runs below it is looked at with every report, as Hadoop does: the peak is the most that all of them had together.
A child that lives between two looks counts where the kernel says that it was larger than its parent ever was. A smaller
one cannot be told from the copy of its parent that it began as.
"""

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from yaqd.mapreduce.counters import TaskCounter
from yaqd.model.child_processes import children_of

_PAGE_BYTES: Final = resource.getpagesize()
_STATUS: Final = Path("/proc/self/status")
#: forgets the peak of resident memory so far
_CLEAR_REFS: Final = Path("/proc/self/clear_refs")
_KB: Final = 1024


class Usage:
    """Since it was made: a process may have run other tasks before."""

    def __init__(self) -> None:
        try:
            _CLEAR_REFS.write_text("5")
        except OSError:
            pass  # then the peak may be an earlier task's
        self._cpu_before = _cpu_ms()
        self._child_before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        #: of what runs below: at the last look at which there was something, and with the process itself at most
        self._below = self._together = 0

    def counters(self, *, is_map: bool) -> dict[str, int]:
        """Return the counters as of now. Each call is a look at what runs below."""
        memory = _memory()
        below = sum(map(_resident, _descendants(os.getpid())))
        if below:
            self._below = below
        own, peak = memory.get("VmRSS", 0), memory.get("VmHWM", 0)
        child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        # a larger one of an earlier task hides this one's
        child_bytes = child * _KB if child > self._child_before and child * _KB > peak else 0
        self._together = max(self._together, peak, own + below, own + child_bytes if child_bytes else 0)
        kind = "MAP" if is_map else "REDUCE"
        return {
            TaskCounter.CPU_MILLISECONDS: max(1, _cpu_ms() - self._cpu_before),
            TaskCounter.PHYSICAL_MEMORY_BYTES: own + max(self._below, child_bytes),
            TaskCounter.VIRTUAL_MEMORY_BYTES: memory.get("VmSize", 0),
            TaskCounter[f"{kind}_PHYSICAL_MEMORY_BYTES_MAX"]: self._together,
            TaskCounter[f"{kind}_VIRTUAL_MEMORY_BYTES_MAX"]: memory.get("VmPeak", 0),
        }


def _descendants(pid: int) -> Iterator[int]:
    """The processes that a process has started, those that they have started, and so on."""
    for child in children_of(pid):
        yield child
        yield from _descendants(child)


def _resident(pid: int) -> int:
    """Bytes, none of one that has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def _cpu_ms() -> int:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(1000 * sum(part.ru_utime + part.ru_stime for part in used))


def _memory() -> dict[str, int]:
    """The kernel's figures by name, bytes."""
    found = {}
    for line in _STATUS.read_text().splitlines():
        name, _, rest = line.partition(":")
        if name.startswith("Vm"):
            found[name] = int(rest.split()[0]) * _KB
    return found
