"""A ResourceManager as a process: runs until it is told to end, and says in one line why it cannot start."""

import asyncio
import logging
import signal
import sys

from rm.daemon import ResourceManager
from rm.store.state_store import StateStoreError
from yaqd.config import ConfigError, Configuration
from yaqd.ipc import RpcError
from yaqd.ipc.loop import run

log = logging.getLogger(__name__)


async def _serve(conf: Configuration) -> int:
    manager = ResourceManager(conf)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    try:
        await manager.start()
        print(manager.ready_line(), manager.reach_line(), sep="\n", flush=True)
        await stopped.wait()
        log.info("stopping")
    finally:
        await manager.stop()
    return 0


def main(conf: Configuration) -> int:
    """Run a ResourceManager until SIGTERM or SIGINT; 2 when it cannot start, with one line that says why."""
    try:
        return run(_serve(conf))
    except (ConfigError, StateStoreError, RpcError, OSError) as error:
        log.error("the ResourceManager cannot start: %s", error)
        print(f"ResourceManager: {error}", file=sys.stderr, flush=True)
        return 2
