"""Containers' logs over HTTP, as a stock node hands them out: REST for `yarn logs`, pages for browsers.

A file over REST stands between a heading and an end line, which Hadoop's clients print as they come; pages link to the
bytes alone. What this node does not have (any more), the server for aggregated logs may: callers are sent there.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor as ThreadExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import quote, urlencode

from aiohttp import web

from nm.logs.files import LogFile, OpenLog, list_logs, logged_containers, open_log
from yaqd.config import Configuration
from yaqd.model import ApplicationId, BadIdentifier, ContainerId, NodeId
from yaqd.web.page import link, page, table, text
from yaqd.web.times import shown

_CHUNK_BYTES: Final = 256 << 10
_CONTENT_TYPES: Final = {"text": "text/plain", "octet-stream": "application/octet-stream"}
_STARS: Final = 50
#: a Java long
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class LogServers:
    """Where aggregated logs are shown; "" where there is no such place."""

    #: for browsers
    pages: str
    rest: str

    @classmethod
    def read(cls, conf: Configuration) -> "LogServers":
        pages = conf.get("yarn.log.server.url") or "" if conf.get_bool("yarn.log-aggregation-enable") else ""
        return cls(_http(pages), _http(conf.get("yarn.log.server.web-service.url") or ""))


class LogPages:
    def __init__(
        self,
        *,
        log_dirs: tuple[Path, ...],
        threads: ThreadExecutor,
        node_id: Callable[[], NodeId],
        is_running: Callable[[ContainerId], bool],
        uploaded: Callable[[ContainerId], list[LogFile]],
        servers: LogServers,
    ) -> None:
        """`uploaded`: what was uploaded of a container while it runs, and may be gone from this node."""
        self._log_dirs = log_dirs
        self._threads = threads
        self._node_id = node_id
        self._is_running = is_running
        self._uploaded = uploaded
        self._servers = servers

    def register_on(self, router: web.UrlDispatcher) -> None:
        router.add_get("/ws/v1/node/containers/{container}/logs", self._list)
        router.add_get("/ws/v1/node/apps/{app}/logs", self._of_application)
        router.add_get("/ws/v1/node/containers/{container}/logs/{file}", self._framed)
        router.add_get("/ws/v1/node/containerlogs/{container}/{file}", self._framed)
        for end in ("", "/"):  # Hadoop's pages link to both forms
            router.add_get(f"/node/containerlogs/{{container}}/{{user}}{end}", self._page)
            router.add_get(f"/node/containerlogs/{{container}}/{{user}}/{{file}}{end}", self._bytes)

    async def files(self, container: ContainerId) -> list[LogFile]:
        """Lists the container's logs; [] for a container without a folder here."""
        return await self._in_thread(partial(list_logs, self._log_dirs, container)) or []

    def send_on(self, request: web.Request, container: ContainerId) -> NoReturn:
        """Redirects to where aggregated logs are shown, REST or pages as was asked for; 404 without such a place."""
        if not request.path.startswith("/ws/"):
            self._to_log_server(request, container)
        file = request.match_info.get("file", "")
        place = f"/containers/{container}/logs" + (f"/{quote(file, safe='')}" if file else "")
        self._elsewhere(request, place, f"no logs of {container} on this node")

    # REST -------------------------------------------------------------------------------------------------------------

    async def _list(self, request: web.Request) -> web.Response:
        container = _container(request)
        files: list[LogFile] | None = await self._in_thread(partial(list_logs, self._log_dirs, container))
        if files is None:
            self._elsewhere(request, f"/containers/{container}/logs", f"no logs of {container} on this node")
        listings = [self._listing(container, "LOCAL", files)]
        uploaded = self._uploaded(container)
        if uploaded:
            listings.append(self._listing(container, "AGGREGATED", uploaded))
        return web.json_response({"containerLogsInfo": listings})

    async def _of_application(self, request: web.Request) -> web.Response:
        """Whose logs are on this node, also of attempts that nobody else knows any more; Hadoop's has no such list."""
        try:
            application = ApplicationId.parse(request.match_info["app"])
        except BadIdentifier as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from None
        found = await self._in_thread(partial(logged_containers, self._log_dirs, application))
        return web.json_response({"logs": {"id": str(application), "containers": [str(one) for one in found]}})

    def _listing(self, container: ContainerId, kind: str, files: Sequence[LogFile]) -> dict[str, object]:
        entries = [
            {"fileName": file.name, "fileSize": str(file.size_bytes), "lastModifiedTime": _time(file.modified)}
            for file in files
        ]
        return {
            "containerLogInfo": entries,
            "logAggregationType": kind,
            "containerId": str(container),
            "nodeId": str(self._node_id()),
        }

    async def _framed(self, request: web.Request) -> web.StreamResponse:
        container, name = _container(request), request.match_info["file"]
        content_type = _CONTENT_TYPES.get(request.query.get("format") or "text")
        if content_type is None:
            raise web.HTTPBadRequest(text=f"format is one of {', '.join(_CONTENT_TYPES)}\n")
        size = _number(request, "size")
        log = await self._open(container, name)
        if log is None:
            place = f"/containers/{container}/logs/{quote(name, safe='')}"
            self._elsewhere(request, place, f"no log file of this name for {container} on this node")
        with log:
            frame = self._head(container, name, log), self._tail(container, name)
            return await self._send(request, log, _part(log.size_bytes, size), content_type, frame)

    def _head(self, container: ContainerId, name: str, log: OpenLog) -> str:
        title = f"Container: {container} on {self._node_id()}"
        return (
            f"{title}\nLogAggregationType: LOCAL\n{'=' * len(title)}\nLogType:{name}\n"
            f"LogLastModifiedTime:{_time(log.modified)}\nLogLength:{log.size_bytes}\nLogContents:\n"
        )

    def _tail(self, container: ContainerId, name: str) -> str:
        end = f"End of LogType:{name}"
        why = ""
        if self._is_running(container):
            why = f"This log file belongs to a running container ({container}) and so may not be complete."
        return f"{end}.{why}\n{'*' * (len(end) + _STARS)}\n\n"

    def _elsewhere(self, request: web.Request, place: str, problem: str) -> NoReturn:
        if not self._servers.rest:
            raise web.HTTPNotFound(text=f"{problem}: they are deleted after their retention\n")
        query = urlencode([*request.query.items(), ("nm.id", str(self._node_id()))])
        raise web.HTTPTemporaryRedirect(f"{self._servers.rest}{place}?{query}")

    # Pages ------------------------------------------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.Response:
        container = _container(request)
        files: list[LogFile] | None = await self._in_thread(partial(list_logs, self._log_dirs, container))
        if files is None:
            self._to_log_server(request, container)
        path = f"/node/containerlogs/{container}/{quote(request.match_info['user'], safe='')}"
        rows = [
            (
                link(f"{path}/{quote(file.name, safe='')}", file.name),
                text(file.size_bytes),
                text(shown(int(file.modified * 1000))),
            )
            for file in files
        ]
        return page(f"Logs of {container}", table(("file", "bytes", "last written"), rows))

    async def _bytes(self, request: web.Request) -> web.StreamResponse:
        container = _container(request)
        start, end = _number(request, "start"), _number(request, "end")
        log = await self._open(container, request.match_info["file"])
        if log is None:
            self._to_log_server(request, container)
        with log:
            part = _range(log.size_bytes, start, end)
            return await self._send(request, log, part, _CONTENT_TYPES["text"])

    def _to_log_server(self, request: web.Request, container: ContainerId) -> NoReturn:
        if not self._servers.pages:
            problem = f"no such logs of {container} on this node: they are deleted after their retention"
            raise web.HTTPNotFound(text=f"{problem}\n")
        names = [str(self._node_id()), str(container), str(container), request.match_info["user"]]
        if "file" in request.match_info:
            names.append(request.match_info["file"])
        path = "/".join(quote(name, safe=":") for name in names)
        query = f"?{request.query_string}" if request.query_string else ""
        raise web.HTTPTemporaryRedirect(f"{self._servers.pages}/{path}{query}")

    # Files ------------------------------------------------------------------------------------------------------------

    async def _open(self, container: ContainerId, name: str) -> OpenLog | None:
        log: OpenLog | None = await self._in_thread(partial(open_log, self._log_dirs, container, name))
        return log

    async def _send(
        self,
        request: web.Request,
        log: OpenLog,
        part: tuple[int, int],
        content_type: str,
        around: tuple[str, str] = ("", ""),
    ) -> web.StreamResponse:
        start, end = part
        before, behind = (text.encode(errors="replace") for text in around)
        response = web.StreamResponse(headers={"X-Content-Type-Options": "nosniff"})
        response.content_type = content_type
        if content_type.startswith("text/"):
            response.charset = "utf-8"
        response.content_length = len(before) + end - start + len(behind)
        await response.prepare(request)
        await response.write(before)
        while start < end:
            chunk = await self._in_thread(partial(log.read, min(_CHUNK_BYTES, end - start), start))
            if not chunk:
                raise ConnectionResetError("the log became shorter")
            await response.write(chunk)
            start += len(chunk)
        await response.write(behind)
        return response

    def _in_thread(self, work: Callable[[], Any]) -> Awaitable[Any]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work)


