"""Who has been silent for too long. Times are handed in; everything watched here has the same limit.

Entries are kept in the order of their last sign of life, so a check looks only at those that are due.
"""

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Liveness(Generic[K]):
    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._seen: dict[K, float] = {}

    def seen(self, key: K, now: float) -> None:
        """Watch `key`, or note a sign of life."""
        self._seen.pop(key, None)
        self._seen[key] = now

    def refresh(self, key: K, now: float) -> None:
        """Note a sign of life of something that may not be watched (any more)."""
        if self._seen.pop(key, None) is not None:
            self._seen[key] = now

    def forget(self, key: K) -> None:
        self._seen.pop(key, None)

    def silent_s(self, key: K, now: float) -> float:
        """Return how long ago it gave a sign of life, s; 0 of one that is not watched."""
        return now - self._seen.get(key, now)

    def expired(self, now: float) -> Iterator[K]:
        """Yield those silent for longer than the limit, each no longer watched once it is handed out.

        A caller that fails at one of them finds the others still there the next time.
        """
        while self._seen:
            key, at = next(iter(self._seen.items()))
            if now - at <= self.limit_s:
                return
            del self._seen[key]
            yield key

    def __len__(self) -> int:
        return len(self._seen)
