"""Fetching a reducer's segments from files on HDFS: one long read of a merged file, or of an output of one map.

Which attempt lies where is the job manager's list, as with outputs at nodes; what differs is who is asked. A merged
file that is lost or damaged costs its originals, which are there as long as the job. Files that were opened stay known
to the process, for the next reduces that it runs: their end has the index for all of them.
"""

import logging
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import replace
from typing import Final

from riffle_merger.format.errors import FormatError
from riffle_merger.format.output import WriteFailed
from riffle_merger.format.packed import Row
from riffle_merger.remote.reader import PackedFile
from tez_adapter.data.fetch import Fetcher, FetchFailure
from tez_adapter.data.fetchplan import Batch, FetchSettings, MapLocation
from tez_adapter.data.reduceinput import ReduceInput
from tez_adapter.data.shufflehttp import ShuffleError
from yaqd.storage import FileSystem, PathNotFound, StorageError

logger = logging.getLogger(__name__)

#: what a process keeps of the ends of files, bytes
_KEPT_BYTES_MAX: Final = 32 << 20
READS: Final = "SHUFFLE_READS"
#: a DataNode that does not answer is given so long, unless told otherwise
_PATIENCE_S: Final = 10.0
#: between two tries, at most: there is no host that many of them could hurt
_RETRY_MAX_S: Final = 5.0


