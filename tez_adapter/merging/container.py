"""A merger in a container of its job, where no node has one: the node's merger, for one job, as long as that needs it.

It says to its job manager where it listens and asks again and again whether it is over. No answer means that the job
manager is gone, and so is this process a moment later, whatever the node does with its container. A merger that ends in
the middle of a merge leaves nothing but a hidden file. That lies in the job's staging folder and goes with the job.
"""

import asyncio
import logging
import os
import secrets
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaqd
from riffle_merger.merger.merger import Merger, MergerSettings
from riffle_merger.service.launch import PROCESS_BYTES, storage_settings
from riffle_merger.service.server import MergerService, end_within, limit_process
from tez_adapter.client.sizes import task_size
from tez_adapter.jobspec import JOB_FILE, JobSpec
from tez_adapter.master.surroundings import token_of
from tez_adapter.merging.settings import own_budget
from tez_adapter.protocol import TaskUmbilicalProtocol
from yaqd.config import Configuration
from yaqd.ipc import RemoteException, RpcClient, RpcError
from yaqd.ipc.loop import run
from yaqd.ipc.tasks import TaskSet
from yaqd.proto import job_pb2 as pb
from yaqd.security import Credentials, JobTokenSecrets, Token

log = logging.getLogger(__name__)

_WAIT_MS: Final = 5000
#: a job manager that gives no answer for so long beyond that is gone
_SILENCE_S: Final = 20.0
_STOP_DEADLINE_S: Final = 2.0
#: its job's manager comes alone, and again where a connection broke
_CONNECTIONS_MAX: Final = 16


def merger_settings(conf: Configuration) -> MergerSettings:
    """Return the settings of a merger in a container as large as a map's. Raises ConfigError."""
    return MergerSettings(
        own_budget(conf, task_size("map", conf).resource.memory_mb),
        running_max=conf.get_int("yaq.riffle.merger.merges-max", 2, minimum=1, maximum=64),
        waiting_max=conf.get_int("yaq.riffle.merger.queue.max-length", 1000, minimum=1),
        storage=storage_settings(conf),
    )


async def _serve(manager: tuple[str, int], spec: JobSpec, token: Token, environ: Mapping[str, str]) -> None:
    """Until the job manager says that it is over, or is gone, or the node ends the container."""
    merger = Merger(merger_settings(spec.configuration()))
    service = MergerService(merger, secret=secrets.token_bytes(32))
    service.serve_job(spec.job_id, token.password, (), spec.user)
    rpc = await service.listen(environ.get("NM_HOST", "127.0.0.1"), connections_max=_CONNECTIONS_MAX)
    loop = asyncio.get_running_loop()
    try:
        async with TaskSet() as tasks:
            asking = tasks.start(_ask(manager, spec, token, environ["CONTAINER_ID"], rpc.port))
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, asking.cancel)
            await asyncio.wait((asking,))
    finally:
        await end_within(_STOP_DEADLINE_S, rpc, merger)


async def _ask(manager: tuple[str, int], spec: JobSpec, token: Token, container: str, port: int) -> None:
    """Returns when it is over, or nobody answers."""
    client = RpcClient(*manager, user=spec.user, token=token)
    request = pb.MergerRunsRequest(container_id=container, port=port, wait_ms=_WAIT_MS)
    try:
        timeout_s = _WAIT_MS / 1000 + _SILENCE_S
        while not (await client.call(TaskUmbilicalProtocol.mergerRuns, request, timeout_s=timeout_s)).is_over:
            pass
    except (RpcError, RemoteException, OSError) as error:
        log.error("lost the job manager at %s:%d: %s", *manager, error)
    finally:
        await client.close()


def main(argv: list[str]) -> int:
    """Run the merger of the job whose manager listens at `argv[0]`, host:port."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    environ = os.environ
    # what merges is a process of its own, which finds this project where this one did
    environ["PYTHONPATH"] = str(Path(yaqd.__file__).resolve().parents[1])
    # each of its threads would take an arena of its own, and nodes may count virtual memory
    environ["MALLOC_ARENA_MAX"] = "2"
    host, _, port = argv[0].rpartition(":")
    spec = JobSpec.read(Path(JOB_FILE))
    token = token_of(Credentials.load(environ["HADOOP_TOKEN_FILE_LOCATION"]), JobTokenSecrets.kind, "job token")
    conf = spec.configuration()
    limit_process(
        memory_bytes=merger_settings(conf).budget_bytes + PROCESS_BYTES,
        niceness=conf.get_int("yaq.riffle.merger.nice", 10, minimum=0, maximum=19),
        is_idle_io=conf.get("yaq.riffle.merger.io-class") == "idle",
    )
    run(_serve((host, int(port)), spec, token, environ))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
