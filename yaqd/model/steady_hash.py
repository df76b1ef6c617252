"""hash() of keys that has the same value in every process.

A fixed seed settles text and bytes (`hash_seed`), a fixed layout of memory most of what has its address for a hash
(`fixed_addresses`). None has it before Python 3.12, and a system may refuse the layout; a nan, which lies anywhere, has
it in all versions since 3.10. Without this, `hash(key) % partitions` would send one key to several reducers.
"""

import builtins
import sys
from typing import Any, Final

_hash = builtins.hash
#: of None, as Python 3.12 and later have it
_OF_NONE: Final = 0xFCA86420
#: as Python before 3.10 had it
_OF_NAN: Final = 0


class _Stand:
    """Stands for a value whose own hash differs by process."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __hash__(self) -> int:
        return self._value


_NONE: Final = _Stand(_OF_NONE)
_NAN: Final = _Stand(_OF_NAN)


def steady_hash(value: object, /) -> int:
    """Return the value's hash, with None and nan in it, as deep as tuples and frozensets go, counted as constants."""
    return _hash(_steady(value))


def install() -> None:
    """Make hash() `steady_hash` in this process and its forks. Dicts and sets go on as they are."""
    builtins.hash = steady_hash


def _steady(value: Any) -> Any:
    if value is None:
        return _NONE
    if isinstance(value, float):
        return _NAN if value != value else value
    if isinstance(value, tuple) and type(value).__hash__ is tuple.__hash__:
        return tuple(map(_steady, value))
    if isinstance(value, frozenset) and type(value).__hash__ is frozenset.__hash__:
        return frozenset(map(_steady, value))
    if isinstance(value, complex) and value != value:
        return complex(*(part if part == part else _OF_NAN for part in (value.real, value.imag)))
    return _NAN if _is_decimal_nan(value) else value


def _is_decimal_nan(value: object) -> bool:
    """Not of one that signals: it has no hash."""
    decimal = sys.modules.get("decimal")  # whoever has such a number has loaded it
    return decimal is not None and isinstance(value, decimal.Decimal) and value.is_qnan()
