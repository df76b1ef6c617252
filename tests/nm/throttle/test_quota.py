"""The kernel's bound on cores of an application. Where this machine lets nobody make such groups, little runs here."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from nm.daemon import NodeManager
from nm.throttle.quota import QuotaV1, quota_and_period
from nm.throttle.start import open_quota
from tests.nm.nm_cluster import FakeResourceManager
from tests.nm.nm_faults import gone, processes_of
from tests.nm.throttle.nm_throttled import APP, ONE, order, run_busy, said_s, stopped, used_s

StartNode = Callable[..., Awaitable[NodeManager]]


@pytest.mark.parametrize("cores", [0.0, 0.001, 0.01, 0.2, 1.0, 64.0, 1e6])
def test_the_kernel_takes_every_quota(cores: float) -> None:
    quota_us, period_us = quota_and_period(cores)
    assert quota_us >= 1000 and 1000 <= period_us <= 1_000_000
    if cores >= 0.001:
        assert quota_us / period_us == pytest.approx(cores, rel=0.01)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """The folder of groups that a node with this test's local folder uses."""
    try:
        quota = QuotaV1.open(tmp_path / "local")
    except OSError as error:
        pytest.skip(f"no group of the controller cpu can be made: {error}")
    yield quota.root
    quota.close()
    assert not quota.root.exists()


def pids(folder: Path) -> set[int]:
    return set(map(int, (folder / "cgroup.procs").read_text().split()))


@pytest.mark.slow
async def test_busy_workers_are_held_by_the_kernel(rm: FakeResourceManager, start_node: StartNode, root: Path) -> None:
    rm.capabilities.append("cores")
    node = await start_node()
    master = await run_busy(rm, node)
    order(rm, {APP: 200})
    assert await gone(lambda: not (root / str(APP)).exists() or len(pids(root / str(APP))) < 5)
    assert pids(root / str(APP)) == set(processes_of(ONE))
    began_s, began = used_s(), time.monotonic()
    await asyncio.sleep(4.0)  # what it is about: how much is used in a given time
    used, passed = used_s() - began_s, time.monotonic() - began
    assert 0.1 * passed <= used <= 0.2 * passed * 1.1 + 0.1 and not stopped()
    assert said_s(rm) == pytest.approx(used_s(), abs=0.15)
    order(rm, {APP: None})
    assert await gone(lambda: (root / str(APP)).exists())
    assert len(processes_of(ONE)) == 5
    await master.client.close()


async def test_what_the_kernel_does_not_take_is_held_by_signals(
    rm: FakeResourceManager, start_node: StartNode, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rm.capabilities.append("cores")
    node = await start_node()
    await asyncio.to_thread(root.rmdir)
    master = await run_busy(rm, node)
    order(rm, {APP: 20})
    assert await gone(lambda: len(stopped()) < 5)
    assert "signals do from now on" in caplog.text
    await master.client.close()
    await asyncio.to_thread(root.mkdir)


def test_groups_of_another_life_are_emptied(root: Path, tmp_path: Path) -> None:
    (root / "application_1_0001").mkdir()
    assert QuotaV1.open(tmp_path / "local").root == root
    assert not (root / "application_1_0001").exists()


def test_one_line_says_what_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert open_quota(tmp_path, None, is_wanted=False) is None
    assert "kept by signals (yaq.nm.throttle)" in caplog.text
