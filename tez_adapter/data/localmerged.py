"""Merged files on this node's own disks, read in place as single map outputs are.

A reducer's part of one is announced to the disk a stretch at a time. Its segments are read one after the other, each
with little in front of it, and what else the disk reads meanwhile would come between them.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from riffle_merger.format.ahead import announce
from riffle_merger.format.errors import FormatError
from riffle_merger.format.merged import DATA_SUFFIX, INDEX_SUFFIX, MERGED_FOLDER, MergedIndex, is_safe_name

#: that the disk is told of at once, at least as much as a large request takes
_STRETCH_BYTES: Final = 8 << 20


class Place(NamedTuple):
    """One segment in a merged file, bytes."""

    path: Path
    start: int
    length: int
    #: what the segment has at its end, unless another stands there
    checksum: int


class LocalMerged:
    """Keeps the index read last: outputs of one merged file are asked for one after the other, from one thread."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._last: tuple[str, Path, MergedIndex] | None = None
        #: where the stretch ends that was announced last
        self._announced = 0

    def find(self, merged: str, attempt: str, partition: int) -> Place | None:
        """Find the segment; None where the file is not here.

        Raises FormatError or OSError where it is, and cannot be used.
        """
        if not is_safe_name(merged):
            return None
        if self._last is None or self._last[0] != merged:
            self._last, self._announced = self._open(merged), 0
        if self._last is None:
            return None
        _, path, index = self._last
        number = index.map_number(attempt)
        if number is None:
            raise FormatError(f"{path} has no map output {attempt}")
        if not 0 <= partition < index.partitions:
            raise FormatError(f"{path} has no partition {partition}")
        starts, _, part_lengths, checksums = index.columns(partition)
        place = Place(path, starts[number], part_lengths[number], checksums[number])
        self._announce(place, starts[-1] + part_lengths[-1])
        return place

    def _announce(self, place: Place, end: int) -> None:
        """Has the disk read on from there, in large requests, as far as a stretch or the reducer's part goes."""
        if self._announced >= place.start + place.length:
            return
        self._announced = max(place.start + place.length, min(end, place.start + _STRETCH_BYTES))
        descriptor = os.open(place.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            announce(descriptor, place.start, self._announced - place.start)
        finally:
            os.close(descriptor)

    def _open(self, merged: str) -> tuple[str, Path, MergedIndex] | None:
        for folder in self._folders:
            try:
                index = MergedIndex.load(folder / MERGED_FOLDER / f"{merged}{INDEX_SUFFIX}")
            except FileNotFoundError:
                continue
            path = folder / MERGED_FOLDER / f"{merged}{DATA_SUFFIX}"
            index.check_file(path.stat().st_size, name=str(path))
            return merged, path, index
        return None
