"""What was read of merged files at once and is sent in parts: whole partitions, and runs of segments of longer ones.

A stock reducer asks for at most twenty maps at a time, a merged partition holds more: kept, it is read once. A longer
partition is read in runs, of what one request asks for. Either goes when each of its segments was sent, or when nobody
asked for a while; what connections are sending from counts, too, so that readers who take nothing cannot make it grow.
What was asked for just now is not given up for another reducer's: with more of them than there is room for each would
read a whole partition for every request. They read runs then, for which whole partitions leave some room, and go on so,
since of their partitions some has been read already. A run gets no more than a part of the room that is left. So
however many read, or read slowly, there is some for the next. What is sent for long goes on from its file: it was found
right, and the memory is for those who read.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from nm.shuffle.answer import Range
from nm.shuffle.files import OutputMissing

#: of all that may be kept, what one partition may have, and what one run
_PARTITION_SHARE = 1 / 4
_RUN_SHARE = 1 / 16
#: and what all partitions may have when another one is read
_PARTITIONS_SHARE = 3 / 4
#: of the room that is left, what one run may have: one of so many
_RUNS_OF_ROOM = 4
#: seconds in which a reducer that goes on asks again
_RECENT_S = 1.0
_IN_RUNS_MAX = 10_000
#: seconds that a segment may take to be sent; then it is sent from its file
_SENT_S = 1.0


class Kept:
    """Bytes of segments that lie side by side; `use` and `release` in pairs, by way of their keeper."""

    __slots__ = ("data", "last_used_at", "offset", "segments_left", "users")

    def __init__(self, data: bytes, offset: int, segments: int) -> None:
        self.data = data
        #: in the merged file
        self.offset = offset
        #: not yet asked for
        self.segments_left = segments
        self.users = 0
        self.last_used_at = 0.0


class KeptSegments:
    """From any thread. `now` gives seconds of any clock that does not go back."""

    def __init__(self, *, bytes_max: int, age_max_s: float, now: Callable[[], float]) -> None:
        """`bytes_max`: of everything together; nothing is longer than a part of it. 0 keeps nothing."""
        self._bytes_max = bytes_max
        self._age_max_s = age_max_s
        self._now = now
        #: what was used last stands last
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        #: of these, of what room is made for, and of what is forgotten and sent from still
        self._bytes = 0
        #: partitions that are read in runs for lack of room, and when they were asked for last; in that order
        self._in_runs: OrderedDict[Hashable, float] = OrderedDict()
        self._lock = threading.Lock()
        #: the longest run that is read at once
        self.run_bytes_max = int(bytes_max * _RUN_SHARE)

    @property
    def now(self) -> float:
        return self._now()

    @property
    def held_bytes(self) -> int:
        """The bytes of all that is kept, being read or being sent from."""
        return self._bytes

    def use(self, key: Hashable) -> Kept | None:
        """Returns what is kept under the key, for one of its segments. To be released."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                self._use(kept)
            return kept

    def reserve_partition(self, key: Hashable, length: int) -> bool:
        """Makes room to read a whole partition; followed by `keep` or `unreserve`."""
        if length > self._bytes_max * _PARTITION_SHARE:
            return False
        if key not in self._in_runs and self._reserve(length, int(self._bytes_max * _PARTITIONS_SHARE)):
            return True
        with self._lock:
            self._in_runs[key] = self._now()
            self._in_runs.move_to_end(key)
            if len(self._in_runs) > _IN_RUNS_MAX:
                self._in_runs.popitem(last=False)
        return False

    def reserve_run(self, wanted: int, least: int) -> int:
        """Makes room to read a run, no more than is wanted and as much as leaves others theirs: how much; 0: not even
        `least`. Followed by `keep` or `unreserve`, and by `unreserve` for what is not used of it."""
        wanted = min(wanted, self.run_bytes_max)
        with self._lock:
            while self._bytes + wanted > self._bytes_max and (idle := self._longest_idle()) is not None:
                self._forget(idle)
            room = self._bytes_max - self._bytes
            granted = max(least, min(wanted, room // _RUNS_OF_ROOM))
            if granted > min(room, self.run_bytes_max):
                return 0
            self._bytes += granted
            return granted

    def unreserve(self, length: int) -> None:
        """Gives room back that was made for what could not be read."""
        with self._lock:
            self._bytes -= length

    def keep(self, key: Hashable, data: bytes, offset: int, segments: int) -> Kept:
        """Keeps what room was made for, unless another thread was faster; used for one segment, as by `use`."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                kept = self._kept[key] = Kept(data, offset, segments)
            else:
                self._bytes -= len(data)
            self._use(kept)
            return kept

    def release(self, key: Hashable, kept: Kept, *, further: int = 0) -> None:
        """Releases what was used. `further`: segments of it that were taken beside the one it was used for."""
        with self._lock:
            kept.segments_left -= further
            kept.users -= 1
            if kept.users:
                return
            if self._kept.get(key) is not kept:
                self._bytes -= len(kept.data)
            elif kept.segments_left <= 0:
                self._forget(key)

    def sweep(self) -> None:
        """Forgets what nobody asked for lately."""
        oldest = self._now() - self._age_max_s
        self.forget_where(lambda _, kept: kept.last_used_at < oldest)
        with self._lock:
            while self._in_runs and next(iter(self._in_runs.values())) < oldest:
                self._in_runs.popitem(last=False)

    def forget_where(self, unwanted: Callable[[Hashable, Kept], bool]) -> None:
        with self._lock:
            for key in [key for key, kept in self._kept.items() if unwanted(key, kept)]:
                self._forget(key)

    def _reserve(self, length: int, most: int) -> bool:
        with self._lock:
            while self._bytes + length > most:
                idle = self._longest_idle()
                if idle is None:
                    return False
                self._forget(idle)
            self._bytes += length
            return True

    def _longest_idle(self) -> Hashable | None:
        """What may be given up for other segments."""
        recent = self._now() - _RECENT_S
        for key, kept in self._kept.items():
            if kept.last_used_at > recent:
                return None
            if not kept.users:
                return key
        return None

    def _use(self, kept: Kept) -> None:
        kept.users += 1
        kept.segments_left -= 1
        kept.last_used_at = self._now()

    def _forget(self, key: Hashable) -> None:
        kept = self._kept.pop(key)
        if not kept.users:
            self._bytes -= len(kept.data)


class KeptRange:
    """A part of what is kept on its way into a socket."""

    __slots__ = ("_began_at", "_end", "_from_file", "_keeper", "_kept", "_key", "_view", "remaining")

    def __init__(
        self,
        keeper: KeptSegments,
        key: Hashable,
        kept: Kept,
        start: int,
        length: int,
        from_file: Callable[[int, int], Range],
    ) -> None:
        """`start`: in the merged file. `from_file` gives so many bytes from there on straight out of it."""
        self._keeper = keeper
        self._key = key
        self._kept = kept
        self._end = start + length
        self._from_file = from_file
        self._began_at = keeper.now
        at = start - kept.offset
        self._view = memoryview(kept.data)[at : at + length]
        self.remaining = length

    def send(self, descriptor: int, most: int) -> int:
        sent = os.write(descriptor, self._view[:most])
        self._view = self._view[sent:]
        self.remaining -= sent
        return sent

    def lighter(self) -> Range:
        if self._keeper.now - self._began_at < _SENT_S:
            return self
        try:
            follows = self._from_file(self._end - self.remaining, self.remaining)
        except OutputMissing:
            return self
        self.release()
        return follows

    def release(self) -> None:
        self._view = memoryview(b"")
        self._keeper.release(self._key, self._kept)
