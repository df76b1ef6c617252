"""Bytes that this process read and wrote, by kind of file system: what FILE_BYTES_READ or HDFS_BYTES_WRITTEN count.

As Hadoop's FileSystem.Statistics: kept for the process, since one task runs in it at a time; a task takes the
difference between its start and its end. Spills and fetched map output do not pass here.
"""

from dataclasses import dataclass
from typing import Self


@dataclass(slots=True)
class Statistics:
    """Of one scheme, since the process began."""

    bytes_read: int = 0
    bytes_written: int = 0

    def since(self, earlier: "Statistics | None") -> Self:
        """What came after an earlier copy."""
        if earlier is None:
            return type(self)(self.bytes_read, self.bytes_written)
        return type(self)(self.bytes_read - earlier.bytes_read, self.bytes_written - earlier.bytes_written)


_by_scheme: dict[str, Statistics] = {}


def statistics_of(scheme: str) -> Statistics:
    """The live numbers of a scheme (file, hdfs); its file systems add to them."""
    return _by_scheme.setdefault(scheme, Statistics())


def storage_statistics() -> dict[str, Statistics]:
    """A copy of the numbers of every scheme that was used so far."""
    return {scheme: found.since(None) for scheme, found in sorted(_by_scheme.items())}
