"""One client of the shuffle service: it waits for a request, or it sends the answer to one, never both.

Sockets are handled directly: a general HTTP server would build a response, and what an answer costs beyond its bytes is
what most reducers wait for. A connection joins the selector only where there is something to wait for: a request that
is there when its client is, and whose answer the socket takes whole, never does. While a connection sends, it reads
nothing; what a client sends early waits in the kernel.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from nm.shuffle.answer import Answer, Range
from nm.shuffle.files import OutputMissing, OutputUnreadable
from nm.shuffle.plan import UNREADABLE, AnswerPlan
from nm.shuffle.request import MAX_HEAD_BYTES, PROTOCOL_HEADERS, RequestRefused, parse_request
from nm.shuffle.serving import Service

log = logging.getLogger(__name__)

_RECEIVE_BYTES = 64 << 10
#: what one connection may send before others have their turn
_TURN_BYTES = 4 << 20
#: a longer answer goes out from a sending thread
_OWN_ANSWER_BYTES = _TURN_BYTES
_RETRY_AFTER_MS = 1000


class Connection:
    """One client. Either it waits for a request, or it sends the answer to one.

    One thread at a time deals with it, that of `loop`: the service's own, or a sender's while a long answer goes out.
    """

    __slots__ = (
        "_answer",
        "_awaited_since",
        "_awaits_request",
        "_awaits_room",
        "_descriptor",
        "_file",
        "_head",
        "_is_answering",
        "_is_closed",
        "_is_long",
        "_is_over_limit",
        "_keeps_open",
        "_peer",
        "_planned",
        "_received",
        "_sent_bytes",
        "_service",
        "_socket",
        "_unfinished",
        "_unsent",
        "loop",
        "progress_at",
    )

    def __init__(self, service: Service, sock: socket.socket, peer: str, *, is_over_limit: bool) -> None:
        """`peer`: the client's address."""
        self._service = service
        self.loop: asyncio.AbstractEventLoop = service.loop
        self._socket = sock
        self._descriptor = sock.fileno()
        #: what the loop's selector watches the socket for
        self._awaits_request = self._awaits_room = False
        self._peer = peer
        self._is_over_limit = is_over_limit
        self._received = bytearray()
        #: bytes of a head that has no end yet, as the service counts them
        self._unfinished = 0
        #: bytes that the answer takes in memory, as the service counts them
        self._planned = 0
        self._answer = Answer("")
        #: of the answer, until it goes out with the first segments
        self._head = b""
        self._unsent = memoryview(b"")
        self._file: Range | None = None
        self._is_answering = False
        self._keeps_open = False
        self._is_long = False
        self._sent_bytes = 0
        self._is_closed = False
        #: by the loop's clock: when the connection was made or last moved a byte
        self.progress_at = self.loop.time()
        #: since when a request is awaited: one that comes a byte at a time is not waited for longer than another
        self._awaited_since = self.progress_at

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
        self._await_request(False)
        self._await_room(False)
        self._count_unfinished(0)
        self._count_planned(0)
        if self._file is not None:
            self._file.release()
            self._file = None
        self._answer.clear()
        self._socket.close()
        if self.loop is self._service.loop:
            self._service.closed(self, self._sent_bytes, self._answer)
        else:
            self._service.loop.call_soon_threadsafe(self._service.closed, self, self._sent_bytes, self._answer)

    def close_from_service(self) -> None:
        """Closes it from the service's thread, whichever thread the connection is with."""
        loop = self.loop
        if loop is self._service.loop:
            self.close()
        else:
            loop.call_soon_threadsafe(self._close_in, loop)

    def lighten(self) -> None:
        """Lets what has been sent for long go on from where it takes no memory.

        For the service's thread, now and then.
        """
        loop = self.loop
        if self._file is None:
            return
        if loop is self._service.loop:
            self._lighten_in(loop)
        else:
            loop.call_soon_threadsafe(self._lighten_in, loop)

    def _lighten_in(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.loop is loop and self._file is not None:
            self._file = self._file.lighter()

    def _close_in(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.loop is loop:  # else it has just moved on, and is not overdue
            self.close()

    def _await_request(self, is_awaited: bool) -> None:
        if is_awaited != self._awaits_request:
            self._awaits_request = is_awaited
            if is_awaited:
                self.loop.add_reader(self._descriptor, self.read)
            else:
                self.loop.remove_reader(self._descriptor)

    def _await_room(self, is_awaited: bool) -> None:
        if is_awaited != self._awaits_room:
            self._awaits_room = is_awaited
            if is_awaited:
                self.loop.add_writer(self._descriptor, self._send)
            else:
                self.loop.remove_writer(self._descriptor)

    # Request ----------------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Takes what is there of a request, and answers one that is there whole."""
        try:
            chunk = self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            self._await_request(True)
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
        is_whole = end >= 0 or len(self._received) > MAX_HEAD_BYTES
        if not self._count_unfinished(0 if is_whole else len(self._received)):
            self._received.clear()
            self._is_answering = True
            self._take_turn(self._no_room_for_it)
        elif is_whole:
            self._is_answering = True
            self._take_turn(lambda: self._asked_for(end))
        else:
            self._await_request(True)

    def _count_unfinished(self, length: int) -> bool:
        """False: there is no room for a head as long, among all those that have no end yet."""
        if length == self._unfinished:
            return True
        has_room = self._service.unfinished.changed(self._unfinished, length)
        self._unfinished = length if has_room else 0
        return has_room

    def _count_planned(self, cost_bytes: int) -> None:
        """Raises RequestRefused where there is no room for as much among what waits to be sent to all."""
        has_room = self._service.planned.changed(self._planned, cost_bytes)
        self._planned = cost_bytes if has_room else 0
        if not has_room:  # with this status Hadoop's reducers come again and count no failure
            raise RequestRefused(429, "too many map outputs wait to be sent", f"Retry-After: {_RETRY_AFTER_MS}\r\n")

    def _no_room_for_it(self) -> AnswerPlan:
        raise RequestRefused(503, "too many unfinished requests", f"Retry-After: {_RETRY_AFTER_MS}\r\n")

    def _asked_for(self, end: int) -> AnswerPlan:
        """By the request whose head ends there, -1 if it does not end. Raises RequestRefused."""
        if end < 0 or end > MAX_HEAD_BYTES:
            raise RequestRefused(400, "request too long")
        if self._is_over_limit:
            raise RequestRefused(429, "too many connections", f"Retry-After: {_RETRY_AFTER_MS}\r\n")
        head = bytes(self._received[:end])
        del self._received[: end + 4]
        request = parse_request(head, port=self._service.port, jobs=self._service.jobs)
        service = self._service
        return AnswerPlan(service.jobs, service.outputs, service.merged, request, self.loop.time)

    def _take_turn(self, plan: Callable[[], AnswerPlan]) -> None:
        """Goes on planning and answers once all is found, or why it cannot be."""
        try:
            planned = plan()
            is_over = planned.advance()
            self._count_planned(planned.cost_bytes)
            if not is_over:
                self.progress_at = self.loop.time()
                self._await_request(False)
                self.loop.call_soon(self._continue_planning, planned)
                return
            self._begin(planned)
        except RequestRefused as refusal:
            self._refuse(refusal)
        except Exception as error:  # whatever a request can bring about ends this request alone
            self._service.blame(error, self._peer)
            self._refuse(RequestRefused(400, "this request cannot be served"))
        if self._is_long:
            self._await_request(False)
            self._hand_over(self._service.senders.next_loop(), self._continue)
        else:
            self._send()

    def _continue_planning(self, plan: AnswerPlan) -> None:
        if not self._is_closed:
            self._take_turn(lambda: plan)

    def _hand_over(self, loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
        """From here on the thread of `loop` deals with this connection, beginning with `work`; the caller no more."""
        self.loop = loop
        loop.call_soon_threadsafe(work)

    def _begin(self, plan: AnswerPlan) -> None:
        """Everything is found: the head of the answer comes first."""
        service, request = self._service, plan.request
        self._answer = plan.answer
        length = self._answer.length
        self._is_long = length > _OWN_ANSWER_BYTES
        self._keeps_open = service.limits.keep_alive or request.wants_keep_alive
        keeping = f"keep-alive\r\nKeep-Alive: timeout={service.limits.keep_alive_timeout_s:.0f}"
        self._head = (
            f"HTTP/1.1 200 OK\r\nReplyHash: {request.reply_hash}\r\n{PROTOCOL_HEADERS}"
            f"Content-Length: {length}\r\nConnection: {keeping if self._keeps_open else 'close'}\r\n\r\n"
        ).encode("ascii")
        service.asked(request.job_id, plan.found)

    def _refuse(self, refusal: RequestRefused) -> None:
        if refusal.status < 500:
            self._service.refused(self._peer, refusal)
        self._is_long = False
        self._say_instead(refusal)
        self._service.statistics.refused += 1

    def _say_instead(self, refusal: RequestRefused) -> None:
        self._answer.clear()
        self._count_planned(0)
        self._keeps_open = False
        body = refusal.text.encode("utf-8")
        phrase = HTTPStatus(refusal.status).phrase
        self._head = (
            f"HTTP/1.1 {refusal.status} {phrase}\r\nContent-Type: text/plain; charset=UTF-8\r\n{PROTOCOL_HEADERS}"
            f"{refusal.headers}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        ).encode("ascii") + body

    # Answer -----------------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Moves bytes until the socket is full, the turn is over or the answer is complete."""
        self._await_room(False)
        budget = _TURN_BYTES
        try:
            while budget > 0:
                if len(self._unsent):
                    sent = self._socket.send(self._unsent, socket.MSG_MORE if self._file or self._answer else 0)
                    self._unsent = self._unsent[sent:]
                elif self._file is not None:
                    sent = self._send_file(self._file)
                elif self._answer or self._head:
                    self._gather()
                    continue
                elif self._answer.cut:
                    log.info("shuffle answer ended early: %s", self._answer.cut)
                    self.close()
                    return
                else:
                    self._answered()
                    return
                budget -= sent
                self._sent_bytes += sent
                self.progress_at = self.loop.time()
        except BlockingIOError:
            self._await_request(False)
            self._await_room(True)
            return
        except (OSError, OutputMissing) as error:
            log.info("shuffle connection ended: %s", error)
            self._break_off()
            return
        except Exception as error:  # as above; what is already sent cannot be taken back
            self._service.blame(error, self._peer)
            self._break_off()
            return
        self._await_request(False)
        self.loop.call_soon(self._continue)

    def _gather(self) -> None:
        """The next bytes to be sent; nothing of the answer yet where it turns out that they cannot be read now."""
        try:
            gathered, self._file = self._answer.gather(self._head)
        except OutputUnreadable as error:
            log.warning("shuffle answer not begun: %s", error)
            self._say_instead(RequestRefused(500, UNREADABLE))
            return
        self._head, self._unsent = b"", memoryview(gathered)

    def _continue(self) -> None:
        if not self._is_closed:
            self._send()

    def _break_off(self) -> None:
        """The client gets a head all the same: an answer that ends early is what it reports as a map output lost."""
        if self._head:
            with suppress(OSError):
                self._socket.send(self._head)
        self.close()

    def _send_file(self, file: Range) -> int:
        sent = file.send(self._descriptor, _TURN_BYTES)
        if file.remaining == 0:
            file.release()
            self._file = None
        return sent

    def _answered(self) -> None:
        if self._is_long:
            self._is_long = False
            self._hand_over(self._service.loop, self._answered_elsewhere)
            return
        self._service.sent(self._sent_bytes, self._answer)
        self._count_planned(0)
        self._sent_bytes = 0
        self._is_answering = False
        if not self._keeps_open:
            self.close()
            return
        self._awaited_since = self.loop.time()
        self._await_request(True)
        if self._received:
            self.loop.call_soon(self._continue_reading)

    def _answered_elsewhere(self) -> None:
        if not self._is_closed:
            self._answered()

    def _continue_reading(self) -> None:
        if not self._is_closed and not self._is_answering:
            self._next_request()
