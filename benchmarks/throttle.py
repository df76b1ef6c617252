"""How exactly a node holds jobs to their cores: `python -m benchmarks.throttle [--json] [--only ROW]`.

A ResourceManager of ours runs in this process and one NodeManager beside it. Each job has one container with four busy
workers, which ignore that they are given few cores. Counted is what the kernel's clocks say of the workers, against the
tokens that they were given in that time: 1 is exact.

| row | what is measured |
| --- | --- |
| throttle | one job with 0.2 cores for 30 s, by signals |
| throttle-quota | the same by the kernel's quota; skipped where no control group can be bounded |
| throttle-busy | as the first, while as many other processes as there are processors are busy |
| throttle-20 | 20 such jobs with 0.05 cores each, by signals: all together, and the worst of them |

Beside each: how many processors everything else on the machine used meanwhile, and what the NodeManager itself used.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from nm.resources.process_scan import machine_cpu_s
from nm.throttle.look import processor_clock
from rm.daemon import ResourceManager
from yaqd.config import Configuration
from yaqd.ipc.loop import run
from yaqd.model import ApplicationId
from yaqd.proto import convert

from .options import Options, parse_options, progress, show
from .report import Row, make_row
from .unmanaged_master import UnmanagedMaster

ROWS = ("throttle", "throttle-quota", "throttle-busy", "throttle-20")
_WORKERS = 4
_BUSY = f"for i in {' '.join('x' * _WORKERS)}; do (while :; do :; done) & done; wait"
_SECONDS = 30.0
#: until all have settled
_SETTLE_S = 3.0
_LOOPBACK = "127.0.0.1"
_DEADLINE_S = 60.0


class SkippedHere(Exception):
    """The row cannot be measured on this machine; the text says why."""


@dataclass(frozen=True, slots=True)
class Job:
    master: UnmanagedMaster
    app_id: ApplicationId
    #: its container's, with those of the workers
    pids: tuple[int, ...]
    #: when they were started
    began: float

    def used_s(self) -> float:
        """Return what the kernel's clocks say of its processes."""
        return sum(processor_clock(pid) or 0.0 for pid in self.pids)


@dataclass(frozen=True, slots=True)
class Measured:
    #: used / given, of all jobs together, and of the job that is farthest from 1
    together: float
    worst: float
    #: of all jobs together since the first of them started, with that
    since_start: float
    #: processors that everything else on the machine used, and the NodeManager
    others: float
    node: float


def configuration(folder: Path, how: str) -> Configuration:
    """Settings of both daemons; their ports are free ones."""
    places = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
    return Configuration.load(
        environ={},
        overrides={
            "yarn.resourcemanager.hostname": _LOOPBACK,
            **{f"yarn.resourcemanager.{place}": f"{_LOOPBACK}:0" for place in places},
            "yaq.rm.state-store.path": "memory",
            "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "500",
            "yarn.nodemanager.hostname": _LOOPBACK,
            "yarn.nodemanager.webapp.address": f"{_LOOPBACK}:0",
            "yarn.nodemanager.resource.memory-mb": "65536",
            "yarn.nodemanager.resource.cpu-vcores": "64",
            "mapreduce.shuffle.port": "0",
            "yarn.nodemanager.local-dirs": str(folder / "local"),
            "yarn.nodemanager.log-dirs": str(folder / "logs"),
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yaq.nm.warm-start.enabled": "false",
            "yaq.riffle.enabled": "false",
            "yaq.nm.throttle": how,
        },
    )


