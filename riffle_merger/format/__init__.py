"""Shuffle file formats. Only what needs no numpy is exported here, because node daemons import it;
the columnar parts are `riffle_merger.format.columns` and `riffle_merger.format.segment`."""

from riffle_merger.format.errors import CorruptIndex, CorruptSegment, FormatError
from riffle_merger.format.index import IndexEntry, SpillIndex

__all__ = ["CorruptIndex", "CorruptSegment", "FormatError", "IndexEntry", "SpillIndex"]
