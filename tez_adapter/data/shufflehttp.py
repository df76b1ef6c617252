"""One request of Hadoop's shuffle protocol over HTTP, from the reducer's side.

The request is signed with the job token; the reply must prove that it knows the token too. The body is, for each map
output, a ShuffleHeader and the stored segment. Everything the peer says about lengths is checked against the
response's own length first.
"""

import base64
import hmac
import http.client
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote

from riffle_merger.format.errors import FormatError
from riffle_merger.format.vint import read_vint

HEADER_NAME = "mapreduce"
HEADER_VERSION = "1.0.0"
_MAP_ID_BYTES_MAX = 1000
#: both lengths in the header of a segment that our nodes do not have
_LOST = -1
_ERROR_TEXT_BYTES = 300
_RETRY_AFTER_MAX_S = 60.0


class ShuffleError(Exception):
    """The peer could not be reached, refused, or answered what the protocol does not allow."""

    def __init__(self, message: str, *, retry_after_s: float = 0.0, lacks_some: bool = False) -> None:
        super().__init__(message)
        #: It cannot serve one at least of what it was asked for, and does not say which.
        self.lacks_some = lacks_some
        #: How long the peer asked us to stay away.
        self.retry_after_s = retry_after_s


def url_path(job_id: str, partition: int, attempts: list[str], merged: str = "") -> str:
    """Return the path to ask for.

    `merged`: the file that has all these outputs. Only a service that merges has one, and only that service reads it.
    """
    path = f"/mapOutput?job={job_id}&reduce={partition}&map={','.join(attempts)}"
    return f"{path}&merged={quote(merged, safe='')}" if merged else path


def sign(secret: bytes, message: bytes) -> str:
    """Sign with the HMAC-SHA1 in Base64, as Hadoop's SecureShuffleUtils does."""
    return base64.b64encode(hmac.digest(secret, message, "sha1")).decode("ascii")


class OutputsLost(ShuffleError):
    """The peer has all that was asked for but these."""

    def __init__(self, attempts: list[str]) -> None:
        super().__init__("does not have the output any more")
        self.attempts = attempts


class ShuffleResponse:
    """An accepted response. Iterate over `segments`, consuming each body before the next."""

    def __init__(self, response: http.client.HTTPResponse, length: int) -> None:
        self._response = response
        self._remaining = length

    def segments(self, partition: int, attempts: list[str]) -> Iterator[tuple[str, int, "ShuffleResponse"]]:
        """Yield (attempt, stored length, body) in the order asked for.

        Raises OutputsLost after what is there, ShuffleError when the peer sends anything else.
        """
        awaited = iter(attempts)
        missing = dict.fromkeys(attempts)
        while missing:
            attempt, length = self._read_header(partition)
            if length == _LOST:
                said = {attempt, *self._further_lost(partition, len(attempts))}
                if lost := [attempt for attempt in missing if attempt in said]:
                    raise OutputsLost(lost)
                raise ShuffleError(f"says that {attempt!r} is lost, which was not asked for or is here")
            if attempt not in awaited:  # and what stands before it there is lost
                raise ShuffleError(f"sent map output {attempt!r}, which was not asked for or not there")
            del missing[attempt]
            before = self._remaining
            yield attempt, length, self
            if before - self._remaining != length:
                raise ShuffleError(f"map output {attempt} was not read whole")

    def readinto(self, buffer: memoryview) -> int:
        """Fill the whole buffer."""
        done = 0
        while done < len(buffer):
            got = self._response.readinto(buffer[done:])
            if not got:
                raise ShuffleError(f"closed the connection {len(buffer) - done} bytes early")
            done += got
        self._remaining -= done
        return done

    def _further_lost(self, partition: int, most: int) -> list[str]:
        """What the headers behind say is lost too, up to one that says something else or cannot be read: an answer may
        end after the first."""
        lost: list[str] = []
        with suppress(ShuffleError, OSError):
            while self._remaining and len(lost) < most:
                attempt, length = self._read_header(partition)
                if length != _LOST:
                    break
                lost.append(attempt)
        return lost

    def _read_header(self, partition: int) -> tuple[str, int]:
        """Attempt and stored length, or `_LOST`."""
        try:
            length = read_vint(self._read)
            if not 0 <= length <= _MAP_ID_BYTES_MAX:
                raise ShuffleError(f"sent a map id of {length} bytes")
            attempt = bytes(self._read(length)).decode("utf-8", "replace")
            stored, raw, sent = read_vint(self._read), read_vint(self._read), read_vint(self._read)
        except FormatError as error:
            raise ShuffleError(f"sent a damaged header: {error}") from error
        if stored == raw == _LOST and sent == partition:
            return attempt, _LOST
        if stored < 0 or raw < 0:
            raise ShuffleError(f"sent negative lengths for {attempt}: {stored} stored, {raw} raw")
        if sent != partition:
            raise ShuffleError(f"sent partition {sent} instead of {partition}")
        if stored > self._remaining:
            raise ShuffleError(f"announced {stored} bytes of {attempt}, but only {self._remaining} are left")
        return attempt, stored

    def _read(self, length: int) -> bytes:
        buffer = bytearray(length)
        self.readinto(memoryview(buffer))
        return bytes(buffer)


@contextmanager
def request(
    address: tuple[str, int],
    path: str,
    secret: bytes,
    *,
    connect_timeout_s: float,
    read_timeout_s: float,
    on_connected: Callable[[socket.socket], None],
) -> Iterator[ShuffleResponse]:
    """Send one signed GET and check the answer's head. ShuffleError or OSError.

    `on_connected` gets the socket, so that another thread can cut the request short.
    """
    host, port = address
    connection = http.client.HTTPConnection(host, port, timeout=connect_timeout_s)
    try:
        connection.connect()
        connection.sock.settimeout(read_timeout_s)
        on_connected(connection.sock)
        url_hash = sign(secret, f"{port}{path}".encode())
        headers = {"UrlHash": url_hash, "name": HEADER_NAME, "version": HEADER_VERSION, "Connection": "close"}
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as response:
            yield ShuffleResponse(response, _check_head(response, secret, url_hash))
    except http.client.HTTPException as error:
        raise ShuffleError(f"answered no HTTP: {type(error).__name__} {error}") from error
    finally:
        connection.close()


def _check_head(response: http.client.HTTPResponse, secret: bytes, url_hash: str) -> int:
    """The body's length, of a response that is what we asked for, from a peer that knows the secret."""
    if response.status != http.client.OK:
        text = response.read(_ERROR_TEXT_BYTES).decode("utf-8", "replace").split("\n")[0]
        raise ShuffleError(
            f"answered {response.status} {response.reason}: {text}",
            retry_after_s=_retry_after(response),
            lacks_some=response.status == http.client.INTERNAL_SERVER_ERROR,
        )
    name, version = response.getheader("name"), response.getheader("version")
    if (name, version) != (HEADER_NAME, HEADER_VERSION):
        raise ShuffleError(f"is no shuffle service: name {name!r}, version {version!r}")
    proof = response.getheader("ReplyHash") or ""
    if not hmac.compare_digest(proof.encode(), sign(secret, url_hash.encode("ascii")).encode()):
        raise ShuffleError("does not know this job's token: its ReplyHash is wrong")
    length = response.length
    if length is None:
        raise ShuffleError("sent no Content-Length")
    return length


def _retry_after(response: http.client.HTTPResponse) -> float:
    """Milliseconds, as the stock service sends them with 429."""
    text = response.getheader("Retry-After") or ""
    return min(int(text) / 1000, _RETRY_AFTER_MAX_S) if text.isdecimal() and len(text) < 10 else 0.0
