"""Time: what happens when.

Single events wait in a calendar: those of the present slice of time in a heap, those of each later slice as they were
made. So an event costs the same however many are still to come. Heartbeats come round and round in one order, so they
stand in a wheel instead. A stretch in which no heartbeat could change anything is jumped over. At one moment single
events come before heartbeats, and single events in the order in which they were made: two runs are never ordered
differently.
"""

import gc
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from typing import Any, Final

#: what is done: the time, and what it was made with
Act = Callable[[float, Any], None]
#: when, its number in the order of their making, what is done
_Event = tuple[float, int, Act, Any]
#: slices of time in a second; later than the last one are all others
_SLICES: Final = 16.0
_LAST_SLICE: Final = 1 << 60
#: rounds of heartbeats that bring about nothing, after which nothing is expected any more
_FRUITLESS_ROUNDS: Final = 100


class Engine:
    def __init__(self, period_s: float, phases: Sequence[tuple[float, Any]]) -> None:
        """`phases`: in order, when in each period somebody beats (in [0, period)), and who."""
        #: events up to the end of the present slice; empty when there is none at all
        self._heap: list[_Event] = []
        self._slice = 0
        #: by slice, and the heap of these slices
        self._later: dict[int, list[_Event]] = {}
        self._slices: list[int] = []
        self._made = 0
        self.events = 0
        self.beats = 0
        self._period_s: Final = period_s
        self._offsets: Final = [offset for offset, _ in phases]
        self._who: Final = [who for _, who in phases]
        self._round = 0
        self._next = 0
        self._is_fruitless = False

    def at(self, when: float, act: Act, what: Any = None) -> None:
        self._made += 1
        event = (when, self._made, act, what)
        part = int(when * _SLICES) if when < _LAST_SLICE / _SLICES else _LAST_SLICE
        if part <= self._slice or not self._heap:
            self._slice = max(part, self._slice)
            heappush(self._heap, event)
        elif part in self._later:
            self._later[part].append(event)
        else:
            self._later[part] = [event]
            heappush(self._slices, part)

    def _next_slice(self) -> None:
        self._slice = heappop(self._slices)
        self._heap += self._later.pop(self._slice)
        heapify(self._heap)

    def run(self, beat: Act, is_over: Callable[[], bool], may_matter: Callable[[], bool], horizon_s: float) -> float:
        """Run until `is_over`, or the horizon, or until nothing more can happen; return the time then, s.

        `may_matter`: could a heartbeat change anything, if nothing else happens before it?
        """
        heap = self._heap
        now = 0.0
        due = self._due()
        while not is_over() and not self._is_fruitless:
            when = heap[0][0] if heap else math.inf
            if due < when:
                if may_matter():
                    if due > horizon_s:
                        return horizon_s
                    now = self._beat_until(when, horizon_s, beat, may_matter)
                    due = self._due()
                    continue
                if not heap:
                    return now
                self._jump(when)
                due = self._due()
            if when > horizon_s:
                return horizon_s
            now, _, act, what = heappop(heap)
            if not heap and self._slices:
                self._next_slice()
            self.events += 1
            act(now, what)
        return now

    def _due(self) -> float:
        return self._round * self._period_s + self._offsets[self._next]

    def _beat_until(self, when: float, horizon_s: float, beat: Act, may_matter: Callable[[], bool]) -> float:
        """Heartbeats before the next single event; each may make one that is earlier."""
        heap, who, offsets = self._heap, self._who, self._offsets
        due = now = self._due()
        last_round = self._round + _FRUITLESS_ROUNDS
        while due < when and due <= horizon_s:
            now = due
            self.beats += 1
            beat(now, who[self._next])
            self._next += 1
            if self._next == len(who):
                self._next = 0
                self._round += 1
            if not may_matter():
                break
            if heap:
                when = heap[0][0]
            elif self._round > last_round:
                self._is_fruitless = True
                break
            due = self._round * self._period_s + offsets[self._next]
        return now

    def _jump(self, when: float) -> None:
        """To the first heartbeat that is not before `when`."""
        turn = max(self._round, int(when // self._period_s) - 1)
        if turn > self._round:
            self._round, self._next = turn, 0
        while self._due() < when:
            if self._offsets[-1] + self._round * self._period_s < when:
                self._round, self._next = self._round + 1, 0
                continue
            place = bisect_right(self._offsets, when - self._round * self._period_s) - 1
            self._next = max(self._next + 1, place)
            if self._next == len(self._who):
                self._next, self._round = 0, self._round + 1


@contextmanager
def without_collecting() -> Iterator[None]:
    """Keep the collector of cycles off: a run makes none, and looking for them takes a tenth of a large one's time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
