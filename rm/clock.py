"""Time, handed in: one clock for intervals, one for what people and tokens read."""

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Return seconds that only go forward."""
        ...

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch."""
        ...


class SystemClock:
    def now(self) -> float:
        return time.monotonic()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