class OpenFiles:
    """Files by path, those used longest ago closed first. A file is in one thread's hands between `take` and `keep`."""

    def __init__(self, bytes_max: int = _KEPT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._files: OrderedDict[str, PackedFile] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def take(self, path: str) -> PackedFile | None:
        with self._lock:
            found = self._files.pop(path, None)
            if found is not None:
                self._bytes -= found.held_bytes
        return found

    def keep(self, path: str, file: PackedFile) -> None:
        with self._lock:
            former = self._files.pop(path, None)
            closed = [] if former is None else [former]
            self._bytes -= 0 if former is None else former.held_bytes
            self._files[path] = file
            self._bytes += file.held_bytes
            while self._bytes > self._bytes_max:
                _, oldest = self._files.popitem(last=False)
                self._bytes -= oldest.held_bytes
                closed.append(oldest)
        for file in closed:
            file.close()


#: of this process; a task process runs one reduce after the other
_open_files: Final = OpenFiles()


class SharedFetcher(Fetcher):
    """A fetcher for outputs that are files of `folder`. Lanes take the place of hosts: one thread each."""

    def __init__(
        self,
        sink: ReduceInput,
        *,
        files: FileSystem,
        folder: str,
        partition: int,
        partitions: int,
        maps: int,
        on_failure: Callable[[FetchFailure], None],
        settings: FetchSettings | None = None,
        counters: MutableMapping[str, int] | None = None,
        open_files: OpenFiles | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """`patience_s`: how long an output that cannot be read, and is not known to be gone or damaged, is tried before
        it is said to be lost, whereupon its map runs again: who keeps it may only be away."""
        known = settings or FetchSettings()
        super().__init__(
            sink,
            job_id="",
            partition=partition,
            maps=maps,
            secret=b"",
            on_failure=on_failure,
            settings=replace(known, retry_delay_max_s=min(known.retry_delay_max_s, _RETRY_MAX_S)),
            counters=counters,
        )
        self._files, self._folder = files, folder
        self._partitions = partitions
        self._kept = open_files or _open_files
        self._patience_s = patience_s
        #: when an output could not be read for the first time, by its attempt's name
        self._failing_since: dict[str, float] = {}

    def add(self, *locations: MapLocation) -> None:
        super().add(*map(self._in_lane, locations))

    def _in_lane(self, location: MapLocation) -> MapLocation:
        lane = zlib.crc32((location.merged or location.attempt).encode()) % self._settings.parallel_copies
        return MapLocation(location.map_index, location.attempt, f"lane {lane}", 0, location.merged)

    def _fetch(self, batch: Batch) -> None:
        left: Sequence[MapLocation] = batch.locations
        merged = left[0].merged
        if merged:
            try:
                self._read(merged, left)
                return
            except (StorageError, FormatError, IndexError) as error:
                left = [location for location in left if self._is_wanted(location)]
                logger.warning("cannot read a merged file, taking the originals of %d maps: %s", len(left), error)
        failed = None
        for location in left:
            if self._closed:
                return
            try:
                self._read(location.attempt, [location])
            except WriteFailed:
                raise
            except (StorageError, FormatError, IndexError) as error:
                failed = error
                if self._is_lost(location, error):
                    self._report([location], str(error))
        if failed is not None:
            raise ShuffleError(str(failed))

    def _is_lost(self, location: MapLocation, error: Exception) -> bool:
        if not isinstance(error, StorageError) or isinstance(error, PathNotFound):
            return True
        now = time.monotonic()
        with self._changed:
            since = self._failing_since.setdefault(location.attempt, now)
        return now - since >= self._patience_s

    def _is_wanted(self, location: MapLocation) -> bool:
        with self._changed:
            return self._plan.is_in_progress(location)

    def _read(self, name: str, wanted: Sequence[MapLocation]) -> None:
        """Take these maps' segments out of a file, in the order in which they lie there."""
        path = f"{self._folder}/{name}"
        file = self._kept.take(path)
        is_fresh = file is None
        try:
            if file is None:
                file = PackedFile(self._files, path, maps=len(wanted), partitions=self._partitions)
                self._count(READS, file.reads)
            self._take(file, wanted)
        except WriteFailed:
            raise
        except (StorageError, FormatError, IndexError):
            if file is not None:
                file.close()
            if is_fresh:
                raise
            # where its blocks lie may have changed since it was opened
            left = [location for location in wanted if self._is_wanted(location)]
            if left:
                self._read(name, left)
            return
        self._kept.keep(path, file)

    def _take(self, file: PackedFile, wanted: Sequence[MapLocation]) -> None:
        before = file.reads
        row = file.row(self._partition)
        of_attempt = {location.attempt: location for location in wanted}
        missing = of_attempt.keys() - set(file.maps)
        if missing:
            raise StorageError(f"{file.footer.name} has no map output {missing.pop()}")
        first, start, length = _extent(file, row, of_attempt)
        pieces = _Pieces(file.stream(start, length))
        for attempt, size, checksum in list(zip(file.maps, row.lengths, row.checksums, strict=True))[first:]:
            if self._closed:
                break
            location = of_attempt.pop(attempt, None)
            if location is None:
                pieces.skip(size)
            else:
                self._accept(location, self._sink.receive(attempt, size, pieces, checksum=checksum))
            if not of_attempt:
                break
        pieces.close()
        self._count(READS, file.reads - before)

    def _count(self, name: str, amount: int) -> None:
        with self._changed:
            self._counters[name] = self._counters.get(name, 0) + amount


def _extent(file: PackedFile, row: Row, wanted: MutableMapping[str, MapLocation]) -> tuple[int, int, int]:
    """Number of the first wanted map in the file, and where the bytes of all wanted begin and how many they span."""
    numbers = [number for number, name in enumerate(file.maps) if name in wanted]
    first, last = numbers[0], numbers[-1]
    return first, row.offset + sum(row.lengths[:first]), sum(row.lengths[first : last + 1])


class _Pieces:
    """The body of one segment after the other, out of pieces as they come."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readinto(self, buffer: memoryview, /) -> int:
        done = 0
        while done < len(buffer):
            part = self._next(len(buffer) - done)
            buffer[done : done + len(part)] = part
            done += len(part)
        return done

    def skip(self, length: int) -> None:
        while length:
            length -= len(self._next(length))

    def close(self) -> None:
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()

    def _next(self, most: int) -> memoryview:
        """At least one byte."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                raise StorageError("the file ends early")
            self._rest = memoryview(piece)
        part, self._rest = self._rest[:most], self._rest[most:]
        return part
