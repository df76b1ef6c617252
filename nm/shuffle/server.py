"""The shuffle service: Hadoop's ShuffleHandler protocol over HTTP/1.1, bytes from file to socket by sendfile.

It has a thread and an event loop of its own. So a read from a slow disk delays other fetches and nothing else of the
node; a connection whose answer is long moves to one of a few sending threads until the answer is out.
"""

import asyncio
import logging
import socket
import threading
import time
import traceback
from collections.abc import Callable

from nm.shuffle.answer import Answer
from nm.shuffle.connection import Connection
from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.limits import MergedLimits, ShuffleLimits
from nm.shuffle.merged.kept import KeptSegments
from nm.shuffle.merged.outputs import MergedOutputs
from nm.shuffle.merged.segment import MergedFile
from nm.shuffle.outputs import MapOutputs
from nm.shuffle.request import RequestRefused
from nm.shuffle.rooms import planned_answers, unfinished_heads
from nm.shuffle.senders import Senders
from nm.shuffle.serving import Client
from nm.shuffle.statistics import JobCounts, ShuffleStatistics
from yaqd.ipc.limits import PeerLog, affordable_connections

log = logging.getLogger(__name__)

_SENDERS = 2
_UNLIMITED_CONNECTIONS = 10_000
_BACKLOG = 1024
#: clients that have their first turn before others have their next
_ACCEPTED_MAX = 32
#: of a fault, in the log
_TRACE_CHARS_MAX = 4000


class ShuffleService:
    """Binds at construction, serves between `start` and `stop`."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        jobs: ShuffleJobs,
        outputs: MapOutputs,
        limits: ShuffleLimits,
        merging: MergedLimits = MergedLimits(),
    ) -> None:
        """Raises OSError when the port cannot be had."""
        self.jobs = jobs
        self.outputs = outputs
        self.limits = limits
        kept = KeptSegments(bytes_max=merging.kept_bytes, age_max_s=merging.kept_s, now=time.monotonic)
        self.merged = MergedOutputs(outputs, kept, index_cache_bytes=merging.index_cache_bytes)
        self.statistics = ShuffleStatistics()
        self.unfinished = unfinished_heads()
        self.planned = planned_answers()
        self._refusals = PeerLog(log)
        self._faults = PeerLog(log, level=logging.ERROR)
        self._connections: set[Client] = set()
        # each may hold a second descriptor, of the file that it sends
        self._connections_max = affordable_connections(2 * (limits.connections_max or _UNLIMITED_CONNECTIONS)) // 2
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._listener.setblocking(False)
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # handed down to every client's
        self.port: int = self._listener.getsockname()[1]
        self.loop: asyncio.AbstractEventLoop = asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self._run, name="shuffle", daemon=True)
        self.senders = Senders(_SENDERS)

    def start(self) -> None:
        self.senders.start()
        self._thread.start()

    def stop(self) -> None:
        """Closes every connection; returns when the threads have ended."""
        self.senders.stop()
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
        self.senders.close()
        self._listener.close()

    def forget_job(self, job_id: str) -> None:
        """Forgets a job whose outputs are about to be deleted. From any thread."""
        self._in_loop(lambda: self._forget_job(job_id))

    def publish(self, job_id: str, file: MergedFile) -> None:
        """Lets a merged file be served from. From any thread."""
        self._in_loop(lambda: self.merged.publish(job_id, file))

    def sent(self, sent_bytes: int, answer: Answer) -> None:
        """Counts what an answer took, whether or not it came to its end."""
        self.statistics.sent_bytes += sent_bytes
        of_job = self.statistics.of_jobs.get(answer.job_id)
        if of_job is not None:
            of_job.reads.include(answer.counts)
        self.statistics.reads.take(answer.counts)

    def closed(self, connection: Client, sent_bytes: int, answer: Answer) -> None:
        """Forgets a connection, and counts what was sent of an answer that did not come to its end."""
        self._connections.discard(connection)
        self.sent(sent_bytes, answer)
        self.statistics.connections = len(self._connections)

    def refused(self, peer: str, refusal: RequestRefused) -> None:
        """Logs it, one line per peer and minute."""
        self._refusals.warn(peer, self.loop.time(), "shuffle request of %s refused: %s", peer, refusal)

    def blame(self, error: Exception, peer: str) -> None:
        """Logs a fault of ours that the peer has found, one trace per peer and minute. From any thread."""
        trace = "".join(traceback.format_exception(error))[:_TRACE_CHARS_MAX]
        text = "shuffle request of %s failed\n%s"
        if threading.current_thread() is self._thread:  # now: a client that comes again at once is served before later
            self._faults.warn(peer, self.loop.time(), text, peer, trace)
        else:
            self._in_loop(lambda: self._faults.warn(peer, self.loop.time(), text, peer, trace))

    def asked(self, job_id: str, segments: int) -> None:
        """Counts a request that is going to be answered."""
        self.statistics.requests += 1
        self.statistics.segments += segments
        self.statistics.of_jobs.setdefault(job_id, JobCounts()).segments += segments

    def _forget_job(self, job_id: str) -> None:
        self.statistics.of_jobs.pop(job_id, None)
        self.merged.forget_job(job_id)
        self.outputs.forget_job(job_id)

    def _in_loop(self, work: Callable[[], None]) -> None:
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(work)

    def _run(self) -> None:
        self.loop.add_reader(self._listener, self._accept)
        self._sweep()
        self.loop.run_forever()
        for connection in list(self._connections):
            connection.close()
        self.loop.remove_reader(self._listener)
        self.outputs.close()
        self.loop.close()

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_MAX):
            try:
                client, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                log.warning("shuffle connections not accepted for a second: %s", error)
                self.loop.remove_reader(self._listener)
                self.loop.call_later(1.0, self.loop.add_reader, self._listener, self._accept)
                return
            if len(self._connections) >= 2 * self._connections_max + 16:
                client.close()  # not even room to say so
                continue
            client.setblocking(False)
            is_over_limit = len(self._connections) >= self._connections_max
            connection = Connection(self, client, str(address[0]), is_over_limit=is_over_limit)
            self._connections.add(connection)
            self.statistics.connections = len(self._connections)
            connection.read()

    def _sweep(self) -> None:
        self.merged.sweep()
        now = self.loop.time()
        for connection in list(self._connections):
            if connection.overdue(now):
                connection.close_from_service()
            else:
                connection.lighten()
        self.loop.call_later(min(1.0, self.limits.keep_alive_timeout_s / 2), self._sweep)
