"""Unmodified MapReduce on full nodes, as shipped: a job without failures launches each task once."""

import re
from pathlib import Path

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.artifacts import fetch_sleep
from benchmarks.stock.clients import ClientRun, StockClients
from tests.interop.interop_checks import application_of
from tests.interop.interop_master import await_value
from tests.interop.interop_waiting import asked

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]
CLIENT = "MapReduce"

#: Seven fit beside a master. Second attempts of what is slow on a busy machine would be no matter of queues.
_ASKED = {
    "mapreduce.map.memory.mb": 1024,
    "mapreduce.reduce.memory.mb": 1024,
    "mapreduce.map.speculative": "false",
    "mapreduce.reduce.speculative": "false",
}
_OPTIONS = [word for key, value in _ASKED.items() for word in ("-D", f"{key}={value}")]


def _launched(run: ClientRun) -> tuple[int, int]:
    """Attempts of maps and of reduces, by the job's own counters."""
    assert not re.search(r"(Killed|Failed) (map|reduce) tasks", run.stderr), run.stderr[-3000:]
    maps, reduces = (re.findall(rf"Launched {kind} tasks=(\d+)", run.stderr) for kind in ("map", "reduce"))
    return int(maps[0]), int(reduces[0])


def _waited(cluster: InteropCluster, run: ClientRun, containers: int) -> list[float]:
    """How long the job's containers waited at their nodes, s, once so many have ended: the client may be sooner."""

    def waits() -> list[float] | None:
        ended = asked(cluster.ours.conf_dir, f"explain/{application_of(run)}")["explanation"]["ended"]
        return [record["waitedS"] for record in ended] if len(ended) >= containers else None

    return await_value(f"{containers} containers' ends", waits)


def test_sleep_job_launches_each_task_once(interop: InteropCluster) -> None:
    lengths = ("-m", "20", "-r", "3", "-mt", "1000", "-rt", "100")
    clients = StockClients(interop.clients.jars, interop.clients.conf_dir, more=[fetch_sleep()])
    run = clients.run("org.apache.hadoop.mapreduce.SleepJob", [*_OPTIONS, *lengths]).checked()
    assert _launched(run) == (20, 3)
    waited = _waited(interop, run, 23)
    assert len(waited) == 23 and max(waited) < 1.0, "no longer than what ended takes to be gone"


@pytest.mark.full
def test_word_count_launches_each_task_once(interop: InteropCluster, tmp_path: Path) -> None:
    folder = tmp_path / "words"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number:02}.txt").write_text(f"a b word{number}\n" * 1000)
    interop.clients.fs("-put", str(folder), "/attempts").checked()
    options = [*_OPTIONS, "-D", "mapreduce.job.reduces=3"]
    run = interop.clients.example("wordcount", *options, "/attempts", "/out/attempts").checked()
    assert _launched(run) == (12, 3)
