"""The state that a step is about, fetched once for each node: its workers share a file in the application's folder,
which the node removes with the application."""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = "training-state-"
_LOCK: Final = "training-state.lock"


class NodeStates:
    def __init__(self, folder: Path, pull: Callable[[str], bytes | None]) -> None:
        """`pull` fetches a state by its version, which is its SHA-256; None: it is no longer wanted."""
        self._folder, self._pull = folder, pull

    def get(self, version: str) -> bytes | None:
        """Return a state; None: nobody has it any more."""
        path = self._folder / f"{_PREFIX}{version}"
        with suppress(FileNotFoundError):
            return path.read_bytes()
        with self._locked():
            with suppress(FileNotFoundError):
                return path.read_bytes()
            return self._fetch(version, path)

    def _fetch(self, version: str, path: Path) -> bytes | None:
        state = self._pull(version)
        if state is None:
            return None
        if hashlib.sha256(state).hexdigest() != version:
            raise ValueError(f"the state {version} came with another sum")
        new = path.with_name(f".{path.name}.{os.getpid()}")
        new.write_bytes(state)
        new.replace(path)
        for other in self._folder.glob(f"{_PREFIX}*"):
            if other != path:
                other.unlink(missing_ok=True)
        return state

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / _LOCK).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
