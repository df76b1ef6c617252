"""A job with mergers of its own: its machine, its containers, and a merger that answers."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from riffle_merger.plan.choice import MergerChoice
from tez_adapter.core import events as ev
from tez_adapter.core.dag import DagSpec, EdgeSpec, VertexSpec
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.mergers import MERGER_PRIORITY, OwnMergers
from tez_adapter.merging.job_mergers import JobMergers
from tez_adapter.merging.links import SharedOutputs
from yaqd.ipc import RpcServer
from yaqd.model import Resource
from yaqd.security import JobTokenSecrets, Token

JOB = "job_1_0001"
SIZE = Resource(1024, 1)
DAG = DagSpec((VertexSpec("map", 2, SIZE, 10), VertexSpec("reduce", 1, SIZE, 20)), (EdgeSpec(0, 1, 1.0),))


def allocated(name: str, priority: int = MERGER_PRIORITY) -> ev.ContainerAllocated:
    return ev.ContainerAllocated(name, "h:1", "h", SIZE, priority)


def mergers(count: int = 1, wait_s: float = 10.0) -> OwnMergers:
    own = OwnMergers(SIZE, wait_s=wait_s)
    own.want(count)
    return own


def finish_maps(machine: JobMachine) -> None:
    for name in ("m0", "m1"):
        machine.handle(allocated(name, 10), 0.0)
    given = [task for name in ("m0", "m1") for task in machine.handle(ev.TaskRequested(name), 0.0)]
    for task in given:
        assert isinstance(task, ev.GiveTask)
        machine.handle(ev.AttemptSucceeded(task.attempt), 0.0)
    assert machine.vertices[0].complete


# ---- who waits for them


def shared(jobs: JobMergers) -> SharedOutputs:
    choice = MergerChoice[tuple[str, int]](lambda known, count: list(known)[:count])
    clock = asyncio.get_running_loop().time
    return SharedOutputs("hdfs://h/f", 1, jobs.known, choice, clock, news=jobs.news, on_lost=jobs.lost)


@asynccontextmanager
async def serving(token: Token) -> AsyncIterator[tuple[RpcServer, JobTokenSecrets]]:
    tokens = JobTokenSecrets(secrets.token_bytes)
    tokens.add(token)
    server = RpcServer(name="test", host="127.0.0.1", token_secrets=tokens)
    await server.start()
    try:
        yield server, tokens
    finally:
        await server.stop()
