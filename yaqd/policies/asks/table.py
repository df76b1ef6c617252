"""What one attempt still wants, kept as Hadoop's AppSchedulingInfo keeps it: by the ResourceManager for what it gives,
by a node's proxy for what it places itself.

Rows are absolute counts, not increments. The scheduler lowers them itself as it allocates (host, rack and `*` for a
node-local container, rack and `*` for a rack-local one, `*` alone otherwise); the master lowers its own copy and
sends the lower numbers in its next heartbeat, so that both stay in step and a repeated row changes nothing.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import TypeVar

from yaqd.model import ANY_HOST, ExecutionType, NodeId, Resource
from yaqd.policies.asks.placement import Placement
from yaqd.policies.asks.rows import AskRow, Locality

#: priority, allocation request id
AskKey = tuple[int, int]
#: nodes kept in vain that an ask remembers
_LEFT_MAX = 64
#: what keys of lines and tables are made of
_Key = TypeVar("_Key", bound=tuple[object, ...])


def following(items: list[_Key], last: _Key) -> Iterable[_Key]:
    """Return those of ordered items that come after this one; all where it is the last."""
    index = bisect_right(items, last)
    return islice(items, index, None) if index < len(items) else items


class TooManyAsks(ValueError):
    """An attempt keeps more rows than the scheduler is willing to hold."""


class Ask:
    """All rows of one priority and request id."""

    __slots__ = (
        "capability",
        "counts",
        "execution_type",
        "is_master",
        "key",
        "left",
        "missed",
        "pending",
        "pinned",
        "placement",
        "strict",
        "waiting_since",
    )

    def __init__(self, key: AskKey, capability: Resource, now: float, *, is_master: bool) -> None:
        self.key = key
        #: normalized; one per key, the last one sent
        self.capability = capability
        #: still wanted by host, rack or `*`; never 0 or less
        self.counts: dict[str, int] = {}
        #: the count of `*`
        self.pending = 0
        #: names whose row forbids taking a place at that level
        self.strict: set[str] = set()
        #: will it have these hosts of its rows and no other, however long it waits? None: to be found out again
        self.pinned: bool | None = False
        self.execution_type = ExecutionType.GUARANTEED
        self.is_master = is_master
        self.placement: Placement | None = None
        #: offers passed over while waiting for a better place
        self.missed = 0
        #: since when nothing was given, scheduler's seconds
        self.waiting_since = now
        #: nodes that were kept for it in vain, and until when none of them is again, scheduler's seconds
        self.left: dict[NodeId, float] | None = None

    @property
    def prefers_places(self) -> bool:
        """Tell whether some host or rack is wanted in particular."""
        return len(self.counts) > 1

    def allows(self, name: str) -> bool:
        """Tell whether a place may be taken because of the row of this rack, or of `*`."""
        return name in self.counts and name not in self.strict

    def locality(self, host: str, rack: str) -> Locality | None:
        """Return how near this host is to what is wanted; None where the ask forbids it."""
        counts = self.counts
        if len(counts) <= 1:
            return Locality.NONE if self.allows(ANY_HOST) else None
        if host in counts:
            return Locality.NODE
        if self.allows(rack):
            return Locality.RACK
        return Locality.OFF_SWITCH if self.allows(ANY_HOST) else None

    def places(self) -> frozenset[str]:
        """Return the hosts and racks where a container may go, whether or not it may go elsewhere too."""
        return frozenset(name for name in self.counts if name != ANY_HOST and (name[0] != "/" or self.allows(name)))

    def rows(self) -> Iterator[AskRow]:
        """Yield what it would take to ask for the same."""
        for name, count in self.counts.items():
            yield AskRow(*self.key, name, self.capability, count, name not in self.strict)

    def rows_for(self, host: str, rack: str, locality: Locality) -> tuple[AskRow, ...]:
        """Return the rows that one container there lowers, each with a count of 1."""
        near = (host, rack) if locality is Locality.NODE else (rack,) if locality is Locality.RACK else ()
        names = [name for name in (*near, ANY_HOST) if name in self.counts]
        return tuple(AskRow(*self.key, name, self.capability, 1, name not in self.strict) for name in names)

    def insists_on_others(self, host: str, rack: str) -> bool:
        """Tell whether it never takes a place on this host, however long it waits."""
        strict, counts = self.strict, self.counts
        return bool(strict) and ANY_HOST in strict and host not in counts and (rack in strict or rack not in counts)

    def leave(self, node_id: NodeId, until: float) -> None:
        """Hear that the node was kept for it in vain."""
        self.left = {one: when for one, when in (self.left or {}).items() if one != node_id} | {node_id: until}
        if len(self.left) > _LEFT_MAX:
            del self.left[next(iter(self.left))]

    def is_pinned(self) -> bool:
        """Tell whether it takes its hosts alone, and no rack."""
        if self.pinned is None:
            strict = self.strict
            self.pinned = ANY_HOST in strict and all(name in strict for name in self.counts if name[0] == "/")
        return self.pinned

    def take(self, host: str, rack: str, locality: Locality, now: float) -> None:
        """Lower the counts for one container given."""
        self.pinned = None if self.strict else False
        counts = self.counts
        if locality is Locality.NODE:
            self.missed = 0
            _lower(counts, host)
            _lower(counts, rack)
        elif locality is Locality.RACK:
            _lower(counts, rack)
        self.pending = _lower(counts, ANY_HOST)
        self.waiting_since = now


def _lower(counts: dict[str, int], name: str) -> int:
    """Lower the count by one and return what is left."""
    left = counts.get(name, 0) - 1
    if left > 0:
        counts[name] = left
        return left
    counts.pop(name, None)
    return 0


class AskTable:
    """All asks of one attempt, by key in serving order."""

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._asks: dict[AskKey, Ask] = {}
        #: keys of pending asks by capability, each list in serving order
        self._by_shape: dict[Resource, list[AskKey]] = {}
        #: sum over pending asks
        self.pending = 0
        #: counts the changes that are not containers given
        self.version = 0
        self._rows = 0

    def __len__(self) -> int:
        return len(self._asks)

    def __iter__(self) -> Iterator[Ask]:
        return iter(self._asks.values())

    def get(self, key: AskKey) -> Ask | None:
        return self._asks.get(key)

    def shapes(self) -> list[Resource]:
        """List capabilities for which something is pending."""
        return list(self._by_shape)

    def wants(self, shape: Resource) -> bool:
        return shape in self._by_shape

    def of_shape(self, shape: Resource, after: AskKey | None = None) -> Iterator[Ask]:
        """Yield pending asks of this capability in serving order; with `after`, `following` it."""
        keys = self._by_shape.get(shape, [])
        for key in keys if after is None else following(keys, after):
            yield self._asks[key]

    def first(self, shape: Resource) -> Ask:
        """Return the first pending ask of this capability, for which there must be one."""
        return self._asks[self._by_shape[shape][0]]

    def first_of(self, shape: Resource, priority: int) -> Ask | None:
        """Return the first pending ask of this capability and priority; None: there is none."""
        keys = self._by_shape.get(shape, [])
        at = bisect_left(keys, priority, key=itemgetter(0))
        return self._asks[keys[at]] if at < len(keys) and keys[at][0] == priority else None

    def check_room(self, rows: int) -> None:
        """Raise `TooManyAsks` when so many further rows might be too many."""
        if rows and self._rows + rows > self._rows_max:
            raise TooManyAsks(f"more than {self._rows_max} resource requests would be pending: ask for less at a time")

    def put(self, row: AskRow, capability: Resource, now: float, *, is_master: bool = False) -> Ask:
        """Take a row in and return the ask that it belongs to. `capability` is the row's, normalized."""
        key = (row.priority, row.allocation_request_id)
        ask = self._asks.get(key)
        if ask is None:
            ask = self._asks[key] = Ask(key, capability, now, is_master=is_master)
        self.put_more(ask, row, capability, now)
        return ask

    def put_more(self, ask: Ask, row: AskRow, capability: Resource, now: float) -> None:
        """Take a row in that belongs to this ask, which is here."""
        self.version += 1
        if ask.pending:
            if next(reversed(self._by_shape)) is not ask.capability:
                self._file_last(ask)
        else:
            ask.waiting_since, ask.missed = now, 0
        name, count, counts = row.resource_name, row.count, ask.counts
        if count > 0:
            if ask.capability is not capability and ask.capability != capability:
                self._change_shape(ask, capability)
            ask.execution_type = row.execution_type
            ask.placement = row.placement
            self._rows += name not in counts
            counts[name] = count
        elif name in counts:
            del counts[name]
            self._rows -= 1
        if not row.relax_locality:
            ask.strict.add(name)
            ask.pinned = None
        elif ask.strict:
            ask.strict.discard(name)
            ask.pinned = None
        if name == ANY_HOST:
            self._set_pending(ask, max(0, count))
            if count <= 0:  # as in Hadoop: nothing is left of what was preferred
                self._rows -= len(counts)
                counts.clear()
        if not counts:
            self._asks.pop(ask.key, None)

    def give_back(self, rows: Iterable[AskRow], now: float) -> None:
        """Want so many more by these rows, as before they were taken."""
        for row in rows:
            ask = self._asks.get((row.priority, row.allocation_request_id))
            # a row that is there may have been sent again since
            known = ask.counts.get(row.resource_name, 0) if ask is not None else 0
            capability = ask.capability if ask is not None else row.capability
            relax = row.resource_name not in ask.strict if ask is not None and known else row.relax_locality
            self.put(replace(row, count=known + row.count, relax_locality=relax), capability, now)

    def in_turn(self, after: AskKey | None) -> list[Ask]:
        """List all asks in serving order from the one after this on, then those before; None: from the first on."""
        keys = sorted(self._asks)
        first = bisect_right(keys, after) if after is not None else 0
        return [self._asks[key] for key in (*keys[first:], *keys[:first])]

    def take(self, ask: Ask, host: str, rack: str, locality: Locality, now: float) -> None:
        """Note that one container of this ask is given."""
        rows = len(ask.counts)
        before = ask.pending
        ask.take(host, rack, locality, now)
        self._rows -= rows - len(ask.counts)
        self.pending -= before - ask.pending
        if ask.pending == 0:
            self._remove_shape(ask)
            if not ask.counts:
                self._asks.pop(ask.key, None)

    def clear(self) -> None:
        self.version += 1
        self._asks.clear()
        self._by_shape.clear()
        self.pending = 0
        self._rows = 0

    def _set_pending(self, ask: Ask, pending: int) -> None:
        before, ask.pending = ask.pending, pending
        self.pending += pending - before
        if pending and not before:
            insort(self._by_shape.setdefault(ask.capability, []), ask.key)
        elif before and not pending:
            self._remove_shape(ask)

    def _change_shape(self, ask: Ask, capability: Resource) -> None:
        if ask.pending:
            self._remove_shape(ask)
            insort(self._by_shape.setdefault(capability, []), ask.key)
        ask.capability = capability

    def _file_last(self, ask: Ask) -> None:
        """Make a shape that this ask alone wants the last one: it was asked for last."""
        self._remove_shape(ask)
        insort(self._by_shape.setdefault(ask.capability, []), ask.key)

    def _remove_shape(self, ask: Ask) -> None:
        keys = self._by_shape[ask.capability]
        del keys[bisect_left(keys, ask.key)]
        if not keys:
            del self._by_shape[ask.capability]

    def validate(self) -> None:
        """Assert every invariant."""
        assert self.pending == sum(a.pending for a in self._asks.values())
        assert all(a.pending == a.counts.get(ANY_HOST, 0) for a in self._asks.values())
        assert self._rows == sum(len(a.counts) for a in self._asks.values())
        assert all(n > 0 for a in self._asks.values() for n in a.counts.values())
        for ask in self._asks.values():
            found, ask.pinned = ask.pinned, None
            assert found in (None, ask.is_pinned()), ask.key
        listed = sorted((s.memory_mb, s.vcores, k) for s, keys in self._by_shape.items() for k in keys)
        wanted = sorted((a.capability.memory_mb, a.capability.vcores, a.key) for a in self if a.pending)
        assert listed == wanted, (listed, wanted)
        assert all(keys == sorted(keys) and keys for keys in self._by_shape.values())
