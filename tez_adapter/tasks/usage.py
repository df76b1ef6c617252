"""What a task has used of its machine, by Hadoop's counters: its own process and what it has run.

A child counts once its end was waited for, as the kernel has it. Parent and child live side by side, so the peak is the
process's own and that of its largest child together.
"""

import resource
from pathlib import Path
from typing import Final

from yaqd.mapreduce.counters import TaskCounter

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

    def counters(self, *, is_map: bool) -> dict[str, int]:
        memory = _memory()
        child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        # a larger one of an earlier task hides this one's
        child_bytes = child * _KB if child > self._child_before else 0
        kind = "MAP" if is_map else "REDUCE"
        return {
            TaskCounter.CPU_MILLISECONDS: max(1, _cpu_ms() - self._cpu_before),
            TaskCounter.PHYSICAL_MEMORY_BYTES: memory.get("VmRSS", 0) + child_bytes,
            TaskCounter.VIRTUAL_MEMORY_BYTES: memory.get("VmSize", 0),
            TaskCounter[f"{kind}_PHYSICAL_MEMORY_BYTES_MAX"]: memory.get("VmHWM", 0) + child_bytes,
            TaskCounter[f"{kind}_VIRTUAL_MEMORY_BYTES_MAX"]: memory.get("VmPeak", 0),
        }


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
