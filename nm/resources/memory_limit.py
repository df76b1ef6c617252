"""When a container has too much memory: Hadoop's two rules, and the words that its clients look for.

Over twice the limit is over at once. Over the limit counts only with processes that were there at the scan before. A
process between fork and exec is counted twice for a moment.
"""

from dataclasses import dataclass

from nm.resources.process_scan import Usage
from yaqd.model import ExitStatus

_GB = 1 << 30


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    check_physical: bool
    check_virtual: bool
    #: virtual limit = memory x this
    virtual_ratio: float


@dataclass(frozen=True, slots=True)
class Excess:
    status: ExitStatus
    reason: str


def is_over(current: int, aged: int, limit: int) -> bool:
    return current > 2 * limit or aged > limit


def excess(usage: Usage, *, container_id: str, leader: int, memory_mb: int, limits: MemoryLimits) -> Excess | None:
    """Returns why the container must end; None when it may go on."""
    physical_limit = memory_mb << 20
    virtual_limit = int(physical_limit * limits.virtual_ratio)
    if limits.check_virtual and is_over(usage.virtual_bytes, usage.aged_virtual_bytes, virtual_limit):
        kind, status, over = "VIRTUAL", ExitStatus.KILLED_EXCEEDED_VMEM, usage.virtual_bytes - virtual_limit
    elif limits.check_physical and is_over(usage.physical_bytes, usage.aged_physical_bytes, physical_limit):
        kind, status, over = "PHYSICAL", ExitStatus.KILLED_EXCEEDED_PMEM, usage.physical_bytes - physical_limit
    else:
        return None
    return Excess(
        status,
        f"Container [pid={leader},containerID={container_id}] is running {max(over, 0)}B beyond the '{kind}' memory "
        f"limit. Current usage: {_size(usage.physical_bytes)} of {_size(physical_limit)} physical memory used; "
        f"{_size(usage.virtual_bytes)} of {_size(virtual_limit)} virtual memory used. Killing container.",
    )


def _size(count: int) -> str:
    """In the unit that Hadoop's traditional binary prefix picks."""
    return f"{count / _GB:.1f} GB" if count >= _GB else f"{count / (1 << 20):.1f} MB"
