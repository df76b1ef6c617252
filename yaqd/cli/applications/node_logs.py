"""Container logs as NodeManagers hand them out over REST, stock or ours.

A file comes between a heading, which states its length, and an end line. A part of it can only be asked for by its
distance from the end. So what has grown since is found out from the heading.
"""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

from yaqd.cli.exits import UNREACHABLE, CommandError

_TIMEOUT_S: Final = 10.0
_LISTING_BYTES_MAX: Final = 4 << 20
_HEADING_BYTES_MAX: Final = 64 << 10
_CHUNK_BYTES: Final = 1 << 16
_CONTENTS: Final = b"\nLogContents:\n"
_LENGTH: Final = b"\nLogLength:"
#: asked for beyond what the listing said, because a file grows between two calls
_SLACK_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class LoggedContainer:
    """A container and the web address (host:port) of its node; "" where it is not known any more."""

    id: str
    node: str
    web: str
    is_master: bool
    #: the ResourceManager has its end
    is_over: bool = False
    #: other nodes, with their web addresses, that may have its files: one that was started anew can have another port
    elsewhere: tuple[tuple[str, str], ...] = ()
    #: where it ran, if that node is not there any more; "" where it is, or nobody knows
    lost: str = ""


@dataclass(frozen=True, slots=True)
class LogFile:
    name: str
    bytes: int


def gone(node: str) -> str:
    """Say that a node is not there any more: nobody else has what its containers wrote."""
    return f"node {node} is not there any more, and what its containers wrote is on its disks alone"


class LogsGone(Exception):
    """The node does not have this file any more: it was uploaded, or deleted."""


def find_files(container: LoggedContainer) -> tuple[LoggedContainer, list[LogFile]]:
    """Return the container with the node that has its log files, and the files.

    Raises CommandError as `list_files` does.
    """
    files = list_files(container)
    found = container
    for node, web in container.elsewhere:
        if files:
            break
        found = replace(container, node=node, web=web, elsewhere=())
        files = list_files(found)
    return (replace(found, lost="") if files else container), files


def list_files(container: LoggedContainer) -> list[LogFile]:
    """List the container's log files; [] when its node has deleted them.

    Raises CommandError for a node that does not answer.
    """
    if not container.web:
        return []
    status, chunks = _get(container.web, f"/ws/v1/node/containers/{container.id}/logs")
    body = b"".join(_bounded(chunks))
    if status == http.client.FORBIDDEN:
        raise CommandError(f"node {container.node} does not show you the logs of {container.id}: ask its owner")
    if status != 200:  # 404, or from a stock node 500; or it sends us to where aggregated logs are shown
        return []
    try:
        return _log_files(json.loads(body))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CommandError(f"node {container.node} sent no list of logs: {error}", UNREACHABLE) from None


def logged_containers(web: str, application: str) -> list[str]:
    """List the application's containers whose logs the node has; [] where it has none, or does not say."""
    try:
        status, chunks = _get(web, f"/ws/v1/node/apps/{application}/logs")
        listing = json.loads(b"".join(_bounded(chunks)))["logs"]["containers"] if status == http.client.OK else []
    except (CommandError, ValueError, TypeError, KeyError, RecursionError):
        return []  # a stock node has no such list, and one that hangs is missed when its files are asked for
    prefix = f"_{application.removeprefix('application_')}_"
    return [one for one in listing if isinstance(one, str) and one.startswith("container_") and prefix in one]


def _log_files(listing: Any) -> list[LogFile]:
    """Hadoop nests the list differently from release to release; sizes come as numbers or as text.

    What the node knows of uploaded files, the last in the list, is left out.
    """
    found = []
    stack = [listing]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack.extend(part)
        elif isinstance(part, dict) and part.get("logAggregationType") != "AGGREGATED":
            if "fileName" in part:
                found.append(LogFile(str(part["fileName"]), int(part.get("fileSize") or 0)))
            else:
                stack.extend(part.values())
    return sorted(found, key=lambda file: file.name)


def read_file(container: LoggedContainer, file: LogFile, offset: int = 0) -> Iterator[bytes]:
    """Yield what the file holds from `offset` on. It was listed with its size. Raises LogsGone, CommandError.

    A file that has become shorter is read from its start.
    """
    wanted = file.bytes - offset + _SLACK_BYTES
    while True:
        path = f"/ws/v1/node/containers/{container.id}/logs/{quote(file.name, safe='')}"
        status, chunks = _get(container.web, f"{path}?size=-{wanted}" if offset else path)
        if status != 200:
            raise LogsGone(f"{container.id}/{file.name}: HTTP {status}")
        stream = _Stream(chunks)
        length = stream.heading(container.node)
        count = min(length, wanted) if offset else length
        begins = length - count
        if begins <= offset:
            break
        stream.close()
        wanted = length - offset + _SLACK_BYTES
    skipped = offset - begins if offset <= length else 0
    return stream.contents(skipped, count - skipped)


class _Stream:
    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def heading(self, node: str) -> int:
        """The file's length; 0 for one without a heading, which is empty. Contents follow."""
        data = b""
        while (end := data.find(_CONTENTS)) < 0:
            chunk = next(self._chunks, b"")
            if not chunk:
                if data.startswith(b"End of LogType:"):
                    return 0
                raise CommandError(f"node {node} sent no log file", UNREACHABLE)
            data += chunk
            if len(data) > _HEADING_BYTES_MAX and _CONTENTS not in data[:_HEADING_BYTES_MAX]:
                raise CommandError(f"node {node} sent no log file", UNREACHABLE)
        digits = data[:end].rpartition(_LENGTH)[2]
        if not digits.isdigit() or len(digits) > 18:
            raise CommandError(f"node {node} sent a log file of no length", UNREACHABLE)
        self._rest = data[end + len(_CONTENTS) :]
        return int(digits)

    def contents(self, skipped: int, count: int) -> Iterator[bytes]:
        """`count` bytes behind `skipped` ones, fewer where the node hangs up."""
        try:
            while count > 0:
                data = self._rest or next(self._chunks, b"")
                self._rest = b""
                if not data:
                    return
                if skipped:
                    data, skipped = data[skipped:], max(0, skipped - len(data))
                if data:
                    yield data[:count]
                    count -= len(data)
        finally:
            self.close()

    def close(self) -> None:
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()


def _get(web: str, path: str) -> tuple[int, Iterator[bytes]]:
    from yaqd.storage.paths import hadoop_user

    connection = http.client.HTTPConnection(web, timeout=_TIMEOUT_S)
    user = "&" if "?" in path else "?"
    user += f"user.name={quote(hadoop_user(), safe='')}"  # where the node asks who may see the application
    try:
        connection.request("GET", path + user, headers={"Accept": "application/json, text/plain"})
        response = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise CommandError(f"the node's web server {web} does not answer: {error}", UNREACHABLE) from None
    return response.status, _chunks(connection, response, web)


def _chunks(connection: http.client.HTTPConnection, response: http.client.HTTPResponse, web: str) -> Iterator[bytes]:
    try:
        while chunk := response.read1(_CHUNK_BYTES):
            yield chunk
    except (OSError, http.client.HTTPException) as error:
        raise CommandError(f"the node's web server {web} hung up: {error}", UNREACHABLE) from None
    finally:
        connection.close()


def _bounded(chunks: Iterator[bytes]) -> Iterator[bytes]:
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if total > _LISTING_BYTES_MAX:
            raise CommandError(f"an answer of more than {_LISTING_BYTES_MAX} bytes", UNREACHABLE)
        yield chunk
