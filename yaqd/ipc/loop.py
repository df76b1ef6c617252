"""Starting an event loop the way every daemon does: the fast one where it is installed."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from google.protobuf.internal import api_implementation

T = TypeVar("T")


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
