"""In which order programs start where they are more than a node has idle processors.

A program that starts is all processor time: a Java virtual machine some three seconds of it before its first line of
work. Where many start at once on few processors they hold each other up and all end late, at the same time. Started in
turn they take the same processor time, but the first ones end earlier, and what waits for these goes on meanwhile: the
next in the queue, a reduce that starts when the first maps are done.

So a start is held while the processors are busy and another program that started a moment ago is at work. It is never
held for longer than such a moment, nor where a processor has nothing to do. A program that needs little is not held
either, however busy others keep the processors: to wait for it would help nobody.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from nm.node_queue.held import NONE_HELD, HeldStarts
from nm.resources.process_scan import ProcessorNeed
from yaqd.model import ContainerId

#: how busy the processors are is looked at over so long at least, s
WINDOW_S: Final = 0.1
#: the part of one processor that must be left over for another program to start on it
_LEFT_OVER: Final = 0.5
#: a program that wants no more than this part of a processor for so long is at rest, s
_AT_REST: Final = 0.1
REST_S: Final = 0.2
#: who starts so soon after it was asked for has not been held, s
_NOT_HELD_S: Final = 0.01
#: so many starts that were held say how long the next one will be
_REMEMBERED: Final = 8


class StartPace:
    """Whose turn it is; the time, and how busy the processors are, are handed in."""

    def __init__(self, processors: int, moment_s: float) -> None:
        """`moment_s`: how long a program is one that starts, and for how long a start is held at most; 0: none is."""
        self._processors = processors
        #: may change at any time
        self.moment_s = moment_s
        #: those held and since when, and those that started, and when; earliest first
        self._held: dict[ContainerId, float] = {}
        self._young: dict[ContainerId, float] = {}
        #: of those with a process: when one was looked at, and for how long it had had a processor then, s
        self._had: dict[ContainerId, tuple[float, float]] = {}
        #: when the last look was, and for how many seconds all processors together had been busy then
        self._looked: tuple[float, float] | None = None
        #: so many may start before the next look
        self._free = 1
        #: for how long the last ones were held, s
        self._holds: deque[float] = deque(maxlen=_REMEMBERED)

    @property
    def is_holding(self) -> bool:
        return bool(self._held)

    def held(self, now: float) -> HeldStarts:
        """Returns the held containers, and for how much longer each is held if it is no luckier than the last ones.

        Before any was held, that is as long as one may be.
        """
        if not self._held:
            return NONE_HELD
        usual_s = sum(self._holds) / len(self._holds) if self._holds else self.moment_s
        left_s = {container: max(0.0, usual_s - (now - since)) for container, since in self._held.items()}
        return HeldStarts(left_s, usual_s)

    def ask(self, container: ContainerId, now: float) -> None:
        """Asks for the start of a container's program."""
        self._held[container] = now

    def began(self, container: ContainerId, now: float) -> None:
        """Notes that the program has a process now, which has had no processor yet."""
        if container in self._young:
            self._had[container] = now, 0.0

    def forget(self, container: ContainerId) -> None:
        """Forgets a container that has ended, or does not start after all."""
        self._held.pop(container, None)
        self._grown(container)

    def due(self, now: float, busy_s: float, need: Callable[[ContainerId], ProcessorNeed | None]) -> list[ContainerId]:
        """Returns the containers that start now, and are held no longer.

        `busy_s`: for how long all processors together were busy. `need`: how much a program wants a processor, None
        where nobody knows yet.
        """
        for container in [container for container, at in self._young.items() if now - at >= self.moment_s]:
            self._grown(container)
        self._look(now, busy_s, need)
        found = []
        for container, since in list(self._held.items()):
            if self._young and self._free < 1 and now - since < self.moment_s:
                break
            self._free -= 1
            if now - since >= _NOT_HELD_S:
                self._holds.append(min(now - since, self.moment_s))
            self._young[container] = now
            del self._held[container]
            found.append(container)
        return found

    def _grown(self, container: ContainerId) -> None:
        self._young.pop(container, None)
        self._had.pop(container, None)

    def _look(self, now: float, busy_s: float, need: Callable[[ContainerId], ProcessorNeed | None]) -> None:
        if self._looked is None:
            self._looked = now, busy_s
        at, busy_then_s = self._looked
        if now - at < WINDOW_S:
            return
        idle = self._processors - (busy_s - busy_then_s) / (now - at)
        self._free = int(idle + 1 - _LEFT_OVER)
        if idle > self._processors / 2:  # those that started need little: more at a time
            self._free = max(self._free, 2 * sum(1 for started in self._young.values() if started >= at))
        self._looked = now, busy_s
        if self._held and self._free < 1:
            at_rest = [container for container in self._young if self._rests(container, now, need(container))]
            for container in at_rest:
                self._grown(container)  # nobody waits for it any more
            self._free = 2 * len(at_rest)

    def _rests(self, container: ContainerId, now: float, need: ProcessorNeed | None) -> bool:
        """Has it wanted next to nothing since it began, or was seen to want something?"""
        if need is None:
            return False
        at, had_then_s = self._had.get(container, (now, 0.0))
        if need.wants or now - at >= REST_S:
            self._had[container] = now, need.had_s
        # less than before: some of it has ended
        return not need.wants and now - at >= REST_S and 0.0 <= need.had_s - had_then_s <= _AT_REST * (now - at)

    def validate(self) -> None:
        """Assert every invariant."""
        assert not self._held.keys() & self._young.keys()
        assert list(self._held.values()) == sorted(self._held.values())
        assert list(self._young.values()) == sorted(self._young.values())
        assert self._had.keys() <= self._young.keys()
