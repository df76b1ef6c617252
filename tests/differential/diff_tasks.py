"""What tasks of job classes and of streaming jobs share in the model."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.differential.diff_case import Case
from tests.differential.diff_reading import Range, owned_lines


class Failed(Exception):
    """The job fails, and says one of these."""


class Tasks:
    """The counters and the lines of a split."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.counters: dict[str, Counter[str]] = defaultdict(Counter)

    def count(self, group: str, name: str, amount: int = 1) -> None:
        self.counters[group.rpartition(".")[2]][name] += amount

    @contextmanager
    def own_folder(self) -> Iterator[None]:
        """An empty folder to work in, which each task has."""
        with TemporaryDirectory(prefix="yaqd-diff-") as folder, chdir(folder):
            yield

    def lines(self, split: Sequence[Range]) -> Iterator[tuple[Path, int, bytes]]:
        for path, start, length in split:
            for offset, line in owned_lines(path, start, length):
                self.count("TaskCounter", "MAP_INPUT_RECORDS")
                yield path, offset, line


def unmarked(offset: int, line: bytes) -> bytes:
    """A line of text without a file's byte order mark."""
    return line.removeprefix(b"\xef\xbb\xbf") if offset == 0 else line
