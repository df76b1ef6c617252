"""Keys ordered and parted by some of their fields, as Hadoop's KeyFieldBasedComparator and -Partitioner do.

A specification is `-k F[.C][nr][,F[.C][nr]]`: from a field's character to another's, counted from 1, where 0 for the
last character means the whole field; `-n`, `-r` and `-nr` are for those that say neither. Positions are Hadoop's to the
byte, also where fields lack and where a separator has several characters.

The order is put into the keys themselves: each gets a code in front whose byte order is the wanted one, and no code is
the beginning of another. So sorting, merging and everything else that moves map outputs goes on comparing bytes.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from riffle_merger.format.columns import I64, U8, Columns, array_items, binary_array, offsets_of
from tez_adapter.data.partition import KeyPartitioner, Partitioner
from tez_adapter.streaming.javatext import valid_utf8

_POSITION = r"(\d+)(?:\.(\d+))?([nr]*)"
_KEY = re.compile(rf"{_POSITION}(?:,{_POSITION})?")
_INT_MAX = (1 << 31) - 1
_NUMBER = re.compile(rb"(-?)0*([0-9]*)(?:\.([0-9]*))?")
_INVERTED = bytes(range(255, -1, -1))
_LENGTH_BYTES = 4


class BadKeyOptions(ValueError):
    """Options that Hadoop's parser takes for no key."""


@dataclass(frozen=True, slots=True)
class KeySpec:
    """Which bytes of a key count, and how they compare."""

    begin_field: int = 1
    begin_char: int = 1
    #: 0: to the end of the key
    end_field: int = 0
    #: 0: to the end of the field
    end_char: int = 0
    is_numeric: bool = False
    is_reversed: bool = False


@dataclass(frozen=True, slots=True)
class KeyFields:
    """The parts of a key that count, in turn; none: all of it as it is."""

    specs: tuple[KeySpec, ...] = ()
    separator: bytes = b"\t"
    #: whether keys are cut into fields at all: not where only `-n` or `-r` is given
    has_keys: bool = False

    @classmethod
    def parse(cls, options: str, separator: bytes = b"\t") -> "KeyFields":
        """Raises BadKeyOptions."""
        words = options.split()
        if not words:
            return cls((), separator)
        keys = [_key(text) for text in _key_words(words)]
        common = KeySpec(is_numeric="-n" in words or "-nr" in words, is_reversed="-r" in words or "-nr" in words)
        specs = tuple(
            key
            if key.is_numeric or key.is_reversed
            else replace(key, is_numeric=common.is_numeric, is_reversed=common.is_reversed)
            for key in keys
        )
        return cls(specs or (common,), separator, bool(specs))

    @classmethod
    def first(cls, count: int, separator: bytes = b"\t") -> "KeyFields":
        """Takes the first `count` fields (num.key.fields.for.partition)."""
        return cls((KeySpec(end_field=count),) if count > 0 else (), separator, count > 0)

    def ranges(self, key: bytes) -> Iterator[tuple[KeySpec, int, int]]:
        """Yields of each specification the first byte and the end, which may lie before it.

        The first byte is -1 where the key does not reach so far.
        """
        lengths = self._lengths(key) if self.has_keys else [len(key)]
        for spec in self.specs:
            yield spec, self._start(key, lengths, spec), self._end(key, lengths, spec)

    def _lengths(self, key: bytes) -> list[int]:
        """Of the fields as Hadoop counts them: after a separator it goes on at its second byte."""
        lengths = []
        start = 0
        while (at := key.find(self.separator, start)) >= 0:
            lengths.append(at - start)
            start = at + 1
        return [*lengths, len(key) - start]

    def _start(self, key: bytes, lengths: list[int], spec: KeySpec) -> int:
        if len(lengths) < spec.begin_field:
            return -1
        position = self._field(lengths, spec.begin_field) + spec.begin_char
        return position - 1 if position <= len(key) else -1

    def _end(self, key: bytes, lengths: list[int], spec: KeySpec) -> int:
        if spec.end_field == 0 or len(lengths) < spec.end_field:
            return len(key)
        position = self._field(lengths, spec.end_field) + (spec.end_char or lengths[spec.end_field - 1])
        return min(position, len(key))

    def _field(self, lengths: list[int], number: int) -> int:
        """Where a field begins."""
        return sum(lengths[: number - 1]) + (number - 1) * len(self.separator)


def _key_words(words: list[str]) -> Iterator[str]:
    """What follows each -k, at once or as the next word."""
    rest = iter(words)
    for word in rest:
        if word.startswith("-k") and (text := word[2:] or next(rest, "")):
            yield text


def _key(text: str) -> KeySpec:
    match = _KEY.fullmatch(text)
    if match is None:
        raise BadKeyOptions(f"-k {text}: write it as -k F[.C][nr][,F[.C][nr]], as in -k2,2nr")
    first, char, flags, last, last_char, last_flags = match.groups()
    flags += last_flags or ""
    spec = KeySpec(int(first), int(char or 1), int(last or 0), int(last_char or 0), "n" in flags, "r" in flags)
    if spec.begin_field < 1 or spec.begin_char < 1:
        raise BadKeyOptions(f"-k {text}: fields and characters count from 1")
    if max(spec.begin_field, spec.begin_char, spec.end_field, spec.end_char) > _INT_MAX:
        raise BadKeyOptions(f"-k {text}: there are no keys of so many characters")
    return spec


