"""Partitions of merged files that were read whole, kept for the same reducer's next requests.

A stock reducer asks for at most twenty maps at a time, a merged partition holds more: kept, it is read once. It goes
when each of its segments was sent, when nobody asked for a while, or when there is no room; those that connections are
sending from count, too, so that readers who take nothing cannot make it grow.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

#: of all that may be kept, what one partition may have
_SHARE = 4


class KeptPartition:
    """Bytes of a whole partition; `use` and `release` in pairs, by way of its keeper."""

    __slots__ = ("data", "last_used_at", "segments_left", "users")

    def __init__(self, data: bytes, segments: int) -> None:
        self.data = data
        #: not yet asked for
        self.segments_left = segments
        self.users = 0
        self.last_used_at = 0.0


class KeptPartitions:
    """From any thread. `now` gives seconds of any clock that does not go back."""

    def __init__(self, *, bytes_max: int, age_max_s: float, now: Callable[[], float]) -> None:
        """`bytes_max`: of all partitions together; none is longer than a part of it. 0 keeps nothing."""
        self._bytes_max = bytes_max
        self._age_max_s = age_max_s
        self._now = now
        self._partitions: OrderedDict[Hashable, KeptPartition] = OrderedDict()
        #: of these, of what room is made for, and of what is forgotten and sent from still
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def held_bytes(self) -> int:
        """Of all that is kept, being read or being sent from."""
        return self._bytes

    def use(self, key: Hashable) -> KeptPartition | None:
        """What is kept under the key, for one of its segments. To be released."""
        with self._lock:
            kept = self._partitions.get(key)
            if kept is not None:
                self._partitions.move_to_end(key)
                self._use(kept)
            return kept

    def reserve(self, length: int) -> bool:
        """Makes room to read a partition; followed by `keep` or `unreserve`."""
        if length * _SHARE > self._bytes_max:
            return False
        with self._lock:
            while self._bytes + length > self._bytes_max:
                idle = next((key for key, kept in self._partitions.items() if not kept.users), None)
                if idle is None:
                    return False
                self._forget(idle)
            self._bytes += length
            return True

    def unreserve(self, length: int) -> None:
        """The partition that room was made for could not be read."""
        with self._lock:
            self._bytes -= length

    def keep(self, key: Hashable, data: bytes, segments: int) -> KeptPartition:
        """Keeps what `reserve` made room for, unless another thread was faster; used for one segment, as by `use`."""
        with self._lock:
            kept = self._partitions.get(key)
            if kept is None:
                kept = self._partitions[key] = KeptPartition(data, segments)
            else:
                self._bytes -= len(data)
            self._use(kept)
            return kept

    def release(self, key: Hashable, kept: KeptPartition) -> None:
        with self._lock:
            kept.users -= 1
            if kept.users:
                return
            if self._partitions.get(key) is not kept:
                self._bytes -= len(kept.data)
            elif kept.segments_left <= 0:
                self._forget(key)

    def sweep(self) -> None:
        """Forgets what nobody asked for lately."""
        oldest = self._now() - self._age_max_s
        self.forget_where(lambda _, kept: kept.last_used_at < oldest)

    def forget_where(self, unwanted: Callable[[Hashable, KeptPartition], bool]) -> None:
        with self._lock:
            for key in [key for key, kept in self._partitions.items() if unwanted(key, kept)]:
                self._forget(key)

    def _use(self, kept: KeptPartition) -> None:
        kept.users += 1
        kept.segments_left -= 1
        kept.last_used_at = self._now()

    def _forget(self, key: Hashable) -> None:
        kept = self._partitions.pop(key)
        if not kept.users:
            self._bytes -= len(kept.data)


class KeptRange:
    """A part of a kept partition on its way into a socket."""

    __slots__ = ("_at", "_keeper", "_kept", "_key", "_view", "remaining")

    def __init__(self, keeper: KeptPartitions, key: Hashable, kept: KeptPartition, at: int, length: int) -> None:
        self._keeper = keeper
        self._key = key
        self._kept = kept
        self._view = memoryview(kept.data)[at : at + length]
        self.remaining = length

    def send(self, descriptor: int, most: int) -> int:
        sent = os.write(descriptor, self._view[:most])
        self._view = self._view[sent:]
        self.remaining -= sent
        return sent

    def release(self) -> None:
        self._view = memoryview(b"")
        self._keeper.release(self._key, self._kept)
