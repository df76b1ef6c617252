"""Which map outputs to fetch next, from where, and when to try again. No I/O, no clock: `now` comes in, batches come
out.

One request at a time goes to a host, for many map outputs of it at once; hosts that fail are left alone for a while,
longer each time. A map output that failed stays planned until it is withdrawn or has used up its tries. The job manager
may be slow to rerun the map.
"""

from dataclasses import dataclass, field
from itertools import islice


@dataclass(frozen=True, slots=True)
class MapLocation:
    """Where a finished map attempt's output can be had."""

    #: Number of the map task; two attempts of one task have the same output.
    map_index: int
    attempt: str
    host: str
    port: int
    #: Name of the merged file there that has it; outputs of one name are asked for together. "" if it has none.
    merged: str = ""


@dataclass(frozen=True, slots=True)
class FetchSettings:
    #: Requests in progress at once, each on its own thread and to its own host
    #: (mapreduce.reduce.shuffle.parallelcopies).
    parallel_copies: int = 5
    #: Map outputs asked for in one request; a stock service takes 20 from its own reducers.
    maps_per_request: int = 20
    #: Of one merged file as many, in one request: only services that merge have such files, and they take them.
    merged_per_request: int = 200
    connect_timeout_s: float = 10.0
    #: Longest silence in the middle of a response.
    read_timeout_s: float = 60.0
    #: A host that failed is tried again after this, then twice as long each time, up to the maximum.
    retry_delay_s: float = 0.5
    retry_delay_max_s: float = 30.0
    #: After so many failures of one attempt's output the reducer gives up.
    tries_max: int = 10


@dataclass(frozen=True, slots=True)
class Batch:
    """One request: outputs of one host, all of one merged file or none of any."""

    host: str
    port: int
    locations: tuple[MapLocation, ...]


@dataclass(slots=True)
class _Host:
    pending: dict[str, MapLocation] = field(default_factory=dict)
    busy: bool = False
    #: Not to be asked before this time, in the caller's clock.
    not_before: float = 0.0
    failures: int = 0


class FetchPlan:
    """Invariant: an attempt is pending at one host or in one batch in progress, and never after its map is done."""

    def __init__(self, maps: int, settings: FetchSettings) -> None:
        self.maps = maps
        self._settings = settings
        self._hosts: dict[tuple[str, int], _Host] = {}
        self._done: set[int] = set()
        self._withdrawn: set[str] = set()
        self._tries: dict[str, int] = {}
        self._in_progress: dict[str, MapLocation] = {}

    @property
    def done(self) -> int:
        """Maps whose output is here."""
        return len(self._done)

    @property
    def is_complete(self) -> bool:
        return len(self._done) >= self.maps

    def add(self, location: MapLocation) -> None:
        """Note that a map attempt finished."""
        if location.map_index in self._done or location.attempt in self._in_progress:
            return
        self._withdrawn.discard(location.attempt)
        self._host(location).pending[location.attempt] = location

    def withdraw(self, attempt: str) -> None:
        """Note that an attempt's output is gone; another attempt of the map will come."""
        self._withdrawn.add(attempt)
        for host in self._hosts.values():
            host.pending.pop(attempt, None)

    def skip(self, map_index: int) -> None:
        """Note that a map has failed for good: nothing of it comes any more."""
        self._done.add(map_index)

    def next_batch(self, now: float) -> Batch | None:
        """Return a request to make now, or None.

        Report its outcome with `succeeded`, `failed` and at last `finished`.
        """
        for (name, port), host in self._hosts.items():
            if host.busy or not host.pending or host.not_before > now:
                continue
            chosen = self._chosen(host)
            for location in chosen:
                del host.pending[location.attempt]
            wanted = tuple(location for location in chosen if location.map_index not in self._done)
            if not wanted:
                continue
            self._in_progress.update((location.attempt, location) for location in wanted)
            host.busy = True
            return Batch(name, port, wanted)
        return None

    def _chosen(self, host: _Host) -> list[MapLocation]:
        """The next to ask for together: what the first of them is merged with, in the order of the merged file."""
        merged = next(iter(host.pending.values())).merged
        most = self._settings.merged_per_request if merged else self._settings.maps_per_request
        return list(islice((location for location in host.pending.values() if location.merged == merged), most))

    def is_in_progress(self, location: MapLocation) -> bool:
        """Return whether a request under way is still to bring it."""
        return location.attempt in self._in_progress

    def next_time(self) -> float | None:
        """Return when a host that waits may be asked again; None if nothing waits for time alone."""
        times = [host.not_before for host in self._hosts.values() if host.pending and not host.busy]
        return min(times) if times else None

    def succeeded(self, location: MapLocation) -> bool:
        """Note that the output is here. Returns False if it is not wanted: its map was done already."""
        self._in_progress.pop(location.attempt, None)
        if location.map_index in self._done:
            return False
        self._done.add(location.map_index)
        self._host(location).failures = 0
        return True

    def failed(self, location: MapLocation) -> int:
        """Note that the output could not be had. Returns how often that has happened by now."""
        self._in_progress.pop(location.attempt, None)
        tries = self._tries[location.attempt] = self._tries.get(location.attempt, 0) + 1
        self._put_back(location)
        return tries

    def finished(self, batch: Batch, now: float, *, failed: bool, retry_after_s: float = 0.0) -> None:
        """Note that the request is over; what it neither brought nor failed is asked for again."""
        host = self._hosts[batch.host, batch.port]
        host.busy = False
        for location in batch.locations:
            if self._in_progress.pop(location.attempt, None) is not None:
                self._put_back(location)
        if failed:
            settings = self._settings
            delay = min(settings.retry_delay_s * 2.0**host.failures, settings.retry_delay_max_s)
            host.failures = min(host.failures + 1, 30)
            host.not_before = now + max(delay, retry_after_s)

    def _put_back(self, location: MapLocation) -> None:
        if location.map_index not in self._done and location.attempt not in self._withdrawn:
            self._host(location).pending[location.attempt] = location

    def _host(self, location: MapLocation) -> _Host:
        return self._hosts.setdefault((location.host, location.port), _Host())
