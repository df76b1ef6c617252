"""The shuffle service: Hadoop's ShuffleHandler protocol over HTTP/1.1, bytes from file to socket by sendfile.

It has a thread and an event loop of its own, so that a read from a slow disk delays other fetches and nothing else
of the node; a connection whose answer is long moves to one of a few sending threads until the answer is out. Sockets
are handled directly: per segment there is one header and one system call or two, where a general HTTP server would
build a response. Small segments are gathered into one write. A connection serves one request at a time; while it does,
it reads nothing.
"""

import asyncio
import logging
import os
import socket
import threading
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.outputs import MapOutput, MapOutputs, OpenFile, OutputMissing
from nm.shuffle.request import MAX_HEAD_BYTES, PROTOCOL_HEADERS, RequestRefused, ShuffleRequest, parse_request
from nm.shuffle.senders import Senders
from riffle_merger.format import IndexEntry
from yaqd.ipc.limits import PeerLog, affordable_connections
from yaqd.security.writable import encode_text, encode_vint, encode_vlong

log = logging.getLogger(__name__)

_RECEIVE_BYTES = 64 << 10
#: a segment up to this size is copied rather than sent by a call of its own
_COPY_BYTES = 16 << 10
_GATHER_BYTES = 128 << 10
#: what one connection may send before others have their turn
_TURN_BYTES = 4 << 20
#: a longer answer goes out from a sending thread
_OWN_ANSWER_BYTES = _TURN_BYTES
_SENDERS = 2
_UNLIMITED_CONNECTIONS = 10_000
_BACKLOG = 1024
_RETRY_AFTER_MS = 1000
#: of a fault, in the log
_TRACE_CHARS_MAX = 4000


@dataclass(frozen=True, slots=True)
class ShuffleLimits:
    #: connections served at once; more are told to come back
    connections_max: int
    #: keep every connection, not only where the request asks for it
    keep_alive: bool
    keep_alive_timeout_s: float
    #: for a whole request, from its first byte, and for a peer to take some of its answer
    stall_timeout_s: float = 60.0


@dataclass(slots=True)
class ShuffleStatistics:
    connections: int = 0
    requests: int = 0
    refused: int = 0
    segments: int = 0
    sent_bytes: int = 0


