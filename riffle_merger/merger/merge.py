"""One merge from its inputs to the published file, in the thread that calls it and those that read ahead."""

import contextlib
import mmap
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from pathlib import Path

from riffle_merger.format.errors import FormatError
from riffle_merger.format.merged import MAPS_MAX, MergedIndex, is_safe_name, maps_possible
from riffle_merger.merger.errors import Cancelled, MergeError, NotMergeable
from riffle_merger.merger.files import Output, open_inputs
from riffle_merger.merger.pool import BufferPool
from riffle_merger.merger.window import Counts, Input, Window, Windows
from riffle_merger.plan.buffers import buffers_wanted, index_memory

#: inputs of one merge: each keeps a file open, and more than this makes reads small again
INPUTS_MAX = MAPS_MAX
#: threads that read one merge's inputs; two keep a disk busier than one, which copies what has come while none waits
READERS = 2


@dataclass(frozen=True, slots=True)
class MergeOrder:
    """What to merge, and where its job's files are."""

    #: of the merged file; unique in the application's folders
    name: str
    #: the application's folder on each disk
    folders: tuple[Path, ...]
    #: map attempts in the order that they shall have
    map_ids: tuple[str, ...]
    #: wait for the disk before the file appears
    sync: bool = False
    #: no merge makes its disk fuller, percent: the node would take it out of use
    disk_max_percent: float = 100.0


@dataclass(frozen=True, slots=True)
class Merged:
    path: Path
    bytes: int
    partitions: int
    #: requests to the disk, indexes included
    reads: int
    writes: int


def check_map_ids(map_ids: Sequence[str]) -> None:
    """Raises NotMergeable."""
    if not 0 < len(map_ids) <= INPUTS_MAX:
        raise NotMergeable(f"{len(map_ids)} map outputs in one merge, 1 to {INPUTS_MAX} are possible")
    if len(set(map_ids)) != len(map_ids):
        raise NotMergeable("a map output is named twice")
    for map_id in map_ids:
        if not is_safe_name(map_id):
            raise NotMergeable(f"{map_id[:80]!r} is no name of a map attempt")


