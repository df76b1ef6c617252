"""The processor time of one container: of the processes that were seen, and of those that came and went unseen.

A process is read by its own clock, which forgets its children. What a child used is added to its parent's count of
children that have ended, once that has waited for it. Both together miss nothing but a child that came and went
between two looks and that no parent waited for. Clocks are handed in.
"""

from collections.abc import Callable, Iterable
from typing import Final

from yaqd.model.values import value

#: user and system time of children are told in whole hundredths of a second, rounded down
_ROUNDING_S: Final = 0.02


@value()
class SeenProcess:
    """One process of a container at a look."""

    pid: int
    #: clock ticks after boot: with the number nobody else's
    started: int
    parent: int
    #: its process group
    group: int
    #: processor time of children that it has waited for, s
    children_s: float
    #: it ends with this NodeManager, whatever becomes of that; others are counted only
    may_be_held: bool


class Ledger:
    def __init__(self, clock: Callable[[int], float | None]) -> None:
        """Begin with nothing; `clock` returns the processor time of a process, s, None where there is none such."""
        self._clock = clock
        self.seen: dict[tuple[int, int], SeenProcess] = {}
        #: of each that is there: what its clock said last
        self._own_s: dict[tuple[int, int], float] = {}
        #: of those that are gone, and of those that nobody saw
        self._ended_s = self._unseen_s = 0.0
        #: by parent: of children that are gone, what its count of children has yet to show
        self._owed_s: dict[int, float] = {}

    def total_s(self) -> float:
        """Return the processor time of all so far, as their clocks stand now. It never falls."""
        for key, before in self._own_s.items():
            now = self._clock(key[0])
            if now is not None and now > before:
                self._own_s[key] = now
        return self._ended_s + self._unseen_s + sum(self._own_s.values())

    def take_in(self, found: Iterable[SeenProcess]) -> list[SeenProcess]:
        """Replace what is known by a look at all its processes, and return those that are new."""
        self.total_s()
        now = {(one.pid, one.started): one for one in found}
        gone_s: dict[int, float] = {}
        for key in self.seen.keys() - now.keys():
            before, own_s = self.seen[key], self._own_s.pop(key)
            self._ended_s += own_s
            gone_s[before.parent] = gone_s.get(before.parent, 0.0) + own_s + before.children_s
        owed_s: dict[int, float] = {}
        for key, one in now.items():
            known = self.seen.get(key)
            waited_s = one.children_s - (known.children_s if known is not None else 0.0)
            fresh_s = gone_s.get(one.pid, 0.0)
            owed = self._owed_s.get(one.pid, 0.0) + fresh_s
            self._unseen_s += max(0.0, waited_s - owed)
            # what is still not shown at the next look never will be: its parent does not wait
            owed_s[one.pid] = min(max(0.0, owed - waited_s), fresh_s + _ROUNDING_S)
            self._own_s.setdefault(key, self._clock(one.pid) or 0.0)
        new = [one for key, one in now.items() if key not in self.seen]
        self.seen, self._owed_s = now, owed_s
        return new
