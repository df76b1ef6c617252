"""Sorting keys in columns.

Keys compare as bytes. Their first eight bytes, read as one big-endian number, decide nearly all comparisons; numpy
sorts the numbers, and only ties look further, eight bytes at a time. Where few distinct keys repeat, Arrow's
dictionary finds them, they alone are sorted, and their ranks are radix-sorted. All orders here are stable.
"""

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
_SAMPLE_KEYS = 512
#: The dictionary pays where a sample has at most this share of distinct keys.
_DISTINCT_SHARE_MAX = 0.6


def prefixes(data: U8, offsets: I64, depth: int = 0, subset: I64 | None = None) -> U64:
    """Bytes `8 * depth` to `8 * depth + 8` of each key as a number, zero-padded; of the keys in `subset` where
    given.
    """
    starts = offsets[:-1] if subset is None else offsets[:-1][subset]
    stops = offsets[1:] if subset is None else offsets[1:][subset]
    starts = np.minimum(starts + 8 * depth, stops)
    lengths = np.minimum(stops - starts, 8)
    if len(data) < 8:
        data = np.concatenate([data, np.zeros(8, dtype=np.uint8)])
    # Words near the buffer's end are read from its last eight bytes and shifted into place.
    last = len(data) - 8
    at = np.minimum(starts, last)
    windows = np.ndarray((last + 1,), dtype=">u8", buffer=np.ascontiguousarray(data), strides=(1,))
    words = windows[at].astype(np.uint64)
    if len(at) and bool((starts > last).any()):
        words <<= np.minimum((starts - at) * 8, 63).astype(np.uint64) * (lengths > 0)
    missing = ((8 - lengths) * 8).astype(np.uint64)
    short = missing > 0
    if bool(short.any()):
        keep = np.where(missing >= 64, np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF) << np.minimum(missing, 63))
        words &= keep
    return words


def sort_order(data: U8, offsets: I64) -> I64:
    """The stable order that sorts these keys."""
    count = len(offsets) - 1
    if count < 2:
        return np.arange(count, dtype=np.int64)
    width = common_width(offsets)
    if width == 0:
        return np.arange(count, dtype=np.int64)
    if width is not None and width <= 8:
        return np.argsort(prefixes(data, offsets), kind="stable")
    if count >= _DICTIONARY_KEYS_MIN and _few_distinct(data, offsets):
        return _dictionary_order(data, offsets)
    return _direct_order(data, offsets)


def same_as_previous(data: U8, offsets: I64, words: U64 | None = None) -> npt.NDArray[np.bool_]:
    """For sorted keys: whether key i + 1 equals key i, one entry fewer than keys."""
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


def count_up_to(data: U8, offsets: I64, words: U64, key: bytes, *, inclusive: bool) -> int:
    """How many of these sorted keys are below `key` (or equal, if inclusive)."""
    word = np.uint64(int.from_bytes(key[:8].ljust(8, b"\0"), "big"))
    low = int(np.searchsorted(words, word, side="left"))
    high = int(np.searchsorted(words, word, side="right"))
    while low < high:  # binary search among the keys with the same first eight bytes
        middle = (low + high) // 2
        candidate = data[offsets[middle] : offsets[middle + 1]].tobytes()
        if candidate < key or (inclusive and candidate == key):
            low = middle + 1
        else:
            high = middle
    return low


def _few_distinct(data: U8, offsets: I64) -> bool:
    step = max(1, (len(offsets) - 1) // _SAMPLE_KEYS)
    sample = np.arange(0, len(offsets) - 1, step, dtype=np.int64)
    distinct = {data[offsets[i] : offsets[i + 1]].tobytes() for i in sample.tolist()}
    return len(distinct) <= _DISTINCT_SHARE_MAX * len(sample)


def _dictionary_order(data: U8, offsets: I64) -> I64:
    encoded = binary_array(data, offsets).dictionary_encode()
    words, word_offsets = array_items(encoded.dictionary)
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    by_rank = _direct_order(words, word_offsets)
    # A 16-bit array is radix-sorted by numpy, five times faster than wider ones.
    dtype = np.uint16 if len(by_rank) <= 1 << 16 else np.uint32
    ranks = np.empty(len(by_rank), dtype=dtype)
    ranks[by_rank] = np.arange(len(by_rank), dtype=dtype)
    return np.argsort(ranks[codes], kind="stable")


def _direct_order(data: U8, offsets: I64) -> I64:
    words = prefixes(data, offsets)
    order = np.argsort(words, kind="stable")
    _sort_ties(data, offsets, order, words[order])
    return order


def _sort_ties(data: U8, offsets: I64, order: I64, words: U64) -> None:
    """Refine `order`, sorted by its first word (`words`, in that order), in place."""
    lengths = np.diff(offsets)
    same = words[1:] == words[:-1]
    tied = _tied_positions(same)
    groups = np.cumsum(np.concatenate([[True], ~same])[tied])
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
        keep = _tied_positions(same)
        starts = np.concatenate([[True], ~same])[keep]
        tied, groups = tied[keep], np.cumsum(starts)
        depth += 1


def _tied_positions(same: npt.NDArray[np.bool_]) -> I64:
    """Positions that are equal to a neighbour, given whether i + 1 equals i."""
    tied = np.zeros(len(same) + 1, dtype=bool)
    tied[1:] |= same
    tied[:-1] |= same
    return np.flatnonzero(tied)


def _sort_groups(data: U8, offsets: I64, order: I64, tied: I64, groups: I64, *, by_length: bool) -> None:
    members = order[tied]
    if by_length:
        order[tied] = members[np.lexsort((np.diff(offsets)[members], groups))]
        return
    keys = [data[offsets[i] : offsets[i + 1]].tobytes() for i in members.tolist()]
    ranked = sorted(range(len(keys)), key=list(zip(groups.tolist(), keys, strict=True)).__getitem__)
    order[tied] = members[ranked]
