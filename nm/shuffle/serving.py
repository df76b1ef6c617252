"""What the shuffle service and its clients' connections know of each other."""

import asyncio
from typing import Protocol

from nm.shuffle.answer import Answer
from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.limits import ShuffleLimits
from nm.shuffle.merged.outputs import MergedOutputs
from nm.shuffle.outputs import MapOutputs
from nm.shuffle.request import RequestRefused
from nm.shuffle.rooms import SharedRoom
from nm.shuffle.senders import Senders
from nm.shuffle.statistics import ShuffleStatistics


class Client(Protocol):
    """A connection, as the service sees it."""

    def close(self) -> None: ...
    def close_from_service(self) -> None: ...
    def overdue(self, now: float) -> bool: ...
    def lighten(self) -> None: ...


class Service(Protocol):
    """The service, as a connection sees it."""

    loop: asyncio.AbstractEventLoop
    port: int
    limits: ShuffleLimits
    jobs: ShuffleJobs
    outputs: MapOutputs
    merged: MergedOutputs
    statistics: ShuffleStatistics
    senders: Senders
    unfinished: SharedRoom
    planned: SharedRoom

    def asked(self, job_id: str, segments: int) -> None: ...
    def sent(self, sent_bytes: int, answer: Answer) -> None: ...
    def closed(self, connection: Client, sent_bytes: int, answer: Answer) -> None: ...
    def refused(self, peer: str, refusal: RequestRefused) -> None: ...
    def blame(self, error: Exception, peer: str) -> None: ...
