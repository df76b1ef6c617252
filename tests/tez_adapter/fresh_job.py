"""A job that leaves behind in its process whatever a program can, and tells what it found there when it began."""

import colorsys
import functools
import os
import random
import signal
import sys
import threading
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from yaqd.mapreduce import Job

SEEN: list[str] = []
#: the position in it is the process's
SELF = open(__file__)  # noqa: SIM115
#: what a program names its own files by
CONTAINER = os.environ.get("CONTAINER_ID")
TOKEN, PID = uuid.uuid4().hex, os.getpid()


@functools.lru_cache
def remembered(value: str) -> str:
    return value


class LeavesAllBehind(Job):
    total = 0
    bag: list[str] = []

    def setup(self) -> None:
        umask = os.umask(0o022)
        os.umask(umask)
        found = {
            "class": (LeavesAllBehind.total, len(LeavesAllBehind.bag)),
            "globals": len(SEEN),
            "cache": remembered.cache_info().currsize,
            "cwd": Path.cwd().name == "left",
            "left in the folder": Path("left").exists() or Path("own.txt").exists(),
            "missing in it": CONTAINER is not None and not Path(Path(__file__).name).exists(),
            "environment": os.environ.get("LEFT"),
            "umask": umask == 0o177,
            "handler": signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN,
            "threads": [thread.name for thread in threading.enumerate() if thread.name == "left"],
            "files": [name for name in os.listdir("/proc/self/fd") if _is_left(name)],  # noqa: PTH208
            "position": len(SELF.read()) > 0,
            "pid": os.getpid() == PID,
            "path": "left" in sys.path,
            "library": getattr(colorsys, "LEFT", None),
        }
        self.found = sorted((name, str(value)) for name, value in found.items())

    def map(self, key: int, value: str) -> Iterable[tuple[Any, Any]]:
        LeavesAllBehind.total += 1
        LeavesAllBehind.bag.append(remembered(value))
        SEEN.append(value)
        return ()

    def cleanup(self) -> Iterator[tuple[Any, Any]]:
        if self.task.phase == "reduce":
            return
        os.environ["LEFT"] = "left"
        os.umask(0o177)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        sys.path.append("left")
        colorsys.LEFT = "left"  # type: ignore[attr-defined]
        threading.Thread(target=threading.Event().wait, name="left", daemon=True).start()
        os.open("/dev/full", os.O_RDONLY)
        yield "total", LeavesAllBehind.total
        yield "token", TOKEN
        yield "random", random.random()
        yield "container", CONTAINER
        yield from self.found
        Path("own.txt").write_text("left")
        Path(Path(__file__).name).unlink(missing_ok=True)  # the link to what was shipped
        folder = Path("left")
        folder.mkdir(mode=0o700)
        os.chdir(folder)

    def reduce(self, key: str, values: Iterator[Any]) -> Iterator[tuple[str, str]]:
        values = list(values)  # type: ignore[assignment]
        if key == "total":
            yield key, str(sum(values))
        elif key in ("token", "random", "container"):
            yield key, str(len(set(values)))
        else:
            yield key, " ".join(sorted(set(values)))


def _is_left(name: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{name}") == "/dev/full"  # noqa: PTH115
    except OSError:
        return False
