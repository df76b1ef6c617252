"""At how many nodes containers may wait where the ResourceManager's core is full.

A container that waits at its node hides how long the ResourceManager takes, and costs it more time than one that does
not. While its core has time left that is a gain. Where the core is full and slots idle all the same, what queues cost
is taken from what can be given out, and late answers are no reason for more of them. Then fewer nodes have one at each
look, and more again once the core has time.
"""

from collections.abc import Callable
from typing import Final

#: looks are so far apart, s: one slow call is no load
LOOK_S: Final = 3.0
#: of the core's time. Beyond the first it is full, and below the second it has time left. What lies between is more
#: than one step moves, so that the share comes to rest
_FULL: Final = 0.93
_FREE: Final = 0.85
#: of the slots: while so many work, a full core is well used
_WORKING: Final = 0.85
#: by how much the share grows at a look, and what is left of it where it falls
_STEP: Final = 0.05
_LEFT: Final = 0.25
#: a smaller share is none
_LEAST: Final = 1 / 64
#: consecutive looks: a job that comes fills the core for a moment
_LOOKS: Final = 2
#: the golden ratio's fraction: its multiples divide the nodes evenly, wherever the line is drawn
_TURN: Final = 0.6180339887498949


class CoreShare:
    """The share of nodes that may have a queue, 0 to 1."""

    __slots__ = ("_full", "share")

    def __init__(self) -> None:
        self.share = 1.0
        #: looks that found the core full, one after another
        self._full = 0

    def look(self, busy: float, working: Callable[[], float]) -> None:
        """Take in which part of its core's time the ResourceManager worked since the last look, 0 to 1.

        `working`: which part of the slots works. It is asked where the core is full alone.
        """
        self._full = self._full + 1 if busy >= _FULL else 0
        if self._full >= _LOOKS and self.share > 0.0:
            if working() < _WORKING:
                self.share = self.share * _LEFT if self.share * _LEFT >= _LEAST else 0.0
        elif busy <= _FREE and self.share < 1.0:
            self.share = min(1.0, self.share + _STEP)

    def admits(self, number: int) -> bool:
        """Tell whether the node with this number may have a queue: as long as others may, too, that came before."""
        return self.share >= 1.0 or number * _TURN % 1.0 < self.share
