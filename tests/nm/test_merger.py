"""The merger's process under its node: real merges over real RPC, and every way in which it can go away."""

import asyncio
import json
import os
import signal
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from aiohttp.test_utils import make_mocked_request

from nm.daemon import NodeManager
from nm.merger import MergerProcess, MergerProcessSettings, MergerUnavailable
from nm.merger.web import MergerPage
from riffle_merger.format import MergedIndex
from riffle_merger.service.protocol import MergeRefused, RiffleMergerProtocol
from tests.nm.nm_cluster import FakeResourceManager, Master, application, container_id, launch_context
from tests.riffle_merger.map_outputs import write_output
from yaqd.ipc import NO_RETRY, RemoteException, RpcClient, RpcError
from yaqd.proto import riffle_pb2 as pb
from yaqd.security import JOB_TOKEN, Token
from yaqd.security.writable import encode_text

JOB, OTHER = "job_1700000000000_0001", "job_1700000000000_0002"
SETTINGS = MergerProcessSettings(
    is_enabled=True,
    bind_host="127.0.0.1",
    port=0,
    budget_bytes=16 << 20,
    running_max=1,
    waiting_max=3,
    niceness=5,
    is_idle_io=False,
    stall_s=20.0,
)
MAPS = ["attempt_a", "attempt_b"]


def token(job_id: str, password: bytes) -> Token:
    return Token(encode_text(job_id), password, JOB_TOKEN, "")


def client(merger: MergerProcess, proof: Token) -> RpcClient:
    assert merger.port is not None
    return RpcClient("127.0.0.1", merger.port, user="alice", token=proof, connect_retries=NO_RETRY)


async def running(settings: MergerProcessSettings = SETTINGS) -> MergerProcess:
    merger = MergerProcess(settings)
    merger.start()
    async with asyncio.timeout(30):
        await merger.ready()
    return merger


@pytest.fixture
async def merger() -> AsyncIterator[MergerProcess]:
    merger = await running()
    yield merger
    pid = merger.pid
    await merger.stop()
    assert pid is None or not psutil.pid_exists(pid)


def outputs(app_dir: Path) -> list[list[bytes]]:
    return [write_output(app_dir, name, [name.encode() * 50, b"", b"x" * 1000]) for name in MAPS]


async def test_a_job_has_its_outputs_merged_and_nobody_else_has(merger: MergerProcess, tmp_path: Path) -> None:
    written = outputs(tmp_path)
    merger.add_job(JOB, b"secret", [tmp_path / "none", tmp_path])
    merger.add_job(OTHER, b"another", [tmp_path])
    own, foreign = client(merger, token(JOB, b"secret")), client(merger, token(OTHER, b"another"))
    try:
        await merger.status()  # what was told before has come in by then
        request = pb.MergeRequest(job_id=JOB, merge_id="am1-1", map_ids=MAPS)
        merged = await own.call(RiffleMergerProtocol.merge, request)
        data = (tmp_path / "riffle" / f"{merged.name}.out").read_bytes()
        assert data == b"".join(output[partition] for partition in range(3) for output in written)
        assert merged.path == str(tmp_path / "riffle" / f"{merged.name}.out")
        assert MergedIndex.load(tmp_path / "riffle" / f"{merged.name}.out.index").maps == tuple(MAPS)
        assert (merged.bytes, merged.partitions) == (len(data), 3)

        again = await own.call(RiffleMergerProtocol.merge, request)
        assert again == merged  # asked again: the same answer, nothing done
        request.map_ids.pop()
        with pytest.raises(RemoteException, match="other map outputs"):
            await own.call(RiffleMergerProtocol.merge, request)
        with pytest.raises(RemoteException, match="no say in"):
            await foreign.call(RiffleMergerProtocol.merge, request)
        with pytest.raises(RemoteException, match="no say in"):
            await foreign.call(RiffleMergerProtocol.forgetJob, pb.ForgetJobRequest(job_id=OTHER))
        for maps in (["attempt_a", "../b"], ["missing"], []):
            with pytest.raises(RemoteException) as refused:
                await own.call(RiffleMergerProtocol.merge, pb.MergeRequest(job_id=JOB, merge_id="am1-2", map_ids=maps))
            assert refused.value.class_name == MergeRefused.JAVA_CLASS
        seen = await own.call(RiffleMergerProtocol.status, pb.StatusRequest())
        assert [(job.job_id, job.merges, job.merged_bytes) for job in seen.jobs] == [(JOB, 1, len(data))]
        assert (await merger.status()).merges == 1
    finally:
        await own.close()
        await foreign.close()


