"""The slow disk and the small node of the benchmark are what they say, and the automatic choice's trial finds it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.riffle.slow_disk import OwnDisk, SmallNode, own_disk
from benchmarks.riffle.throttle import NoThrottle
from riffle_merger.format.ahead import announce
from riffle_merger.merger.disk import try_disk
from riffle_merger.merger.memory import available_bytes

pytestmark = pytest.mark.slow
SIZE = 2 << 30
REQUESTS_PER_S = 100
TRIES = 8


@contextmanager
def where_the_kernel_can() -> Iterator[None]:
    """Skips where it makes no disk slow and no node small, as in most containers."""
    try:
        yield
    except NoThrottle as missing:
        pytest.skip(str(missing))


@contextmanager
def disk_of(folder: Path, requests_per_s: int | None) -> Iterator[OwnDisk]:
    with where_the_kernel_can(), own_disk(folder, SIZE, requests_per_s=requests_per_s) as disk:
        yield disk


def node_of(memory_bytes: int) -> SmallNode:
    with where_the_kernel_can():
        return SmallNode("yaq-test", memory_bytes)


def test_the_trial_finds_what_the_kernel_makes_a_request_cost(tmp_path: Path) -> None:
    with disk_of(tmp_path, REQUESTS_PER_S) as disk:
        before = disk.requests()
        slow = try_disk(disk.folder, 0)
        asked = disk.requests().since(before)
    assert slow is not None
    assert slow.seek_us == pytest.approx(1e6 / REQUESTS_PER_S, rel=0.5)
    # 32 MB once each way, and the small reads
    assert asked.written_bytes >= 32 << 20 and asked.read_bytes >= 32 << 20 and asked.reads > 32
    assert str(tmp_path) not in subprocess.run(["losetup", "--list"], capture_output=True, text=True).stdout
    with disk_of(tmp_path / "fast", None) as disk:
        tries = [try_disk(disk.folder, 0) for _ in range(TRIES)]
    # whoever has the processor meanwhile makes a try long, and never short
    assert 4 * min(fast.seek_us for fast in tries if fast is not None) < slow.seek_us


def test_a_small_node_has_what_its_group_has() -> None:
    most = 512 << 20
    node = node_of(most)
    before = Path("/proc/self/cgroup").read_text()
    try:
        with node.inside():
            assert 0 < available_bytes() <= most
            assert Path("/proc/self/cgroup").read_text() != before
        assert Path("/proc/self/cgroup").read_text() == before
    finally:
        node.remove()


def test_a_small_node_waits_for_what_still_runs_in_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    node = node_of(64 << 20)
    with node.inside():
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    waits: list[float] = []

    def end_it(seconds: float) -> None:
        waits.append(seconds)
        child.communicate()

    # so no time passes while it lives
    monkeypatch.setattr("benchmarks.riffle.slow_disk.time.sleep", end_it)
    try:
        node.remove(patience_s=0.0)
        assert f"left behind, with processes {child.pid}" in capfd.readouterr().err and not waits
        node.remove(patience_s=60.0)
    finally:
        child.kill()
        child.communicate()
    assert waits and "left behind" not in capfd.readouterr().err
    with pytest.raises(FileNotFoundError):
        node.remove()


def test_what_is_announced_is_read_in_few_requests(tmp_path: Path) -> None:
    size = 8 << 20
    with disk_of(tmp_path, None) as disk:
        file = disk.folder / "file"
        file.write_bytes(os.urandom(size))
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            before = disk.requests()
            announce(descriptor, 0, size)
            for at in range(0, size, 50_000):
                os.pread(descriptor, 50_000, at)
            asked = disk.requests().since(before)
        finally:
            os.close(descriptor)
    assert asked.read_bytes >= size
    # 128 KB each, as the kernel reads ahead by itself, would be 64
    assert asked.reads <= 24
