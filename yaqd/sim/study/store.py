"""What came out, in a file of JSON lines: one for each trial, written in one go when the trial is over.

A process that is killed loses the trials that it was at. A last line that was cut is dropped when the file is opened
again. Any other damage is refused with its line.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from yaqd.model.values import value
from yaqd.sim.study.trial import StudyTrial

FILE: Final = "trials.jsonl"


class StoreError(Exception):
    """The store is damaged, in use, or of other code; the text says what to do."""


@value()
class FinishedTrial:
    """A trial that is over."""

    figures: dict[str, float]
    #: processor time of the simulation, s
    took_s: float
    #: of the code that ran it
    digest: str


class StudyStore:
    """The trials that are over, by their keys."""

    def __init__(self, folder: Path) -> None:
        """Raise StoreError for a damaged file."""
        self.path: Final = folder / FILE
        self.found: Final[dict[str, FinishedTrial]] = {}
        #: what the runs were started with, in the order of their starts
        self.starts: Final[list[dict[str, Any]]] = []
        #: bytes of whole lines, and the file while it is written
        self._whole = 0
        self._file: int | None = None
        self._read()

    @property
    def digests(self) -> tuple[str, ...]:
        """Of the code of all results, each once."""
        return tuple(sorted({one.digest for one in self.found.values()}))

    def check(self, digest: str) -> None:
        """Raise StoreError where results of other code are there."""
        others = [one for one in self.digests if one != digest]
        if others:
            raise StoreError(
                f"{self.path} has results of other code ({', '.join(others)}; this is {digest}): "
                "name another folder, or make tables and the page of it with --from-store, which runs nothing"
            )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Let results be added while this lasts, by this process alone; what others have added is read before.

        Raises StoreError, OSError.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(f"{self.path} is being written by another run") from None
            self._read()
            os.ftruncate(self._file, self._whole)
            os.lseek(self._file, 0, os.SEEK_END)
            yield
        finally:
            os.close(self._file)
            self._file = None

    def started(self, said: dict[str, Any]) -> None:
        """Note with what a run was started: its command and its code."""
        self.starts.append(said)
        self._write({"start": said})

    def add(self, trial: StudyTrial, finished: FinishedTrial) -> None:
        """Write a trial down that is over."""
        self.found[trial.key] = finished
        self._write(
            {
                "key": trial.key,
                "digest": finished.digest,
                "took_s": round(finished.took_s, 3),
                "figures": finished.figures,
                "trial": trial.said(),
            }
        )

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is None:
            raise RuntimeError("the store is not open for writing")
        text = (json.dumps(line) + "\n").encode()
        while text:  # a signal may cut a write short
            text = text[os.write(self._file, text) :]

    def _read(self) -> None:
        text = self.path.read_bytes() if self.path.exists() else b""
        self.found.clear()
        self.starts.clear()
        self._whole = text.rfind(b"\n") + 1
        for number, line in enumerate(text[: self._whole].splitlines(), 1):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise StoreError(f"{self.path}, line {number}: no result of a study") from None

    def _take(self, line: dict[str, Any]) -> None:
        if "start" in line:
            self.starts.append(dict(line["start"]))
            return
        numbers = {str(name): float(number) for name, number in line["figures"].items()}
        self.found[str(line["key"])] = FinishedTrial(numbers, float(line["took_s"]), str(line["digest"]))