async def test_who_proves_nothing_stays_outside_and_so_does_a_job_that_is_over(
    merger: MergerProcess, tmp_path: Path
) -> None:
    outputs(tmp_path)
    merger.add_job(JOB, b"secret", [tmp_path])
    await merger.merge(JOB, "1", MAPS, timeout_s=20)
    for proof in (token(JOB, b"wrong"), token("job_1_1", b"secret"), token("node", b"secret")):
        stranger = client(merger, proof)
        with pytest.raises((RpcError, RemoteException)):
            await stranger.call(RiffleMergerProtocol.status, pb.StatusRequest(), timeout_s=5)
        await stranger.close()
    own = client(merger, token(JOB, b"secret"))
    await own.call(RiffleMergerProtocol.status, pb.StatusRequest())
    merger.forget_job(JOB)
    await merger.status()
    with pytest.raises(RemoteException, match="not known"):
        await own.call(RiffleMergerProtocol.merge, pb.MergeRequest(job_id=JOB, merge_id="2", map_ids=MAPS))
    await own.close()
    with pytest.raises(MergerUnavailable):
        await merger.merge(JOB, "3", MAPS, timeout_s=5)
    await ends_with_its_node(merger)


async def ends_with_its_node(merger: MergerProcess) -> None:
    assert merger.pid is not None
    process = psutil.Process(merger.pid)
    assert process.nice() >= 5
    assert process.ionice().ioclass == psutil.IOPRIO_CLASS_BE
    assert process.rlimit(psutil.RLIMIT_DATA)[0] == SETTINGS.budget_bytes + (384 << 20)
    assert merger._process is not None and merger._process.stdin is not None
    merger._process.stdin.close()  # as the kernel does when the node is killed
    async with asyncio.timeout(20):
        while psutil.pid_exists(process.pid):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def replaced(merger: MergerProcess, pid: int) -> None:
    async with asyncio.timeout(40):
        while merger.pid in (pid, None) or psutil.pid_exists(pid):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await merger.ready()


@pytest.mark.slow
async def test_a_killed_merger_and_one_that_hangs_are_replaced_and_callers_are_told(tmp_path: Path) -> None:
    outputs(tmp_path)
    merger = await running(replace(SETTINGS, stall_s=2.0))
    try:
        merger.add_job(JOB, b"secret", [tmp_path])
        await merger.merge(JOB, "1", MAPS, timeout_s=20)
        (tmp_path / "riffle/.2.out").write_bytes(b"half a merge")
        killed = merger.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        await replaced(merger, killed)
        await merger.merge(JOB, "2", MAPS, timeout_s=20)
        names = {path.name for path in (tmp_path / "riffle").iterdir()}
        assert len(names) == 4 and ".2.out" not in names
        hanging = merger.pid
        assert hanging is not None
        os.kill(hanging, signal.SIGSTOP)
        with pytest.raises(RpcError):
            await merger.merge(JOB, "3", MAPS, timeout_s=30)
        await replaced(merger, hanging)
        assert merger.restarts == 2
    finally:
        await merger.stop()


async def test_its_page_says_whether_it_is_down_starting_or_up() -> None:
    merger = MergerProcess(SETTINGS)
    page = MergerPage(merger)

    async def state() -> tuple[bool, bool]:
        body = (await page.answer(make_mocked_request("GET", "/"))).body
        assert isinstance(body, bytes)
        facts = json.loads(body)["merger"]
        return facts["starting"], facts["up"]

    assert await state() == (False, False)
    merger.start()
    try:
        await asyncio.sleep(0)  # it is started by a task
        assert await state() == (True, False)
        async with asyncio.timeout(30):
            await merger.ready()
        assert await state() == (False, True)
    finally:
        await merger.stop()
    assert await state() == (False, False)


async def test_the_node_announces_it_and_tells_it_of_jobs(
    start_node: Callable[..., Awaitable[NodeManager]], rm: FakeResourceManager
) -> None:
    node = await start_node({"yaq.riffle.enabled": "true", "yaq.riffle.merger.memory": "16m"})
    assert node.merger is not None
    async with asyncio.timeout(30):
        await node.merger.ready()
    master = Master(rm, node)
    job = f"job_{application().cluster_timestamp}_{application().id:04d}"
    data = Token(encode_text(job), b"password", JOB_TOKEN, "").to_writable()
    try:
        response = await master.start(
            container_id(1), launch_context("sleep 60", service_data={"mapreduce_shuffle": data})
        )
        ports = {item.key: struct.unpack(">i", item.value)[0] for item in response.services_meta_data}
        assert ports == {"mapreduce_shuffle": node.shuffle.port, "riffle_merger": node.merger.port}
        (app_dir, *_) = node.directories.app_dirs("alice", application())
        outputs(app_dir)
        own = client(node.merger, token(job, b"password"))
        await node.merger.status()
        merged = await own.call(RiffleMergerProtocol.merge, pb.MergeRequest(job_id=job, merge_id="am1-1", map_ids=MAPS))
        assert Path(merged.path).parent == app_dir / "riffle"
        await own.close()
    finally:
        await master.client.close()
