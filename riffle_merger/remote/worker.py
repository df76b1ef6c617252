"""A process that merges on a shared file system as one user: the HDFS client is one user per process.

Orders come as JSON lines on standard input, answers go as JSON lines to standard output; it ends with its merger, that
is when standard input ends. A client library that hangs, or takes too much memory, takes this process with it and no
other.

    first line   {"settings": {configuration key: value}}
    order        {"id", "order": {RemoteOrder's fields}}      cancel   {"cancel": id}
    answer       {"id", "bytes", "partitions", "reads", "writes"}       or       {"id", "error", "text"}
    every second {"id", "requests"} of each merge that runs
"""

import json
import logging
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from riffle_merger.merger.errors import Cancelled, MergeError, NotMergeable
from riffle_merger.remote.merge import Progress, RemoteOrder, merge_remote
from yaqd.config import Configuration
from yaqd.storage import get_filesystem

log = logging.getLogger(__name__)

_REPORT_EVERY_S: Final = 1.0
#: names of errors on the wire
ERRORS: Final[dict[str, type[MergeError]]] = {
    "cancelled": Cancelled,
    "not mergeable": NotMergeable,
    "failed": MergeError,
}


class Worker:
    def __init__(self, conf: Configuration, threads: int) -> None:
        self._conf = conf
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="merge")
        self._running: dict[int, Progress] = {}
        self._lock = threading.Lock()

    def take(self, message: dict[str, Any]) -> None:
        if "cancel" in message:
            progress = self._running.get(message["cancel"])
            if progress is not None:
                progress.cancelled = True
            else:  # it is over already
                self._say({"id": message["cancel"], "error": "cancelled", "text": "cancelled"})
            return
        number = int(message["id"])
        order = RemoteOrder(**{**message["order"], "map_ids": tuple(message["order"]["map_ids"])})
        self._running[number] = Progress()
        self._pool.submit(self._merge, number, order)

    def report(self) -> None:
        for number, progress in list(self._running.items()):
            self._say({"id": number, "requests": progress.reads + progress.writes})

    def _merge(self, number: int, order: RemoteOrder) -> None:
        try:
            done = merge_remote(get_filesystem(order.folder, self._conf), order, self._running[number])
            answer: dict[str, Any] = {
                "bytes": done.bytes,
                "partitions": done.partitions,
                "reads": done.reads,
                "writes": done.writes,
            }
        except Exception as error:
            if not isinstance(error, MergeError):
                log.exception("merge %s", order.name)
            kind = next(name for name, kind in ERRORS.items() if isinstance(error, kind) or name == "failed")
            answer = {"error": kind, "text": f"{error}"[:1000]}
        self._say({"id": number, **answer})
        del self._running[number]

    def _say(self, message: dict[str, Any]) -> None:
        line = json.dumps(message)
        with self._lock:
            print(line, flush=True)


def _main(threads: int) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s merge worker: %(message)s")
    settings = json.loads(sys.stdin.readline())["settings"]
    worker = Worker(Configuration.load(None, overrides=settings, environ={}), threads)

    def report() -> None:
        while True:
            time.sleep(_REPORT_EVERY_S)
            worker.report()

    threading.Thread(target=report, daemon=True, name="reports").start()
    for line in sys.stdin:
        worker.take(json.loads(line))
    os._exit(0)  # what runs belongs to a merger that is gone


if __name__ == "__main__":
    _main(int(sys.argv[1]))
