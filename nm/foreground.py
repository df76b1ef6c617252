"""A NodeManager as a process: runs until it is told to end, and says in one line why it cannot start."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time

from nm.daemon import NodeManager
from yaqd.config import ConfigError, Configuration
from yaqd.ipc import RpcConnectionError
from yaqd.ipc.loop import SlowProtobuf, run

log = logging.getLogger(__name__)

_THREADS_DEADLINE_S = 0.5


async def _serve(conf: Configuration) -> int:
    node = NodeManager(conf, owns_process=True, say=_say)
    await node.start()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, node.end, "")
    web = f"{node.node_id.host}:{node.web_address[1]}"
    print(f"NodeManager ready node={node.node_id} web={web} shuffle={node.shuffle.port}", flush=True)
    print(node.reach_line(), flush=True)
    reason = await node.ended
    if reason:
        log.error("ending: %s", reason)
    await node.stop()
    return 1 if reason else 0


def main(conf: Configuration) -> int:
    """Runs a NodeManager until SIGTERM, SIGINT or the ResourceManager ends it; returns the exit code."""
    try:
        code = run(_serve(conf))
        _leave_threads(code)
        return code
    except (ConfigError, RpcConnectionError, SlowProtobuf) as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def _leave_threads(code: int) -> None:
    """Ends the process here and now if a thread hangs in a file system: the interpreter would wait for it for ever."""
    deadline = time.monotonic() + _THREADS_DEADLINE_S
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                log.warning("not waiting for thread %s", thread.name)
                logging.shutdown()
                os._exit(code)


def _say(line: str) -> None:
    print(f"NodeManager: {line}", file=sys.stderr, flush=True)


def _refuse(reason: str) -> int:
    log.error("NodeManager cannot start: %s", reason)
    _say(reason)
    return 2
