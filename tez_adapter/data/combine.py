"""Combining map output before it is sorted, by hash, on the user's own objects.

Encoding a key costs more than looking it up. So pairs wait in dicts under the key object itself and are encoded once
per distinct key. Python's dicts hold 1, 1.0 and True for the same key and ours do not. So only exact str, int, bytes
and tuples of str or bytes go in as they are; any other key goes in as its encoding. Values that could change after they
were yielded are copied.

Most combiners count: the map yields one and the same value object again and again. Such values are kept as a
number of repetitions, which takes no memory per value (`counted` has the fast way for text).
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from itertools import chain, islice, repeat
from sys import getsizeof
from typing import Any

from riffle_merger.format.columns import Columns
from tez_adapter.data.counted import CountedKeys
from tez_adapter.data.groups import Groups
from tez_adapter.data.mapoutput import MapOutput
from tez_adapter.tasks.pairs import refuse_no_pairs
from yaqd.mapreduce.errors import JobError
from yaqd.mapreduce.serde import decode_key, decode_value, encode_key, encode_pairs, encode_value

Pair = tuple[Any, Any]
#: `combine(key, values)` as the user wrote it.
ObjectCombine = Callable[[Any, Iterator[Any]], Iterable[Pair]]

#: The memory estimate is looked at after this many pairs.
_CHUNK_PAIRS = 8192
#: So many keys are counted together: their objects still lie in the second-level cache when they are joined.
_COUNTED_PAIRS = 2048
#: Combined pairs are encoded and handed on this many at once.
_BATCH_PAIRS = 8192
#: A dict entry with its share of empty slots, and a count.
_ENTRY_BYTES = 100
#: A list in a dict: the entry, the list object and its first slots.
_LIST_BYTES = 200
_SLOT_BYTES = 9

_IMMUTABLE = frozenset({int, str, float, bytes, bool, type(None)})
_TEXT = frozenset({str, bytes})


class HashCombiner:
    """Collects a map's pairs as objects, combines them key by key and hands the encoded rest to a `MapOutput`.

    The output should have been made with `combine=encoded_combiner(combine)`. `memory_bytes` bounds the estimate of
    what is held here; it is checked every few thousand pairs. Call `close` before the output's. Not thread-safe.
    """

    def __init__(
        self,
        output: MapOutput,
        combine: ObjectCombine,
        *,
        memory_bytes: int,
        counters: MutableMapping[str, int] | None = None,
    ) -> None:
        self._output = output
        self._combine = combine
        self._memory_bytes = memory_bytes
        self._counters: MutableMapping[str, int] = output.counters if counters is None else counters
        #: The first value that came and cannot change; most maps that count yield no other.
        self._has_constant = False
        self._constant: Any = None
        self._repeats_constant = False
        self._counted = CountedKeys(str, memory_bytes)
        self._clear()

    def collect_all(self, pairs: Iterable[Pair]) -> None:
        """Take pairs until there are no more. Chain all of a task's records into one call: it is the fast path."""
        pairs = iter(pairs)
        try:
            while self._absorb_some(pairs):
                if self._held_bytes + self._counted.held_bytes > self._memory_bytes:
                    self.flush()
        except (TypeError, ValueError) as error:
            refuse_no_pairs("map()", error, __file__)
            raise

    def collect(self, key: Any, value: Any) -> None:
        """Take one pair."""
        self.collect_all(((key, value),))

    def flush(self) -> None:
        """Combine and hand on everything that is held."""
        given = 0
        pairs = self._combined()
        try:
            while True:
                keys, values = encode_pairs(islice(pairs, _BATCH_PAIRS))
                if not keys:
                    break
                given += len(keys)
                self._output.collect_combined(Columns.from_lists(keys, values))
        except (TypeError, ValueError) as error:
            refuse_no_pairs("combine()", error, __file__)
            raise
        self._clear()
        self._count("COMBINE_OUTPUT_RECORDS", given)

    def _combined(self) -> Iterator[Pair]:
        """What the combiner yields for all that is held, with keys as they were given to it."""
        taken = 0
        for key, group, count in self._groups():
            taken += count
            for pair in self._combine(key, group):
                out_key, _ = pair
                if out_key is not key:
                    _check_key(encode_key(key), out_key)
                yield pair
        for code, values in self._encoded.items():
            taken += len(values)
            for out_key, out_value in self._combine(decode_key(code), iter(values)):
                _check_key(code, out_key)
                yield out_key, out_value
        self._count("MAP_OUTPUT_RECORDS", taken)
        self._count("COMBINE_INPUT_RECORDS", taken)

    def close(self) -> None:
        """Hand on what is left; the map output itself stays open."""
        self.flush()

    def _absorb_some(self, pairs: Iterator[Pair]) -> bool:
        """Take a few thousand pairs; False if there were no more."""
        if self._repeats_constant:
            return self._absorb_counted(islice(pairs, _COUNTED_PAIRS)) == _COUNTED_PAIRS
        for first in pairs:  # whatever it is: `next(pairs, None)` would take a None for the end
            self._absorb(chain((first,), islice(pairs, _CHUNK_PAIRS)))
            return True
        return False

    def _absorb_counted(self, pairs: Iterable[Pair]) -> int:
        """Pairs that mostly have the constant value: their keys are counted together. How many there were."""
        constant, kind = self._constant, self._counted.kind
        others = 0

        def set_aside(key: Any, value: Any) -> bool:
            nonlocal others
            others += 1
            self._absorb(((key, value),))
            if self._held_bytes > self._memory_bytes:
                self.flush()
            return False

        keys = [key for key, value in pairs if (value is constant and type(key) is kind) or set_aside(key, value)]
        try:
            self._counted.add(keys)
        except UnicodeEncodeError:
            rest = zip(keys, repeat(constant))
            while self._absorb(rest):
                self.flush()
        if others > len(keys):
            self._repeats_constant = False
        return len(keys) + others

    def _clear(self) -> None:
        self._repeats: dict[Any, int] = {}
        self._lists: dict[Any, list[Any]] = {}
        self._encoded: dict[bytes, list[Any]] = {}
        self._held_bytes = 0

    def _absorb(self, pairs: Iterable[Pair]) -> bool:
        """The loop that every pair of a combining job passes through: local names only, fewest tests first.

        True where no more may be held; there may be pairs left then.
        """
        repeats, lists, constant = self._repeats, self._lists, self._constant
        held, most = self._held_bytes, self._memory_bytes
        for key, value in pairs:
            kind = type(key)
            if kind is not str and kind is not int and kind is not bytes and not _is_plain(key):
                held += self._absorb_encoded(key, value)
                if held > most:
                    break
            elif value is constant and self._has_constant:
                if key in repeats:
                    repeats[key] += 1
                else:
                    repeats[key] = 1
                    held += getsizeof(key) + _ENTRY_BYTES
            else:
                if type(value) not in _IMMUTABLE:
                    value = decode_value(encode_value(value))
                elif not self._has_constant:
                    self._adopt_constant(value, kind)
                    constant = value
                held += getsizeof(value) + _SLOT_BYTES
                if key in lists:
                    lists[key].append(value)
                else:
                    lists[key] = [value]
                    held += getsizeof(key) + _LIST_BYTES
                if held > most:
                    break
        self._held_bytes = held
        return held > most

    def _adopt_constant(self, value: Any, kind: type) -> None:
        self._has_constant, self._constant = True, value
        if kind is str or kind is bytes:
            self._repeats_constant = True
            self._counted = CountedKeys(kind, self._memory_bytes)

    def _absorb_encoded(self, key: Any, value: Any) -> int:
        code = encode_key(key)
        if type(value) not in _IMMUTABLE:
            value = decode_value(encode_value(value))
        held = getsizeof(value) + _SLOT_BYTES
        group = self._encoded.get(code)
        if group is not None:
            group.append(value)
            return held
        self._encoded[code] = [value]
        return held + len(code) + _LIST_BYTES

    def _groups(self) -> Iterator[tuple[Any, Iterator[Any], int]]:
        """Each key that cannot change, with its values and their number."""
        constant, lists = self._constant, self._lists
        for key, count in chain(self._counted_keys(), self._repeats.items()):
            more = lists.pop(key, None)
            if more is None:
                yield key, repeat(constant, count), count
            else:
                yield key, chain(more, repeat(constant, count)), count + len(more)
        for key, values in lists.items():
            yield key, iter(values), len(values)

    def _counted_keys(self) -> Iterator[tuple[Any, int]]:
        """The keys that were counted together, with what was counted apart from that; the rest stays in the dict."""
        repeats = self._repeats
        for key, count in self._counted.drain():
            yield key, count + repeats.pop(key, 0)

    def _count(self, name: str, amount: int) -> None:
        self._counters[name] = self._counters.get(name, 0) + amount


