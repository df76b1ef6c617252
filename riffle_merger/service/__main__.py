"""The merger's process: reads its settings from standard input and says its port on standard output. Then it says what
its disk does, and an empty line for each merged file. It ends with its node, that is when standard input ends."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from riffle_merger.merger.disk import try_disk
from riffle_merger.merger.memory import available_bytes
from riffle_merger.merger.merger import Merger, MergerSettings
from riffle_merger.service.launch import MergerLaunch
from riffle_merger.service.server import MergerService, end_within, limit_process
from yaqd.ipc.loop import run

_STOP_DEADLINE_S = 2.0


async def _serve(launch: MergerLaunch) -> None:
    merger = Merger(
        MergerSettings(
            launch.budget_bytes,
            running_max=launch.running_max,
            waiting_max=launch.waiting_max,
            disk_max_percent=launch.disk_max_percent,
            storage=launch.storage,
        ),
        on_merged=_say_merged,
    )
    service = MergerService(merger, secret=bytes.fromhex(launch.secret))
    rpc = await service.listen(launch.host, launch.port)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), _input_ready, ended)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    _say(b"%d" % rpc.port)
    if launch.folder:
        threading.Thread(target=_say_disk, args=(launch.folder,), daemon=True).start()
    await ended.wait()
    loop.remove_reader(sys.stdin.fileno())
    await end_within(_STOP_DEADLINE_S, rpc, merger)


def _say_merged() -> None:
    """An empty line for the node: its shuffle service looks for the merged file before reducers ask for it."""
    _say(b"")


def _say_disk(folder: str) -> None:
    """In a thread of its own, since a disk may hang: a line of what it does."""
    facts = try_disk(Path(folder), available_bytes())
    if facts is not None:
        _say(facts.pack().hex().encode("ascii"))


def _say(line: bytes) -> None:
    with contextlib.suppress(OSError):  # the node is gone, and so will be this process
        os.write(sys.stdout.fileno(), line + b"\n")


def _input_ready(ended: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        ended.set()


def _main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    launch = MergerLaunch.from_json(_first_line())
    limit_process(memory_bytes=launch.memory_bytes, niceness=launch.niceness, is_idle_io=launch.is_idle_io)
    run(_serve(launch))


def _first_line() -> str:
    """Unbuffered: what follows belongs to the loop."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(sys.stdin.fileno(), 1)
        if not byte:
            sys.exit("the merger is started by a node, which tells it its settings on standard input")
        line += byte
    return line.decode("utf-8")


if __name__ == "__main__":
    _main()
