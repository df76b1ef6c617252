"""What keeps strangers from filling or disfiguring a daemon's log.

Warnings of one kind are held back when they come too often, and control characters are written out.

Every place that warns may write so many lines a minute; the next one that gets through says how many did not.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

LINES_PER_MINUTE: Final = 30
#: what a terminal or an editor would act upon, shown as what it is
_CONTROLS: Final = {n: f"\\x{n:02x}" for n in (*range(32), 127) if chr(n) not in "\n\t"}
_WINDOW_S: Final = 60.0


class PlainFormatter(logging.Formatter):
    """Lines of text and nothing else: names of hosts, users and files are anybody's choice."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).translate(_CONTROLS)


class FloodGuard(logging.Filter):
    """For a handler. Lines below WARNING pass: what they tell is the daemon's own doing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        #: where it was logged -> (start of its minute, lines so far)
        self._seen: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        key, now = (record.pathname, record.lineno), self._clock()
        since, lines = self._seen.get(key, (now, 0))
        held_back = 0
        if now - since >= _WINDOW_S:
            held_back = max(0, lines - LINES_PER_MINUTE)
            since, lines = now, 0
        self._seen[key] = (since, lines + 1)
        if lines >= LINES_PER_MINUTE:
            return False
        if held_back:
            record.msg = f"{record.getMessage()} ({held_back} more of these were held back)"
            record.args = ()
        return True
