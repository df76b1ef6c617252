"""How much of the merger's memory a merge takes, and how long its reads are with it (Riffle, 4.3.1). Pure."""

from typing import Final

#: one input's read-ahead, as the paper has it
BUFFER_BYTES: Final = 4 << 20
#: of one write, at least, where there is as much; also what a merge takes beside its inputs' buffers (4.3.1)
WRITE_BYTES: Final = 20 << 20
#: buffers of one input, at most: half of them are read while the other half is written
_EACH_MAX: Final = 4
#: what a merge takes for indexes, for each segment: its entry in an input's, its checksum, and its row in the merged
#: one, which is there twice when it is made
_ENTRY_BYTES: Final = 24
_SEGMENT_BYTES: Final = _ENTRY_BYTES + 4 + 2 * 20
#: and for each partition
_PARTITION_BYTES: Final = 2 * 16 + 1


def buffers_wanted(inputs: int, share: int, buffer_bytes: int = BUFFER_BYTES) -> int:
    """Return how many buffers a merge wants.

    It waits for one per input and the write buffer's at least. It takes up to four per input where they are in its
    `share`: so many that it keeps no other merge waiting.
    """
    to_write = -(-WRITE_BYTES // buffer_bytes)
    return max(inputs + to_write, min(_EACH_MAX * inputs + to_write, share))


def index_memory(inputs: int, index_bytes: float) -> int:
    """Return what a merge takes for indexes, bytes. `index_bytes`: of its inputs' indexes."""
    segments = index_bytes / _ENTRY_BYTES
    return int(segments * _SEGMENT_BYTES + segments / max(1, inputs) * _PARTITION_BYTES)


def read_bytes(inputs: float, partitions: int, memory_bytes: float) -> float:
    """Return the bytes of one read of a merge that has so much memory for itself."""
    files = max(1, round(inputs))
    share = (memory_bytes - index_memory(files, files * partitions * _ENTRY_BYTES)) / BUFFER_BYTES
    return buffers_wanted(files, int(share)) / 2 * BUFFER_BYTES / files
