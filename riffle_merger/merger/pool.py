"""Buffers of merges: one fixed budget, handed out in pieces of one size and used again.

Using a piece again saves more than its allocation: a fresh page costs the kernel as much as reading it from the page
cache. What is not in use goes back to the system when the merger has nothing to do.
"""

import mmap
import threading

from riffle_merger.plan.buffers import BUFFER_BYTES


class BufferPool:
    """Thread-safe. Who takes buffers has been admitted before: the pool refuses to grow, it does not wait."""

    def __init__(self, budget_bytes: int, *, buffer_bytes: int = BUFFER_BYTES) -> None:
        """The budget holds four buffers at least: half of it may be taken by indexes, and a merge takes two."""
        self.buffer_bytes = min(buffer_bytes, budget_bytes // 4)
        if self.buffer_bytes < 1:
            raise ValueError(f"a budget of {budget_bytes} bytes holds no buffers")
        self.count = budget_bytes // self.buffer_bytes
        self.used = self.used_max = 0
        self._free: list[mmap.mmap] = []
        self._lock = threading.Lock()

    @property
    def budget_bytes(self) -> int:
        return self.count * self.buffer_bytes

    @property
    def allocated(self) -> int:
        """Buffers that have memory at present, in use or not."""
        with self._lock:
            return self.used + len(self._free)

    def take(self, count: int) -> list[mmap.mmap]:
        """Raises MemoryError beyond the budget."""
        with self._lock:
            if self.used + count > self.count:
                raise MemoryError(f"{count} buffers asked for, {self.count - self.used} of {self.count} are left")
            self.used += count
            self.used_max = max(self.used_max, self.used)
            taken = [self._free.pop() for _ in range(min(count, len(self._free)))]
        return taken + [mmap.mmap(-1, self.buffer_bytes) for _ in range(count - len(taken))]

    def give_back(self, buffers: list[mmap.mmap]) -> None:
        with self._lock:
            self.used -= len(buffers)
            self._free.extend(buffers)

    def trim(self) -> None:
        """Gives memory that nobody uses back to the system."""
        with self._lock:
            self._free.clear()  # unmapped with the last view of it
