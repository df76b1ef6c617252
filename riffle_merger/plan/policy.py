"""When a job's map outputs are merged: a number of files, or a size that the merged blocks shall have.

A *block* is what one reducer reads of one file; an output's average block is its stored bytes over the number of
partitions. Merging by number suits outputs of one size; merging by block size adapts to outputs of many sizes and
leaves those alone whose blocks are large enough already (Riffle, 4.3.1).
"""

from dataclasses import dataclass, replace
from typing import Final

#: files in one merge, at most: each costs the merger a read buffer and every reducer's request a name
FAN_IN_MAX: Final = 200
_BLOCK_BYTES_MAX: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """One of the two numbers is set, the other 0; both 0 merges nothing."""

    #: outputs that make a merge, 2..FAN_IN_MAX
    files: int = 0
    #: average block that a merged file shall reach, bytes
    block_bytes: int = 0
    #: with blocks: outputs in one merge, at most
    files_max: int = FAN_IN_MAX

    def __post_init__(self) -> None:
        if self.files and self.block_bytes:
            raise ValueError("a merge policy goes by the number of files or by the size of blocks, not by both")
        if self.files and not 2 <= self.files <= FAN_IN_MAX:
            raise ValueError(f"{self.files} files do not make a merge: 2 to {FAN_IN_MAX} do")
        if not 2 <= self.files_max <= FAN_IN_MAX:
            raise ValueError(f"{self.files_max} files at most do not make a merge: 2 to {FAN_IN_MAX} do")
        if not 0 <= self.block_bytes <= _BLOCK_BYTES_MAX:
            raise ValueError(f"blocks of {self.block_bytes} bytes cannot be merged to")

    @property
    def is_off(self) -> bool:
        return not self.files and not self.block_bytes

    def leaves_alone(self, block_bytes: float) -> bool:
        """Return whether an output with such blocks is read as it is."""
        return self.is_off or (self.block_bytes > 0 and block_bytes >= self.block_bytes)

    def is_enough(self, files: int, block_bytes: float) -> bool:
        """Return whether so many outputs, whose blocks come to so many bytes together, make a merge."""
        if self.files:
            return files >= self.files
        return files >= self.files_max or block_bytes >= self.block_bytes

    def within(self, files_max: int) -> "MergePolicy":
        """Return the policy with so many outputs in one merge at most.

        Nothing is merged where these are less than two.
        """
        if self.is_off or files_max < 2:
            return OFF
        if self.files:
            return replace(self, files=min(self.files, files_max))
        return replace(self, files_max=min(self.files_max, files_max))

    def __str__(self) -> str:
        if self.files:
            return f"{self.files} files"
        if not self.block_bytes:
            return "no merging"
        most = f" in {self.files_max} files at most" if self.files_max < FAN_IN_MAX else ""
        return f"blocks of {self.block_bytes} bytes{most}"


OFF: Final = MergePolicy()
