"""Tasks of one vertex that want a container, found by host in constant time.

Order is that of arrival; a task returns to the end when its attempt failed, so that one bad task does not
hold up the rest. A task that failed on a host is passed over there while any other choice exists.
"""

from collections.abc import Iterable

#: how many tasks in order are looked at for one that did not fail on the host
_LOOK_AHEAD = 64


class PendingTasks:
    def __init__(self, hosts: tuple[tuple[str, ...], ...]) -> None:
        self._hosts = hosts
        self._order: dict[int, None] = {}
        self._by_host: dict[str, dict[int, None]] = {}

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, index: int) -> bool:
        return index in self._order

    def _preferred(self, index: int) -> tuple[str, ...]:
        return self._hosts[index] if self._hosts else ()

    def add(self, index: int) -> None:
        self._order[index] = None
        for host in self._preferred(index):
            self._by_host.setdefault(host, {})[index] = None

    def discard(self, index: int) -> None:
        self._order.pop(index, None)
        for host in self._preferred(index):
            row = self._by_host.get(host)
            if row is not None:
                row.pop(index, None)
                if not row:
                    del self._by_host[host]

    def take(self, host: str, failed_on: dict[int, set[str]]) -> int | None:
        """Take the task to run on `host`: one with its input there, else the longest waiting."""
        index = _first(self._by_host.get(host, ()), host, failed_on)
        if index is None:
            index = _first(self._order, host, failed_on)
        if index is None:
            index = next(iter(self._order), None)
        if index is not None:
            self.discard(index)
        return index

    def by_host(self) -> list[tuple[str, int]]:
        """Count how many tasks prefer each host, in the order of host names."""
        return sorted((host, len(row)) for host, row in self._by_host.items())


def _first(tasks: Iterable[int], host: str, failed_on: dict[int, set[str]]) -> int | None:
    for looked, index in enumerate(tasks):
        if looked >= _LOOK_AHEAD:
            return None
        if host not in failed_on.get(index, ()):
            return index
    return None
