"""Containers that wait at nodes, under unmodified masters that take them for running: none is hurt by it.

The node is small, so that whatever may wait does.
"""

import re
import threading
from collections.abc import Iterator

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import ClientRun
from benchmarks.stock.daemons import StockHdfs
from tests.interop.interop_checks import application_of, output_lines
from tests.interop.interop_master import await_value
from tests.interop.interop_waiting import Waiting, asked, attempts

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
CLIENT = "queues at nodes"

#: Room for a master and three containers. Only what one like it has shown to end may wait behind anything.
SITE = {
    "yarn.nodemanager.resource.memory-mb": 2048,
    "yarn.scheduler.maximum-allocation-mb": 2048,
    "yarn.scheduler.capacity.maximum-am-resource-percent": 0.5,
    "yaq.queue.enabled": "true",
    "yaq.queue.bound": 8,
    "yaq.queue.free-share": 0,
    "yaq.queue.max-wait-unaware": "2s",
}
#: A map that takes four seconds and counts its words.
SLOW_MAP = "sleep 4; tr ' ' '\\n' | sort"
MAPS = 11


@pytest.fixture(scope="module")
def queueing(
    hadoop: HadoopJars, hdfs: StockHdfs, quick_tasks: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InteropCluster]:
    """A cluster of one small node with a queue, where a job like the tests' has run before."""
    folder = tmp_path_factory.mktemp("queueing")
    with InteropCluster(hadoop, folder, hdfs, nodes=1, site={**quick_tasks, **SITE}) as running:
        yield running


@pytest.fixture(scope="module")
def texts(queueing: InteropCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """As many files as there shall be maps; three of them have been through a job already."""
    folder = tmp_path_factory.mktemp("queue-texts")
    for number in range(MAPS):
        (folder / f"{number:02}.txt").write_text(f"a b word{number:02}\n" * 10)
    queueing.clients.fs("-put", str(folder), "/queue-texts").checked()
    _stream(queueing, "/queue-texts/0[012].txt", "/out/known", reduces=0).checked()
    return "/queue-texts"


def _counts(*files: int) -> list[str]:
    """What the maps and `uniq -c` make of these files."""
    return sorted([f"{10 * len(files)} a", f"{10 * len(files)} b", *(f"10 word{number:02}" for number in files)])


def _words(cluster: InteropCluster, folder: str) -> list[str]:
    return sorted(" ".join(line.split()) for line in output_lines(cluster, folder))


def _stream(cluster: InteropCluster, texts: str, output: str, *options: str, reduces: int = 1) -> ClientRun:
    settings = [f"mapreduce.job.reduces={reduces}", *options]
    generic = [word for setting in settings for word in ("-D", setting)]
    words = ("-input", texts, "-output", output, "-mapper", f'sh -c "{SLOW_MAP}"', "-reducer", "uniq -c")
    return cluster.clients.streaming(*generic, *words)


@pytest.mark.full
def test_maps_that_wait_are_neither_speculated_nor_timed_out(queueing: InteropCluster, texts: str) -> None:
    """Eleven maps of four seconds in three places, and room for the others to wait. The last would wait for twelve:
    after ten their master gives up what has not reported, and after nine it runs a second attempt."""
    silent = ("mapreduce.task.timeout=10000", "mapreduce.task.stuck.timeout-ms=10000")
    checks = ("mapreduce.task.timeout.check-interval-ms=500", "mapreduce.map.speculative=true")
    with Waiting(queueing.ours.conf_dir) as watched:
        run = _stream(queueing, texts, "/out/queued", *silent, *checks).checked()
    assert watched.most > 0, "nothing waited at the node"
    assert _words(queueing, "/out/queued") == _counts(*range(MAPS))
    job = application_of(run).replace("application", "job")
    seen = attempts(queueing, job)
    assert sum(one["state"] == "SUCCEEDED" for one in seen) == MAPS + 1, "twelve tasks, each once"
    others = [one for one in seen if one["state"] != "SUCCEEDED"]
    assert {one["state"] for one in others} <= {"KILLED"}, "one that failed counts"
    assert all("yaq.queue.max-wait-unaware" in one["diagnostics"] for one in others), others


@pytest.mark.full
def test_nothing_waits_behind_containers_that_never_end(queueing: InteropCluster, texts: str) -> None:
    clients, conf_dir = queueing.clients, queueing.ours.conf_dir
    forever = ("-shell_command", "sleep 1000", "-num_containers", "2", "-container_memory", "512")
    shell = threading.Thread(target=lambda: clients.distributed_shell(*forever, "-master_memory", "512"))
    shell.start()

    def endless() -> str | None:
        """The shell's application, once it and both its containers run."""
        (node,) = asked(conf_dir, "nodes")["nodes"]
        listing = queueing.ours.yaq("app", "list").stdout
        found = re.search(r"application_\d+_\d+", listing)
        return found[0] if found and node["running"] == 3 else None

    application = await_value("the endless containers", endless)
    runs: list[ClientRun] = []
    job = threading.Thread(target=lambda: runs.append(_stream(queueing, f"{texts}/0[345].txt", "/out/beside")))

    def pending() -> bool | None:
        """Do the job's maps, known to end, wait at the ResourceManager?"""
        listing = queueing.ours.yaq("app", "list").stdout
        others = [found for found in re.findall(r"application_\d+_\d+", listing) if found != application]
        asks = asked(conf_dir, f"explain/{others[0]}")["explanation"]["asks"] if others else []
        return any(not a["isMaster"] and a["estimateS"] and "when anything ends" in a["why"] for a in asks) or None

    with Waiting(conf_dir) as watched:
        job.start()
        await_value("the job's maps", pending)
        first = watched.looks
        await_value("ten further looks at the node", lambda: watched.looks >= first + 10 or None)
        assert pending()
    assert watched.most == 0
    clients.yarn("application", "-kill", application).checked()
    job.join(200)
    shell.join(60)
    assert _words(queueing, "/out/beside") == _counts(3, 4, 5)
    runs[0].checked()
