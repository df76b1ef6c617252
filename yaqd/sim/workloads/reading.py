"""Reading traces that others wrote: bounded, and every complaint names the file and the line."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

from yaqd.sim.workloads.drawn import JOBS_MAX, TASKS_MAX, WorkloadError

BYTES_MAX: Final = 1 << 30
LINE_MAX: Final = 1 << 24
#: s; ten years
SECONDS_MAX: Final = 3.2e8
TASKS_PER_JOB_MAX: Final = 1_000_000


class Place:
    """Where in a file the reader stands, for complaints."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.line = 1

    def fail(self, why: str) -> NoReturn:
        raise WorkloadError(f"{self.path}:{self.line}: {why}")

    def number(self, value: Any, what: str, *, least: float = 0.0, most: float = SECONDS_MAX) -> float:
        """Return `value` as a finite number within the bounds."""
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                self.fail(f"{what} is {value[:40]!r}, not a number")
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(f"{what} is {str(value)[:40]}, not a number")
        if not math.isfinite(value) or not least <= value <= most:
            self.fail(f"{what} is {value:g}; it must lie between {least:g} and {most:g}")
        return float(value)

    def text(self, value: object, what: str, *, most: int = 256) -> str:
        if not isinstance(value, str) or not 0 < len(value) <= most:
            self.fail(f"{what} is not a text of 1 to {most} characters")
        return value


class Budget:
    """Counts what a trace makes us hold."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.jobs = 0
        self.tasks = 0

    def job(self, tasks: int) -> None:
        self.jobs += 1
        self.tasks += tasks
        if tasks > TASKS_PER_JOB_MAX:
            self._place.fail(f"a job of {tasks} tasks; {TASKS_PER_JOB_MAX} at most")
        if self.jobs > JOBS_MAX or self.tasks > TASKS_MAX:
            self._place.fail(f"more than {JOBS_MAX} jobs or {TASKS_MAX} tasks; take a part with --jobs")


def read_text(path: Path) -> str:
    """Read the whole file. Raises WorkloadError where it cannot be read, is too long or is no text."""
    try:
        length = path.stat().st_size
        if length > BYTES_MAX:
            raise WorkloadError(f"{path}: {length} bytes is more than is read ({BYTES_MAX})")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise WorkloadError(f"{path}: byte {error.start} is no text (binary files are not read)") from None


def lines(text: str, place: Place, *, first: int = 1) -> Iterator[str]:
    """Yield the lines that are not blank.

    `place.line` is the number of the one handed out, from `first` on.
    """
    for place.line, line in enumerate(text.splitlines(), first):
        if len(line) > LINE_MAX:
            place.fail(f"a line of {len(line)} characters")
        if line.strip():
            yield line


def json_lines(text: str, place: Place, *, first: int = 1) -> Iterator[dict[str, Any]]:
    for line in lines(text, place, first=first):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            place.fail("not JSON")
        if not isinstance(found, dict):
            place.fail("not a JSON object")
        yield found


def json_values(text: str, place: Place) -> Iterator[dict[str, Any]]:
    """Yield JSON objects one after the other, each over as many lines as it likes, or one array of them."""
    decoder = json.JSONDecoder()
    at = seen = 0
    while True:
        while at < len(text) and text[at] in " \t\r\n,[]":
            at += 1
        if at >= len(text):
            return
        place.line += text.count("\n", seen, at)
        seen = at
        try:
            found, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            place.line += text.count("\n", seen, error.pos)
            place.fail(f"not JSON: {error.msg}")
        except RecursionError:
            place.fail("not JSON: nested too deeply")
        if not isinstance(found, dict):
            place.fail("not a JSON object")
        yield found