class _Connection:
    """One client. Either it waits for a request, or it sends the answer to one.

    One thread at a time deals with it, that of `loop`: the service's own, or a sender's while a long answer goes out.
    """

    def __init__(self, service: "ShuffleService", sock: socket.socket, peer: str, *, is_over_limit: bool) -> None:
        """`peer`: the client's address."""
        self._service = service
        self.loop: asyncio.AbstractEventLoop = service.loop
        self._socket = sock
        self._descriptor = sock.fileno()
        self._awaits_room = False
        self._peer = peer
        self._is_over_limit = is_over_limit
        self._received = bytearray()
        self._pieces: deque[tuple[bytes, MapOutput, IndexEntry]] = deque()
        self._unsent = memoryview(b"")
        self._file: OpenFile | None = None
        self._offset = 0
        self._remaining = 0
        self._is_answering = False
        self._keeps_open = False
        self._is_long = False
        self._sent_bytes = 0
        self._is_closed = False
        #: by the loop's clock: when the connection was made or last moved a byte
        self.progress_at = self.loop.time()
        #: since when a request is awaited: one that comes a byte at a time is not waited for longer than another
        self._awaited_since = self.progress_at
        self.loop.add_reader(self._descriptor, self._readable)

    def overdue(self, now: float) -> bool:
        limits = self._service.limits
        if self._is_answering:
            return now - self.progress_at > limits.stall_timeout_s
        is_idle = not self._received and self._keeps_open
        return now - self._awaited_since > (limits.keep_alive_timeout_s if is_idle else limits.stall_timeout_s)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.loop.remove_reader(self._descriptor)
        self.loop.remove_writer(self._descriptor)
        if self._file is not None:
            self._file.release()
            self._file = None
        self._pieces.clear()
        self._socket.close()
        if self.loop is self._service.loop:
            self._service.closed(self, self._sent_bytes)
        else:
            self._service.loop.call_soon_threadsafe(self._service.closed, self, self._sent_bytes)

    def close_from_service(self) -> None:
        """For the service's thread, whichever thread the connection is with."""
        loop = self.loop
        if loop is self._service.loop:
            self.close()
        else:
            loop.call_soon_threadsafe(self._close_in, loop)

    def _close_in(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.loop is loop:  # else it has just moved on, and is not overdue
            self.close()

    # Request ----------------------------------------------------------------------------------------------------------

    def _readable(self) -> None:
        try:
            chunk = self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return
        self.progress_at = self.loop.time()
        if not self._received:
            self._awaited_since = self.progress_at
        self._received += chunk
        self._next_request()

    def _next_request(self) -> None:
        end = self._received.find(b"\r\n\r\n")
        if end < 0 and len(self._received) <= MAX_HEAD_BYTES:
            return
        self.loop.remove_reader(self._descriptor)
        self._is_answering = True
        try:
            if end < 0 or end > MAX_HEAD_BYTES:
                raise RequestRefused(400, "request too long")
            if self._is_over_limit:
                raise RequestRefused(429, "too many connections", f"Retry-After: {_RETRY_AFTER_MS}\r\n")
            head = bytes(self._received[:end])
            del self._received[: end + 4]
            request = parse_request(head, port=self._service.port, jobs=self._service.jobs)
            self._plan(request)
        except RequestRefused as refusal:
            self._refuse(refusal)
        except Exception as error:  # whatever a request can bring about ends this request alone
            self._service.blame(error, self._peer)
            self._refuse(RequestRefused(400, "this request cannot be served"))
        if self._is_long:
            self._hand_over(self._service.senders.next_loop(), self._continue)
        else:
            self._send()

    def _hand_over(self, loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
        """From here on the thread of `loop` deals with this connection, beginning with `work`; the caller no more."""
        self.loop = loop
        loop.call_soon_threadsafe(work)

    def _plan(self, request: ShuffleRequest) -> None:
        """Looks up every segment before the first byte goes out, since the length of all comes first."""
        service = self._service
        length = 0
        for map_id in request.map_ids:
            try:
                output, entry = service.outputs.segment(request.job, request.job_id, map_id, request.reduce)
            except OutputMissing as error:
                log.warning("shuffle of %s: %s", request.job_id, error)
                raise RequestRefused(500, f"map output of {map_id} is not available") from None
            header = (
                encode_text(map_id)
                + encode_vlong(entry.part_length)
                + encode_vlong(entry.raw_length)
                + encode_vint(request.reduce)
            )
            length += len(header) + entry.part_length
            self._pieces.append((header, output, entry))
        self._is_long = length > _OWN_ANSWER_BYTES
        self._keeps_open = service.limits.keep_alive or request.wants_keep_alive
        keeping = f"keep-alive\r\nKeep-Alive: timeout={service.limits.keep_alive_timeout_s:.0f}"
        self._unsent = memoryview(
            (
                f"HTTP/1.1 200 OK\r\nReplyHash: {request.reply_hash}\r\n{PROTOCOL_HEADERS}"
                f"Content-Length: {length}\r\nConnection: {keeping if self._keeps_open else 'close'}\r\n\r\n"
            ).encode("ascii")
        )
        service.statistics.requests += 1
        service.statistics.segments += len(request.map_ids)

    def _refuse(self, refusal: RequestRefused) -> None:
        if refusal.status < 500:
            self._service.refused(self._peer, refusal)
        self._pieces.clear()
        self._is_long = False
        self._keeps_open = False
        body = refusal.text.encode("utf-8")
        phrase = HTTPStatus(refusal.status).phrase
        self._unsent = memoryview(
            (
                f"HTTP/1.1 {refusal.status} {phrase}\r\nContent-Type: text/plain; charset=UTF-8\r\n{PROTOCOL_HEADERS}"
                f"{refusal.headers}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            ).encode("ascii")
            + body
        )
        self._service.statistics.refused += 1

    # Answer -----------------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Moves bytes until the socket is full, the turn is over or the answer is complete."""
        if self._awaits_room:
            self._awaits_room = False
            self.loop.remove_writer(self._descriptor)
        budget = _TURN_BYTES
        try:
            while budget > 0:
                if len(self._unsent):
                    sent = self._socket.send(self._unsent, socket.MSG_MORE if self._file or self._pieces else 0)
                    self._unsent = self._unsent[sent:]
                elif self._file is not None:
                    sent = self._send_file(self._file)
                elif self._pieces:
                    self._gather()
                    continue
                else:
                    self._answered()
                    return
                budget -= sent
                self._sent_bytes += sent
                self.progress_at = self.loop.time()
        except BlockingIOError:
            self._awaits_room = True
            self.loop.add_writer(self._descriptor, self._send)
            return
        except (OSError, OutputMissing) as error:
            log.info("shuffle connection ended: %s", error)
            self.close()
            return
        except Exception as error:  # as above; what is already sent cannot be taken back
            self._service.blame(error, self._peer)
            self.close()
            return
        self.loop.call_soon(self._continue)

    def _continue(self) -> None:
        if not self._is_closed:
            self._send()

    def _send_file(self, file: OpenFile) -> int:
        sent = os.sendfile(self._descriptor, file.descriptor, self._offset, min(self._remaining, _TURN_BYTES))
        if sent == 0:
            raise OutputMissing("a map output became shorter while it was sent")
        self._offset += sent
        self._remaining -= sent
        if self._remaining == 0:
            file.release()
            self._file = None
        return sent

    def _gather(self) -> None:
        """Takes the next segments: small ones into one buffer, up to the first large one."""
        gathered = bytearray()
        while self._pieces and len(gathered) < _GATHER_BYTES:
            header, output, entry = self._pieces.popleft()
            gathered += header
            if entry.part_length == 0:
                continue
            file = self._service.outputs.open(output)
            if entry.part_length > _COPY_BYTES:
                self._file, self._offset, self._remaining = file, entry.start, entry.part_length
                break
            try:
                data = os.pread(file.descriptor, entry.part_length, entry.start)
            finally:
                file.release()
            if len(data) != entry.part_length:
                raise OutputMissing(f"{output.path} became shorter")
            gathered += data
        self._unsent = memoryview(gathered)

    def _answered(self) -> None:
        if self._is_long:
            self._is_long = False
            self._hand_over(self._service.loop, self._answered_elsewhere)
            return
        self._service.statistics.sent_bytes += self._sent_bytes
        self._sent_bytes = 0
        self._is_answering = False
        if not self._keeps_open:
            self.close()
            return
        self._awaited_since = self.loop.time()
        self.loop.add_reader(self._descriptor, self._readable)
        if self._received:
            self.loop.call_soon(self._continue_reading)

    def _answered_elsewhere(self) -> None:
        if not self._is_closed:
            self._answered()

    def _continue_reading(self) -> None:
        if not self._is_closed and not self._is_answering:
            self._next_request()


class ShuffleService:
    """Binds at construction, serves between `start` and `stop`."""

    def __init__(self, host: str, port: int, *, jobs: ShuffleJobs, outputs: MapOutputs, limits: ShuffleLimits) -> None:
        """Raises OSError when the port cannot be had."""
        self.jobs = jobs
        self.outputs = outputs
        self.limits = limits
        self.statistics = ShuffleStatistics()
        self._refusals = PeerLog(log)
        self._faults = PeerLog(log, level=logging.ERROR)
        self._connections: set[_Connection] = set()
        # each may hold a second descriptor, of the file that it sends
        self._connections_max = affordable_connections(2 * (limits.connections_max or _UNLIMITED_CONNECTIONS)) // 2
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self.loop = asyncio.SelectorEventLoop()
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
        """From any thread: the job's outputs are about to be deleted."""
        self._in_loop(lambda: self.outputs.forget_job(job_id))

    def closed(self, connection: _Connection, sent_bytes: int) -> None:
        """`sent_bytes`: of an answer that did not come to its end."""
        self._connections.discard(connection)
        self.statistics.sent_bytes += sent_bytes
        self.statistics.connections = len(self._connections)

    def refused(self, peer: str, refusal: RequestRefused) -> None:
        """Logs it, one line per peer and minute."""
        self._refusals.warn(peer, self.loop.time(), "shuffle request of %s refused: %s", peer, refusal)

    def blame(self, error: Exception, peer: str) -> None:
        """From any thread: logs a fault of ours that the peer has found, one trace per peer and minute."""
        trace = "".join(traceback.format_exception(error))[:_TRACE_CHARS_MAX]
        text = "shuffle request of %s failed\n%s"
        self._in_loop(lambda: self._faults.warn(peer, self.loop.time(), text, peer, trace))

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
        for _ in range(_BACKLOG):
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
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            is_over_limit = len(self._connections) >= self._connections_max
            self._connections.add(_Connection(self, client, str(address[0]), is_over_limit=is_over_limit))
            self.statistics.connections = len(self._connections)

    def _sweep(self) -> None:
        now = self.loop.time()
        for connection in [c for c in self._connections if c.overdue(now)]:
            connection.close_from_service()
        self.loop.call_later(min(1.0, self.limits.keep_alive_timeout_s / 2), self._sweep)
