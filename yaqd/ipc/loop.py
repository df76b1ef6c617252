"""The event loop of a daemon: the fast one where it is installed, and how a server lets others have it in between."""

import asyncio
import gc
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from google.protobuf.internal import api_implementation

T = TypeVar("T")

#: reads that are answered before the loop comes round: some milliseconds, as most have one call
_AT_ONCE: Final = 64
#: after so many the loop is asked to say when it comes round. Of fewer it need not
_MANY: Final = 16


class SlowProtobuf(RuntimeError):
    """The protobuf runtime is not the compiled one; a daemon on it would be a hundred times slower."""


def require_fast_protobuf() -> None:
    """Raise SlowProtobuf unless protobuf runs on upb."""
    implementation = api_implementation.Type()
    if implementation != "upb":
        raise SlowProtobuf(
            f"protobuf runs on its {implementation!r} implementation, 'upb' is needed: unset "
            "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION and install a protobuf wheel for this platform"
        )


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return uvloop's event loop where it can be imported, asyncio's otherwise."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a daemon's main coroutine to its end and return its result."""
    require_fast_protobuf()
    # what is imported stays, so no collection looks at it again: each stood for 20 ms in the way of an answer
    gc.collect()
    gc.freeze()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(coroutine)


class Turns:
    """Says which of a server's connections may go on now, and calls the others back.

    libuv looks for data up to 48 times before it comes back to timers and to what is ready, as long as more than a
    thousand connections have some each time. A server that answered all of it at once would look after nothing else for
    ten seconds and more. So only what so many connections have sent is answered at a time, and who comes later waits,
    first come, first served. What is counted is reads: a peer that sends many calls in one is answered all of them.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        #: who went on since the loop came round, as far as that is known
        self._went_on = 0
        self._is_asked = False

    def take(self, later: Callable[[], None]) -> bool:
        """Tell whether it may go on. If not, `later` is called when it is its turn."""
        may_go_on = not self._waiting and self._went_on < _AT_ONCE
        if may_go_on:
            self._went_on += 1
        else:
            self._waiting.append(later)
        if self._went_on >= _MANY and not self._is_asked:
            self._ask()
        return may_go_on

    def _ask(self) -> None:
        self._is_asked = True
        self._loop.call_soon(self._come_round)

    def _come_round(self) -> None:
        """Call back the first of those that wait."""
        self._is_asked = False
        self._went_on = min(_AT_ONCE, len(self._waiting))
        if self._went_on >= _MANY or len(self._waiting) > self._went_on:
            self._ask()
        for _ in range(self._went_on):
            later = self._waiting.popleft()
            try:
                later()
            except Exception as error:  # of one connection: the others get their turns
                self._loop.call_exception_handler({"message": "a call's turn failed", "exception": error})
