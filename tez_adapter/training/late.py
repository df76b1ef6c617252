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
from typing import Final, NoReturn, Self

from tez_adapter.training.settings import STEP_KEY

#: looks at a call within its time
_LOOKS: Final = 20
_LOOK_MAX_S: Final = 5.0
_EXIT: Final = 1


class LateCalls:
    def __init__(
        self, timeout_s: float, tell: Callable[[str], object], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`timeout_s`: 0 is for ever. `tell`: the job manager, called before the process ends. `clock`: in seconds."""
        self._timeout_s, self._tell, self._clock = timeout_s, tell, clock
        #: the call under way, and since when
        self._call: tuple[str, float] | None = None

    def start(self) -> Self:
        """Watch from now on."""
        if self._timeout_s:
            threading.Thread(target=self._watch, name="late calls", daemon=True).start()
        return self

    @contextmanager
    def watched(self, call: str) -> Iterator[None]:
        """Watch what is done within; `call` names it."""
        self._call = call, self._clock()
        try:
            yield
        finally:
            self._call = None

    def late(self) -> str | None:
        """Return the call that has taken too long by now."""
        call = self._call
        is_late = call is not None and 0 < self._timeout_s < self._clock() - call[1]
        return call[0] if call is not None and is_late else None

    def _watch(self) -> None:
        while (call := self.late()) is None:
            time.sleep(min(_LOOK_MAX_S, self._timeout_s / _LOOKS))
        self._end(call)

    def _end(self, call: str) -> NoReturn:
        line = f"{call} has not returned for {self._timeout_s:g} s ({STEP_KEY}); its process was ended"
        try:
            print(line, file=sys.stderr, flush=True)
            faulthandler.dump_traceback()  # where it is
            self._tell(line)
        finally:
            os._exit(_EXIT)