def buffers_for(inputs: int, data_bytes: int, pool: BufferPool, share: int | None = None) -> int:
    """Returns how many buffers a merge takes: as `buffers_wanted` says, less where little is to be merged.

    They are at most as many as there are. They are at least two, one being read while the other is written. `share`:
    how many are its own while as many merges run as may; None: all.
    """
    size = pool.buffer_bytes
    wanted = buffers_wanted(inputs, pool.count if share is None else share, size)
    return max(2, min(wanted, 2 * -(-data_bytes // size), pool.count))


@dataclass(frozen=True, slots=True)
class Memory:
    """What a merge holds while it runs."""

    buffers: int
    #: of these and of the indexes; what says where a window's pieces go, some 10 MB where these are tiny, is not in it
    bytes: int


def memory_for(
    inputs: int, data_bytes: int, index_bytes: int, pool: BufferPool, budget_bytes: int, at_once: int
) -> Memory:
    """Returns the memory of a merge in a budget of which `at_once` merges have a part each. Raises NotMergeable."""
    for_indexes = index_memory(inputs, index_bytes)
    room = budget_bytes - for_indexes
    if room < budget_bytes // 2:
        raise NotMergeable(f"indexes of {index_bytes} bytes are too large for the merger's memory")
    # with more, a merge would keep another one waiting that could run beside it
    share = max(0, budget_bytes // at_once - for_indexes)
    wanted = buffers_for(inputs, data_bytes, pool, share // pool.buffer_bytes)
    buffers = min(wanted, room // pool.buffer_bytes)
    return Memory(buffers, for_indexes + buffers * pool.buffer_bytes)


def halves(buffers: list[mmap.mmap]) -> tuple[list[mmap.mmap], list[mmap.mmap]]:
    """Cuts the buffers into two halves: one is read while the other is written."""
    middle = len(buffers) // 2
    return buffers[:middle], buffers[middle:]


def merge(
    order: MergeOrder,
    pool: BufferPool,
    buffers: int,
    *,
    reader: Executor,
    is_cancelled: Callable[[], bool],
    counts: Counts | None = None,
) -> Merged:
    """Merges. Blocking. `reader` runs up to READERS calls at a time. Raises MergeError and its kinds.

    `counts` grows with each request to the disk, for whoever wants to see that it moves.
    """
    check_map_ids(order.map_ids)
    counts = counts or Counts()
    with contextlib.ExitStack() as stack:
        inputs, home = open_inputs(stack, order.folders, order.map_ids, counts)
        if len(inputs) > maps_possible(len(inputs[0].index)):  # else it would be found out when all is copied
            raise NotMergeable(f"{len(inputs)} outputs of {len(inputs[0].index)} partitions are too much for an index")
        length = sum(source.index.stored_bytes for source in inputs)
        output = Output(home, order.name, length, disk_max_percent=order.disk_max_percent)
        stack.callback(output.close)
        taken = pool.take(buffers)
        try:
            windows = Windows(inputs, counts)
            for window in _read_ahead(windows, taken, reader, is_cancelled):
                for view in windows.checked(window):
                    output.write(view, counts, sync=order.sync)
                    del view
                output.end_stretch(counts, sync=order.sync)
                del window
        finally:
            pool.give_back(taken)
        if is_cancelled():
            raise Cancelled("cancelled")
        index = _index(order, inputs, windows.checksums)
        output.publish(index, counts, sync=order.sync)
        return Merged(output.path, length, index.partitions, counts.reads, counts.writes)


class _Reading:
    """A window that threads are reading, each its share, while one of them also plans the window after it."""

    def __init__(self, windows: Windows, reader: Executor, window: Window, following: Sequence[mmap.mmap]) -> None:
        """`following`: the buffers for the next window; they may still be in use."""
        self.window = window

        def lead() -> Window | None:
            ahead = _advised(windows, following)
            windows.read(window, 0, READERS)
            return ahead

        self._lead = reader.submit(lead)
        self._others = [reader.submit(windows.read, window, share, READERS) for share in range(1, READERS)]

    def result(self) -> Window | None:
        """The window after it, once it is filled. Raises what reading raised."""
        for other in self._others:
            other.result()
        return self._lead.result()

    def wait(self) -> None:
        """Returns when nobody reads any more."""
        wait([self._lead])
        wait(self._others)


def _advised(windows: Windows, buffers: Sequence[mmap.mmap]) -> Window | None:
    window = windows.plan(buffers)
    if window is not None:
        windows.advise(window)
    return window


def _read_ahead(
    windows: Windows, buffers: list[mmap.mmap], reader: Executor, is_cancelled: Callable[[], bool]
) -> Iterator[Window]:
    """Window after window; while the caller works on one, the next is read, and the disk knows of the one after."""
    first, second = both = halves(buffers)
    turn = 0

    def begin(window: Window | None, following: Sequence[mmap.mmap]) -> _Reading | None:
        return _Reading(windows, reader, window, following) if window is not None else None

    reading = begin(_advised(windows, first), second)
    try:
        while reading is not None:
            ahead = reading.result()
            if is_cancelled():
                raise Cancelled("cancelled")
            window = reading.window
            reading = begin(ahead, both[turn])
            turn = 1 - turn
            yield window
            del window, ahead
    finally:
        if reading is not None:
            reading.wait()  # nobody may read into a buffer that is given back


def _index(order: MergeOrder, inputs: Sequence[Input], checksums: Sequence[Sequence[int]]) -> MergedIndex:
    """Built, then parsed again from its bytes: what is published has been read once as its readers will."""

    def lengths() -> Iterator[Iterator[tuple[int, int]]]:
        for partition in range(len(checksums)):
            entries = (source.index[partition] for source in inputs)
            yield ((entry.raw_length, entry.part_length) for entry in entries)

    try:
        built = MergedIndex.build(order.map_ids, lengths(), checksums, name=order.name)
        return MergedIndex.parse(built.to_bytes(), name=order.name)
    except FormatError as error:
        raise MergeError(str(error)) from None
