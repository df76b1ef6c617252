"""Containers that are busy, what the node says that they use, and which of their processes are stopped."""

from collections.abc import Iterable, Mapping

import psutil

from nm.daemon import NodeManager
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context
from tests.nm.nm_faults import gone, processes_of
from yaqd.model import ApplicationId, ContainerSubState
from yaqd.proto import training
from yaqd.proto import yarn_server_pb2 as server

ONE = container_id(1)
APP = ONE.application_id
#: four workers that use all they are let
BUSY = "for i in 1 2 3 4; do (while :; do :; done) & done; wait"
SIGNALS = {"yaq.nm.throttle": "signals"}


def order(rm: FakeResourceManager, cores: Mapping[ApplicationId, int | None]) -> None:
    """Have the next answer to a heartbeat say so."""

    def put(response: server.NodeHeartbeatResponse) -> None:
        training.put_apps_cores(response.yaq_cores, cores)

    rm.orders.append(put)


def said_s(rm: FakeResourceManager, app: ApplicationId = APP) -> float | None:
    """What the last heartbeat says that the application has used."""
    said = training.cpu_totals(rm.heartbeats[-1].node_status.yaq_cpu) if rm.heartbeats else {}
    return said[app] / 1000 if app in said else None


async def run_busy(rm: FakeResourceManager, node: NodeManager, command: str = BUSY, number: int = 5) -> Master:
    """Start a container and return once it has so many processes."""
    master = Master(rm, node)
    await master.run(ONE, launch_context(command))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    assert await gone(lambda: len(processes_of(ONE)) < number)
    return master


def stopped(container: object = ONE) -> list[psutil.Process]:
    """Processes of a container that are stopped at this moment."""
    found = []
    for pid in processes_of(container):
        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_STOPPED:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def used_s(container: object = ONE) -> float:
    """Processor time of all its processes of now, as the kernel has it."""
    return kernel_s(processes_of(container))


def kernel_s(pids: Iterable[int]) -> float:
    """Processor time of those of them that are there, as the kernel has it."""
    total = 0.0
    for pid in pids:
        try:
            times = psutil.Process(pid).cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total
