"""Telling a disk what is going to be read."""

import os
from typing import Final

#: of one call, the kernel reads no more than its read-ahead or one request of the disk: 1.25 MB of most disks
_CALL_BYTES: Final = 1 << 20


def announce(descriptor: int, offset: int, length: int) -> None:
    """Have the kernel read so much of a file into its memory, in large requests. Raises OSError."""
    for at in range(offset, offset + length, _CALL_BYTES):
        os.posix_fadvise(descriptor, at, min(_CALL_BYTES, offset + length - at), os.POSIX_FADV_WILLNEED)
