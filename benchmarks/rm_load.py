"""What a ResourceManager bears: `python -m benchmarks.rm_load`.

2,000 simulated NodeManagers and 20 application masters (`benchmarks.load_client`, the same for both sides) talk Hadoop
RPC to one ResourceManager; it and the client each have a core of their own.

Row `heartbeats`: heartbeats per second with every node's next one following its answer at once. Beside it: what comes
of one heartbeat per node and second (rate and 99th percentile of due-to-answered).
Row `allocations`: containers handed to masters per second while all nodes beat once a second.
"""

import asyncio
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from yaqd.ipc.loop import run

from .load_client import Beats, NodeFleet
from .load_masters import Allocations, Masters
from .memory import pss_mb
from .options import Options, parse_options, progress, show, stock_jars
from .report import make_row
from .stock.artifacts import HadoopJars
from .stock.conf import capacity_site, write_conf
from .stock.daemons import StockYarn
from .stock.processes import accepts, free_ports

HEARTBEATS = "heartbeats"
ALLOCATIONS = "allocations"
NODES = 2000
MASTERS = 20
_PACED_S = 10.0
_FLAT_OUT_S = 6.0
_ALLOCATE_S = 8.0
_WARM_S = 2.0
#: so many runs without a tenth more than the best one end the warming up
_WARM_STALLED_RUNS = 3
_WARM_RUNS_MAX = 20
_IN_FLIGHT = 256
#: a stock ResourceManager answers over HTTP before it listens for nodes
_LISTENS_S = 60.0
#: containers that each master has asked for and not got, at any time
_WANT = 100
_MASTER_INTERVAL_S = 0.05
#: the stock side gets its full compiler and more memory than it needs here
_STOCK_JVM = ("-XX:+UseSerialGC", "-Xms1g", "-Xmx2g")
#: by default it places one container per heartbeat where locality does not matter, which would decide the row
_STOCK_SITE = {"yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments": 100}


@dataclass(frozen=True, slots=True)
class Manager:
    """A running ResourceManager."""

    pid: int
    client: tuple[str, int]
    scheduler: tuple[str, int]
    tracker: tuple[str, int]


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Processes started inside inherit one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def stock_manager(
    jars: HadoopJars, folder: Path, core: int, site: Mapping[str, object] = {}, scheduler: Mapping[str, object] = {}
) -> Iterator[Manager]:
    """A stock ResourceManager without nodes, on one core; `site` and `scheduler` are set over what is usual here."""
    yarn = StockYarn(
        jars, folder, nodes=0, history=False, jvm=_STOCK_JVM, site={**_STOCK_SITE, **site}, queues=scheduler
    )
    try:
        with pinned(core):
            yarn.start()
        daemon = yarn.daemons["resourcemanager"]
        for address in (yarn.rm_address, yarn.scheduler_address, yarn.tracker_address):
            daemon.await_ready(partial(accepts, *address), _LISTENS_S)
        yield Manager(daemon.pid, yarn.rm_address, yarn.scheduler_address, yarn.tracker_address)
    finally:
        yarn.stop()


