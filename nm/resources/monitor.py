"""The memory watch: one scan of /proc per tick for all containers, and the sweep of what containers left behind.

Orphans of containers become children of this process (a child subreaper), which reaps their remains.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Iterable
from concurrent.futures import Executor as ThreadExecutor
from functools import partial

from nm.containers.container import Container
from nm.containers.runtime import ContainerRuntime
from nm.containers.states import Stage
from nm.heartbeat import Utilization
from nm.resources.groups import ContainerGroup, ContainerGroups
from nm.resources.memory_limit import MemoryLimits, excess, is_over
from nm.resources.process_scan import ProcessTable, Usage, machine_cpu_s, machine_memory, proportional_bytes
from nm.resources.processes import ContainerProcess
from nm.resources.strays import named
from nm.resources.unclaimed import Unclaimed, kill_with_descendants
from nm.warm import marks
from yaqd.model import ContainerId

log = logging.getLogger(__name__)

_MB = 1 << 20
#: the first process of a namespace, whose children are strangers too
_INIT = 1


class Monitor:
    def __init__(
        self,
        runtime: ContainerRuntime,
        *,
        started: set[ContainerProcess],
        groups: ContainerGroups | None,
        limits: MemoryLimits,
        interval_s: float,
        threads: ThreadExecutor,
        owns_process: bool,
    ) -> None:
        """`started`: processes of containers; those that are over are taken out, one look later.
        `owns_process`: all children of this process are containers, their orphans or its own helpers."""
        self._started = started
        self._groups = groups
        self._ungrouped_told = False
        self._unclaimed = Unclaimed()
        self._runtime = runtime
        self._limits = limits
        self._interval_s = interval_s
        self._threads = threads
        self._owns_process = owns_process
        self._earlier: ProcessTable | None = None
        self._cpu_s: dict[ContainerId, float] = {}
        self._machine_cpu_s = machine_cpu_s()
        self._loop = asyncio.get_running_loop()
        self._scanned_at = self._loop.time()
        self.containers = Utilization()
        self.node = Utilization()

    async def run(self) -> None:
        """Scans in intervals until cancelled."""
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self.tick()
            except Exception:
                log.exception("memory scan failed")

    async def tick(self) -> None:
        """Scans once and does what follows from it."""
        running = [c for c in self._runtime.containers.values() if c.process is not None]
        before = {process for process in self._started if process.is_over}
        groups = [c.process.group for c in running if c.process is not None and c.process.group is not None]
        table, orphans, members = await self._loop.run_in_executor(self._threads, partial(_scan, groups))
        now = self._loop.time()
        elapsed_s = max(now - self._scanned_at, 1e-3)
        self._scanned_at = now
        await self._read_machine(elapsed_s)
        total = Usage()
        cpu_s: dict[ContainerId, float] = {}
        for container in running:
            process = container.process
            if process is None or process.pid not in table.by_pid:
                continue
            others = table.still_there(process.strays) + orphans.get(str(container.id), [])
            if process.group is not None:
                others += (grouped := members.get(process.group, []))
                self._check_grouped(container, process.pid, grouped)
            usage = table.usage(process.pid, process.mark, self._earlier, others)
            process.strays = table.strays(process.pid, usage.pids)
            cpu_s[container.id] = usage.cpu_s
            total.cpu_s += max(0.0, usage.cpu_s - self._cpu_s.get(container.id, 0.0))
            total.physical_bytes += usage.physical_bytes
            total.virtual_bytes += usage.virtual_bytes
            await self._enforce(container, usage)
        if self._owns_process and os.getpid() != _INIT:
            await self._kill_unclaimed(table, orphans)
        self._started.difference_update(before)
        self._cpu_s = cpu_s
        earlier, self._earlier = self._earlier, table
        self.containers = Utilization(
            total.physical_bytes // _MB, total.virtual_bytes // _MB, round(total.cpu_s / elapsed_s, 3)
        )
        await self._loop.run_in_executor(self._threads, partial(self._sweep, table, earlier))

    def _check_grouped(self, container: Container, leader: int, grouped: list[int]) -> None:
        """Says once when a process has not come to its control group one look after its start."""
        is_late = self._earlier is not None and leader in self._earlier.by_pid and leader not in grouped
        if is_late and not self._ungrouped_told and container.stage is Stage.RUNNING:
            self._ungrouped_told = True
            log.warning("%s is not in its control group: marks tell its processes, and such of others", container.id)

    async def _kill_unclaimed(self, table: ProcessTable, orphans: dict[str, list[int]]) -> None:
        """Kills what nobody can be told to have started, once all that may have are over."""
        own = marks.mark_of(os.getpid())
        claimed = {process.pid for process in self._started}
        for process in self._started:
            if not process.is_over:
                claimed.update(pid for pid, _ in process.strays)
                claimed.update(orphans.get(process.container, ()))
        found = {
            (child.pid, child.started)
            for child in table.children(os.getpid())
            if child.state not in "ZX" and child.mark != own and not marks.is_mark(child.mark)
        }
        doomed = self._unclaimed.look({stray for stray in found if stray[0] not in claimed}, self._started)
        for pid, _ in self._unclaimed.new(doomed):
            log.warning("killing process %d and all below it: every container that may have started it is over", pid)
        if doomed:
            await self._loop.run_in_executor(self._threads, partial(kill_with_descendants, doomed))

    async def _read_machine(self, elapsed_s: float) -> None:
        used, committed = await self._loop.run_in_executor(self._threads, machine_memory)
        busy_s = machine_cpu_s()
        cores = (busy_s - self._machine_cpu_s) / elapsed_s
        self._machine_cpu_s = busy_s
        self.node = Utilization(used // _MB, committed // _MB, round(max(0.0, cores), 3))

    async def _enforce(self, container: Container, usage: Usage) -> None:
        limit = container.grant.resource.memory_mb << 20
        if self._limits.check_physical and is_over(usage.physical_bytes, usage.aged_physical_bytes, limit):
            await self._loop.run_in_executor(self._threads, partial(_share_out, usage))
        container.physical_bytes, container.virtual_bytes = usage.physical_bytes, usage.virtual_bytes
        container.used(usage.cpu_s, usage.physical_bytes)
        if container.stage is not Stage.RUNNING or container.process is None:
            return
        over = excess(
            usage,
            container_id=str(container.id),
            leader=container.process.pid,
            memory_mb=container.grant.resource.memory_mb,
            limits=self._limits,
        )
        if over is not None:
            log.warning("%s", over.reason)
            self._runtime.kill(container.id, over.status, over.reason)

    def _sweep(self, table: ProcessTable, earlier: ProcessTable | None) -> None:
        """Blocking. Reaps orphans of containers, and kills what those that are gone left behind all the same.

        What has ended is reaped when it was seen so twice while nothing is being launched: it is then no container's
        leader that is just about to be waited for.
        """
        if self._groups is not None:
            self._groups.sweep()
        containers = list(self._runtime.containers.values())
        processes = [c.process for c in containers if c.process is not None]
        leaders = {process.pid for process in processes}
        own = marks.mark_of(os.getpid())  # where this daemon runs in a container itself
        known: set[int | None] = {own, *(process.mark for process in processes)}
        is_launching = any(c.stage in (Stage.LAUNCHING, Stage.ABORTING) and not c.is_held for c in containers)
        if not self._owns_process or is_launching:
            return
        for child in table.children(os.getpid()):
            if child.pid in leaders:
                continue
            before = earlier.by_pid.get(child.pid) if earlier is not None else None
            if child.state == "Z":
                if before is not None and before.state == "Z":
                    _reap(child.pid)
            elif marks.is_mark(child.mark) and child.mark not in known:
                log.warning("killing process %d, which a container left behind", child.pid)
                marks.signal_marked(child.pid, signal.SIGKILL, {child.mark})


def _scan(
    groups: Iterable[ContainerGroup],
) -> tuple[ProcessTable, dict[str, list[int]], dict[ContainerGroup, list[int]]]:
    """All processes and, by container, children of this one that lost its mark but say whose they are; and those of
    control groups. Blocking."""
    table = ProcessTable.scan()
    orphans = (child.pid for child in table.children(os.getpid()) if not marks.is_mark(child.mark))
    return table, named(orphans), {group: group.pids() for group in groups}


def _share_out(usage: Usage) -> None:
    """Replaces resident by proportional sizes, in place; a process that cannot be asked keeps its resident size."""
    shares = [proportional_bytes(pid) for pid in usage.pids]
    if all(share is not None for share in shares):
        ratio = sum(share or 0 for share in shares) / max(1, usage.physical_bytes)
        usage.physical_bytes = int(usage.physical_bytes * ratio)
        usage.aged_physical_bytes = int(usage.aged_physical_bytes * ratio)


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass
