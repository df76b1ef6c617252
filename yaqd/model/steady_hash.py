"""hash() of keys that has the same value in every process.

A fixed seed settles text and bytes (`hash_seed`). Before Python 3.12, None has its address for a hash, which every
process chooses for itself; a nan has it in all versions since 3.10. Without this, `hash(key) % partitions` would send
one key to several reducers.
"""

import builtins
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
    """Return the value's hash, with None and nan in it, as deep as tuples go, counted as constants."""
    return _hash(_steady(value))


def install() -> None:
    """From now on hash() in this process and its forks is `steady_hash`. Dicts and sets go on as they are."""
    builtins.hash = steady_hash


def _steady(value: Any) -> Any:
    if value is None:
        return _NONE
    if isinstance(value, float):
        return _NAN if value != value else value
    if isinstance(value, tuple) and type(value).__hash__ is tuple.__hash__:
        return tuple(map(_steady, value))
    return value
