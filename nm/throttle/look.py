"""Looks for the processes of some containers: those with their marks, in their control groups, and their strays.

One pass over the numbers in /proc, some microseconds each, and one read for each process that is theirs. Unlike a scan
of the monitor (`nm.resources.process_scan`) it reads nothing of others, so it may be done often.
"""

import os
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from nm.resources.groups import ContainerGroup
from nm.resources.process_scan import small_file, stat_fields
from nm.resources.strays import Stray
from nm.throttle.ledger import SeenProcess
from nm.warm.marks import mark_of

_TICKS: Final = os.sysconf("SC_CLK_TCK")
#: processes of one container that are followed; of more the machine has no use
_PROCESSES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What tells a container's processes."""

    leader: int
    mark: int
    group: ContainerGroup | None
    #: without its mark, as the monitor found them
    strays: Collection[Stray]


def look(containers: Iterable[Wanted]) -> dict[int, list[SeenProcess]]:
    """Find their processes, by leader. Blocking: a millisecond for some hundred processes on the machine."""
    wanted = list(containers)
    by_mark: dict[int | None, list[int]] = {one.mark: [] for one in wanted}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and (found := by_mark.get(mark_of(pid := int(name)))) is not None:
            found.append(pid)
    return {one.leader: _processes(one, by_mark[one.mark]) for one in wanted}


def _processes(one: Wanted, marked: list[int]) -> list[SeenProcess]:
    grouped = one.group.pids() if one.group is not None else ()
    inside = {one.leader, *marked, *grouped}
    found = [seen for pid in list(inside)[:_PROCESSES_MAX] if (seen := _read(pid, may_be_held=True)) is not None]
    for pid, started in one.strays:
        if pid not in inside and (seen := _read(pid, may_be_held=False)) is not None and seen.started == started:
            found.append(seen)
    return found


def _read(pid: int, *, may_be_held: bool) -> SeenProcess | None:
    try:
        fields = stat_fields(small_file(f"/proc/{pid}/stat"))
    except (OSError, ValueError):
        return None  # it has ended
    children_s = (int(fields[13]) + int(fields[14])) / _TICKS
    return SeenProcess(pid, int(fields[19]), int(fields[1]), int(fields[2]), children_s, may_be_held)


def processor_clock(pid: int) -> float | None:
    """Read for how long a process has had processors, s, its threads of now and before together.

    None: there is no such process. Not blocking, less than a microsecond.
    """
    try:
        # the kernel's number for a process's clock (CPUCLOCK_SCHED), as clock_getcpuclockid(3) gives it
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None
