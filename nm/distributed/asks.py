"""What a job still wants of opportunistic containers: absolute counts by place, lowered as containers are given.

As Hadoop's schedulers do: a container on a wanted host lowers the host's row, its rack's and `*`; one in a wanted rack
the rack's and `*`; any other `*` alone. Only `*` says how many are due.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from nm.distributed.facts import AskRow
from yaqd.model import ANY_HOST, Resource

#: priority, allocation request id
AskKey = tuple[int, int]
#: what insists on places is told apart by so many sizes and places, and of each so many places are named
_WISHES_MAX: Final = 200
_PLACES_MAX: Final = 100


class TooManyAsks(ValueError):
    """A master keeps more rows than its proxy is willing to hold."""


class Ask:
    """All rows of one priority and request id."""

    __slots__ = ("counts", "key", "resource", "strict")

    def __init__(self, key: AskKey, resource: Resource) -> None:
        self.key = key
        #: normalized; the last one sent
        self.resource = resource
        #: still wanted by host, rack or `*`; never 0 or less
        self.counts: dict[str, int] = {}
        #: names whose row forbids taking a place at that level
        self.strict: set[str] = set()

    @property
    def pending(self) -> int:
        return self.counts.get(ANY_HOST, 0)

    @property
    def prefers_places(self) -> bool:
        return len(self.counts) > 1

    def allows(self, name: str) -> bool:
        """May a place be taken because of the row of this rack, or of `*`?"""
        return name in self.counts and name not in self.strict

    def places(self) -> tuple[str, ...]:
        """Hosts and racks where a container may go, wherever else."""
        names = (name for name in self.counts if name != ANY_HOST)
        return tuple(sorted(name for name in names if not name.startswith("/") or self.allows(name)))

    def rows(self) -> Iterator[AskRow]:
        priority, request_id = self.key
        for name, count in self.counts.items():
            yield AskRow(priority, request_id, name, self.resource, count, name not in self.strict)

    def take(self, *names: str) -> None:
        """One container was given that these rows wanted."""
        for name in names:
            left = self.counts.get(name, 0) - 1
            if left > 0:
                self.counts[name] = left
            else:
                self.counts.pop(name, None)


class AskTable:
    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._asks: dict[AskKey, Ask] = {}

    def __iter__(self) -> Iterator[Ask]:
        """In serving order: the lowest number first."""
        return self.after(None)

    def after(self, key: AskKey | None) -> Iterator[Ask]:
        """All of them, in serving order from the one after `key` on, then those before; None: from the first on."""
        keys = sorted(self._asks)
        first = bisect_right(keys, key) if key is not None else 0
        return iter([self._asks[key] for key in (*keys[first:], *keys[:first])])

    def get(self, key: AskKey) -> Ask | None:
        return self._asks.get(key)

    @property
    def pending(self) -> int:
        return sum(ask.pending for ask in self._asks.values())

    def pending_by_size(self) -> dict[tuple[int, Resource], int]:
        """By priority and size."""
        counts: dict[tuple[int, Resource], int] = {}
        for (priority, _), ask in self._asks.items():
            if ask.pending:
                key = priority, ask.resource
                counts[key] = counts.get(key, 0) + ask.pending
        return counts

    def pending_at(self) -> dict[tuple[Resource, tuple[str, ...]], int]:
        """Those that insist on places, by size and by hosts and racks of which any will do; of the last of very many
        none are named."""
        counts: dict[tuple[Resource, tuple[str, ...]], int] = {}
        for ask in self._asks.values():
            if ask.pending and not ask.allows(ANY_HOST):
                places = ask.places() if len(counts) < _WISHES_MAX else ()
                key = ask.resource, places[:_PLACES_MAX]
                counts[key] = counts.get(key, 0) + ask.pending
        return counts

    def check_room(self, rows: int) -> None:
        """Raises TooManyAsks when so many further rows might be too many."""
        held = sum(len(ask.counts) for ask in self._asks.values())
        if held + rows > self._rows_max:
            raise TooManyAsks(f"more than {self._rows_max} resource requests would be pending: ask for less at a time")

    def put(self, row: AskRow, resource: Resource) -> None:
        """`resource` is the row's, normalized."""
        key = (row.priority, row.allocation_request_id)
        ask = self._asks.get(key)
        if ask is None:
            if row.count <= 0:
                return
            ask = self._asks[key] = Ask(key, resource)
        if row.count > 0:
            ask.counts[row.name], ask.resource = row.count, resource
        else:
            ask.counts.pop(row.name, None)
        (ask.strict.discard if row.relax else ask.strict.add)(row.name)
        self.drop_if_empty(ask)

    def give_back(self, rows: tuple[AskRow, ...]) -> None:
        """So many more are wanted by these rows, as before they were taken."""
        for row in rows:
            key = (row.priority, row.allocation_request_id)
            ask = self._asks.get(key)
            if ask is None:
                ask = self._asks[key] = Ask(key, row.resource)
            # a row that is there may have been sent again since
            if row.name not in ask.counts and not row.relax:
                ask.strict.add(row.name)
            ask.counts[row.name] = ask.counts.get(row.name, 0) + row.count

    def drop_if_empty(self, ask: Ask) -> None:
        if not ask.counts:
            self._asks.pop(ask.key, None)

    def rows(self) -> Iterator[AskRow]:
        """What it would take to fill an empty table with the same."""
        for ask in self._asks.values():
            yield from ask.rows()

    def validate(self) -> None:
        """Assert every invariant."""
        assert all(ask.counts and all(n > 0 for n in ask.counts.values()) for ask in self._asks.values())
