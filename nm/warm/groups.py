"""Joining and killing a control group, by its folder. The standard library only: forkers import this."""

import contextlib
import os


def join(folder: str) -> None:
    """Makes the group where there is none, and moves this process there. Best effort: there is the mark."""
    with contextlib.suppress(OSError):
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        _write(f"{folder}/cgroup.procs", b"0")


def kill(folder: str) -> None:
    """Kills all that is in it and in groups below. Nothing where there is no such group."""
    with contextlib.suppress(OSError):
        _write(f"{folder}/cgroup.kill", b"1")


def _write(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
