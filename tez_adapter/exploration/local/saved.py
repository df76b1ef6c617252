"""Checkpoints of suspended trials, as files within a budget: the least promising go first."""

import contextlib
from collections.abc import Mapping
from pathlib import Path


class SavedTrials:
    """A file for each trial that was suspended with a checkpoint."""

    def __init__(self, folder: Path, bytes_max: int) -> None:
        self._folder, self._bytes_max = folder, bytes_max
        #: by number: epochs that were done, bytes
        self._known: dict[int, tuple[int, int]] = {}

    def put(self, number: int, epochs: int, data: bytes, priority: Mapping[int, float]) -> list[int]:
        """Keep a checkpoint, whole or not at all; return the trials whose checkpoints made room for it.

        `priority`: what each trial promises. OSError: the file cannot be written; an earlier one stays then.
        """
        path = self._path(number)
        new = path.with_suffix(".new")
        try:
            new.write_bytes(data)
            new.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink(missing_ok=True)
            raise
        self._known[number] = (epochs, len(data))
        dropped = []
        while sum(size for _, size in self._known.values()) > self._bytes_max and len(self._known) > 1:
            least = min(self._known, key=lambda each: (each == number, priority.get(each, 0.0)))
            self.drop(least)
            dropped.append(least)
        return dropped

    def get(self, number: int) -> tuple[int, bytes] | None:
        """Return the epochs that were done and the checkpoint; None: there is none."""
        if number not in self._known:
            return None
        try:
            data = self._path(number).read_bytes()
        except OSError:
            data = b""
        epochs, size = self._known[number]
        if len(data) != size:  # cut short: the trial begins anew
            self.drop(number)
            return None
        return epochs, data

    def drop(self, number: int) -> None:
        """Forget a trial's checkpoint."""
        if self._known.pop(number, None) is not None:
            with contextlib.suppress(OSError):
                self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"trial-{number}.checkpoint"
