"""A file of hdfs-native's whose calls end in time.

The library waits for a minute where a frozen DataNode takes the connection and says nothing more. Where its machine is
gone, it waits as long as the kernel tries to connect. It was seen not to come back at all after the first of several
nodes had died. A call of it cannot be ended. So a thread of the file's own makes it, and is left behind when it does
not come back.
"""

import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

_Call = Callable[[], object]


class WatchedFile:
    """Its methods raise what the library raises, and TimeoutError when that has not come back in time."""

    def __init__(self, file: Any, patience_s: float) -> None:
        """`file`: with write and close; freed with the thread, whatever becomes of this object."""
        self._patience_s = patience_s
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._answers: SimpleQueue[BaseException | None] = SimpleQueue()
        self._file = file
        self._is_stuck = False
        threading.Thread(target=_work, args=(self._calls, self._answers), name="hdfs-file", daemon=True).start()

    def write(self, data: bytes) -> None:
        self._ask(partial(self._file.write, data))

    def close(self) -> None:
        self._ask(self._file.close)

    def _ask(self, call: _Call) -> None:
        if not self._is_stuck:
            self._calls.put(call)
            try:
                error = self._answers.get(timeout=self._patience_s)
            except Empty:
                self._is_stuck = True
            else:
                if error is not None:
                    raise error
                return
        raise TimeoutError(f"the DataNodes have taken nothing for {self._patience_s:.0f} s")

    def __del__(self) -> None:
        self._calls.put(None)


def _work(calls: "SimpleQueue[_Call | None]", answers: "SimpleQueue[BaseException | None]") -> None:
    while (call := calls.get()) is not None:
        try:
            call()
        except BaseException as error:  # a panic of the library's is no Exception
            answers.put(error)
        else:
            answers.put(None)
        del call
