"""From the job manager's list of map outputs to a filled `ReduceInput`.

The list is followed while fetching goes on: a map that ran again withdraws its former output. What cannot be fetched is
reported, so that the job manager can have the map run again.
"""

import os
import queue
from collections.abc import Callable, Iterable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs that a task fetches a part of."""

    many: int
    part: int
    #: of how many
    parts: int
    #: number among them and name of each output that the job manager tells of
    places: Callable[[pb.MapCompletionEvent], Iterable[tuple[int, str]]]


def outputs_of_maps(attempt: TaskAttempt) -> Outputs:
    """Return those of all maps of a MapReduce job."""
    return Outputs(
        attempt.description.inputs,
        attempt.index,
        attempt.spec.reduces,
        lambda event: ((event.attempt.index, event.attempt_id),),
    )


def fetch_all(
    attempt: TaskAttempt, sink: ReduceInput, client: BlockingRpcClient, secret: bytes, outputs: Outputs
) -> None:
    """Return when every output's segment is here. Raises FetchFailed, NoLongerWanted."""
    refs: dict[str, pb.AttemptRef] = {}
    failures: queue.SimpleQueue[FetchFailure] = queue.SimpleQueue()
    fetcher = _fetcher(attempt, sink, secret, failures, outputs)
    seen = 0
    try:
        while not fetcher.wait(0 if len(refs) < outputs.many else _FETCH_WAIT_S):
            wait_ms = _EVENTS_WAIT_MS if len(refs) < outputs.many else 0
            seen += _follow(attempt, fetcher, client, refs, seen, wait_ms, outputs)
            _report(attempt, client, failures, refs)
            attempt.moved(fetcher.progress() / 3)
    finally:
        fetcher.close()


def _fetcher(
    attempt: TaskAttempt,
    sink: ReduceInput,
    secret: bytes,
    failures: "queue.SimpleQueue[FetchFailure]",
    outputs: Outputs,
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
            partition=outputs.part,
            partitions=outputs.parts,
            maps=outputs.many,
            on_failure=failures.put,
            settings=settings,
            counters=attempt.tallies,
            patience_s=attempt.conf.get_duration_ms("yaq.riffle.hdfs.patience-ms", 10_000, minimum=0) / 1000,
        )
    return Fetcher(
        sink,
        job_id=attempt.spec.job_id,
        partition=outputs.part,
        maps=outputs.many,
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
    outputs: Outputs,
) -> int:
    request = pb.GetMapCompletionEventsRequest(attempt=attempt.ref, wait_ms=wait_ms)
    setattr(request, "from", seen)
    response = client.call(TaskUmbilicalProtocol.getMapCompletionEvents, request, idempotent=True)
    if response.stop:
        raise NoLongerWanted(attempt.name)
    fetcher.skip(response.given_up)
    for available, events in groupby(response.events, key=lambda event: event.available):
        came = [(event, *place) for event in events for place in outputs.places(event)]
        if available:
            refs.update((name, event.attempt) for event, _, name in came)
            fetcher.add(*(MapLocation(number, name, e.host, e.port, e.merged) for e, number, name in came))
            continue
        for _, _, name in came:
            refs.pop(name, None)
            fetcher.withdraw(name)
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
