"""A merger's process under its node's keeper, for one job, and a look at what it made."""

import asyncio
from pathlib import Path

from nm.merger import MergerProcess, MergerProcessSettings
from riffle_merger.format import MergedIndex

MB = 1 << 20
JOB = "job_1700000000000_0001"
SETTINGS = MergerProcessSettings(
    is_enabled=True,
    bind_host="127.0.0.1",
    port=0,
    budget_bytes=16 * MB,
    running_max=1,
    waiting_max=10,
    niceness=5,
    is_idle_io=False,
    stall_s=30.0,
)


async def started(app_dir: Path, job: str = JOB) -> MergerProcess:
    merger = MergerProcess(SETTINGS)
    merger.start()
    merger.add_job(job, b"secret", [app_dir])
    async with asyncio.timeout(30):
        await merger.ready()
    return merger


def verified(app_dir: Path, name: str, written: list[list[bytes]]) -> None:
    path = app_dir / "riffle" / f"{name}.out"
    data = path.read_bytes()
    assert data == b"".join(output[p] for p in range(len(written[0])) for output in written)
    index = MergedIndex.load(f"{path}.index")
    index.check_file(len(data))
    index.check()
