"""Tasks beside their owner: unlike those of an `asyncio.TaskGroup`, one that fails ends no other."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Self, TypeVar

T = TypeVar("T")
OnError = Callable[[BaseException], None]

log = logging.getLogger(__name__)


def _log(error: BaseException) -> None:
    log.error("a task failed", exc_info=error)


class TaskSet:
    """Keeps each until it is done. As a context it cancels, at its end, what still runs."""

    def __init__(self, on_error: OnError = _log) -> None:
        self._on_error = on_error
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], *, on_error: OnError | None = None) -> "asyncio.Task[T]":
        """Starts a task; `on_error` hears of its error in place of the set's."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._done, on_error or self._on_error))
        return task

    def _done(self, on_error: OnError, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            on_error(error)

    def __bool__(self) -> bool:
        """Whether any still runs."""
        return any(not task.done() for task in self._tasks)

    async def wait(self, timeout_s: float | None = None) -> None:
        """Returns when none is left, those that are started meanwhile included, or when that takes too long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._tasks:
                    await asyncio.wait(self._tasks)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def end(self) -> None:
        """Cancels all and returns when they are over."""
        tasks = list(self._tasks)
        self.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()
