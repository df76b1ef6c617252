"""Work on a file system that may never answer, in a thread that nobody has to wait for.

A thread of an executor would be waited for at the end of the process, for ever where a NameNode takes connections and
says nothing. But a thread that comes back from native code while the interpreter is being taken down aborts the
process (`FATAL: exception not rethrown`), so a process that has such work ends by `leave`.
"""

import atexit
import os
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")

_THREADS = "files"


def in_background(work: Callable[[], Result]) -> "Future[Result]":
    """Starts at once and cannot be taken back. The process may end before the work has."""
    future, run = _settling(work)
    threading.Thread(target=run, name=_THREADS, daemon=True).start()
    return future


def _settling(work: Callable[[], Result]) -> "tuple[Future[Result], Callable[[], None]]":
    """Return a future, and what does the work and settles it."""
    future: Future[Result] = Future()
    future.set_running_or_notify_cancel()  # who waits no longer must not cancel it

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    return future, run


class BackgroundThread:
    """Does one piece of such work after the other, without a thread for each: a start takes half a millisecond."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=_THREADS, daemon=True).start()

    def do(self, work: Callable[[], Result]) -> "Future[Result]":
        """Queue the work; it cannot be taken back."""
        future, run = _settling(work)
        self._work.put(run)
        return future

    def close(self) -> None:
        """Have the thread end when it has done what is queued."""
        self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


def leave(code: int) -> None:
    """Ends the process with this exit code if background work is still going on, and returns if none is.

    Like the interpreter's own end (exit functions run, streams flushed), without taking anything down.
    """
    if not any(thread.name == _THREADS for thread in threading.enumerate()):
        return
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        code = code or 120  # what the interpreter exits with when it cannot flush
    os._exit(code)
