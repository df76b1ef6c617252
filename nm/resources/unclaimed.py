"""Children of this process that belong to no container that can be told, and that it did not start itself.

Orphans of containers become children of this process (a child subreaper). One that has lost mark, environment and
parents between two looks may be of any container that ran at the first look that found it. It may also be of one that
had ended since the look before. It is let be as long as one of these runs, and killed with all its descendants then.

What this process starts itself carries its own mark (`nm.warm.marks`). The first process of a namespace, as in a Docker
container, is given the orphans of strangers too (`docker exec`). So it claims none of these.
"""

import signal
from collections.abc import Collection, Iterable
from typing import Protocol

from nm.resources.strays import Stray, living, signal_strays
from nm.warm.marks import is_mark, mark_of
from yaqd.model.child_processes import children_of


class Suspect(Protocol):
    """A container's process."""

    @property
    def is_over(self) -> bool: ...


class Unclaimed:
    def __init__(self) -> None:
        #: the containers that may have started each
        self._suspects: dict[Stray, tuple[Suspect, ...]] = {}
        self._told: set[Stray] = set()

    def look(self, found: Collection[Stray], ran: Iterable[Suspect]) -> list[Stray]:
        """Takes in a look at all of them; `ran`: containers that run, or did since the look before. Returns those whose
        suspects have all ended."""
        suspects = tuple(ran)
        self._suspects = {stray: self._suspects.get(stray, suspects) for stray in found}
        return [stray for stray, those in self._suspects.items() if all(one.is_over for one in those)]

    def new(self, doomed: Collection[Stray]) -> list[Stray]:
        """Returns those that were not told of yet: what cannot be killed is found again and again."""
        found = [stray for stray in doomed if stray not in self._told]
        self._told = set(doomed)
        return found


def kill_with_descendants(found: Iterable[Stray]) -> None:
    """Stops each before its children are listed, so that none is missed. Blocking, shortly."""
    pending, stopped = list(found), set[Stray]()
    while pending:
        stray = pending.pop()
        if stray in stopped or living(stray[0]) != stray:
            continue
        signal_strays([stray], signal.SIGSTOP)
        stopped.add(stray)
        below = (living(pid) for pid in children_of(stray[0]) if not is_mark(mark_of(pid)))
        pending += [child for child in below if child is not None]
    signal_strays(stopped, signal.SIGKILL)
