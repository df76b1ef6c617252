"""Container logs, read from the NodeManagers' REST interface, stock or ours.

Which containers there were is known to the ResourceManager and, for a job of ours that has ended, to its history file;
where a node's web server is, to the ResourceManager.
"""

import http.client
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from yaqd.cli.exits import UNREACHABLE, CommandError
from yaqd.cli.output import print_json, print_table, size
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.rm_client import ApplicationReport, RmClient
    from yaqd.model import ApplicationId

_TIMEOUT_S = 10.0
_LISTING_BYTES_MAX = 4 << 20
_CHUNK_BYTES = 1 << 16
#: What the node itself writes beside the container's own output; shown only when asked for by name.
_LAUNCH_FILES = ("directory.info", "launch_container.sh", "prelaunch.out", "prelaunch.err")


@dataclass(frozen=True, slots=True)
class LoggedContainer:
    """A container and the web address (host:port) of its node."""

    id: str
    node: str
    web: str
    is_master: bool


@dataclass(frozen=True, slots=True)
class LogFile:
    name: str
    bytes: int


def print_logs(
    conf: Configuration,
    application_id: "ApplicationId",
    *,
    containers: Sequence[str] = (),
    files: Sequence[str] = (),
    only_list: bool = False,
    only_tasks: bool = False,
    as_json: bool = False,
) -> None:
    """Prints the chosen files of the chosen containers; empty choices mean all, the launch files excepted."""
    found = [
        c
        for c in find_containers(conf, application_id)
        if (not containers or c.id in containers) and not (only_tasks and c.is_master)
    ]
    missing = [name for name in containers if name not in {c.id for c in found}]
    if missing:
        raise CommandError(f"{application_id} has no container {missing[0]}; `yaq app logs {application_id} --list`")
    listed = [(container, _chosen(list_files(container), files)) for container in found]
    if as_json:
        print_json([_as_dict(container, names, with_text=not only_list) for container, names in listed])
    elif only_list:
        rows = [(c.id, c.node, file.name, size(file.bytes)) for c, names in listed for file in names]
        print_table(("container", "node", "file", "size"), rows, empty=f"{application_id} has no logs (any more)")
    else:
        _print_texts(application_id, listed)


def _print_texts(application_id: "ApplicationId", listed: list[tuple[LoggedContainer, list[LogFile]]]) -> None:
    written = [(container, file) for container, names in listed for file in names if file.bytes]
    if not written:
        click.echo(f"yaq: {application_id} has no logs (any more), or they are empty", err=True)
    for container, file in written:
        click.echo(f"==> {container.id} on {container.node}: {file.name} <==")
        ends_line = True
        for chunk in read_file(container, file.name):
            click.echo(chunk, nl=False)
            ends_line = chunk.endswith(b"\n")
        if not ends_line:
            click.echo()


def find_containers(conf: Configuration, application_id: "ApplicationId") -> list[LoggedContainer]:
    """All known containers of the application in the order of their ids; CommandError if a node is unknown."""
    from yaqd.cli.client import rm_client

    with rm_client(conf) as rm:
        report = rm.report(application_id)
        placed = _placed(conf, rm, report)
        web = {str(node.id): node.http_address for node in rm.nodes()}
    first: dict[str, str] = {}
    for name in sorted(placed):
        first.setdefault(_attempt(name), name)  # an attempt's first container is its application master
    return [
        LoggedContainer(name, node, web[node], first[_attempt(name)] == name)
        for name, node in sorted(placed.items())
        if node in web
    ]


def _placed(conf: Configuration, rm: "RmClient", report: "ApplicationReport") -> dict[str, str]:
    """Container ids with their nodes."""
    from tez_adapter.history import NoHistory, read_history
    from yaqd.ipc import RemoteException
    from yaqd.model import ApplicationAttemptId
    from yaqd.storage import StorageError

    placed: dict[str, str] = {}
    last = report.attempt.attempt if report.attempt is not None else 0
    for number in range(1, last + 1):
        try:
            reports = rm.containers(ApplicationAttemptId(report.id, number))
        except RemoteException:
            continue  # forgotten; the history may know
        placed |= {str(c.id): str(c.node) for c in reports if c.node is not None}
    try:
        attempts = read_history(conf, report.id).attempts
    except (NoHistory, StorageError):
        attempts = []
    return placed | {str(a["container"]): str(a["node"]) for a in attempts if a.get("container") and a.get("node")}


def list_files(container: LoggedContainer) -> list[LogFile]:
    """The container's log files; [] when its node has deleted them."""
    status, chunks = _get(container.web, f"/ws/v1/node/containers/{container.id}/logs")
    body = b"".join(chunks)
    if status == 404:
        return []
    try:
        return _log_files(json.loads(body))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CommandError(f"node {container.node} sent no list of logs: {error}", UNREACHABLE) from None


def _log_files(listing: Any) -> list[LogFile]:
    """Hadoop nests the list differently from release to release; sizes come as numbers or as text."""
    found = []
    stack = [listing]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack.extend(part)
        elif isinstance(part, dict):
            if "fileName" in part:
                found.append(LogFile(str(part["fileName"]), int(part.get("fileSize") or 0)))
            else:
                stack.extend(part.values())
    return sorted(found, key=lambda file: file.name)


def read_file(container: LoggedContainer, name: str) -> Iterator[bytes]:
    status, chunks = _get(container.web, f"/ws/v1/node/containers/{container.id}/logs/{quote(name)}", bytes_max=None)
    if status != 200:
        raise CommandError(f"node {container.node} does not hand out {container.id}/{name}: HTTP {status}")
    return chunks


def _get(web: str, path: str, bytes_max: int | None = _LISTING_BYTES_MAX) -> tuple[int, Iterator[bytes]]:
    connection = http.client.HTTPConnection(web, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"Accept": "application/json, text/plain"})
        response = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise CommandError(f"the node's web server {web} does not answer: {error}", UNREACHABLE) from None
    return response.status, _chunks(connection, response, bytes_max)


def _chunks(
    connection: http.client.HTTPConnection, response: http.client.HTTPResponse, bytes_max: int | None
) -> Iterator[bytes]:
    total = 0
    try:
        while chunk := response.read(_CHUNK_BYTES):
            total += len(chunk)
            if bytes_max is not None and total > bytes_max:
                raise CommandError(f"an answer of more than {bytes_max} bytes", UNREACHABLE)
            yield chunk
    finally:
        connection.close()


def _chosen(files: list[LogFile], names: Sequence[str]) -> list[LogFile]:
    return [file for file in files if (file.name in names if names else file.name not in _LAUNCH_FILES)]


def _attempt(container: str) -> str:
    """The application attempt part of a container id."""
    return container.rpartition("_")[0]


def _as_dict(container: LoggedContainer, files: list[LogFile], *, with_text: bool) -> dict[str, object]:
    entries: list[dict[str, object]] = []
    for file in files:
        entry: dict[str, object] = {"name": file.name, "bytes": file.bytes}
        if with_text:
            entry["text"] = b"".join(read_file(container, file.name)).decode(errors="replace")
        entries.append(entry)
    return {"container": container.id, "node": container.node, "files": entries}
