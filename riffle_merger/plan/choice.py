"""Which merger gets a merge whose outputs lie on no node: the one with the shorter queue of two drawn at random.

Asking two is nearly as good as asking all, and costs the same on a thousand nodes as on three (Riffle, 4.3.4; the power
of two choices). A merger that failed is left alone for a while. No I/O: randomness and the time are handed in.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, Generic, TypeVar

Merger = TypeVar("Merger", bound=Hashable)

_AVOIDED_S: Final = 60.0


class MergerChoice(Generic[Merger]):
    def __init__(self, draw: Callable[[Sequence[Merger], int], list[Merger]], *, asked: int = 2) -> None:
        """`draw(mergers, n)`: n of them at random, in random order. `asked`: drawn for one merge; 1 takes any."""
        self._draw = draw
        self.asked = asked
        self._until: dict[Merger, float] = {}
        self._mine: dict[Merger, int] = {}

    def candidates(self, known: Sequence[Merger], now: float) -> list[Merger]:
        """Draw mergers to be asked for their queues, unless it is one.

        Where all have failed lately, there are none.
        """
        usable = [merger for merger in known if self._until.get(merger, now) <= now]
        return self._draw(usable, min(self.asked, len(usable)))

    def shortest(self, queues: Mapping[Merger, int | None]) -> Merger | None:
        """Return the merger with the shortest of these queues, which are in the order drawn.

        None stands for a merger that did not answer.
        """
        answered = {merger: length for merger, length in queues.items() if length is not None}
        # what was sent a moment ago may not have arrived when the merger was asked
        return min(answered, key=lambda merger: max(answered[merger], self._mine.get(merger, 0)), default=None)

    def sent(self, merger: Merger) -> None:
        self._mine[merger] = self._mine.get(merger, 0) + 1

    def ended(self, merger: Merger) -> None:
        self._mine[merger] = max(0, self._mine.get(merger, 0) - 1)

    def failed(self, merger: Merger, now: float) -> None:
        self._until[merger] = now + _AVOIDED_S