def _part(size: int, wanted: int | None) -> tuple[int, int]:
    """`wanted` bytes from the start, or from the end when it is negative."""
    if wanted is None:
        return 0, size
    return (0, min(wanted, size)) if wanted >= 0 else (max(0, size + wanted), size)


def _range(size: int, start: int | None, end: int | None) -> tuple[int, int]:
    """`start` and `end` as on Hadoop's log pages; negative ones count from the end."""
    start, end = start or 0, size if end is None else end
    start = max(0, size + start) if start < 0 else min(start, size)
    end = max(0, size + end) if end < 0 else min(end, size)
    return start, max(start, end)


def _number(request: web.Request, name: str) -> int | None:
    text = request.query.get(name)
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise web.HTTPBadRequest(text="start, end and size are numbers of bytes\n")
    return int(text)


def _container(request: web.Request) -> ContainerId:
    try:
        return ContainerId.parse(request.match_info["container"])
    except BadIdentifier as error:
        raise web.HTTPBadRequest(text=f"{error}\n") from None


def _time(modified: float) -> str:
    """As Hadoop's Times.format."""
    return time.strftime("%a %b %d %H:%M:%S +0000 %Y", time.gmtime(modified))


def _http(url: str) -> str:
    url = url.strip().rstrip("/")
    return url if not url or "://" in url else f"http://{url}"