@contextmanager
def our_manager(folder: Path, core: int, site: Mapping[str, object] = {}) -> Iterator[Manager]:
    """Our ResourceManager without nodes, on one core; `site` is set over what is usual here."""
    ports = free_ports(5)
    names = ("", ".scheduler", ".resource-tracker", ".admin", ".webapp")
    yarn: dict[str, object] = {
        f"yarn.resourcemanager{name}.address": f"127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)
    }
    yarn |= {"yarn.resourcemanager.hostname": "127.0.0.1", "yarn.scheduler.minimum-allocation-mb": 128}
    yarn |= {"yaq.rm.state-store.path": folder / "state.db", **site}
    core_site = {"fs.defaultFS": "file:///", "hadoop.tmp.dir": folder / "tmp"}
    conf = write_conf(folder / "conf", {"core": core_site, "yarn": yarn, "capacity": capacity_site()})
    with pinned(core), (folder / "rm.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "rm"],
            env=os.environ | {"HADOOP_CONF_DIR": str(conf)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        if "ready" not in line:
            raise RuntimeError(f"our ResourceManager did not start: {line}{(folder / 'rm.log').read_text()[-2000:]}")
        addresses = [("127.0.0.1", port) for port in ports]
        yield Manager(process.pid, addresses[0], addresses[1], addresses[2])
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def warm_up(run_once: Callable[[], Awaitable[Beats | Allocations]]) -> None:
    """Repeat until the rate stops growing: the stock side starts interpreted and compiles what it does often."""
    best, stalled = 0.0, 0
    for _ in range(_WARM_RUNS_MAX):
        rate = (await run_once()).rate
        stalled = stalled + 1 if rate <= best * 1.1 else 0
        best = max(best, rate)
        if stalled == _WARM_STALLED_RUNS:
            return


def cpu_seconds(pid: int) -> float:
    """Processor time of one process so far: what the rates would be worth on a machine of its own."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


async def load_heartbeats(fleet: NodeFleet, pid: int, runs: int) -> tuple[list[float], Beats, float]:
    """Return the heartbeats per second of each run flat out, the paced period before them, and the CPU time of one."""
    await warm_up(lambda: fleet.beat_flat_out(_WARM_S, _IN_FLIGHT))
    paced = await fleet.beat_paced(len(fleet.nodes), _PACED_S)
    cpu_s = cpu_seconds(pid)
    flat_out = [await fleet.beat_flat_out(_FLAT_OUT_S, _IN_FLIGHT) for _ in range(runs)]
    cpu_s = cpu_seconds(pid) - cpu_s
    for beats in (paced, *flat_out):
        if beats.errors:
            raise RuntimeError(f"{beats.errors} heartbeats failed, first {beats.first_error}")
    cpu_us = cpu_s / sum(beats.count for beats in flat_out) * 1e6
    return [beats.rate for beats in flat_out], paced, cpu_us


async def load_allocations(
    fleet: NodeFleet, players: Masters, masters: int, pid: int, runs: int
) -> tuple[list[float], float, float]:
    """Return the allocations per second of each run, the median allocate call in ms, and the CPU time of one."""
    beating = asyncio.create_task(fleet.beat_paced(len(fleet.nodes), math.inf))
    await players.submit(masters, timeout_s=60)
    await warm_up(lambda: players.allocate_for(_WARM_S, _WANT, _MASTER_INTERVAL_S))
    cpu_s = cpu_seconds(pid)
    results = [await players.allocate_for(_ALLOCATE_S, _WANT, _MASTER_INTERVAL_S) for _ in range(runs)]
    cpu_s = cpu_seconds(pid) - cpu_s
    await players.finish(fleet)
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)
    latencies = sorted(latency for result in results for latency in result.latencies_s)
    cpu_us = cpu_s / max(sum(result.count for result in results), 1) * 1e6
    return [result.rate for result in results], latencies[len(latencies) // 2] * 1000, cpu_us


async def measure(
    manager: Manager, side: str, options: Options, beside: dict[str, dict[str, Any]]
) -> dict[str, list[float]]:
    """Run the wanted rows against one ResourceManager, with the same nodes."""
    nodes, masters = max(int(NODES * options.scale), 10), max(int(MASTERS * options.scale), 1)
    players = Masters(manager.client, manager.scheduler)
    fleet = NodeFleet(manager.tracker, nodes=nodes, connections=nodes, on_master=players.on_master)
    await fleet.start()
    found: dict[str, list[float]] = {}
    if options.wants(HEARTBEATS):
        found[HEARTBEATS], paced, cpu_us = await load_heartbeats(fleet, manager.pid, options.runs)
        beside[HEARTBEATS][f"{side}: CPU per heartbeat"] = f"{cpu_us:.0f} us"
        beside[HEARTBEATS][f"{side} at {nodes}/s"] = (
            f"{paced.rate:.0f}/s answered, p50 {paced.percentile_ms(0.5):.1f} ms, "
            f"p99 {paced.percentile_ms(0.99):.1f} ms, {paced.skipped} late"
        )
    if options.wants(ALLOCATIONS):
        found[ALLOCATIONS], median_ms, cpu_us = await load_allocations(
            fleet, players, masters, manager.pid, options.runs
        )
        beside[ALLOCATIONS][f"{side}: CPU per allocation, its share of heartbeats included"] = f"{cpu_us:.0f} us"
        beside[ALLOCATIONS][f"{side}: median allocate call"] = f"{median_ms:.1f} ms"
    await fleet.stop()
    for row, rates in found.items():
        progress(f"{row}: {side}: {', '.join(f'{rate:.0f}' for rate in rates)} /s")
        beside[row][f"{side}: PSS of the ResourceManager"] = f"{pss_mb(manager.pid) or 0:.0f} MB"
    return found


def main() -> int:
    """Runs the benchmark."""
    options = parse_options("rm_load", __doc__ or "", [HEARTBEATS, ALLOCATIONS], runs=3)
    jars = stock_jars() if options.theirs else None
    cores = sorted(os.sched_getaffinity(0))
    beside: dict[str, dict[str, Any]] = {HEARTBEATS: {}, ALLOCATIONS: {}}
    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="yaqd-bench-") as name, pinned(cores[-1]):
        if jars is not None:
            with stock_manager(jars, Path(name) / "stock", cores[0]) as manager:
                found["theirs"] = run(measure(manager, "theirs", options, beside))
        if options.ours:
            folder = Path(name) / "ours"
            folder.mkdir()
            with our_manager(folder, cores[0]) as manager:
                found["ours"] = run(measure(manager, "ours", options, beside))
    rows = [
        make_row(row, rates, found.get("theirs", {}).get(row), f"{row}/s", higher_is_better=True)
        for row, rates in found.get("ours", {}).items()
    ]
    return show(rows, {row: facts for row, facts in beside.items() if facts}, options)


if __name__ == "__main__":
    sys.exit(main())
