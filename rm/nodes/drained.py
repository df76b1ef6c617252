"""Nodes that an administrator drains by name, in the state store, so that a restart does not let them in again."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Final

from rm.store.state_store import StateStore, log_failed_write

_on_failure: Final = partial(log_failed_write, "a restart will not know who was drained, sent away or let in again")


class DrainedNodes:
    """Names are hosts, which stand for all nodes there, or `host:port`; in lower case."""

    def __init__(self, store: StateStore) -> None:
        """Blocking; before the store is started. Raises StateStoreError."""
        self._store = store
        self._names = {str(name) for (name,) in store.read("SELECT name FROM drained_node")}
        #: `host:port` of those of them that did not get the time to end what they ran
        self._forced = {str(name) for (name,) in store.read("SELECT name FROM forced_node")}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def add(self, name: str) -> None:
        self._names.add(name)
        self._written("INSERT OR REPLACE INTO drained_node VALUES (?)", name)

    def drop(self, name: str) -> None:
        """Forget a name, and which of its nodes left by force, but for those that stay drained by another name."""
        self._names.discard(name)
        self._written("DELETE FROM drained_node WHERE name = ?", name)
        for node in [node for node in self._forced if node not in self._names and host_of(node) not in self._names]:
            self._forced.discard(node)
            self._written("DELETE FROM forced_node WHERE name = ?", node)

    def force(self, node: str) -> None:
        """Note that nobody waited for what this node ran; `host:port`."""
        self._forced.add(node)
        self._written("INSERT OR REPLACE INTO forced_node VALUES (?)", node)

    def was_forced(self, node: str) -> bool:
        """Return whether nobody waited for what this node ran; `host:port`."""
        return node in self._forced

    def _written(self, sql: str, name: str) -> None:
        done: asyncio.Future[None] = self._store.write(sql, (name,))
        done.add_done_callback(_on_failure)


def host_of(name: str) -> str:
    """Return the host of `host:port`; "" where it is no such name."""
    host, _, port = name.rpartition(":")
    return host if port.isdigit() else ""
