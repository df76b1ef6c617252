"""Containers that wait at nodes, under unmodified masters that take them for running: none is hurt by it.

The node is small, and every container is said to end after a few seconds, also where that is not true: what can go
wrong does.
"""

import json
import re
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop_checks import output_lines
from interop_master import await_value

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import ClientRun
from benchmarks.stock.daemons import StockHdfs
from yaqd.config import Configuration

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
CLIENT = "queues at nodes"

#: Room for a master and three containers.
NODE_MB = 2048
SITE = {
    "yarn.nodemanager.resource.memory-mb": NODE_MB,
    "yarn.scheduler.maximum-allocation-mb": NODE_MB,
    "yarn.scheduler.capacity.maximum-am-resource-percent": 0.5,
    "yaq.queue.enabled": "true",
    "yaq.queue.bound": 8,
    "yaq.queue.free-share": 0,
    "yaq.queue.max-wait": "6s",
}
#: A map that takes three seconds and counts its words.
SLOW_MAP = "sleep 3; tr ' ' '\\n' | sort"


@pytest.fixture(scope="module")
def queueing(
    hadoop: HadoopJars, hdfs: StockHdfs, quick_tasks: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InteropCluster]:
    """A cluster of one small node with a queue."""
    folder = tmp_path_factory.mktemp("queueing")
    site = {**quick_tasks, **SITE, "yaq.queue.default-estimate": "3s"}
    with InteropCluster(hadoop, folder, hdfs, nodes=1, site=site) as running:
        yield running


@pytest.fixture(scope="module")
def texts(queueing: InteropCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Nine files, so nine maps."""
    folder = tmp_path_factory.mktemp("queue-texts")
    for number in range(9):
        (folder / f"{number:02}.txt").write_text(f"a b word{number:02}\n" * 10)
    queueing.clients.fs("-put", str(folder), "/queue-texts").checked()
    return "/queue-texts"


#: what the maps and `uniq -c` make of the nine files
COUNTS = sorted(["90 a", "90 b", *(f"10 word{number:02}" for number in range(9))])


class Waiting:
    """Watches, while it is open, how many containers wait at the node."""

    def __init__(self, cluster: InteropCluster) -> None:
        conf = Configuration.load(cluster.clients.conf_dir, environ={})
        host, port = conf.get_address("yarn.resourcemanager.webapp.address")
        self._url = f"http://{host}:{port}/ws/v1/yaq/nodes"
        self._over = threading.Event()
        self.most = 0
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Waiting":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            with urllib.request.urlopen(self._url, timeout=10) as answer:
                (node,) = json.load(answer)["nodes"]
            self.most = max(self.most, node["queued"])


def _counters(run: ClientRun) -> dict[str, int]:
    """The job's counters as its client printed them."""
    return {name: int(value) for name, value in re.findall(r"^\t\t([^=\n]+)=(\d+)$", run.stderr, re.MULTILINE)}


def _words(cluster: InteropCluster, folder: str) -> list[str]:
    return sorted(" ".join(line.split()) for line in output_lines(cluster, folder))


def _stream(cluster: InteropCluster, texts: str, output: str, *options: str, reduces: int = 1) -> ClientRun:
    settings = [f"mapreduce.job.reduces={reduces}", *options]
    generic = [word for setting in settings for word in ("-D", setting)]
    words = ("-input", texts, "-output", output, "-mapper", f'sh -c "{SLOW_MAP}"', "-reducer", "uniq -c")
    return cluster.clients.streaming(*generic, *words)


def test_maps_that_wait_are_neither_speculated_nor_timed_out(queueing: InteropCluster, texts: str) -> None:
    """Nine maps of three seconds in three places: the last would wait for six or more, and six are the most."""
    silent = ("mapreduce.task.timeout=20000", "mapreduce.task.stuck.timeout-ms=20000")
    checks = ("mapreduce.task.timeout.check-interval-ms=500", "mapreduce.map.speculative=true")
    with Waiting(queueing) as watched:
        run = _stream(queueing, texts, "/out/queued", *silent, *checks).checked()
    assert watched.most > 0, "nothing waited at the node"
    assert _words(queueing, "/out/queued") == COUNTS
    counters = _counters(run)
    assert counters.get("Failed map tasks", 0) == 0
    assert counters["Launched map tasks"] - counters.get("Killed map tasks", 0) == 9


@pytest.fixture
def honest(
    hadoop: HadoopJars, hdfs: StockHdfs, quick_tasks: dict[str, object], tmp_path: Path
) -> Iterator[InteropCluster]:
    """The same where nothing is said of containers that nobody has seen end."""
    with InteropCluster(hadoop, tmp_path, hdfs, nodes=1, site={**quick_tasks, **SITE}) as running:
        yield running


def test_nothing_waits_behind_containers_that_never_end(honest: InteropCluster, texts: str) -> None:
    clients = honest.clients
    forever = ("-shell_command", "sleep 1000", "-num_containers", "2", "-container_memory", "512")
    shell = threading.Thread(target=lambda: clients.distributed_shell(*forever, "-master_memory", "512"))
    shell.start()

    def running() -> str | None:
        listing = clients.yarn("application", "-list").checked().stdout
        found = re.search(r"(application_\d+_\d+)\s+DistributedShell.*RUNNING", listing)
        return found[1] if found else None

    application = await_value("the endless containers", running)
    runs: list[ClientRun] = []
    job = threading.Thread(target=lambda: runs.append(_stream(honest, texts, "/out/beside")))
    with Waiting(honest) as watched:
        job.start()
        await_value("the job's master", lambda: "streamjob" in clients.yarn("application", "-list").checked().stdout)
    assert watched.most == 0
    clients.yarn("application", "-kill", application).checked()
    job.join(200)
    shell.join(60)
    assert _words(honest, "/out/beside") == COUNTS
    assert _counters(runs[0].checked()).get("Failed map tasks", 0) == 0
