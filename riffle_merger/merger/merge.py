"""One merge from its inputs to the published file, in the thread that calls it and one that reads ahead."""

import contextlib
import mmap
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from riffle_merger.format.errors import FormatError
from riffle_merger.format.merged import MergedIndex, is_safe_name
from riffle_merger.merger.errors import Cancelled, MergeError, NotMergeable
from riffle_merger.merger.files import Output, open_inputs
from riffle_merger.merger.pool import BufferPool
from riffle_merger.merger.window import WRITE_BYTES, Counts, Input, Window, Windows

#: inputs of one merge: each keeps a file open, and more than this makes reads small again
INPUTS_MAX = 1000


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


def buffers_for(inputs: int, data_bytes: int, pool: BufferPool) -> int:
    """How many buffers a merge takes: one per input and the write buffer's, less where little is to be merged, and
    never more than there are; at least two, one being read while the other is written."""
    size = pool.buffer_bytes
    wanted = inputs + -(-WRITE_BYTES // size)
    return max(2, min(wanted, 2 * -(-data_bytes // size), pool.count))


def merge(
    order: MergeOrder,
    pool: BufferPool,
    buffers: int,
    *,
    reader: Executor,
    is_cancelled: Callable[[], bool],
    counts: Counts | None = None,
) -> Merged:
    """Blocking. `reader` runs one call at a time for this merge. Raises MergeError and its kinds.

    `counts` grows with each request to the disk, for whoever wants to see that it moves.
    """
    check_map_ids(order.map_ids)
    counts = counts or Counts()
    with contextlib.ExitStack() as stack:
        inputs, home = open_inputs(stack, order.folders, order.map_ids, counts)
        length = sum(entry.part_length for source in inputs for entry in source.index)
        output = Output(home, order.name, length, disk_max_percent=order.disk_max_percent)
        stack.callback(output.close)
        taken = pool.take(buffers)
        try:
            windows = Windows(inputs, counts)
            written = 0
            for window in _read_ahead(windows, taken, reader, is_cancelled):
                for views in windows.checked(window):
                    written += output.write(views, written, counts, sync=order.sync)
                    del views
                del window
        finally:
            pool.give_back(taken)
        if is_cancelled():
            raise Cancelled("cancelled")
        index = _index(order, inputs, windows.checksums)
        output.publish(index, counts, sync=order.sync)
        return Merged(output.path, length, index.partitions, counts.reads, counts.writes)


def _read_ahead(
    windows: Windows, buffers: list[mmap.mmap], reader: Executor, is_cancelled: Callable[[], bool]
) -> Iterator[Window]:
    """Window after window; while the caller works on one, the next is read, and the disk knows of the one after."""
    middle = len(buffers) // 2
    halves = (buffers[:middle], buffers[middle:])
    turn = 0

    def read(window: Window | None, following: Sequence[mmap.mmap]) -> tuple[Window, Window | None] | None:
        """A window, filled, and the next one, to be read into buffers that may still be in use."""
        if window is None:
            return None
        ahead = advised(following)
        windows.read(window)
        return window, ahead

    def advised(following: Sequence[mmap.mmap]) -> Window | None:
        window = windows.plan(following)
        if window is not None:
            windows.advise(window)
        return window

    pending = reader.submit(read, advised(halves[0]), halves[1])
    try:
        while done := pending.result():
            if is_cancelled():
                raise Cancelled("cancelled")
            window, ahead = done
            pending = reader.submit(read, ahead, halves[turn])
            turn = 1 - turn
            yield window
            del done, window, ahead
    finally:
        pending.exception()  # nobody may read into a buffer that is given back


def _index(order: MergeOrder, inputs: Sequence[Input], checksums: Sequence[int]) -> MergedIndex:
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
