"""State machines as tables: states and events are enums, a table says which event leads where, nothing else happens.

An event that the table does not know for the present state is logged with both names and changes nothing. Late and
repeated messages are ordinary in a cluster, and none of them may take the daemon down.
"""

import logging
from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


class Machine(Generic[S, E]):
    """The present state of one thing."""

    __slots__ = ("_subject", "_table", "state")

    def __init__(self, subject: object, table: Mapping[tuple[S, E], S], state: S) -> None:
        #: whose state it is, for log lines
        self._subject = subject
        self._table = table
        self.state = state

    def can(self, event: E) -> bool:
        return (self.state, event) in self._table

    def advance(self, event: E) -> bool:
        """Go where the table says; False, and a log line, when the event does not belong here."""
        target = self._table.get((self.state, event))
        if target is None:
            log.warning("%s: event %s does not belong to state %s", self._subject, event.name, self.state.name)
            return False
        if target is not self.state and log.isEnabledFor(logging.DEBUG):
            log.debug("%s: %s -> %s on %s", self._subject, self.state.name, target.name, event.name)
        self.state = target
        return True
