"""Shuffle file formats. Only what needs no numpy is exported here, because node daemons import it;
the columnar parts are `riffle_merger.format.columns` and `riffle_merger.format.segment`."""

from riffle_merger.format.errors import CorruptIndex, CorruptSegment, FormatError
from riffle_merger.format.index import IndexEntry, SpillIndex
from riffle_merger.format.merged import MergedIndex, MergedPartition

__all__ = [
    "CorruptIndex",
    "CorruptSegment",
    "FormatError",
    "IndexEntry",
    "MergedIndex",
    "MergedPartition",
    "SpillIndex",
]
