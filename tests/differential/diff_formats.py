"""Typed bytes and raw bytes in plain Python: for the model, and as the program of a case, beside whose commands this
file is copied: `formats.py MODE IN OUT` reads pairs of one format and writes pairs of another.
"""

import re
import struct
import sys
import zlib
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

SIZES = {1: 1, 2: 1, 3: 4, 4: 8, 5: 4, 6: 8}
NUMBERS = {1: ">b", 2: ">?", 3: ">i", 4: ">q", 5: ">f", 6: ">d"}

Item = bytes


class Broken(Exception):
    """No pairs of this format."""


def sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def typed(value: Any) -> bytes:
    """A Python value: tuples are vectors, lists lists."""
    match value:
        case bool():
            return b"\2" + bytes([value])
        case int():
            return b"\3" + struct.pack(">i", value) if abs(value) < 1 << 31 else b"\4" + struct.pack(">q", value)
        case float():
            return b"\6" + struct.pack(">d", value)
        case bytes():
            return b"\0" + sized(value)
        case str():
            return b"\7" + sized(value.encode())
        case tuple():
            return b"\x08" + struct.pack(">i", len(value)) + b"".join(map(typed, value))
        case list():
            return b"\x09" + b"".join(map(typed, value)) + b"\xff"
    items = b"".join(typed(key) + typed(item) for key, item in value.items())
    return b"\x0a" + struct.pack(">i", len(value)) + items


def untyped(data: bytes, at: int) -> tuple[str, int]:
    """Of the value that begins there: its text as Java writes it, and its end."""
    if at >= len(data):
        raise Broken("ends within")
    code, at = data[at], at + 1
    if code in SIZES:
        end = at + SIZES[code]
        if end > len(data):
            raise Broken("ends within")
        number = struct.unpack(NUMBERS[code], data[at:end])[0]
        return (str(number).lower() if code == 2 else str(number)), end
    if code == 9:
        texts = []
        while at < len(data) and data[at] != 255:
            shown, at = untyped(data, at)
            texts.append(shown)
        return f"[{', '.join(texts)}]", at + 1
    if code not in (0, 7, 8, 10, *range(50, 201)):
        raise Broken("no type")
    if at + 4 > len(data):
        raise Broken("ends within")
    count = struct.unpack(">i", data[at : at + 4])[0]
    at += 4
    if code in (8, 10):
        texts = []
        for _ in range(count * (code - 6) // 2):
            shown, at = untyped(data, at)
            texts.append(shown)
        if code == 8:
            return f"[{', '.join(texts)}]", at
        entries = sorted(zip(texts[::2], texts[1::2], strict=True))
        return "{" + ", ".join(f"{key}={item}" for key, item in entries) + "}", at
    if at + count > len(data):
        raise Broken("ends within")
    held = data[at : at + count]
    return (java_text(held) if code == 7 else held.hex()), at + count


def java_text(data: bytes) -> str:
    """Java's decoder takes all bytes of a surrogate for one mistake."""
    return re.sub(rb"\xed[\xa0-\xbf][\x80-\xbf]?", "\ufffd".encode(), data).decode("utf-8", "replace")


def vint(number: int) -> bytes:
    """Hadoop's, of a length."""
    if number < 128:
        return bytes([number])
    size = (number.bit_length() + 7) // 8
    return bytes([0x90 - size]) + number.to_bytes(size, "big")


def items(data: bytes, written: str) -> list[Item]:
    """Keys and values by turns, as they are sorted."""
    found, at = [], 0
    while at < len(data):
        if written == "typedbytes":
            end = untyped(data, at)[1]
            found.append(data[at:end])
        else:
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            found.append(data[at + 4 : end])
        if end > len(data):
            raise Broken("ends within")
        at = end
    if len(found) % 2:
        raise Broken("ends within")
    return found


def as_read(item: Item, held: str, read: str) -> bytes:
    """What a program reads of a key or value that another wrote."""
    if held == "text":
        return sized(vint(len(item)) + item) if read == "rawbytes" else typed(java_text(item))
    if held == read == "typedbytes":
        return item
    return sized(item) if read == "rawbytes" else typed(item)


def as_text(item: Item, written: str) -> bytes:
    """As Hadoop's output files show it."""
    if written == "text":
        return item
    return item.hex(" ").encode() if written == "rawbytes" else untyped(item, 0)[0].encode()


def map_input(offset: int, line: bytes, read: str) -> bytes:
    key = struct.pack(">q", offset)
    return (b"\4" + key if read == "typedbytes" else sized(key)) + as_read(line, "text", read)


# ---- the program


def program(mode: str, read: str, written: str, data: bytes) -> bytes:
    if read == "text":
        found = [item for line in data.splitlines(keepends=False) for item in line.partition(b"\t")[::2]]
    else:
        found = items(data, read)
    pairs = list(zip(found[::2], found[1::2], strict=True))
    put = _PUT[written]
    if mode == "echo":
        return b"".join(put(item) if read != written else _again(item, written) for pair in pairs for item in pair)
    if mode == "sum":
        groups = groupby(pairs, key=lambda pair: pair[0])
        rows = [(key, sum(_number(value, read) for _, value in group)) for key, group in groups]
        return b"".join((_again(key, written) if read == written else put(key)) + put(total) for key, total in rows)
    if mode == "broken":
        return put("whole") + put(1) + put("cut")[:-1]
    if mode == "claims":
        return b"\7\x7f\xff\xff\xff" if written == "typedbytes" else sized(b"k") + b"\xff\xff\xff\xfe"
    return b"".join(put(key) + put(1) for pair in pairs for key in _keys(mode, pair[1] or pair[0], read))


def _keys(mode: str, value: Item, read: str) -> Sequence[Any]:
    line = value[5:] if read == "typedbytes" else value
    if mode == "words":
        return [word.decode("utf-8", "replace") for word in line.split()]
    draw = zlib.crc32(line)
    made = (draw % 5, draw % 7 / 4, bool(draw & 8), draw % 3 << 40, f"w{draw % 4}", bytes([draw % 3, 255]))
    some = made[draw % 6]
    return [(some, (some, [made[draw % 4]], {"b": some, "a": []}), [[]], [some, ()])[draw % 5 % 4]]


def _number(value: Item, read: str) -> int:
    if read == "typedbytes" and value[0] in (3, 4):
        return int.from_bytes(value[1:], "big", signed=True)
    return int(value) if value.isdigit() else 1000


def _again(item: Item, written: str) -> bytes:
    return item if written == "typedbytes" else sized(item)


def _plain(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else repr(value).replace(" ", "").encode()


#: a key or a value in each format; text has room for what a line cannot hold
_PUT: dict[str, Callable[[Any], bytes]] = {"typedbytes": typed, "rawbytes": lambda value: sized(_plain(value))}


if __name__ == "__main__":
    sys.stdout.buffer.write(program(sys.argv[1], sys.argv[2], sys.argv[3], sys.stdin.buffer.read()))
