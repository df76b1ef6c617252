"""Processes whose address space is laid out alike, so that hash() of what hashes by its address is the same in each.

That is None before Python 3.12, `...`, built-in types and functions, also within frozensets and objects, where
`steady_hash` does not reach. Linux does it as `setarch -R`; whatever such a process starts inherits it. Where a system
does not know it or refuses it (a seccomp filter) all goes on without.
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_ADDR_NO_RANDOMIZE: Final = 0x0040000
_ASK: Final = 0xFFFFFFFF


def are_fixed() -> bool:
    """Return whether addresses are fixed in this process and what its thread starts."""
    found = _personality(_ASK)
    return found is not None and bool(found & _ADDR_NO_RANDOMIZE)


def fix() -> bool:
    """Fix addresses for what this thread executes from now on. Return whether that changes anything there."""
    found = _personality(_ASK)
    if found is None or found & _ADDR_NO_RANDOMIZE:
        return False
    _personality(found | _ADDR_NO_RANDOMIZE)
    return are_fixed()


@contextmanager
def fixed_for_children() -> Iterator[None]:
    """Fix addresses for processes that this thread starts meanwhile."""
    before = _personality(_ASK)
    is_changed = fix()
    try:
        yield
    finally:
        if is_changed and before is not None:
            _personality(before)


def _personality(wanted: int) -> int | None:
    """Of the calling thread, as it was before; None where the system does not tell."""
    try:
        found = int(ctypes.CDLL(None).personality(ctypes.c_ulong(wanted)))
    except (AttributeError, OSError):
        return None
    return found if found >= 0 else None


def main() -> None:
    """Run `python -m MODULE ARGUMENT...`, for `python -m yaqd.model.fixed_addresses MODULE ARGUMENT...`."""
    fix()
    os.execv(sys.executable, [sys.executable, "-m", *sys.argv[1:]])


if __name__ == "__main__":
    main()
