"""From the job manager's list of map outputs to a filled `ReduceInput`.

The list is followed while fetching goes on: a map that ran again withdraws its former output. What cannot be fetched is
reported, so that the job manager can have the map run again.
"""

import os
import queue
from itertools import groupby

from tez_adapter.data import ReduceInput
from tez_adapter.data.fetch import Fetcher, FetchFailure
from tez_adapter.data.fetchplan import FetchSettings, MapLocation
from tez_adapter.protocol import SHARED_FOLDER, TaskUmbilicalProtocol
from tez_adapter.tasks.attempt import TaskAttempt
from yaqd.ipc import BlockingRpcClient
from yaqd.proto import job_pb2 as pb

_EVENTS_WAIT_MS = 500
_FETCH_WAIT_S = 0.2


class NoLongerWanted(Exception):
    """The job manager has given up on this attempt."""


def fetch_all(attempt: TaskAttempt, sink: ReduceInput, client: BlockingRpcClient, secret: bytes) -> None:
    """Return when every map's segment is here. Raises FetchFailed, NoLongerWanted."""
    refs: dict[str, pb.AttemptRef] = {}
    failures: queue.SimpleQueue[FetchFailure] = queue.SimpleQueue()
    fetcher = _fetcher(attempt, sink, secret, failures)
    seen = 0
    try:
        while not fetcher.wait(0 if len(refs) < attempt.description.inputs else _FETCH_WAIT_S):
            is_waiting_for_maps = len(refs) < attempt.description.inputs
            seen += _follow(attempt, fetcher, client, refs, seen, _EVENTS_WAIT_MS if is_waiting_for_maps else 0)
            _report(attempt, client, failures, refs)
            attempt.moved(fetcher.progress() / 3)
    finally:
        fetcher.close()


def _fetcher(
    attempt: TaskAttempt, sink: ReduceInput, secret: bytes, failures: "queue.SimpleQueue[FetchFailure]"
) -> Fetcher:
    settings = FetchSettings(
        parallel_copies=attempt.conf.get_int("mapreduce.reduce.shuffle.parallelcopies", 2, minimum=1)
    )
    folder = os.environ.get(SHARED_FOLDER)
    if folder is not None:
        from tez_adapter.data.sharedfetch import SharedFetcher
        from yaqd.storage import get_filesystem

        return SharedFetcher(
            sink,
            files=get_filesystem(folder, attempt.conf),
            folder=folder,
            partition=attempt.index,
            partitions=attempt.spec.reduces,
            maps=attempt.description.inputs,
            on_failure=failures.put,
            settings=settings,
            counters=attempt.tallies,
            patience_s=attempt.conf.get_duration_ms("yaq.riffle.hdfs.patience-ms", 10_000, minimum=0) / 1000,
        )
    return Fetcher(
        sink,
        job_id=attempt.spec.job_id,
        partition=attempt.index,
        maps=attempt.description.inputs,
        secret=secret,
        on_failure=failures.put,
        local_dirs=[p for p in os.environ.get("LOCAL_DIRS", "").split(",") if p],
        settings=settings,
        counters=attempt.tallies,
    )


def _follow(
    attempt: TaskAttempt,
    fetcher: Fetcher,
    client: BlockingRpcClient,
    refs: dict[str, pb.AttemptRef],
    seen: int,
    wait_ms: int,
) -> int:
    request = pb.GetMapCompletionEventsRequest(attempt=attempt.ref, wait_ms=wait_ms)
    setattr(request, "from", seen)
    response = client.call(TaskUmbilicalProtocol.getMapCompletionEvents, request, idempotent=True)
    if response.stop:
        raise NoLongerWanted(attempt.name)
    fetcher.skip(response.given_up)
    for available, events in groupby(response.events, key=lambda event: event.available):
        if available:
            came = list(events)
            refs.update((event.attempt_id, event.attempt) for event in came)
            fetcher.add(*(MapLocation(e.attempt.index, e.attempt_id, e.host, e.port, e.merged) for e in came))
            continue
        for event in events:
            refs.pop(event.attempt_id, None)
            fetcher.withdraw(event.attempt_id)
    return len(response.events)


def _report(
    attempt: TaskAttempt,
    client: BlockingRpcClient,
    failures: "queue.SimpleQueue[FetchFailure]",
    refs: dict[str, pb.AttemptRef],
) -> None:
    while not failures.empty():
        failure = failures.get()
        ref = refs.get(failure.location.attempt)
        if ref is not None:
            request = pb.FetchFailedRequest(attempt=attempt.ref, sources=[ref], reason=failure.reason[:1000])
            client.call(TaskUmbilicalProtocol.fetchFailed, request, idempotent=True)
