"""HDFS daemons that die and come back under running jobs, ours and a stock one."""

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop_checks import output_lines
from interop_master import await_value

from benchmarks.interop_cluster import InteropCluster, make_hdfs_folders
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import StockClients
from benchmarks.stock.daemons import StockHdfs

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]
CLIENT = "HDFS restarted under jobs"
#: says that a map runs, and goes on only when it is told to
WAITING_MAPPER = "touch {folder}/$1.$mapreduce_task_id\nuntil test -e {folder}/go; do sleep 0.2; done\ncat\n"
MAPS = 2


@pytest.fixture(scope="module")
def cluster(
    hadoop: HadoopJars, quick_tasks: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InteropCluster]:
    """A cluster whose HDFS no other test uses; clients there wait for it as those of a production cluster do."""
    patient = {"dfs.client.retry.policy.enabled": "true", "ipc.client.connect.max.retries": 30}
    with StockHdfs(hadoop, tmp_path_factory.mktemp("mortal-hdfs")) as hdfs:
        make_hdfs_folders(StockClients(hadoop, hdfs.conf_dir))
        site = {**quick_tasks, **patient}
        with InteropCluster(hadoop, tmp_path_factory.mktemp("beside-mortal-hdfs"), hdfs, site=site) as running:
            yield running


@pytest.mark.representative
def test_jobs_outlive_a_namenode_and_a_datanode(cluster: InteropCluster, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(MAPS):
        (tmp_path / "in" / f"{number}.txt").write_text(f"line {number}\n" * 1000)
    script = tmp_path / "wait.sh"
    script.write_text(WAITING_MAPPER.format(folder=tmp_path))
    cluster.clients.fs("-put", str(tmp_path / "in"), "/in").checked()
    common = ("-files", str(script), "-input", "/in", "-reducer", "cat")
    errors: list[BaseException] = []

    def started(job: str) -> threading.Thread:
        arguments = (*common, "-output", f"/out/{job}", "-mapper", f"bash wait.sh {job}")

        def run() -> None:
            try:
                if job == "ours":
                    cluster.ours.yaq("mr", "streaming", *arguments)
                else:
                    cluster.clients.streaming(*arguments).checked()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    threads = [started(job) for job in ("ours", "stock")]
    try:
        _await_maps(tmp_path, errors)
        cluster.hdfs.daemons["namenode"].kill()
        cluster.hdfs.daemons["datanode"].kill()
    finally:
        (tmp_path / "go").touch()  # what the maps and reduces now want of HDFS, they have to wait for
    cluster.hdfs.start_namenode()
    cluster.hdfs.start_datanode()
    for thread in threads:
        thread.join(180)

    assert errors == []
    expected = Counter(f"line {number}" for number in range(MAPS) for _ in range(1000))
    for job in ("ours", "stock"):
        assert Counter(line.rstrip() for line in output_lines(cluster, f"/out/{job}")) == expected


def _await_maps(folder: Path, errors: list[BaseException]) -> None:
    def has_started() -> bool | None:
        # Ours takes small files together, the stock one has a map for each.
        maps = [len(list(folder.glob(f"{job}.task_*"))) for job in ("ours", "stock")]
        return (maps[0] >= 1 and maps[1] == MAPS) or bool(errors) or None

    await_value("maps of both jobs", has_started, 120)
