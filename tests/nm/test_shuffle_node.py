"""A node with its merger merges an unmodified job's outputs by itself and serves what reducers ask from them."""

import asyncio
import http.client
import json
import os
import signal
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from nm.daemon import NodeManager
from nm.shuffle.jobs import job_id
from nm.shuffle.merged.merging import OutputMerging
from tests.nm.nm_cluster import USER, FakeResourceManager, Master, application, container_id, launch_context
from tests.nm.nm_faults import gone
from tests.nm.nm_shuffle_served import KEY, ask, write_output
from yaqd.proto import convert
from yaqd.security import JOB_TOKEN, Token
from yaqd.security.writable import encode_text

REDUCES = 5
CONF = {
    "yaq.riffle.enabled": "true",
    "yaq.riffle.merger.memory": "64m",
    "yaq.riffle.shuffle.policy": "files",
    "yaq.riffle.shuffle.files": "8",
    "yaq.riffle.shuffle.quiet-ms": "100",
}
pytestmark = pytest.mark.slow
StartNode = Callable[..., Awaitable[NodeManager]]


def info(port: int) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/ws/v1/node/info", timeout=10) as answer:
        return json.load(answer)


class Job:
    """A job with a container on the node, whose map outputs the test writes."""

    def __init__(self, rm: FakeResourceManager, node: NodeManager, environment: dict[str, str] | None = None) -> None:
        self.node = node
        self.id = job_id(application())
        self.maps = [f"attempt_{self.id[4:]}_m_{number:06d}_0" for number in range(20)]
        (self.app_dir, *_) = node.directories.app_dirs(USER, application())
        self._master = Master(rm, node)
        self._environment = environment or {}

    async def start(self) -> None:
        token = Token(encode_text(self.id), KEY, JOB_TOKEN, "").to_writable()
        context = launch_context("sleep 60", service_data={"mapreduce_shuffle": token}, environment=self._environment)
        await self._master.run(container_id(1), context)
        assert self.node.merger is not None
        async with asyncio.timeout(30):
            await self.node.merger.ready()

    async def close(self) -> None:
        await self._master.client.close()

    def write(self, maps: list[str]) -> None:
        for map_id in maps:
            write_output(self.app_dir / "output" / map_id, [os.urandom(3000) for _ in range(REDUCES)])

    async def fetch(self, reduce: int, maps: list[str]) -> bytes:
        target = f"/mapOutput?job={self.id}&reduce={reduce}&map={','.join(maps)}"
        response, body = await asyncio.to_thread(ask, self.node.shuffle.port, target)
        assert response.status == 200
        return body

    async def fetch_all(self) -> list[bytes]:
        return [await self.fetch(reduce, self.maps) for reduce in range(REDUCES)]

    def merged_maps(self) -> set[str]:
        return set(self.node.shuffle.merged.maps_of(self.id))

    async def until_merged(self, count: int) -> None:
        assert await gone(lambda: len(self.merged_maps()) < count, 30)


@pytest.fixture
async def job(start_node: StartNode, rm: FakeResourceManager) -> AsyncIterator[Job]:
    job = Job(rm, await start_node(CONF))
    await job.start()
    yield job
    await job.close()


async def test_outputs_are_merged_as_they_appear_and_read_in_few_reads(job: Job) -> None:
    job.write(job.maps[:8])
    await job.until_merged(8)
    job.write(job.maps[8:])
    await job.until_merged(20)
    counts = job.node.shuffle.statistics.reads
    job.node.directories.set_usable((), (), "all disks are full")  # what is there is served all the same
    served = await job.fetch_all()
    assert await gone(lambda: job.node.shuffle.statistics.connections)
    assert (counts.reads, counts.merged_reads, counts.merged_segments) == (3 * REDUCES, 3 * REDUCES, 20 * REDUCES)
    said = await asyncio.to_thread(info, job.node.web_address[1])
    figures = said["nodeInfo"]["shuffle"]
    assert (figures["reads"], figures["mergedMaps"], figures["merger"]["merges"]) == (3 * REDUCES, 20, 3)
    for file in (job.app_dir / "riffle").iterdir():
        file.unlink()
    assert await job.fetch_all() == served  # what the originals hold


