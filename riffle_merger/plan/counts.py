"""How many reads a shuffle takes, whole and per reducer, its merging included (Riffle, 4.3.5).

Every file that a reducer reads from is one read request to it: M of them without merging, one per merged file and one
per output left alone with it. Merging reads and writes all it merges once more, in requests of its buffers' size. Where
a storage takes requests of a limited size, a larger one counts for several.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from riffle_merger.plan.decisions import Publish

_MIB: Final = 1024 * 1024


class MergeRequests(Protocol):
    """What merging asks of a disk."""

    def of_merge(self, sizes: Sequence[int], partitions: int) -> tuple[int, int]:
        """Reads and writes of a merge of outputs that have so many stored bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Buffers:
    """A merger's buffers, bytes, whose requests are exactly as long (4.3.1: 4 MB per input, 20 MB for the output)."""

    read: int = 4 * _MIB
    write: int = 20 * _MIB

    def of_merge(self, sizes: Sequence[int], partitions: int) -> tuple[int, int]:
        return sum(-(-size // self.read) for size in sizes), -(-sum(sizes) // self.write)


@dataclass(frozen=True, slots=True)
class Unit:
    """A storage's unit of I/O. `opening` more are paid for each read, whatever its size: the paper counts 360 M units
    of 512 KB for 20 M reads of 150 KB, 18 for each, of which the bytes are one."""

    size: int = 512 * 1024
    opening: float = 17.0

    def of_read(self, size: float) -> float:
        return self.opening + max(1, -(-size // self.size))


class ReadCounter:
    """Counts the reads of one shuffle; told of everything that was published to its reducers."""

    def __init__(self, partitions: int, merging: MergeRequests, unit: Unit) -> None:
        self.partitions = partitions
        self._merging = merging
        self._unit = unit
        #: outputs published, and files that each reducer reads them from
        self.outputs = 0
        self.files = 0
        #: of the outputs, those that are read as they are; and files that the others were merged to
        self.left_alone = 0
        self.merged_files = 0
        self.size = 0
        #: bytes merged, and requests of the mergers
        self.merged_size = 0
        self.merge_reads = 0
        self.merge_writes = 0
        #: of all reducers, in units of the storage
        self.units = 0.0

    def add(self, publishes: Iterable[Publish]) -> None:
        for publish in publishes:
            sizes = [output.size for output in publish.outputs]
            self.outputs += len(sizes)
            self.size += sum(sizes)
            if publish.merge is None:
                self.files += len(sizes)
                self.left_alone += len(sizes)
                self.units += self.partitions * sum(self._unit.of_read(size / self.partitions) for size in sizes)
                continue
            self.files += 1
            self.merged_files += 1
            self.units += self.partitions * self._unit.of_read(sum(sizes) / self.partitions)
            self.merged_size += sum(sizes)
            reads, writes = self._merging.of_merge(sizes, self.partitions)
            self.merge_reads += reads
            self.merge_writes += writes

    @property
    def shuffle_reads(self) -> int:
        return self.files * self.partitions

    @property
    def requests(self) -> int:
        """All that the disks are asked: the reducers' and the mergers'."""
        return self.shuffle_reads + self.merge_reads + self.merge_writes

    def index_reads(self, *, looks: bool) -> int:
        """Return how many indexes the nodes' services read, beside their mergers, where all then fit into memory.

        Each is read when its file is first asked for. `looks`: the nodes merge, so they look at what appears, and read
        each index once for that too.
        """
        files = self.left_alone + self.merged_files
        return files + (self.outputs + self.merged_files if looks else 0)

    @property
    def merge_units(self) -> float:
        """The mergers' units of I/O to read what they merge; to write it takes as many.

        They go on in files that are open.
        """
        return self.merged_size / self._unit.size

    @property
    def mean_read(self) -> float:
        """Bytes that a reducer gets for a request."""
        return self.size / self.shuffle_reads if self.files else 0.0
