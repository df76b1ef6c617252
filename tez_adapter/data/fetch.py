"""Fetching a reducer's segments: a few threads over the fetch plan, HTTP to other nodes, plain files on this one.

Threads, because a task process has no event loop, blocking sockets cost least per byte, and the checksum releases the
interpreter lock.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from riffle_merger.format.errors import FormatError
from riffle_merger.format.index import SpillIndex
from riffle_merger.format.output import INDEX_NAME, OUTPUT_NAME, WriteFailed
from tez_adapter.data.fetchplan import Batch, FetchPlan, FetchSettings, MapLocation
from tez_adapter.data.localmerged import LocalMerged
from tez_adapter.data.reduceinput import ReduceInput, Segment
from tez_adapter.data.shufflehttp import OutputsLost, ShuffleError, request, url_path

logger = logging.getLogger(__name__)

#: A waiting thread looks around this often, whatever happens.
_WAIT_MAX_S = 5.0


@dataclass(frozen=True, slots=True)
class FetchFailure:
    """One failed try at one map output, for the job manager."""

    location: MapLocation
    reason: str
    #: Failures of this attempt's output so far, this one included.
    tries: int


class FetchFailed(Exception):
    """This reducer cannot get its input."""


class Fetcher:
    """Brings all maps' segments of one partition into a `ReduceInput`.

    Tell it of finished maps with `add` (in any order, at any time) and of lost ones with `withdraw`; `wait` until it
    is complete. `on_failure` is called on a fetching thread for every failed try and must be quick. `local_dirs` are
    this container's LOCAL_DIRS: what lies there is read in place. `close` ends the threads; it may be called at any
    time.
    """

    def __init__(
        self,
        sink: ReduceInput,
        *,
        job_id: str,
        partition: int,
        maps: int,
        secret: bytes,
        on_failure: Callable[[FetchFailure], None],
        local_dirs: Sequence[str] = (),
        settings: FetchSettings | None = None,
        counters: MutableMapping[str, int] | None = None,
    ) -> None:
        self._sink = sink
        self._job_id = job_id
        self._partition = partition
        self._secret = secret
        self._on_failure = on_failure
        self._local_dirs = [Path(folder) for folder in local_dirs]
        self._merged = LocalMerged(self._local_dirs)
        self._settings = settings or FetchSettings()
        self._counters: MutableMapping[str, int] = sink.counters if counters is None else counters
        self._plan = FetchPlan(maps, self._settings)
        self._changed = threading.Condition()
        self._closed = False
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._sockets: set[socket.socket] = set()

    def add(self, *locations: MapLocation) -> None:
        """Note that map attempts finished and their outputs can be fetched.

        Those of one merged file are fetched together if they come together.
        """
        with self._changed:
            for location in locations:
                self._plan.add(location)
                self._start_thread()
            self._changed.notify(len(locations))

    def withdraw(self, attempt: str) -> None:
        """Withdraw an attempt's output, which is no longer to be had; a location of another attempt will follow."""
        with self._changed:
            self._plan.withdraw(attempt)

    def skip(self, maps: Iterable[int]) -> None:
        """Skip maps that have failed for good: the job does without them."""
        with self._changed:
            for index in maps:
                self._plan.skip(index)

    def wait(self, timeout_s: float) -> bool:
        """Wait until all is here; False when the time is over first. FetchFailed, or WriteFailed from a full disk."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not self._plan.is_complete and self._error is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            if self._error is not None:
                raise self._error
            return True

    def progress(self) -> float:
        """Return the share of maps whose output is here, 0 to 1."""
        return self._plan.done / self._plan.maps if self._plan.maps else 1.0

    def close(self) -> None:
        """End the threads, cutting the requests in progress."""
        with self._changed:
            self._closed = True
            for connection in self._sockets:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _start_thread(self) -> None:
        if len(self._threads) < self._settings.parallel_copies and not self._closed:
            name = f"fetcher-{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            retry_after_s, failed = 0.0, True
            try:
                self._fetch(batch)
                failed = False
            except WriteFailed as error:
                self._fail(error)
            except ShuffleError as error:
                retry_after_s = error.retry_after_s
            except (OSError, FormatError):
                pass  # reported where it happened
            except BaseException as error:
                self._fail(error)
            with self._changed:
                self._plan.finished(batch, time.monotonic(), failed=failed, retry_after_s=retry_after_s)
                self._changed.notify_all()

    def _next_batch(self) -> Batch | None:
        with self._changed:
            while not self._closed and not self._plan.is_complete and self._error is None:
                now = time.monotonic()
                batch = self._plan.next_batch(now)
                if batch is not None:
                    return batch
                at = self._plan.next_time()
                self._changed.wait(_WAIT_MAX_S if at is None else min(_WAIT_MAX_S, max(at - now, 0.001)))
            return None

    def _fetch(self, batch: Batch) -> None:
        remote = [location for location in batch.locations if not self._fetch_local(location)]
        if remote:
            self._ask(batch, remote)

    def _ask(self, batch: Batch, remote: list[MapLocation]) -> None:
        """One request for these, which their host has."""
        attempts = [location.attempt for location in remote]
        settings = self._settings
        suspects = remote  # until the head of the answer is here, the failure is the whole host's
        try:
            with request(
                (batch.host, batch.port),
                url_path(self._job_id, self._partition, attempts, remote[0].merged),
                self._secret,
                connect_timeout_s=settings.connect_timeout_s,
                read_timeout_s=settings.read_timeout_s,
                on_connected=self._connected,
            ) as response:
                segments = response.segments(self._partition, attempts)
                awaited = {location.attempt: location for location in remote}
                while awaited:
                    suspects = [next(iter(awaited.values()))]
                    name, length, body = next(segments)
                    location = awaited.pop(name)
                    suspects = [location]
                    self._accept(location, self._sink.receive(name, length, body))
        except WriteFailed:
            raise
        except (ShuffleError, OSError, FormatError) as error:
            if isinstance(error, ShuffleError) and error.lacks_some and len(remote) > 1:
                self._ask_one_by_one(batch, remote)  # the others are not lost
                return
            if isinstance(error, OutputsLost):
                suspects = [location for location in remote if location.attempt in error.attempts]
            if not (isinstance(error, ShuffleError) and error.retry_after_s):  # busy is not broken
                self._report(suspects, f"{batch.host}:{batch.port}: {error}")
            raise

    def _ask_one_by_one(self, batch: Batch, remote: list[MapLocation]) -> None:
        failed = None
        for location in remote:
            if self._closed:
                return
            try:
                self._ask(batch, [location])
            except ShuffleError as error:
                if not error.lacks_some:
                    raise
                failed = error
        if failed is not None:
            raise failed

    def _connected(self, connection: socket.socket) -> None:
        with self._changed:
            self._sockets = {s for s in self._sockets if s.fileno() >= 0} | {connection}
            if self._closed:
                connection.close()

    def _fetch_local(self, location: MapLocation) -> bool:
        """Take the output from this node's own disks, if it is there and whole."""
        if location.merged and self._fetch_local_merged(location):
            return True
        if "/" in location.attempt or location.attempt in ("", ".", ".."):
            return False
        for folder in self._local_dirs:
            directory = folder / "output" / location.attempt
            try:
                entry = SpillIndex.load(directory / INDEX_NAME)[self._partition]
                output = directory / OUTPUT_NAME
                segment = self._sink.locate(location.attempt, output, entry.start, entry.part_length)
            except FileNotFoundError:
                continue
            except (OSError, FormatError, IndexError) as error:
                logger.warning("cannot read map output in place, asking its node: %s", error)
                return False
            self._accept(location, segment)
            return True
        return False

    def _fetch_local_merged(self, location: MapLocation) -> bool:
        try:
            found = self._merged.find(location.merged, location.attempt, self._partition)
            if found is None:
                return False
            path, start, length, checksum = found
            segment = self._sink.locate(location.attempt, path, start, length, checksum=checksum)
        except (OSError, FormatError) as error:
            logger.warning("cannot read merged file in place, taking the original: %s", error)
            return False
        self._accept(location, segment)
        return True

    def _accept(self, location: MapLocation, segment: Segment) -> None:
        """Take the segment into the input, unless another attempt of the map was faster."""
        with self._changed:
            if self._plan.succeeded(location):
                self._sink.accept(segment)
            else:
                self._sink.discard(segment)
            if self._plan.is_complete:
                self._changed.notify_all()

    def _report(self, locations: list[MapLocation], reason: str) -> None:
        if self._closed:
            return
        logger.warning("cannot fetch %s: %s", ", ".join(location.attempt for location in locations), reason)
        for location in locations:
            with self._changed:
                tries = self._plan.failed(location)
                self._counters["FAILED_SHUFFLE"] = self._counters.get("FAILED_SHUFFLE", 0) + 1
            self._on_failure(FetchFailure(location, reason, tries))
            if tries >= self._settings.tries_max:
                self._fail(
                    FetchFailed(f"map output {location.attempt} could not be fetched in {tries} tries: {reason}")
                )

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            if self._error is None:
                self._error = error
            self._changed.notify_all()
