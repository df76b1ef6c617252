"""The evaluations of a driver that calls them from within an optimizer, so that it can be run again from its beginning.

A driver that is run again asks for the same states in the same order. It is answered from here as far as that goes.
What does not fit the budget is computed again: the answers are the same. One that asks for another state has taken
another course: what was known from there on is forgotten.
"""

from collections.abc import Callable, Sequence


class Evaluations:
    def __init__(
        self,
        bytes_max: int,
        known: Sequence[tuple[str, Sequence[bytes]]] = (),
        *,
        note: Callable[[str], object] = lambda line: None,
    ) -> None:
        """`note` hears, once, that the driver has taken another course."""
        self._bytes_max = bytes_max
        self._note, self._is_noted = note, False
        #: each state's name, and its partials
        self.known: list[tuple[str, Sequence[bytes]]] = list(known)
        self._bytes = sum(_size(partials) for _, partials in self.known)

    def find(self, place: int, version: str) -> Sequence[bytes] | None:
        """Return the partials of this state, which was asked for in this place; None: not known.

        Where another state was asked for in this place, that one and those after it are forgotten."""
        if not 0 <= place < len(self.known):
            return None
        if self.known[place][0] == version:
            return self.known[place][1]
        self._forget(place)
        if not self._is_noted:
            self._is_noted = True
            self._note(
                f"run() asked for another state at evaluation {place + 1} than before its restart: from there on all "
                "is computed anew. What run() does must follow from its seed and from its answers alone"
            )
        return None

    def add(self, place: int, version: str, partials: Sequence[bytes]) -> None:
        """Note them. What was known from this place on was of another course and goes."""
        if place > len(self.known):
            return  # what lies between did not fit
        self._forget(place)
        size = _size(partials)
        if self._bytes + size <= self._bytes_max:
            self.known.append((version, partials))
            self._bytes += size

    def _forget(self, place: int) -> None:
        for _, dropped in self.known[place:]:
            self._bytes -= _size(dropped)
        del self.known[place:]


def _size(partials: Sequence[bytes]) -> int:
    return sum(map(len, partials))
