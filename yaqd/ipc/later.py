"""How code on the event loop says that an answer needs something that must be waited for first.

Who may do what is asked in the middle of plain functions, and now and then depends on what a directory server knows.
Such a question raises `NotYetKnown` instead of blocking: whoever called the handler waits for it and calls it again. So
a handler asks such questions before it changes anything.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

Answer = TypeVar("Answer")

#: a handler asks for little that is not known; more often than this is a fault of ours
_TRIES_MAX: Final = 5


class NotYetKnown(Exception):
    """Await `ready`, then ask again."""

    def __init__(self, what: str, ready: Callable[[], Awaitable[None]]) -> None:
        super().__init__(f"{what} is not known yet")
        self.ready = ready


async def again(handle: Callable[[], Awaitable[Answer]], first: NotYetKnown) -> Answer:
    """Call `handle` when what it missed, `first` and maybe more, is there. Raises what it raises."""
    missing = first
    for _ in range(_TRIES_MAX):
        await missing.ready()
        try:
            return await handle()
        except NotYetKnown as error:
            missing = error
    raise missing
