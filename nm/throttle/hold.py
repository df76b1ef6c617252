"""Holds the processes of a container by SIGSTOP, and lets them go on by SIGCONT.

Only those are held that end with this NodeManager: if it is killed, its forkers kill all that carry a container's mark
or are in its group, held or not. So nothing stays stopped. A process that has lost its mark is counted and not held.
"""

import signal
from collections.abc import Iterable
from itertools import islice
from typing import Final

from nm.resources.processes import ContainerProcess
from nm.resources.strays import Stray, signal_strays
from nm.throttle.ledger import SeenProcess

#: a signal to one takes some hundredths of a millisecond, and nothing else happens in this daemon meanwhile
_OUTSIDE_MAX: Final = 500


class Hold:
    """Of one process group leader and what it started. Not blocking: a signal, and one for each outside the group."""

    def __init__(self, process: ContainerProcess) -> None:
        self._process = process
        self.is_held = False
        #: those outside the leader's process group that were stopped
        self._outside: set[Stray] = set()

    def hold(self, seen: Iterable[SeenProcess]) -> None:
        """Stop all of them; also those that were started since, or that somebody else let go on."""
        self.is_held = True
        self._process.signal_group(signal.SIGSTOP)
        found = ((one.pid, one.started) for one in seen if one.may_be_held and one.group != self._process.pid)
        outside = set(islice(found, _OUTSIDE_MAX))
        signal_strays(outside, signal.SIGSTOP)
        self._outside |= outside

    def release(self) -> None:
        """Let all go on that were stopped."""
        if self.is_held:
            self.is_held = False
            self._process.signal_group(signal.SIGCONT)
            signal_strays(self._outside, signal.SIGCONT)
            self._outside.clear()
