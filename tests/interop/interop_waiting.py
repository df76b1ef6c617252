"""What tests of queues at nodes look at: how many containers wait there, what is said of a job, and of its attempts."""

import json
import threading
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.interop_cluster import InteropCluster
from tests.interop.interop_checks import history
from yaqd.config import Configuration


def asked(conf_dir: Path, path: str) -> Any:
    """What our ResourceManager answers for one path below `yaq/`."""
    conf = Configuration.load(conf_dir, environ={})
    host, port = conf.get_address("yarn.resourcemanager.webapp.address")
    with urllib.request.urlopen(f"http://{host}:{port}/ws/v1/yaq/{path}", timeout=10) as answer:
        return json.load(answer)


class Waiting:
    """Watches, while it is open, how many containers wait at all nodes together."""

    def __init__(self, conf_dir: Path) -> None:
        self._conf_dir = conf_dir
        self._over = threading.Event()
        self.most = self.looks = 0
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Waiting":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            queued = sum(node["queued"] for node in asked(self._conf_dir, "nodes")["nodes"])
            self.most = max(self.most, queued)
            self.looks += 1


def attempts(interop: InteropCluster, job: str) -> list[dict[str, Any]]:
    """All attempts of all tasks, as the JobHistoryServer has them."""
    path = f"jobs/{job}/tasks"
    tasks = [task["id"] for task in history(interop, path)["tasks"]["task"]]
    found = [history(interop, f"{path}/{task}/attempts")["taskAttempts"]["taskAttempt"] for task in tasks]
    return [attempt for of_task in found for attempt in of_task]
