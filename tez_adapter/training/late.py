"""Calls of the user's code that do not return: their process says so and ends.

A call cannot be ended from outside. A thread watches for one that takes too long. Code that never lets other threads
run keeps it from that, and the process's reports too: the job manager then misses those.
"""

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from tez_adapter.training.settings import STEP_KEY

#: looks at a call within its time
_LOOKS: Final = 20
_LOOK_MAX_S: Final = 5.0
_EXIT: Final = 1


class LateCalls:
    def __init__(self, timeout_s: float, tell: Callable[[str], object]) -> None:
        """`timeout_s`: 0 is for ever. `tell`: the job manager, called before the process ends."""
        self._timeout_s, self._tell = timeout_s, tell
        #: the call under way, and since when
        self._call: tuple[str, float] | None = None
        if timeout_s:
            threading.Thread(target=self._watch, name="late calls", daemon=True).start()

    @contextmanager
    def watched(self, call: str) -> Iterator[None]:
        """Watch what is done within; `call` names it."""
        self._call = call, time.monotonic()
        try:
            yield
        finally:
            self._call = None

    def _watch(self) -> None:
        while True:
            time.sleep(min(_LOOK_MAX_S, self._timeout_s / _LOOKS))
            call = self._call
            if call is not None and time.monotonic() - call[1] > self._timeout_s:
                self._end(call[0])

    def _end(self, call: str) -> NoReturn:
        line = f"{call} has not returned for {self._timeout_s:g} s ({STEP_KEY}); its process was ended"
        try:
            print(line, file=sys.stderr, flush=True)
            faulthandler.dump_traceback()  # where it is
            self._tell(line)
        finally:
            os._exit(_EXIT)
