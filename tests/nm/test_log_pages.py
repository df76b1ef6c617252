"""The node's log pages and REST calls, in the form that Hadoop's clients read."""

import json
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp import web

from nm.logs.files import LogFile
from nm.logs.pages import LogPages, LogServers
from tests.nm.nm_cluster import application, container_id
from yaqd.config import Configuration
from yaqd.model import ApplicationAttemptId, ContainerId, NodeId

ONE, GONE = container_id(1), container_id(2)
_NODE = NodeId("node.example", 45454)
_MODIFIED = 1_700_000_000


class Site:
    """Log pages on a port of their own; answers are status, location and body, redirects not followed."""

    def __init__(self, root: Path, servers: LogServers) -> None:
        self.folder = root / str(application()) / str(ONE)
        self.folder.mkdir(parents=True)
        self.running = {ONE}
        self.uploaded: list[LogFile] = []
        self._threads = ThreadPoolExecutor(2)
        pages = LogPages(
            log_dirs=(root,),
            threads=self._threads,
            node_id=lambda: _NODE,
            is_running=lambda container: container in self.running,
            uploaded=lambda container: self.uploaded if container == ONE else [],
            servers=servers,
        )
        application_ = web.Application()
        pages.register_on(application_.router)
        self._runner = web.AppRunner(application_)

    async def start(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._session = aiohttp.ClientSession(f"http://127.0.0.1:{self._runner.addresses[0][1]}")

    async def stop(self) -> None:
        await self._session.close()
        await self._runner.cleanup()
        self._threads.shutdown()

    async def get(self, path: str) -> tuple[int, str, bytes]:
        async with self._session.get(path, allow_redirects=False) as answer:
            return answer.status, answer.headers.get("Location", ""), await answer.read()

    def write(self, name: str, data: bytes) -> None:
        (self.folder / name).write_bytes(data)
        os.utime(self.folder / name, (_MODIFIED, _MODIFIED))


@pytest.fixture
async def site(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    site = Site(tmp_path, getattr(request, "param", LogServers("", "")))
    await site.start()
    yield site
    await site.stop()


_HEAD = (
    f"Container: {ONE} on node.example:45454\n"
    "LogAggregationType: LOCAL\n"
    f"{'=' * len(f'Container: {ONE} on node.example:45454')}\n"
    "LogType:stdout\n"
    "LogLastModifiedTime:Tue Nov 14 22:13:20 +0000 2023\n"
    "LogLength:10\n"
    "LogContents:\n"
)
_STARS = "*" * (len("End of LogType:stdout") + 50) + "\n\n"
_RUNS = f"End of LogType:stdout.This log file belongs to a running container ({ONE}) and so may not be complete.\n"


@pytest.mark.parametrize(
    ("size", "content"),
    [
        ("", "0123456789"),
        ("?size=3", "012"),
        ("?size=-3", "789"),
        ("?size=99", "0123456789"),
        ("?size=-99", "0123456789"),
    ],
)
async def test_a_file_stands_between_hadoops_heading_and_end_line(site: Site, size: str, content: str) -> None:
    site.write("stdout", b"0123456789")
    for path in (f"/ws/v1/node/containers/{ONE}/logs/stdout", f"/ws/v1/node/containerlogs/{ONE}/stdout"):
        status, _, body = await site.get(path + size)
        assert (status, body.decode()) == (200, _HEAD + content + _RUNS + _STARS)
    site.running.clear()
    _, _, body = await site.get(f"/ws/v1/node/containers/{ONE}/logs/stdout")
    assert body.decode() == _HEAD + "0123456789" + "End of LogType:stdout.\n" + _STARS


async def test_an_empty_part_has_its_heading(site: Site) -> None:
    site.write("stdout", b"")
    for size in ("", "?size=0", "?size=-5"):
        _, _, body = await site.get(f"/ws/v1/node/containers/{ONE}/logs/stdout{size}")
        assert body.decode() == _HEAD.replace("LogLength:10", "LogLength:0") + _RUNS + _STARS


async def test_what_is_no_number_or_format_is_refused(site: Site) -> None:
    site.write("stdout", b"x")
    path = f"/ws/v1/node/containers/{ONE}/logs/stdout"
    for size in ("many", "1_0", "\u0663", "9" * 20, "9" * 5000, "--1", "+"):
        assert (await site.get(f"{path}?size={quote(size)}"))[0] == 400, size[:20]
    assert (await site.get(f"{path}?format=html"))[0] == 400
    assert (await site.get(f"{path}?format=octet-stream"))[0] == 200


async def test_pages_have_the_bytes_alone(site: Site) -> None:
    site.write("a<b", b"0123456789")
    _, _, page = await site.get(f"/node/containerlogs/{ONE}/alice")
    assert b'/alice/a%3Cb" rel="noreferrer">a&lt;b</a></td><td>10</td>' in page
    assert (await site.get(f"/node/containerlogs/{ONE}/alice/"))[0] == 200
    for end in ("", "/"):
        assert (await site.get(f"/node/containerlogs/{ONE}/alice/a%3Cb{end}?start=-4&end=-1"))[2] == b"678"


async def test_what_was_uploaded_while_it_runs_is_listed_apart(site: Site) -> None:
    (site.folder / "stdout").write_text("12")
    site.uploaded = [LogFile("app.log.1", 5, _MODIFIED)]
    answer = json.loads((await site.get(f"/ws/v1/node/containers/{ONE}/logs"))[2])["containerLogsInfo"]
    listed = [(part["logAggregationType"], part["containerLogInfo"]) for part in answer]
    assert [(kind, [(f["fileName"], f["fileSize"]) for f in files]) for kind, files in listed] == [
        ("LOCAL", [("stdout", "2")]),
        ("AGGREGATED", [("app.log.1", "5")]),
    ]


async def test_containers_of_an_application_are_found_on_the_disk(site: Site) -> None:
    later = ContainerId(ApplicationAttemptId(ONE.application_id, 2), 1)
    for name in (str(later), "container_1_9999_01_000001", "nonsense", "container_"):
        (site.folder.parent / name).mkdir()
    (site.folder.parent / str(GONE)).symlink_to(site.folder)
    said = json.loads((await site.get(f"/ws/v1/node/apps/{ONE.application_id}/logs"))[2])["logs"]
    assert said == {"id": str(ONE.application_id), "containers": [str(ONE), str(later)]}
    said = json.loads((await site.get("/ws/v1/node/apps/application_1_8888/logs"))[2])["logs"]
    assert said["containers"] == []
    assert (await site.get("/ws/v1/node/apps/application_/logs"))[0] == 400


async def test_what_is_not_here_is_not_found(site: Site) -> None:
    for path in (f"/ws/v1/node/containers/{GONE}/logs", f"/ws/v1/node/containers/{ONE}/logs/stdout"):
        assert (await site.get(path))[0] == 404
    assert (await site.get(f"/node/containerlogs/{GONE}/alice"))[0] == 404


@pytest.mark.parametrize(
    "site", [LogServers("http://jhs:1/jobhistory/logs", "http://jhs:1/ws/v1/history")], indirect=True
)
async def test_what_is_not_here_may_be_at_the_log_server(site: Site) -> None:
    pages = f"http://jhs:1/jobhistory/logs/node.example:45454/{GONE}/{GONE}/alice"
    assert (await site.get(f"/node/containerlogs/{GONE}/alice"))[:2] == (307, pages)
    path = f"/node/containerlogs/{GONE}/alice/a%2Fb?start=-9"
    assert (await site.get(path))[:2] == (307, f"{pages}/a%2Fb?start=-9")
    rest = f"http://jhs:1/ws/v1/history/containers/{GONE}/logs"
    assert (await site.get(f"/ws/v1/node/containers/{GONE}/logs"))[1] == f"{rest}?nm.id=node.example:45454"
    answer = await site.get(f"/ws/v1/node/containerlogs/{GONE}/stdout?size=5")
    assert answer[:2] == (307, f"{rest}/stdout?size=5&nm.id=node.example:45454")


def test_log_servers_as_configured() -> None:
    given = {"yarn.log.server.url": "jhs:19888/jobhistory/logs/", "yarn.log-aggregation-enable": "true"}
    assert LogServers.read(Configuration.load(environ={}, overrides=given)) == LogServers(
        "http://jhs:19888/jobhistory/logs", ""
    )
    off = given | {"yarn.log-aggregation-enable": "false"}
    assert LogServers.read(Configuration.load(environ={}, overrides=off)) == LogServers("", "")
