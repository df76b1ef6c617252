"""What is known of a merged file, and of the part of it that one request asks for.

A merged file holds a reducer's part of many map outputs side by side. So one read answers for all of them, or for all
that one request asks for where the part is long.
"""

import logging
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import chain, starmap
from pathlib import Path
from typing import NamedTuple

from riffle_merger.format.merged import MergedPartition, SegmentColumns, check_segments
from yaqd.security.writable import encode_text

log = logging.getLogger(__name__)

_PART_BYTES = 1024
#: of a segment in packed columns
_ROW_BYTES = 28


class MergedFile:
    """A merged file with its index; what was found wrong with it is remembered."""

    __slots__ = ("bad_partitions", "index_path", "is_bad", "maps", "path", "texts")

    def __init__(self, path: Path, index_path: Path, maps: tuple[str, ...]) -> None:
        self.path = path
        self.index_path = index_path
        #: map attempts in their order inside each partition
        self.maps = maps
        #: the same as they go before each segment
        self.texts = tuple(map(encode_text, maps))
        self.is_bad = False
        self.bad_partitions: set[int] = set()

    @property
    def cost_bytes(self) -> int:
        """About what this object and the table of its maps take in memory."""
        return 500 + 300 * len(self.maps) + 2 * sum(map(len, self.texts))


class Run(NamedTuple):
    """Segments of a partition that lie side by side: their numbers, the end not included."""

    first: int
    end: int


@dataclass(slots=True)
class Part:
    """One reducer's part of one merged file, as one request asks for it."""

    file: MergedFile
    partition: int
    whole: MergedPartition
    #: packed: whoever takes nothing of an answer has them held, of all maps however few were asked for
    columns: SegmentColumns
    #: of what the request asks for; complete before the first is sent
    asked: list[Run] = field(default_factory=list)
    #: by number of a segment: what it was read with, and what is asked for side by side with it
    _runs: dict[int, Run] = field(default_factory=dict)
    _neighbours: dict[int, Run] = field(default_factory=dict)

    def key(self, run: Run) -> Hashable:
        return self.file.path, self.partition, run

    @property
    def all(self) -> Run:
        return Run(0, len(self.columns.starts))

    @property
    def cost_bytes(self) -> int:
        """About what its columns take in memory."""
        return _PART_BYTES + _ROW_BYTES * len(self.columns.starts)

    @property
    def is_usable(self) -> bool:
        """Nothing wrong was found so far."""
        return not self.file.is_bad and self.partition not in self.file.bad_partitions

    def read_with(self, number: int) -> Run | None:
        """Returns the run that this segment was read in, if it was."""
        return self._runs.get(number)

    def note_read(self, run: Run) -> None:
        self._runs.update(dict.fromkeys(range(*run), run))

    def run_around(self, number: int, bytes_max: int) -> Run:
        """Returns that segment and its neighbours that are asked for and not read yet, up to `bytes_max` together.

        Neighbours behind it come first.
        """
        if not self._neighbours:
            self._neighbours = self._asked_side_by_side()
        first, end = number, number + 1
        most = self._neighbours[number]
        while end < most.end and end not in self._runs and self.length(Run(first, end + 1)) <= bytes_max:
            end += 1
        while first > most.first and first - 1 not in self._runs and self.length(Run(first - 1, end)) <= bytes_max:
            first -= 1
        return Run(first, end)

    def length(self, run: Run) -> int:
        starts, part_lengths = self.columns.starts, self.columns.part_lengths
        return starts[run.end - 1] + part_lengths[run.end - 1] - starts[run.first]

    def verify(self, run: Run, data: memoryview) -> None:
        """Raises FormatError."""
        these, columns = slice(*run), self.columns
        name = f"{self.file.path}: partition {self.partition}"
        check_segments(data, columns.part_lengths[these], columns.checksums[these], name)

    def _asked_side_by_side(self) -> dict[int, Run]:
        """By number of a segment that is asked for: those that lie side by side with it and are, too."""
        runs: list[Run] = []
        for number in sorted(chain.from_iterable(starmap(range, self.asked))):
            if runs and runs[-1].end == number:
                runs[-1] = Run(runs[-1].first, number + 1)
            else:
                runs.append(Run(number, number + 1))
        return {number: run for run in runs for number in range(*run)}


def give_up(file: MergedFile, error: Exception) -> None:
    """Has the originals answer from now on. May be called from any thread."""
    if not file.is_bad:
        file.is_bad = True
        log.warning("merged file left alone, the originals are served: %s", error)
