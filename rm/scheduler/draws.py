"""Nodes drawn at random for the strategies that draw (two-choices, random), the same ones in the same life.

The generator is Knuth's linear congruential one, begun at 1: a scheduler that is told the same decides the same.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rm.scheduler.node_queue import NodeQueue

#: tries for each node wanted, so that a full cluster costs no more than an empty one
_TRIES: Final = 8
_FACTOR: Final = 6364136223846793005
_STEP: Final = 1442695040888963407
_MASK: Final = (1 << 64) - 1


class Draws:
    def __init__(self) -> None:
        self._state = 1
        self._queues: list[NodeQueue] = []
        self._places: dict[NodeQueue, int] = {}

    def add(self, queue: "NodeQueue") -> None:
        self._places[queue] = len(self._queues)
        self._queues.append(queue)

    def remove(self, queue: "NodeQueue") -> None:
        place, last = self._places.pop(queue), self._queues.pop()
        if last is not queue:
            self._queues[place] = last
            self._places[last] = place

    def draw(self, number: int, accepts: "Callable[[NodeQueue], bool]") -> "list[NodeQueue]":
        """So many different ones that are accepted, or as many as a few tries find."""
        found: dict[NodeQueue, None] = {}
        for _ in range(_TRIES * number if self._queues else 0):
            self._state = (self._state * _FACTOR + _STEP) & _MASK
            queue = self._queues[(self._state >> 33) % len(self._queues)]
            if accepts(queue):
                found[queue] = None
                if len(found) == number:
                    break
        return list(found)
