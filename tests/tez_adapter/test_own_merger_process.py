"""A job's own merger as a process: whom it serves, and when it ends."""

import asyncio
import os
import secrets
import sys
from pathlib import Path

import psutil
import pytest

from riffle_merger.service.protocol import RiffleMergerProtocol
from tests.tez_adapter.tez_own_mergers import JOB, SIZE, mergers, serving
from tez_adapter.core import events as ev
from tez_adapter.core.mergers import MERGER_PRIORITY
from tez_adapter.jobspec import JOB_FILE, JobKind, JobSpec
from tez_adapter.merging.job_mergers import JobMergers
from yaqd.ipc import NO_RETRY, RemoteException, RpcClient
from yaqd.proto import riffle_pb2 as pb
from yaqd.security import Credentials, JobTokenSecrets, Token

# ---- the process


@pytest.fixture
def container(tmp_path: Path) -> Path:
    """What a merger's process finds in its working folder, but for its credentials."""
    spec = JobSpec(JOB, "n", "u", JobKind.MAPREDUCE, {"mapreduce.map.memory.mb": "512"}, "hdfs://h/s", reduces=1)
    (tmp_path / JOB_FILE).write_bytes(spec.dump())
    return tmp_path


async def start(folder: Path, token: Token, address: tuple[str, int]) -> asyncio.subprocess.Process:
    await asyncio.to_thread((folder / "tokens").write_bytes, Credentials({"job": token}, {}).write())
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tez_adapter.merging.container",
        "{}:{}".format(*address),
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "CONTAINER_ID": "a",
            "HADOOP_TOKEN_FILE_LOCATION": str(folder / "tokens"),
            "NM_HOST": "127.0.0.1",
        },
    )


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("how", ["the job manager is gone", "it is over"])
async def test_its_process_serves_its_job_alone_and_ends_by_itself(container: Path, how: str) -> None:
    token = JobTokenSecrets(secrets.token_bytes).mint(JOB)
    async with serving(token) as (server, _):
        own = mergers()
        jobs = JobMergers(own, server, lambda _: None)
        jobs.handle(ev.ContainerAllocated("a", "h:1", "127.0.0.1", SIZE, MERGER_PRIORITY))
        process = await start(container, token, server.address)
        try:
            async with asyncio.timeout(60):
                while not own.known():
                    await jobs.news()
            [(host, port)] = own.known()
            client = RpcClient(host, port, user=JOB, token=token, connect_retries=NO_RETRY)
            assert (await client.call(RiffleMergerProtocol.status, pb.StatusRequest())).budget_bytes == 256 << 20
            for folder, error in (("", "job_2_0002"), ("file:///f", "no folder on HDFS")):
                job = "job_2_0002" if not folder else JOB
                request = pb.MergeRequest(job_id=job, merge_id="m", map_ids=["x", "y"], folder=folder)
                with pytest.raises(RemoteException, match=error):
                    await client.call(RiffleMergerProtocol.merge, request)
            await client.close()
            nobody = RpcClient(host, port, user="u", connect_retries=NO_RETRY)
            with pytest.raises(RemoteException):
                await nobody.call(RiffleMergerProtocol.status, pb.StatusRequest())
            await nobody.close()
            # its job's manager comes alone: what is beyond a few connections is closed at once
            held = [await asyncio.open_connection(host, port) for _ in range(17)]
            async with asyncio.timeout(5):
                assert await held[-1][0].read(1) == b""
            for _, writer in held:
                writer.close()
            if how == "it is over":
                jobs.end()
            else:
                await server.stop()
            async with asyncio.timeout(30):
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert not psutil.pid_exists(process.pid)
