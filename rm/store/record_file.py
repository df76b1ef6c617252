"""Writes down what the scheduler is told and what it decides, where `yaq.rm.scheduler.record` names a file.

Lines are written and compressed by a thread of their own. Who cannot keep up, or finds the disk full, stops recording
with one line in the log: the cluster goes on.
"""

import gzip
import io
import logging
import queue
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from rm.scheduler import recording
from rm.scheduler.decisions import Outcome
from rm.scheduler.events import SchedulerEvent
from rm.scheduler.limits import SchedulerLimits
from rm.scheduler.queues.spec import SchedulerSpec
from yaqd.config import Configuration

log = logging.getLogger(__name__)

KEY: Final = "yaq.rm.scheduler.record"
_LINES_MAX: Final = 100_000
#: what is lost at most when the daemon is killed, s
_FLUSH_S: Final = 1.0
_LEVEL: Final = 6


class RecordFile:
    """A new file, whatever was there before."""

    def __init__(self, path: Path, spec: SchedulerSpec, limits: SchedulerLimits) -> None:
        """Raises OSError where the file cannot be made."""
        self._path = path
        self._lines: queue.Queue[str | None] = queue.Queue(_LINES_MAX)
        self._is_going = True
        self._file = io.TextIOWrapper(gzip.open(path, "wb", _LEVEL), encoding="ascii", write_through=True)  # noqa: SIM115
        self._file.write(recording.header(spec, limits) + "\n")
        self._thread = threading.Thread(target=self._run, name="scheduler-record", daemon=True)
        self._thread.start()
        log.info("the scheduler's events and decisions are recorded at %s", path)

    @classmethod
    def of(cls, conf: Configuration, path: Path, spec: SchedulerSpec, limits: SchedulerLimits) -> "RecordFile":
        """Raises ConfigError where the file cannot be made."""
        try:
            return cls(path, spec, limits)
        except OSError as error:
            raise conf.error(KEY, f"cannot be written: {error.strerror}", "name a file in a folder of yours") from None

    def note(self, now: float, event: SchedulerEvent, decided: Iterable[Outcome] | None) -> None:
        if not self._is_going:
            return
        try:
            self._lines.put_nowait(recording.entry(now, event, decided))
        except queue.Full:
            self._stop(f"{_LINES_MAX} lines wait to be written")

    def close(self) -> None:
        """Waits until all that was noted is in the file."""
        self._is_going = False
        while self._thread.is_alive():  # it has ended where the disk was full
            with suppress(queue.Full):
                self._lines.put(None, timeout=_FLUSH_S)
                break
        self._thread.join()

    def _stop(self, why: object) -> None:
        self._is_going = False
        log.error("the scheduler is recorded no more, %s ends here: %s", self._path, why)

    def _run(self) -> None:
        try:
            with self._file as file:
                while self._write_some(file):
                    pass
        except OSError as error:
            self._stop(error)

    def _write_some(self, file: io.TextIOWrapper) -> bool:
        """Up to a flush; False at the end."""
        try:
            line = self._lines.get(timeout=_FLUSH_S)
        except queue.Empty:
            file.flush()
            return True
        if line is None:
            return False
        file.write(line + "\n")
        return True
