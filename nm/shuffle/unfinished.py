"""Memory for requests that have no end yet. Strangers send them: nothing is verified before they have one."""

import threading
from typing import Final

#: of all of them together
UNFINISHED_BYTES_MAX: Final = 16 << 20
#: one that is no longer, as those of Hadoop's reducers are, is always waited for; there are only so many connections
_SHORT_BYTES: Final = 4 << 10


class UnfinishedHeads:
    """From any thread."""

    def __init__(self) -> None:
        self.bytes = 0
        self._lock = threading.Lock()

    def changed(self, before: int, after: int) -> bool:
        """One is so many bytes long now. False: there is no room for it, and it is counted no more."""
        with self._lock:
            self.bytes -= before
            if after > _SHORT_BYTES and self.bytes + after > UNFINISHED_BYTES_MAX:
                return False
            self.bytes += after
            return True
