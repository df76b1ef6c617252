"""Groups of users as code on an event loop asks for them: known, or looked up in a thread first.

The system's name service may ask a directory server, which may be slow or gone. Then those wait whose answer depends on
their groups, and nobody else; after a while they are answered with what was known last, or as members of none.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from yaqd.ipc.later import NotYetKnown
from yaqd.security.groups import Groups

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 10.0
#: look-ups under way; one that hangs cannot be taken back
_THREADS_MAX: Final = 16


class GroupLookups:
    """Belongs to one event loop, on which all of it runs but the look-ups themselves."""

    def __init__(
        self, groups: Groups, look_up: Callable[[str], tuple[str, ...]], *, timeout_s: float = _TIMEOUT_S
    ) -> None:
        """`look_up` may block."""
        self._groups = groups
        self._ask = look_up
        self._timeout_s = timeout_s
        self._threads = 0
        self._under_way: dict[str, asyncio.Task[None]] = {}

    def __call__(self, user: str) -> tuple[str, ...]:
        """Raises NotYetKnown."""
        known = self._groups.known(user)
        if known is None:
            raise NotYetKnown(f"groups of {user}", partial(self._ready, user))
        return known

    async def _ready(self, user: str) -> None:
        task = self._under_way.get(user)
        if task is None:
            task = self._under_way[user] = asyncio.create_task(self._find(user))
            task.add_done_callback(lambda _: self._under_way.pop(user))
        await asyncio.shield(task)

    async def _find(self, user: str) -> None:
        generation = self._groups.generation
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await self._in_thread(user)
        except (TimeoutError, RuntimeError) as error:
            log.warning("groups of %s: %s", user, error if str(error) else f"no answer in {self._timeout_s:g} s")
            self._groups.not_found(user)
            return
        if generation == self._groups.generation:
            self._groups.learn(user, found)  # else what was found may be from before everything was to be forgotten

    def _in_thread(self, user: str) -> "asyncio.Future[tuple[str, ...]]":
        """A thread that the daemon's end does not wait for. Raises RuntimeError when there are too many."""
        if self._threads >= _THREADS_MAX:
            raise RuntimeError(f"{self._threads} look-ups have not been answered yet")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[tuple[str, ...]] = loop.create_future()

        def work() -> None:
            found: tuple[str, ...] = ()
            try:
                found = self._ask(user)
            except Exception:
                log.exception("groups of %s", user)
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(done, found)

        def done(found: tuple[str, ...]) -> None:
            self._threads -= 1
            if not answer.done():
                answer.set_result(found)

        thread = threading.Thread(target=work, name="groups", daemon=True)
        thread.start()
        self._threads += 1
        return answer