# ---- partitions


def key_field_partitioner(fields: KeyFields, shown: Callable[[bytes], bytes] = bytes) -> KeyPartitioner:
    """Makes Hadoop's partitioner: by the bytes of the fields. `shown` gives a key as text.

    Without any specification it parts by Java's hash of the key as a string.
    """
    part = _partition_of(fields)
    return KeyPartitioner(lambda key, partitions: part(shown(key), partitions))


def _partition_of(fields: KeyFields) -> Callable[[bytes, int], int]:
    def partition(key: bytes, partitions: int) -> int:
        text = valid_utf8(key).decode()
        if not fields.specs:
            return _part(_hash(np.frombuffer(text.encode("utf-16-le"), dtype="<u2").tolist(), 0), partitions)
        key = text.encode()
        code = 0
        for _, start, end in fields.ranges(key):
            if start >= 0:
                code = _hash(memoryview(key[start:end]).cast("b").tolist(), code)
        return _part(code, partitions)

    return partition


def _hash(units: list[int], code: int) -> int:
    """Java's: 31 times what was, and the next, in 32 bits."""
    for unit in units:
        code = (31 * code + unit) & 0xFFFFFFFF
    return code


def _part(code: int, partitions: int) -> int:
    return (code & 0x7FFFFFFF) % partitions


# ---- order


def sort_code(fields: KeyFields, key: bytes) -> bytes:
    """Returns bytes that compare as the keys do."""
    codes = []
    for spec, start, end in fields.ranges(key):
        code = b"\0" if start < 0 else _number(key, start, end) if spec.is_numeric else _text(key, start, end)
        codes.append(code.translate(_INVERTED) if spec.is_reversed else code)
    return b"".join(codes)


def _text(key: bytes, start: int, end: int) -> bytes:
    if end < start:  # the shorter it lacks the smaller, as Hadoop compares lengths
        return b"\1" + (end - start + (1 << 32)).to_bytes(5, "big")
    return b"\2" + _ended(key[start:end])


def _ended(text: bytes) -> bytes:
    """The text with an end that no other text goes on with."""
    return text.replace(b"\0", b"\0\xff") + b"\0\0"


def _number(key: bytes, start: int, end: int) -> bytes:
    """Sign, digits before the point by their number, digits after it; what is no number counts by what comes first.

    Numbers of one value, without digits after the point, compare by the byte that ends them or else by their first
    one, as in Hadoop. What Hadoop compares in circles has a place here.
    """
    match = _NUMBER.match(key, start, max(start, end))
    assert match is not None
    sign, whole, fraction = match[1], match[2], (match[3] or b"").rstrip(b"0")
    is_ended = match.end() >= end or match[3] is not None
    first = (key[start : start + 1] if is_ended else key[match.end() : match.end() + 1])[0]
    tie = b"" if fraction else bytes([(first + 128) % 256])  # Java's bytes have signs
    size = len(whole).to_bytes(4, "big") + whole + _ended(fraction) + tie
    if not sign:
        return b"\3" + size
    if not whole and not fraction:
        return b"\3" + bytes(4) + _ended(b"") + bytes([ord("0") + 128])
    return b"\2" + size.translate(_INVERTED)


class KeyOrder:
    """Gives keys their codes, and takes them off again."""

    def __init__(self, fields: KeyFields) -> None:
        self._fields = fields

    def coded(self, columns: Columns) -> Columns:
        keys = []
        for key in columns.key_list():
            code = sort_code(self._fields, key)
            keys.append(code + key + len(code).to_bytes(_LENGTH_BYTES, "big"))
        offsets = offsets_of(np.fromiter(map(len, keys), dtype=np.int64, count=len(keys)))
        return Columns(np.frombuffer(b"".join(keys), dtype=np.uint8), offsets, columns.values, columns.value_offsets)

    def plain(self, columns: Columns) -> Columns:
        keys, offsets = plain_keys(columns.keys, columns.key_offsets)
        return Columns(keys, offsets, columns.values, columns.value_offsets)


def plain_keys(data: U8, offsets: I64) -> tuple[U8, I64]:
    """Returns the keys without their codes: the last bytes of each tell how long that is."""
    if len(offsets) <= 1:
        return data, offsets
    ends = offsets[1:] - _LENGTH_BYTES
    code_bytes = np.zeros(len(ends), dtype=np.int64)
    for at in range(_LENGTH_BYTES):
        code_bytes = code_bytes * 256 + data[ends + at]
    bounds = np.empty(3 * len(ends) + 1, dtype=np.int64)
    bounds[0] = offsets[0]
    bounds[1::3] = offsets[:-1] + code_bytes
    bounds[2::3] = ends
    bounds[3::3] = offsets[1:]
    items = binary_array(data, bounds)
    return array_items(items.take(pa.array(np.arange(1, len(bounds) - 1, 3, dtype=np.int64))))


class PlainKeyPartitioner:
    """Parts keys with codes as another parts those without."""

    def __init__(self, inner: Partitioner) -> None:
        self._inner = inner

    def partition(self, data: U8, offsets: I64, partitions: int) -> I64:
        return self._inner.partition(*plain_keys(data, offsets), partitions)
