"""A generator that may take its time, asked and told in a thread of its own, in order."""

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from tez_adapter.exploration.generators.generator import Generator

log = logging.getLogger(__name__)


class Proposals:
    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        if generator.is_adaptive:
            threading.Thread(target=self._run, name="proposals", daemon=True).start()

    def propose(self, number: int) -> "Future[Any]":
        """Return the values of a trial once they are there; its error where the generator fails."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()

        def call() -> None:
            try:
                found = self._generator.propose(number)
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(found)

        self._do(call)
        return future

    def told(self, number: int, params: Any, value: float, is_final: bool) -> None:
        """Tell what a trial reached so far."""

        def call() -> None:
            try:
                self._generator.told(number, params, value, is_final)
            except Exception:
                log.exception("the generator does not take what trial %d reached", number)

        self._do(call)

    def close(self) -> None:
        """End the generator, once it has done what it was asked."""
        self._do(self._generator.close)
        self._calls.put(None)

    def _do(self, call: Callable[[], None]) -> None:
        """A plain generator answers at once."""
        if self._generator.is_adaptive:
            self._calls.put(call)
        else:
            call()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
