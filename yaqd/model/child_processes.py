"""Which processes a process has, as Linux lists them."""

import contextlib
import os


def children_of(pid: int) -> set[int]:
    """Return those of all its threads; empty where the kernel does not tell."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found.update(map(int, file.read().split()))
    return found
