"""Threads that send long answers, so that a node with fast disks fills its network from more than one core.

Each has an event loop of its own and any number of connections, as the service's own thread has: sendfile lets go of
the interpreter, and a client that takes nothing costs a place in a selector. Short answers stay where they are, since
most of their cost is Python's.
"""

import asyncio
import threading
from itertools import cycle


class Senders:
    """A fixed number of threads; their loops run from `start` to `stop`."""

    def __init__(self, count: int) -> None:
        """`count`: at least 1."""
        self._loops = [asyncio.SelectorEventLoop() for _ in range(count)]
        self._threads = [
            threading.Thread(target=loop.run_forever, name=f"shuffle-sender-{number}", daemon=True)
            for number, loop in enumerate(self._loops)
        ]
        self._next = cycle(self._loops)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def next_loop(self) -> asyncio.SelectorEventLoop:
        """Returns the loop whose turn it is."""
        return next(self._next)

    def stop(self) -> None:
        """Returns when no thread runs any more; what is left in the loops is not done."""
        for loop, thread in zip(self._loops, self._threads, strict=True):
            if thread.is_alive():
                loop.call_soon_threadsafe(loop.stop)
                thread.join()

    def close(self) -> None:
        """Closes the loops: after `stop`, and after the last connection is closed."""
        for loop in self._loops:
            loop.close()
