"""Input folders as nobody tidies them."""

import bz2
import gzip
import random
from collections.abc import Callable

from tests.differential.diff_case import FEATURES

_WORDS = (
    "a",
    "b",
    "the",
    "yaq",
    "x" * 30,
    "Zürich",
    "naïve",
    "日本",
    "0",
    "-1",
    "1.0",
    "a,b",
    "k=v",
    "\u2028x",
    "y\x85z",
)
_BREAKS = ("\x0b", "\x0c", "\x1c", "\u2029", "\t", "  ")

Shape = Callable[[random.Random], bytes]


def _line(draw: random.Random) -> str:
    return " ".join(draw.choice(_WORDS) for _ in range(draw.randrange(9)))


def _plain(draw: random.Random) -> bytes:
    return "".join(f"{_line(draw)}\n" for _ in range(draw.randrange(1, 60))).encode()


def _no_last_newline(draw: random.Random) -> bytes:
    return _plain(draw)[:-1]


def _crlf(draw: random.Random) -> bytes:
    return _plain(draw).replace(b"\n", b"\r\n")


def _mixed_ends(draw: random.Random) -> bytes:
    return b"".join(_line(draw).encode() + draw.choice((b"\n", b"\r\n", b"\r", b"\n\r", b"\r\r\n")) for _ in range(40))


def _odd_blanks(draw: random.Random) -> bytes:
    return "".join(f"{_line(draw)}{draw.choice(_BREAKS)}{_line(draw)}\n" for _ in range(30)).encode()


def _empty(draw: random.Random) -> bytes:
    return b""


def _only_ends(draw: random.Random) -> bytes:
    return draw.choice((b"\n", b"\r\n", b"\r")) * draw.randrange(1, 30)


def _binary(draw: random.Random) -> bytes:
    return draw.randbytes(draw.randrange(1, 3000))


def _with_nul(draw: random.Random) -> bytes:
    return b"".join(b"a\0b c\xff\xfe %d\n" % n for n in range(draw.randrange(1, 50)))


def _marked(draw: random.Random) -> bytes:
    return b"\xef\xbb\xbf" + _plain(draw)


def _pairs(draw: random.Random) -> bytes:
    keys = ["k1", "k2", "key three", "", "ä", "k" * 40]
    tails = ("", "\t", "\tv", "\tv\tw", "\t\t", "\t 1 ")
    return "".join(f"{draw.choice(keys)}{draw.choice(tails)}\n" for _ in range(draw.randrange(1, 80))).encode()


def _giant_key(draw: random.Random) -> bytes:
    return b"K" * draw.randrange(50_000, 200_000) + b"\t1\n" + _pairs(draw)


def _one_line(draw: random.Random) -> bytes:
    return _line(draw).encode()


def _long_line(draw: random.Random) -> bytes:
    return b"w " * draw.choice((200_000, 600_000, 5_000_000)) + b"\nshort\n" + _plain(draw)


def _many_lines(draw: random.Random) -> bytes:
    return b"".join(b"%d some words here %d\n" % (n, n % 17) for n in range(draw.randrange(5_000, 30_000)))


_SHAPES: dict[str, tuple[Shape, int]] = {
    "plain": (_plain, 6),
    "no last newline": (_no_last_newline, 4),
    "CR LF": (_crlf, 3),
    "mixed ends": (_mixed_ends, 3),
    "odd blanks": (_odd_blanks, 2),
    "empty": (_empty, 3),
    "only line ends": (_only_ends, 2),
    "binary": (_binary, 3),
    "NULs": (_with_nul, 2),
    "byte order mark": (_marked, 1),
    "pairs": (_pairs, 4),
    "giant key": (_giant_key, 1),
    "one line": (_one_line, 2),
    "many lines": (_many_lines, 1),
}
_NAMES = ("part", "a b", "ünïcode", "per%20cent", "x+y", "_hidden", ".dot", "UPPER", "deep.name.txt", "q'uote")


def make_files(draw: random.Random, *, streaming: bool) -> tuple[dict[str, bytes], list[str]]:
    """Files by name, and what they are like."""
    if "heavy" in FEATURES and draw.random() < 0.012:
        return _heavy(draw)
    shapes = {name: entry for name, entry in _SHAPES.items() if name != "empty" or _empty_allowed(streaming)}
    files: dict[str, bytes] = {}
    told = []
    for index in range(draw.choice((1, 1, 1, 2, 2, 3, 5))):
        shape = draw.choices(list(shapes), [weight for _, weight in shapes.values()])[0]
        data = shapes[shape][0](draw)
        name = f"{draw.choice(_NAMES)}-{index}"
        packed = draw.random()
        if packed < 0.10:
            name, data, shape = f"{name}.gz", _members(draw, data, gzip.compress), f"{shape} (gzip)"
        elif packed < 0.16:
            name, data, shape = f"{name}.bz2", _members(draw, data, bz2.compress), f"{shape} (bzip2)"
        files[name] = data
        told.append(shape)
    if all(name.startswith(("_", ".")) for name in files):
        files["seen"] = _plain(draw)
        told.append("plain")
    return files, told


def _empty_allowed(streaming: bool) -> bool:
    return not streaming or "streaming-empty-files" in FEATURES


def _members(draw: random.Random, data: bytes, pack: Callable[[bytes], bytes]) -> bytes:
    """One file of several members, cut anywhere, some of them empty."""
    if draw.random() < 0.5:
        return pack(data)
    cuts = sorted(draw.randrange(len(data) + 1) for _ in range(draw.randrange(1, 4)))
    return b"".join(pack(data[a:b]) for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True))


def _heavy(draw: random.Random) -> tuple[dict[str, bytes], list[str]]:
    if draw.random() < 0.5:
        return {"long": _long_line(draw)}, ["a line of megabytes"]
    count = draw.choice((300, 1000, 2500))
    return {f"f{n:05d}": b"%d tiny\n" % (n % 7) for n in range(count)}, [f"{count} tiny files"]
