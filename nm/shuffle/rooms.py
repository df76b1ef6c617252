"""Memory that all connections of the service have together for what strangers or slow readers can make it hold."""

import threading
from typing import Final

#: of requests that have no end yet: nothing is verified before they have one
UNFINISHED_BYTES_MAX: Final = 16 << 20
#: one that is no longer, as those of Hadoop's reducers are, is always waited for; there are only so many connections
_SHORT_BYTES: Final = 4 << 10
#: of what was found for requests and waits to be sent: some 60 requests of as many maps as one may name, or 500 of our
#: reducers' of 200 maps of a merged file
PLANNED_BYTES_MAX: Final = 32 << 20
#: one that takes no more is always answered: twenty maps, which Hadoop's reducers ask for at most, and ours of what is
#: not merged
PLANNED_SHORT_BYTES: Final = 16 << 10


class SharedRoom:
    """From any thread."""

    def __init__(self, bytes_max: int, short_bytes: int) -> None:
        """`short_bytes`: what is no longer always has room."""
        self.bytes = 0
        self._bytes_max = bytes_max
        self._short_bytes = short_bytes
        self._lock = threading.Lock()

    def changed(self, before: int, after: int) -> bool:
        """Counts one that is so many bytes long now.

        Returns False where there is no room for it; it is counted no more then.
        """
        with self._lock:
            self.bytes -= before
            if after > max(before, self._short_bytes) and self.bytes + after > self._bytes_max:
                return False
            self.bytes += after
            return True


def unfinished_heads() -> SharedRoom:
    return SharedRoom(UNFINISHED_BYTES_MAX, _SHORT_BYTES)


def planned_answers() -> SharedRoom:
    return SharedRoom(PLANNED_BYTES_MAX, PLANNED_SHORT_BYTES)
