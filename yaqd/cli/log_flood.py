"""What keeps strangers from filling or disfiguring a daemon's log.

Warnings of one kind are held back when they come too often, and control characters are written out.

Every place that warns may write so many lines a minute; the next one that gets through says how many did not. The web
server's complaints about requests that are not HTTP lose their tracebacks, and each peer gets one line a minute.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

LINES_PER_MINUTE: Final = 30
#: what a terminal or an editor would act upon, shown as what it is
_CONTROLS: Final = {n: f"\\x{n:02x}" for n in (*range(32), 127) if chr(n) not in "\n\t"}
_WINDOW_S: Final = 60.0
_KEYS_MAX: Final = 4096
_WEB_SERVER: Final = "aiohttp.server"


class PlainFormatter(logging.Formatter):
    """Lines of text and nothing else: names of hosts, users and files are anybody's choice."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).translate(_CONTROLS)


class FloodGuard(logging.Filter):
    """For a handler. Lines below WARNING pass: what they tell is the daemon's own doing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        #: where it was logged (and by whom caused) -> (start of its minute, lines so far)
        self._seen: dict[object, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        key: object = (record.pathname, record.lineno)
        allowed = LINES_PER_MINUTE
        if _is_bad_request(record):
            key, allowed = (_WEB_SERVER, record.args), 1
            _shorten(record)
        return self._count(record, key, allowed)

    def _count(self, record: logging.LogRecord, key: object, allowed: int) -> bool:
        now = self._clock()
        since, lines = self._seen.get(key, (now, 0))
        held_back = 0
        if now - since >= _WINDOW_S:
            held_back = max(0, lines - allowed)
            since, lines = now, 0
        if key not in self._seen and len(self._seen) >= _KEYS_MAX:
            self._seen.clear()
        self._seen[key] = (since, lines + 1)
        if lines >= allowed:
            return False
        if held_back:
            record.msg = f"{record.getMessage()} ({held_back} more of these were held back)"
            record.args = ()
        return True


def _is_bad_request(record: logging.LogRecord) -> bool:
    """Whether the web server tells of bytes that were no request, or of a peer that left: no fault of ours."""
    if record.name != _WEB_SERVER or not record.exc_info:
        return False
    from aiohttp.http_exceptions import HttpProcessingError

    return isinstance(record.exc_info[1], HttpProcessingError | ConnectionError)


def _shorten(record: logging.LogRecord) -> None:
    assert isinstance(record.exc_info, tuple)
    reason = str(record.exc_info[1]).partition("\n")[0][:200]
    record.msg = f"{record.getMessage()}: not an HTTP request: {reason!r}"
    record.args, record.exc_info, record.exc_text, record.levelno, record.levelname = (), None, None, 30, "WARNING"
