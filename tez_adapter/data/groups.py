"""Groups of equal keys out of sorted batches: what a reducer iterates over."""

from collections.abc import Iterator

import numpy as np

from riffle_merger.format.columns import Columns
from tez_adapter.data.order import same_as_previous
from yaqd.mapreduce.errors import JobError

#: So many pairs at a time become Python objects, about three times as large as their columns.
_SLICE_PAIRS = 16 * 1024


class Groups:
    """Iterating gives (key, iterator of its values), keys ascending.

    Values are read lazily and need not be consumed: asking for the next group skips what is left of the current one.
    A group may be larger than memory. An iterator that is kept until another group was asked for gives all of its
    values or raises JobError.
    """

    def __init__(self, batches: Iterator[Columns]) -> None:
        #: Pairs and groups handed out or skipped so far.
        self.records = 0
        self.groups = 0
        self._slices = _slices(batches)
        self._keys: list[bytes] = []
        self._bounds: list[int] = []
        self._values: list[bytes] = []
        #: The first group of the current slice that has not been handed out.
        self._first = 0
        #: Counts the tail groups that are over.
        self._turn = 0
        #: Whether the tail group has reached the slice after it (or the end).
        self._advanced = True

    def __iter__(self) -> Iterator[tuple[bytes, Iterator[bytes]]]:
        self._next_slice()
        while self._keys:
            keys, bounds, values = self._keys, self._bounds, self._values
            last = len(keys) - 1
            for group in range(self._first, last):
                self.groups += 1
                yield keys[group], iter(values[bounds[group] : bounds[group + 1]])
            self.groups += 1
            self._advanced = False
            yield keys[last], self._tail(keys[last], values[bounds[last] :], self._turn)
            self._turn += 1
            while not self._advanced:  # whatever the reducer left, or all of it if it closed the iterator
                for _ in self._tail(keys[last], [], self._turn):
                    pass

    def _tail(self, key: bytes, values: list[bytes], turn: int) -> Iterator[bytes]:
        """The slice's last group, which may go on in the slices that follow as long as it is its turn."""
        yield from values
        while True:
            if turn != self._turn:
                raise JobError(
                    "the values of a key were read after its call had returned: what comes after it is read by then; "
                    "keep them as list(values)"
                )
            if self._advanced:
                return
            self._next_slice()
            if not self._keys or self._keys[0] != key:
                self._advanced = True
                return
            if len(self._keys) > 1:
                self._first = 1
                self._advanced = True
            yield from self._values[: self._bounds[1]]

    def _next_slice(self) -> None:
        """Load the next slice; no keys at the end."""
        part = next(self._slices, None)
        self._first = 0
        if part is None:
            self._keys, self._bounds, self._values = [], [], []
            return
        starts = np.flatnonzero(~same_as_previous(part.keys, part.key_offsets)) + 1
        self._bounds = [0, *starts.tolist(), len(part)]
        self._keys = [part.key(start) for start in self._bounds[:-1]]
        self._values = part.value_list()
        self.records += len(part)


def _slices(batches: Iterator[Columns]) -> Iterator[Columns]:
    for batch in batches:
        for start in range(0, len(batch), _SLICE_PAIRS):
            yield batch.slice(start, min(start + _SLICE_PAIRS, len(batch)))
