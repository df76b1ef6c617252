"""HDFS daemons that die and come back under running jobs, ours and a stock one."""

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.interop_cluster import InteropCluster, make_hdfs_folders
from benchmarks.ours import YaqRun
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import StockClients
from benchmarks.stock.daemons import StockHdfs
from tests.interop.interop_checks import output_lines
from tests.interop.interop_master import await_value

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]
CLIENT = "HDFS restarted under jobs"
#: says that a map runs, and goes on only when it is told to
WAITING_MAPPER = "touch {folder}/$1.$mapreduce_task_id\nuntil test -e {folder}/go; do sleep 0.2; done\ncat\n"
MAPS = 2
#: in /proc/net/tcp and tcp6, where the addresses of Java's sockets stand
_ESTABLISHED = "01"


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


@pytest.mark.full
def test_a_frozen_namenode_holds_a_job_up_and_no_longer(cluster: InteropCluster, tmp_path: Path) -> None:
    """A NameNode in a long pause keeps its connections, and the kernel takes what is sent to it."""
    (tmp_path / "in.txt").write_text("line\n" * 1000)
    script = tmp_path / "wait.sh"
    script.write_text(WAITING_MAPPER.format(folder=tmp_path) + "echo mapped >&2\n")
    namenode = cluster.hdfs.daemons["namenode"]
    command = ("mr", "streaming", "-files", str(script), "-input", f"file://{tmp_path}/in.txt", "-reducer", "cat")
    runs: list[YaqRun | BaseException] = []

    def run() -> None:
        try:
            runs.append(cluster.ours.yaq(*command, "-output", "/out/frozen", "-mapper", "bash wait.sh ours"))
        except BaseException as error:
            runs.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    await_value("a map", lambda: bool(list(tmp_path.glob("ours.task_*"))) or not thread.is_alive() or None, 60)
    os.kill(namenode.pid, signal.SIGSTOP)
    try:
        (tmp_path / "go").touch()
        # the reduce asks for its file, and the question stays in the NameNode's socket
        await_value("a question", lambda: _is_asked(cluster.hdfs.ports.namenode) or not thread.is_alive() or None, 60)
        assert thread.is_alive(), runs
        applications = json.loads(cluster.ours.yaq("app", "list", "--json").stdout)
        assert [found["state"] for found in applications] == ["RUNNING"]  # the ResourceManager is not held up
        nodes = json.loads(cluster.ours.yaq("node", "list", "--json").stdout)
        assert {found["state"] for found in nodes} == {"RUNNING"}
    finally:
        os.kill(namenode.pid, signal.SIGCONT)
    thread.join(60)
    (done,) = runs
    assert isinstance(done, YaqRun), done
    assert [line.rstrip() for line in output_lines(cluster, "/out/frozen")] == ["line"] * 1000
    application = applications[0]["id"]
    status = ("app", "status", application, "--json")
    is_uploaded = lambda: json.loads(cluster.ours.yaq(*status).stdout)["logs"] == "uploaded" or None  # noqa: E731
    await_value("its logs", is_uploaded, 60)
    printed = cluster.clients.yarn("logs", "-applicationId", application, "-log_files", "stderr").checked().stdout
    assert "mapped\n" in printed


def _is_asked(port: int) -> bool:
    """Whether bytes for a server on loopback wait in the kernel because it does not read them."""
    connections = [line for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    for row in (line.split() for line in connections):
        local, state, waiting = row[1], row[3], row[4].partition(":")[2]
        if local.endswith(f":{port:04X}") and state == _ESTABLISHED and int(waiting, 16):
            return True
    return False


def _await_maps(folder: Path, errors: list[BaseException]) -> None:
    def has_started() -> bool | None:
        # Ours takes small files together, the stock one has a map for each.
        maps = [len(list(folder.glob(f"{job}.task_*"))) for job in ("ours", "stock")]
        return (maps[0] >= 1 and maps[1] == MAPS) or bool(errors) or None

    await_value("maps of both jobs", has_started, 120)
