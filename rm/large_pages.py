"""Has the kernel keep this process's heap in large pages.

What a decision of the scheduler touches lies all over the heap: of 5,000 nodes, in more pages of 4 KB than a processor
remembers where to find, and finding them again took an eighth of its time (measured on a virtual machine). Linux joins
them to pages of 2 MB where it is asked to (madvise(2): MADV_HUGEPAGE, and MADV_COLLAPSE since 6.1), unless the machine
is set never to have any.
"""

import ctypes
import logging
import mmap
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

MB: Final = 1 << 20
#: how much the process may grow until it is worth another look, bytes
STEP_BYTES: Final = 16 * MB
#: of an area at least so much must be in use: joined pages take memory for all of theirs, and stacks are mostly empty
_USED_SHARE: Final = 0.75
_MADV_HUGEPAGE: Final = 14
_MADV_COLLAPSE: Final = 25
_AREA: Final = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0\s*(\[heap\]|\[anon:.*\])?$")
_SETTING: Final = Path("/sys/kernel/mm/transparent_hugepage")


class LargePages:
    """Large pages for this process's heap; does nothing where the kernel has none or may not."""

    def __init__(self, kernel: Path = _SETTING) -> None:
        self._size = _page_bytes(kernel)
        self._seen_bytes = _resident_bytes() if self._size else 0

    def keep_up(self, now: float) -> None:
        """Looks again where the process has grown; `now` is as of any periodic check."""
        del now
        try:
            if self._size and _resident_bytes() - self._seen_bytes >= STEP_BYTES:
                self.join()
        except OSError as error:
            self._size = 0
            log.info("memory stays in small pages: %s", error)

    def join(self) -> None:
        """Joins the pages there are, which takes about a millisecond for each MB that is not joined yet."""
        if not self._size:
            return
        libc = ctypes.CDLL(None, use_errno=True)
        for start, end in areas(Path("/proc/self/smaps").read_text().splitlines(), self._size):
            for advice in (_MADV_HUGEPAGE, _MADV_COLLAPSE):
                if libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), advice):
                    log.debug("madvise(%#x, %d): %s", start, advice, os.strerror(ctypes.get_errno()))
        self._seen_bytes = _resident_bytes()


def areas(smaps: Iterable[str], size: int) -> Iterator[tuple[int, int]]:
    """Yields the addresses of what is worth joining to pages of `size` bytes, from lines of /proc/PID/smaps."""
    found: tuple[int, int] | None = None
    resident = 0
    for line in smaps:
        if area := _AREA.match(line):
            found = int(area[1], 16), int(area[2], 16)
        elif found is None:
            continue
        elif line.startswith("Rss:"):
            resident = int(line.split()[1]) * 1024
        elif line.startswith("AnonHugePages:"):
            start, end = -(-found[0] // size) * size, found[1] // size * size
            is_joined = int(line.split()[1]) * 1024 >= end - start
            if not is_joined and resident >= (found[1] - found[0]) * _USED_SHARE:
                yield start, end
            found = None


def _page_bytes(kernel: Path) -> int:
    """Of a large page; 0: there are none."""
    try:
        if "[never]" in (kernel / "enabled").read_text():
            return 0
        return int((kernel / "hpage_pmd_size").read_text())
    except (OSError, ValueError):
        return 0


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
