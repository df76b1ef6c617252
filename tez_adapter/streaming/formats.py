"""What the programs of a streaming job read and write: lines of text, raw bytes or typed bytes, as in Hadoop Streaming.

What a mapper writes is sorted and sent as it is: the bytes of a key are those of a field of its line, of raw bytes
without their length, of typed bytes with their type. What a program reads is made of that, and so is the text of the
output files.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, Protocol

from riffle_merger.format.columns import Columns
from riffle_merger.format.vint import write_vint
from tez_adapter.data.lines import Fields, LineReader, join_lines
from tez_adapter.streaming.javatext import valid_utf8
from tez_adapter.streaming.rawbytes import RawBytesReader, with_length
from tez_adapter.streaming.typedbytes import BYTES, LONG, STRING, TypedBytesReader, shown

_OFFSET_BYTES: Final = 8


class StreamFormat(StrEnum):
    TEXT = "text"
    RAW = "rawbytes"
    TYPED = "typedbytes"


class PairReader(Protocol):
    """What a program writes, in pieces, as pairs."""

    def feed(self, piece: bytes) -> Columns: ...
    def finish(self) -> Columns: ...


def pair_reader(written: StreamFormat, fields: Fields) -> PairReader:
    if written is StreamFormat.TEXT:
        return LineReader(fields)
    return RawBytesReader() if written is StreamFormat.RAW else TypedBytesReader()


def input_block(
    read: StreamFormat, offsets: Callable[[], Sequence[int]], lines: Sequence[bytes], separator: bytes | None
) -> bytes:
    """Write records of a file as a mapper reads them.

    Lines of text have their offsets in front where there is a separator.
    """
    if read is StreamFormat.TEXT:
        if separator is not None:
            lines = [b"%d%s%s" % (offset, separator, line) for offset, line in zip(offsets(), lines, strict=True)]
        return b"\n".join((*lines, b""))
    made = _items(StreamFormat.TEXT, read)
    head = bytes([LONG]) if read is StreamFormat.TYPED else with_length(bytes(_OFFSET_BYTES))[:-_OFFSET_BYTES]
    return b"".join(
        head + offset.to_bytes(_OFFSET_BYTES, "big") + made(line) for offset, line in zip(offsets(), lines, strict=True)
    )


def pairs_block(held: StreamFormat, read: StreamFormat, columns: Columns, separator: bytes) -> bytes | memoryview:
    """Write pairs that a mapper wrote in one format as a reducer and a combiner read them in another."""
    if read is StreamFormat.TEXT:
        return join_lines(columns, separator)
    made = _items(held, read)
    return b"".join(made(item) for pair in columns.pairs() for item in pair)


def output_lines(written: StreamFormat, columns: Columns, separator: bytes) -> bytes | memoryview:
    """Write pairs as lines of an output file."""
    if written is StreamFormat.TEXT:
        return join_lines(columns, separator)
    text = shown_text(written)
    return b"".join(b"%b%b%b\n" % (text(key), separator, text(value)) for key, value in columns.pairs())


def shown_text(written: StreamFormat) -> Callable[[bytes], bytes]:
    """Return what writes a key or value of this format as text, as Hadoop does.

    It raises BadRecord for what has no text.
    """
    if written is StreamFormat.TEXT:
        return bytes
    return shown if written is StreamFormat.TYPED else lambda item: item.hex(" ").encode()


def _items(held: StreamFormat, read: StreamFormat) -> Callable[[bytes], bytes]:
    """From bytes as they are sorted to those of a format that is no text."""
    if read is StreamFormat.RAW:
        return _text_as_raw if held is StreamFormat.TEXT else with_length
    if held is StreamFormat.TYPED:
        return bytes
    if held is StreamFormat.RAW:
        return lambda item: bytes([BYTES]) + with_length(item)
    return lambda item: bytes([STRING]) + with_length(valid_utf8(item))


def _text_as_raw(item: bytes) -> bytes:
    """As Hadoop's Text is written: its length in front, in the other way of writing numbers."""
    return with_length(write_vint(len(item)) + item)
