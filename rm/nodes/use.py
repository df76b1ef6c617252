"""How busy a node is, now and over the last minutes: means that fade, brought up to date at each heartbeat."""

import math
from typing import Final

_MINUTE_S: Final = 60.0
_FIVE_S: Final = 300.0


class NodeUse:
    __slots__ = ("_at", "_five", "_minute", "_now")

    def __init__(self) -> None:
        self._at: float | None = None
        self._now = self._minute = self._five = 0.0

    def observe(self, share: float, now: float) -> None:
        """Note the part of the node that is in use, 0..1. It is taken to have been so since the last time."""
        share = min(1.0, max(0.0, share))
        if self._at is None:
            self._minute = self._five = share
        else:
            passed = max(0.0, now - self._at)
            self._minute += (share - self._minute) * -math.expm1(-passed / _MINUTE_S)
            self._five += (share - self._five) * -math.expm1(-passed / _FIVE_S)
        self._at, self._now = now, share

    def shares(self) -> tuple[float, float, float]:
        """Return the shares in use, 0..1: now, over the last minute, over the last five."""
        return round(self._now, 4), round(self._minute, 4), round(self._five, 4)
