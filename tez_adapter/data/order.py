"""Sorting keys in columns.

Keys compare as bytes. Their first eight bytes, read as one big-endian number, decide nearly all comparisons; numpy
sorts the numbers, and only ties look further, eight bytes at a time. Where few distinct keys repeat, Arrow's
dictionary finds them, they alone are sorted, and their ranks are radix-sorted. All orders here are stable.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from riffle_merger.format.columns import (
    I64,
    U8,
    array_items,
    binary_array,
    common_width,
)

U64 = npt.NDArray[np.uint64]

#: After this many eight-byte rounds, what is still tied is compared by Python: long common prefixes are rare.
_ROUNDS_MAX = 4
#: Fewer keys than this are not worth a dictionary.
_DICTIONARY_KEYS_MIN = 4096
_SAMPLE_KEYS_MAX = 4096
#: The dictionary pays where a key is there this often on average; a sample's collisions tell.
_REPETITIONS_MIN = 2.5
_COLLISIONS_MIN = 8
_SLICE_KEYS = 16 * 1024
#: By the number of bytes that a key lacks to fill its word: which bits are the key's.
_KEEP_MASKS: U64 = np.array([(1 << 64) - (1 << 8 * missing) for missing in range(9)], dtype=np.uint64)


def prefixes(data: U8, offsets: I64, depth: int = 0, subset: I64 | None = None) -> U64:
    """Return bytes `8 * depth` to `8 * depth + 8` of each key as a number, zero-padded.

    With `subset` these are the prefixes of its keys alone.
    """
    if len(data) < 8:
        data = np.concatenate([data, np.zeros(8, dtype=np.uint8)])
    windows = np.ndarray((len(data) - 7,), dtype=">u8", buffer=np.ascontiguousarray(data), strides=(1,))
    count = len(offsets) - 1 if subset is None else len(subset)
    words = np.empty(count, dtype=np.uint64)
    # In slices whose many temporary arrays stay in the cache.
    for first in range(0, count, _SLICE_KEYS):
        part = slice(first, min(first + _SLICE_KEYS, count))
        if subset is None:
            starts, stops = offsets[:-1][part], offsets[1:][part]
        else:
            starts, stops = offsets[subset[part]], offsets[subset[part] + 1]
        words[part] = _words_at(windows, np.minimum(starts + 8 * depth, stops), stops)
    return words


def _words_at(windows: npt.NDArray[np.void], starts: I64, stops: I64) -> U64:
    """Up to eight bytes from each start, not past its stop."""
    # Words near the buffer's end are read from its last eight bytes and shifted into place.
    last = len(windows) - 1
    at = np.minimum(starts, last)
    words: U64 = windows[at].astype(np.uint64)
    missing = 8 - np.minimum(stops - starts, 8)
    if int(starts.max()) > last:
        words <<= np.where(missing < 8, (starts - at) * 8, 0).astype(np.uint64)
    words &= _KEEP_MASKS[missing]
    return words


def sort_order(data: U8, offsets: I64, *, may_repeat: bool = True) -> I64:
    """Return the stable order that sorts these keys; `may_repeat` False where they were sampled and seldom do."""
    width = common_width(offsets)
    if len(offsets) <= 2 or width == 0:
        return np.arange(len(offsets) - 1, dtype=np.int64)
    if width is not None and width <= 8:
        return np.argsort(prefixes(data, offsets), kind="stable")
    repeated = repeated_keys(data, offsets) if may_repeat else None
    return _direct_order(data, offsets) if repeated is None else repeated.order(repeated.ranks())


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """Keys as indices into their distinct values."""

    #: The distinct keys, in order of appearance.
    data: U8
    offsets: I64
    #: Which of them each key is.
    codes: npt.NDArray[np.int32]

    def ranks(self, partitions: I64 | None = None) -> I64:
        """Return each distinct key's place in the order by partition and key.

        `partitions`: of the distinct keys; None: by key alone.
        """
        order = _direct_order(self.data, self.offsets)
        if partitions is not None:
            order = order[np.argsort(partitions[order], kind="stable")]
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        return ranks

    def order(self, ranks: I64) -> I64:
        """Return the stable order of all keys, given the ranks of the distinct ones."""
        if len(ranks) <= 1 << 16:
            return np.argsort(ranks.astype(np.uint16)[self.codes], kind="stable")
        # numpy sorts 16-bit numbers by radix, ten times faster than wider ones: low half first, then the high one.
        order = np.argsort(ranks.astype(np.uint16)[self.codes], kind="stable")
        high = (ranks >> 16).astype(np.uint16)[self.codes]
        return order[np.argsort(high[order], kind="stable")]


def repeated_keys(data: U8, offsets: I64) -> RepeatedKeys | None:
    """Return the keys by their distinct values, or None where a sample finds too few repetitions."""
    if len(offsets) - 1 < _DICTIONARY_KEYS_MIN or not _few_distinct(data, offsets):
        return None
    encoded = binary_array(data, offsets).dictionary_encode()
    return RepeatedKeys(*array_items(encoded.dictionary), encoded.indices.to_numpy(zero_copy_only=False))


def same_as_previous(data: U8, offsets: I64, words: U64 | None = None) -> npt.NDArray[np.bool_]:
    """Tell of sorted keys whether key i + 1 equals key i, one entry fewer than keys."""
    if words is None:
        words = prefixes(data, offsets)
    lengths = np.diff(offsets)
    same: npt.NDArray[np.bool_] = (words[1:] == words[:-1]) & (lengths[1:] == lengths[:-1])
    unsure = np.flatnonzero(same & (lengths[1:] > 8))
    depth = 1
    while len(unsure) and depth < _ROUNDS_MAX:
        equal = prefixes(data, offsets, depth, unsure) == prefixes(data, offsets, depth, unsure + 1)
        same[unsure[~equal]] = False
        unsure = unsure[equal]
        depth += 1
        unsure = unsure[lengths[unsure] > 8 * depth]
    for i in unsure.tolist():
        start, middle, stop = offsets[i], offsets[i + 1], offsets[i + 2]
        same[i] = bool((data[start:middle] == data[middle:stop]).all())
    return same


def count_up_to(data: U8, offsets: I64, words: U64, key: bytes) -> int:
    """Count how many of these sorted keys are at most `key`; `words` are their prefixes."""
    word = np.uint64(int.from_bytes(key[:8].ljust(8, b"\0"), "big"))
    low = int(np.searchsorted(words, word, side="left"))
    high = int(np.searchsorted(words, word, side="right"))
    while low < high:  # binary search among the keys with the same first eight bytes
        middle = (low + high) // 2
        candidate = data[offsets[middle] : offsets[middle + 1]].tobytes()
        if candidate <= key:
            low = middle + 1
        else:
            high = middle
    return low


def _few_distinct(data: U8, offsets: I64) -> bool:
    count = len(offsets) - 1
    step = max(1, count // min(_SAMPLE_KEYS_MAX, count // 16))
    starts, stops = offsets[:-1:step].tolist(), offsets[1::step].tolist()
    whole = data.data
    distinct = {bytes(whole[start:stop]) for start, stop in zip(starts, stops, strict=True)}
    # s samples of d equally likely keys collide about s * s / 2d times.
    collisions = len(starts) - len(distinct)
    return collisions >= _COLLISIONS_MIN and collisions * count >= _REPETITIONS_MIN / 2 * len(starts) ** 2


def _direct_order(data: U8, offsets: I64) -> I64:
    words = prefixes(data, offsets)
    order = np.argsort(words, kind="stable")
    _sort_ties(data, offsets, order, words[order])
    return order


def _sort_ties(data: U8, offsets: I64, order: I64, words: U64) -> None:
    """Refine `order`, sorted by its first word (`words`, in that order), in place."""
    lengths = np.diff(offsets)
    tied, groups = _open_groups(words[1:] == words[:-1], lengths[order], 8)
    depth = 1
    while len(tied):
        # A group whose keys all ended before this depth differs in nothing but length.
        members = order[tied]
        if depth >= _ROUNDS_MAX or not bool((lengths[members] > 8 * depth).any()):
            _sort_groups(data, offsets, order, tied, groups, by_length=depth < _ROUNDS_MAX)
            return
        deeper = prefixes(data, offsets, depth, members)
        inner = np.lexsort((deeper, groups))
        order[tied] = members[inner]
        deeper = deeper[inner]
        same = (deeper[1:] == deeper[:-1]) & (groups[1:] == groups[:-1])
        depth += 1
        keep, groups = _open_groups(same, lengths[order[tied]], 8 * depth)
        tied = tied[keep]


def _open_groups(same: npt.NDArray[np.bool_], lengths: I64, compared: int) -> tuple[I64, I64]:
    """Positions in groups that need more than the `compared` bytes, and each one's group number.

    `same` says whether i + 1 equals i so far. A group is settled when its keys have one length and no byte is left.
    """
    numbers = np.zeros(len(lengths), dtype=np.int64)
    np.cumsum(~same, out=numbers[1:])
    unsure = same & ((lengths[1:] != lengths[:-1]) | (lengths[1:] > compared))
    is_open = np.zeros(len(lengths), dtype=bool)
    is_open[numbers[1:][unsure]] = True
    positions = np.flatnonzero(is_open[numbers])
    return positions, numbers[positions]


def _sort_groups(data: U8, offsets: I64, order: I64, tied: I64, groups: I64, *, by_length: bool) -> None:
    members = order[tied]
    if by_length:
        order[tied] = members[np.lexsort((np.diff(offsets)[members], groups))]
        return
    keys = [data[offsets[i] : offsets[i + 1]].tobytes() for i in members.tolist()]
    ranked = sorted(range(len(keys)), key=list(zip(groups.tolist(), keys, strict=True)).__getitem__)
    order[tied] = members[ranked]