async def ask_shuffle(node: NodeManager, user: str = USER) -> tuple[int, dict[str, Any]]:
    """What the node says of the job's outputs to that user."""
    path = f"/ws/v1/node/apps/{application()}/shuffle?user.name={user}"

    def get() -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection(*node.web_address, timeout=10)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
            return response.status, json.loads(body)["shuffle"] if response.status == 200 else {}
        finally:
            connection.close()

    return await asyncio.to_thread(get)


async def test_what_was_done_and_why_is_told_to_who_may_see_the_job_also_after_its_end(
    start_node: StartNode, rm: FakeResourceManager
) -> None:
    node = await start_node(CONF | {"yarn.acl.enable": "true", "yarn.admin.acl": "boss"})
    assert (await ask_shuffle(node, "boss"))[0] == 404
    job = Job(rm, node)
    await job.start()
    job.write(job.maps)
    await job.until_merged(20)
    await job.fetch(0, job.maps)
    assert await gone(lambda: node.shuffle.statistics.connections)
    status, during = await ask_shuffle(node)
    assert (status, during["outputs"], during["mergedOutputs"], during["policy"]) == (200, 20, 20, "8 files")
    assert (during["segments"], during["reads"], during["mergedFiles"]) == (20, during["mergedFiles"], 3)
    assert not during["isOver"] and not during["plansMerges"] and during["mergeRequests"] >= 23
    rm.orders.append(lambda response: response.applications_to_cleanup.append(convert.application_id_pb(application())))
    assert await gone(lambda: application() in node.runtime.applications)
    status, after = await ask_shuffle(node)
    assert (status, after) == (200, during | {"isOver": True})
    assert (await ask_shuffle(node, "boss"))[0] == 200
    assert (await ask_shuffle(node, "mallory"))[0] == 403
    await job.close()


async def test_nothing_is_left_when_the_application_ends(job: Job, rm: FakeResourceManager) -> None:
    job.write(job.maps)
    await job.until_merged(20)
    await job.fetch(0, job.maps[:3])
    assert job.node.shuffle.merged.memory_bytes
    rm.orders.append(lambda response: response.applications_to_cleanup.append(convert.application_id_pb(application())))
    merged = job.node.shuffle.merged
    assert await gone(lambda: job.app_dir.exists() or merged.memory_bytes or job.merged_maps())
    assert job.node.shuffle.statistics.segments_of(job.id) == 0


async def test_a_merger_killed_in_mid_merge_hurts_nobody(job: Job) -> None:
    assert job.node.merger is not None
    job.write(job.maps[:8])
    pid = job.node.merger.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    before = [await job.fetch(reduce, job.maps[:8]) for reduce in range(REDUCES)]
    merger = job.node.merger  # what it was asked before its death was noticed stays as it is
    assert await gone(lambda: merger.restarts == 0, 30)
    job.write(job.maps[8:])
    async with asyncio.timeout(30):
        await job.node.merger.ready()
    await job.until_merged(12)
    assert [await job.fetch(reduce, job.maps[:8]) for reduce in range(REDUCES)] == before
    assert await gone(lambda: [path for path in (job.app_dir / "riffle").iterdir() if path.name.startswith(".")])


async def test_jobs_that_plan_for_themselves_are_left_to_it(
    start_node: StartNode, rm: FakeResourceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their merged files are served as soon as they are there, whenever the node would look by itself."""
    defaults = OutputMerging.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "interval_s", 60.0)
    job = Job(rm, await start_node(CONF), {"YAQ_RIFFLE_PLANNED": "1"})
    await job.start()
    job.write(job.maps)
    assert job.node.merger is not None
    await job.node.merger.merge(job.id, "am1-1", job.maps[:10], timeout_s=30)
    await job.until_merged(10)
    assert (await job.node.merger.status()).merges == 1
    await job.close()


async def test_off_merges_nothing(start_node: StartNode) -> None:
    node = await start_node()
    assert node.merger is None and node.shuffle.merged.memory_bytes == 0
