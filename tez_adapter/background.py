"""Work on a file system that may never answer, in a thread that nobody has to wait for.

A thread of an executor would be waited for at the end of the process, for ever where a NameNode takes connections and
says nothing.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def in_background(work: Callable[[], Result]) -> "Future[Result]":
    """Starts at once and cannot be taken back. The process may end before the work has."""
    future: Future[Result] = Future()
    future.set_running_or_notify_cancel()  # who waits no longer must not cancel it

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="files", daemon=True).start()
    return future
