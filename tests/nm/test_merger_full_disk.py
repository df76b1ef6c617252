"""A disk that is full while the real merger writes: nothing half-made, the originals served, the queue goes on."""

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.limits import ShuffleLimits
from nm.shuffle.merged.scan import FolderScan
from riffle_merger.service.protocol import MergeFailed
from tests.nm.nm_merger_kept import MB, started, verified
from tests.nm.nm_shuffle_served import APPLICATION, JOB, USER, Served, job_token
from tests.nm.nm_small_disk import leave_free, small_disk
from tests.riffle_merger.map_outputs import write_output
from yaqd.ipc import RemoteException

LARGE = ["attempt_a", "attempt_b"]
SMALL = ["attempt_c", "attempt_d"]
REDUCES = 4
#: of the merged file of the large ones, a whole number of pages
DATA = 2 * REDUCES * MB
INDEX_BYTES_MAX = 4096


class Node:
    """What a node has of the job: its shuffle service, and the look at its folders."""

    def __init__(self, disk: Path) -> None:
        jobs = ShuffleJobs()
        job = jobs.add(APPLICATION, USER, job_token())
        self.served = Served(disk, jobs, ShuffleLimits(100, False, 5.0), 1 << 20)
        self.app_dir = self.served.output_dir.parent
        self._scan = FolderScan([self.app_dir], lambda map_id: self.served.outputs.load(job, map_id))

    def look(self) -> int:
        """Has what appeared served; how many merged files did."""
        found = self._scan.scan().merged
        for file in found:
            self.served.service.publish(JOB, file)
        return len(found)

    def answers(self) -> list[str]:
        """Check sums of what reducers get."""
        sums = []
        for reduce in range(REDUCES):
            response, body = self.served.get(self.served.target(LARGE + SMALL, reduce))
            assert response.status == 200
            sums.append(hashlib.sha256(body).hexdigest())
        return sums


@pytest.mark.slow
@pytest.mark.parametrize("free", [MB, DATA], ids=["no-room-for-the-data", "none-for-its-index"])
async def test_a_full_disk_fails_the_merge_that_does_not_fit_and_no_other(tmp_path: Path, free: int) -> None:
    with small_disk(tmp_path / "disk", 32 * MB) as disk:
        node = Node(disk)
        try:
            await fill_and_merge(disk, node, free)
        finally:
            node.served.service.stop()


async def fill_and_merge(disk: Path, node: Node, free: int) -> None:
    large = [write_output(node.app_dir, name, [os.urandom(MB - 4)] * REDUCES) for name in LARGE]
    small = [write_output(node.app_dir, name, [os.urandom(1000)] * REDUCES) for name in SMALL]
    before = await asyncio.to_thread(node.answers)
    merger = await started(node.app_dir, JOB)
    folder = node.app_dir / "riffle"
    try:
        filler = leave_free(disk, free)
        asked = [merger.merge(JOB, name, maps, timeout_s=30) for name, maps in (("1", LARGE), ("2", SMALL))]
        failed, merged = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(failed, RemoteException) and failed.class_name == MergeFailed.JAVA_CLASS, failed
        assert str(folder) in failed.message and "No space left on device; free space there" in failed.message
        assert "yarn.nodemanager.local-dirs" in failed.message
        assert not isinstance(merged, BaseException), merged
        verified(node.app_dir, merged.name, small)
        assert sorted(path.name for path in folder.iterdir()) == [f"{merged.name}.out", f"{merged.name}.out.index"]
        assert node.look() == 1
        assert await asyncio.to_thread(node.answers) == before
        found = os.statvfs(disk)
        assert found.f_bavail * found.f_frsize >= free - 2 * INDEX_BYTES_MAX - 3 * 4096  # what failed gave all back
        filler.unlink()
        merged = await merger.merge(JOB, "1", LARGE, timeout_s=30)
        verified(node.app_dir, merged.name, large)
        assert node.look() == 1
        assert await asyncio.to_thread(node.answers) == before
        assert merger.restarts == 0
    finally:
        await merger.stop()
