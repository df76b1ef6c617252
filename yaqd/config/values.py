"""Text of a setting to a typed value, by Hadoop's rules.

Units are those of Hadoop's `Configuration.getTimeDuration` (ns us ms s m h d) and `getLongBytes` (k m g t p e, powers
of 1024).
Each parser raises ValueError with what was expected; the caller adds key, file and line.
"""

import re

DURATION_UNITS_MS = {
    "ns": 1e-6,
    "us": 1e-3,
    "ms": 1.0,
    "s": 1000.0,
    "m": 60_000.0,
    "h": 3_600_000.0,
    "d": 86_400_000.0,
}
SIZE_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50, "e": 1 << 60}
PORT_MAX = 65_535

_INTEGER = re.compile(r"[+-]?(\d{1,30}|0[xX][0-9a-fA-F]{1,16})")
_DURATION = re.compile(r"([+-]?\d{1,18}(?:\.\d{1,9})?)\s*(ns|us|ms|s|m|h|d)?", re.IGNORECASE)
_SIZE = re.compile(r"([+-]?\d{1,18})\s*([kmgtpe]?)i?b?", re.IGNORECASE)
_HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}")


def parse_int(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError("not a whole number; write digits only, for example 8192")
    return int(text, 16) if text.lower().lstrip("+-").startswith("0x") else int(text)


def parse_float(text: str) -> float:
    # Java's float literals may end in f or d ("1.0f" is a default of Hadoop's own).
    trimmed = text[:-1] if text[-1:] in "fFdD" and text[:-1] else text
    try:
        number = float(trimmed)
    except ValueError:
        number = float("nan")
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError("not a number; write for example 0.5")
    return number


def parse_bool(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError("neither true nor false; write one of them")
    return lowered == "true"


def parse_list(text: str) -> list[str]:
    """Return comma-separated words, trimmed, empty ones dropped."""
    return [word for word in (part.strip() for part in text.split(",")) if word]


def parse_duration_ms(text: str, unit: str = "ms") -> int:
    """Return milliseconds; a bare number counts in `unit`."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"not a duration; write a number and one of ns us ms s m h d, for example 10s (bare: {unit})")
    return round(float(match[1]) * DURATION_UNITS_MS[(match[2] or unit).lower()])


def parse_size_bytes(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError("not a size; write bytes or a number and one of k m g t p e, for example 128m")
    return int(match[1]) * SIZE_UNITS[match[2].lower()]


def parse_address(text: str) -> tuple[str, int]:
    """Read `host:port` or `[v6]:port`."""
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    is_host = bool(_HOST.fullmatch(bare)) or (bare != host and re.fullmatch(r"[0-9A-Fa-f:.%]+", bare) is not None)
    if not colon or not is_host or not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise ValueError("not an address; write host:port, for example 127.0.0.1:8032 (port 0: any free one)")
    return bare, int(port)


def bare_duration_unit(key: str) -> str:
    """Return the unit that a bare number of this key has by Hadoop's naming: `...-secs` seconds, else milliseconds."""
    tail = re.split(r"[.-]", key)[-1]
    if tail in ("secs", "sec", "seconds", "s"):
        return "s"
    return {"hours": "h", "hrs": "h", "minutes": "m", "mins": "m", "days": "d"}.get(tail, "ms")
