"""Spreads work over processes. Results come in the order of the work, so bits do not depend on the processes."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, Protocol


class Spread(Protocol):
    """Calls a function of many items, on parts of them where that is sooner."""

    def __call__(self, function: Callable[[Sequence[Any]], Iterable[Any]], items: Sequence[Any]) -> list[Any]:
        """Return what comes of each item, in their order. The function is pickled with what is bound to it."""


def alone(function: Callable[[Sequence[Any]], Iterable[Any]], items: Sequence[Any]) -> list[Any]:
    """Call the function here."""
    return list(function(items))


@contextmanager
def spread_over(cores: int) -> Iterator[Spread]:
    """Hold so many processes; with one core, none."""
    if cores <= 1:
        yield alone
        return
    with ProcessPoolExecutor(cores, get_context("fork"), _follow_parent) as pool:

        def spread(function: Callable[[Sequence[Any]], Iterable[Any]], items: Sequence[Any]) -> list[Any]:
            """Give every process each so many-th item: neighbours take about the same time."""
            found: list[Any] = [None] * len(items)
            parts = [items[at::cores] for at in range(min(cores, len(items)))]
            for at, part in enumerate(pool.map(function, parts)):
                found[at::cores] = part
            return found

        yield spread


def _follow_parent() -> None:
    """Leave Ctrl-C to the process that made this one, and end when that ends, also by `kill -9`.

    A terminal sends SIGINT to all. A process without a parent would wait for work for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def wait() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()