@asynccontextmanager
async def daemons(folder: Path, how: str) -> AsyncIterator[tuple[ResourceManager, psutil.Process]]:
    """Run both; `how` is the node's way to hold jobs."""
    conf = configuration(folder, how)
    manager = ResourceManager(conf)
    await manager.start()
    (folder / "conf").mkdir()
    tracker = f"{_LOOPBACK}:{manager.servers.tracker.port}"
    conf.with_overrides({"yarn.resourcemanager.resource-tracker.address": tracker}).write_xml(
        folder / "conf" / "yarn-site.xml"
    )
    with (folder / "nm.log").open("wb") as log:
        node = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "nm"),
            stdout=log,
            stderr=log,
            env={**os.environ, "HADOOP_CONF_DIR": str(folder / "conf")},
        )
    try:
        await _until(lambda: bool(manager.cluster.nodes), "the node to register")
        if how == "auto" and "kept by the kernel" not in (folder / "nm.log").read_text():
            raise SkippedHere("no control group of the controller cpu can be bounded here")
        yield manager, psutil.Process(node.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            node.terminate()
        await node.wait()
        await manager.stop()


async def start_job(manager: ResourceManager, node: psutil.Process, cores: float) -> Job:
    """Start one with a container of busy workers, of which the node knows before that it has so many cores."""
    before = {child.pid for child in node.children(recursive=True)}
    here = (_LOOPBACK, manager.servers.client.port), (_LOOPBACK, manager.servers.masters.port)
    master = await asyncio.to_thread(partial(UnmanagedMaster, *here, user="alice"))
    container = await asyncio.to_thread(master.get_container)
    app_id = convert.application_id(master.application_id)
    if not manager.tracker.cores.set_cores(app_id, round(1000 * cores)):
        raise AssertionError(f"{app_id} is gone")
    (place,) = manager.cluster.nodes.values()
    await _until(lambda: app_id in place.cores_told, "the node to hear of the cores")
    told = place.response_id
    await _until(lambda: place.response_id != told, "the node to have heard of them")
    began = time.monotonic()
    await asyncio.to_thread(partial(master.start, container, _BUSY))

    def workers() -> list[int]:
        return [one.pid for one in node.children(recursive=True) if one.pid not in before]

    await _until(lambda: len(workers()) > _WORKERS, "the workers to start")
    return Job(master, app_id, tuple(workers()), began)


async def measure(how: str, *, jobs: int, cores: float, seconds: float, busy: bool = False) -> Measured:
    """Run so many jobs, each with so many cores. Raises SkippedHere."""
    with tempfile.TemporaryDirectory(prefix="yaqd-throttle-") as folder:
        async with daemons(Path(folder), how) as (manager, node):
            started: list[Job] = []
            for _ in range(jobs):
                started.append(await start_job(manager, node, cores))
            with _busy(psutil.cpu_count() or 1 if busy else 0) as beside:
                await asyncio.sleep(_SETTLE_S)
                measured = await _count(started, node, beside, cores, seconds)
            for job in started:
                await asyncio.to_thread(job.master.__exit__, None, None, None)
            return measured


async def _count(
    jobs: Sequence[Job], node: psutil.Process, beside: Sequence[int], cores: float, seconds: float
) -> Measured:
    def read() -> tuple[float, list[float], float, float, float]:
        own_s = time.process_time() + sum(processor_clock(pid) or 0.0 for pid in beside)
        used_s = [job.used_s() for job in jobs]
        return time.monotonic(), used_s, machine_cpu_s(), processor_clock(node.pid) or 0.0, own_s

    first = read()
    await asyncio.sleep(seconds)
    last = read()
    passed = last[0] - first[0]
    used = [after - before for before, after in zip(first[1], last[1], strict=True)]
    parts = [one / (cores * passed) for one in used]
    machine, daemon, own = last[2] - first[2], last[3] - first[3], last[4] - first[4]
    return Measured(
        together=sum(used) / (cores * passed * len(jobs)),
        since_start=sum(last[1]) / sum(cores * (last[0] - job.began) for job in jobs),
        worst=max(parts, key=lambda part: abs(part - 1)),
        others=max(0.0, machine - daemon - own - sum(used)) / passed,
        node=daemon / passed,
    )


@contextmanager
def _busy(number: int) -> Iterator[list[int]]:
    """Keep so many processors busy by other processes."""
    processes = [subprocess.Popen((sys.executable, "-c", "while True: pass")) for _ in range(number)]
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


async def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain for {what}")
        await asyncio.sleep(0.05)  # what it waits for is told by nobody


def how_of(row_id: str) -> Mapping[str, Any]:
    """Return what `measure` runs for a row."""
    one: dict[str, Any] = {"how": "signals", "jobs": 1, "cores": 0.2}
    return {
        "throttle": one,
        "throttle-quota": {**one, "how": "auto"},
        "throttle-busy": {**one, "busy": True},
        "throttle-20": {**one, "jobs": 20, "cores": 0.05},
    }[row_id]


def measure_rows(options: Options) -> tuple[list[Row], dict[str, dict[str, Any]]]:
    """Measure the rows that are wanted, and what there is to say beside each."""
    rows: list[Row] = []
    beside: dict[str, dict[str, Any]] = {}
    for row_id in filter(options.wants, ROWS):
        found: list[Measured] = []
        for number in range(options.runs):
            try:
                found.append(run(measure(**how_of(row_id), seconds=_SECONDS * options.scale)))
            except SkippedHere as why:
                beside[row_id] = {"skipped": str(why)}
                break
            progress(f"{row_id}: run {number}: {found[-1]}")
        if found:
            together = [one.together for one in found]
            rows.append(make_row(row_id, together, None, "used / given", higher_is_better=False))
            beside[row_id] = {
                "since their start": [one.since_start for one in found],
                "worst job": [one.worst for one in found],
                "processors used by others": [one.others for one in found],
                "processors used by the NodeManager": [one.node for one in found],
                "processors": os.cpu_count(),
            }
    return rows, beside


def main() -> int:
    """Run the benchmark."""
    options = parse_options("throttle", "how exactly jobs are held to their cores", ROWS, runs=1)
    return show(*measure_rows(options), options)


if __name__ == "__main__":
    sys.exit(main())
