"""Nodes that an administrator drains by name, in the state store, so that a restart does not let them in again."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Final

from rm.store.state_store import StateStore, log_failed_write

_on_failure: Final = partial(log_failed_write, "drained nodes will be used again after a restart")


class DrainedNodes:
    """Names are hosts, which stand for all nodes there, or `host:port`; in lower case."""

    def __init__(self, store: StateStore) -> None:
        """Blocking; before the store is started. Raises StateStoreError."""
        self._store = store
        self._names = {str(name) for (name,) in store.read("SELECT name FROM drained_node")}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def add(self, name: str) -> None:
        self._names.add(name)
        self._written("INSERT OR REPLACE INTO drained_node VALUES (?)", name)

    def drop(self, name: str) -> None:
        self._names.discard(name)
        self._written("DELETE FROM drained_node WHERE name = ?", name)

    def _written(self, sql: str, name: str) -> None:
        done: asyncio.Future[None] = self._store.write(sql, (name,))
        done.add_done_callback(_on_failure)
