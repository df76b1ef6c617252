"""Merged files on this node's own disks, read in place as single map outputs are."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from riffle_merger.format.errors import FormatError
from riffle_merger.format.merged import DATA_SUFFIX, INDEX_SUFFIX, MERGED_FOLDER, MergedIndex, is_safe_name


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

    def find(self, merged: str, attempt: str, partition: int) -> Place | None:
        """Find the segment; None where the file is not here.

        Raises FormatError or OSError where it is, and cannot be used.
        """
        if not is_safe_name(merged):
            return None
        if self._last is None or self._last[0] != merged:
            self._last = self._open(merged)
        if self._last is None:
            return None
        _, path, index = self._last
        number = index.map_number(attempt)
        if number is None:
            raise FormatError(f"{path} has no map output {attempt}")
        if not 0 <= partition < index.partitions:
            raise FormatError(f"{path} has no partition {partition}")
        starts, _, part_lengths, checksums = index.columns(partition)
        return Place(path, starts[number], part_lengths[number], checksums[number])

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