def encoded_combiner(combine: ObjectCombine) -> Callable[[Iterator[Columns]], Iterator[Columns]]:
    """Wrap the user's combiner for sorted batches of encoded pairs, as `MapOutput(combine=...)` takes it."""

    def combine_batches(batches: Iterator[Columns]) -> Iterator[Columns]:
        keys: list[bytes] = []
        values: list[bytes] = []
        try:
            for code, group in Groups(batches):
                key = decode_key(code)
                for out_key, out_value in combine(key, map(decode_value, group)):
                    if out_key is not key:
                        _check_key(code, out_key)
                    keys.append(code)
                    values.append(encode_value(out_value))
                if len(keys) >= _BATCH_PAIRS:
                    yield Columns.from_lists(keys, values)
                    keys, values = [], []
        except (TypeError, ValueError) as error:
            refuse_no_pairs("combine()", error, __file__)
            raise
        if keys:
            yield Columns.from_lists(keys, values)

    return combine_batches


def _check_key(code: bytes, out_key: Any) -> None:
    """A combiner keeps the key: pairs of another one would end up unsorted, or in the wrong partition."""
    if encode_key(out_key) != code:
        raise JobError(
            f"combine() yielded key {out_key!r} for key {decode_key(code)!r}: a combiner must keep the key it was given"
        )


def _is_plain(key: Any) -> bool:
    """A tuple of str and bytes only: equal as Python objects exactly where its encoding is equal."""
    return type(key) is tuple and _TEXT.issuperset(map(type, key))
