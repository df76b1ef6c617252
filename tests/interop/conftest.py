"""Real Hadoop for tests: fetched once, started once per session, on loopback.

Where Java or Maven is missing these tests are skipped with the reason; under CI (CI=true) a skip is a failure.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.interop_cluster import InteropCluster, make_hdfs_folders
from benchmarks.stock.artifacts import HadoopJars, StockUnavailable, fetch
from benchmarks.stock.clients import StockClients
from benchmarks.stock.daemons import StockHdfs, StockYarn

#: Tasks as small and as soon started as they can be: these tests are about what is done, not how fast.
_QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
QUICK_TASKS = {
    "yarn.app.mapreduce.am.resource.mb": 512,
    "yarn.app.mapreduce.am.command-opts": f"-Xmx300m {_QUICK_JVM}",
    "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": 200,
    "mapreduce.map.memory.mb": 512,
    "mapreduce.reduce.memory.mb": 512,
    "mapreduce.map.java.opts": f"-Xmx300m {_QUICK_JVM}",
    "mapreduce.reduce.java.opts": f"-Xmx300m {_QUICK_JVM}",
    "mapreduce.task.io.sort.mb": 20,
    "mapreduce.client.progressmonitor.pollinterval": 200,
}


@pytest.fixture(scope="session")
def hadoop() -> HadoopJars:
    """The pinned stock jars and a Java to run them."""
    try:
        return fetch()
    except StockUnavailable as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"interop tests must run under CI: {missing}")
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def quick_tasks() -> dict[str, object]:
    """Settings for a cluster whose jobs shall be small and short."""
    return dict(QUICK_TASKS)


@pytest.fixture(scope="session")
def hdfs(hadoop: HadoopJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockHdfs]:
    """A NameNode and a DataNode with `/tmp` and the user's folder; `.uri`, `.conf_dir`."""
    with StockHdfs(hadoop, tmp_path_factory.mktemp("hdfs")) as running:
        make_hdfs_folders(StockClients(hadoop, running.conf_dir))
        yield running


@pytest.fixture(scope="session")
def stock_yarn(hadoop: HadoopJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockYarn]:
    """A stock ResourceManager and two NodeManagers on the local file system; `.rm_address`, `.conf_dir`.

    Its nodes upload logs, compressed, to `app-logs` in its directory.
    """
    directory = tmp_path_factory.mktemp("yarn")
    logs = {
        "yarn.log-aggregation-enable": "true",
        "yarn.nodemanager.remote-app-log-dir": directory / "app-logs",
        "yarn.nodemanager.log-aggregation.compression-type": "gz",
    }
    with StockYarn(hadoop, directory, history=False, site=logs) as running:
        yield running


@pytest.fixture(scope="session")
def interop(hadoop: HadoopJars, hdfs: StockHdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteropCluster]:
    """Our ResourceManager and two of our NodeManagers on that HDFS, with the stock JobHistoryServer."""
    with InteropCluster(hadoop, tmp_path_factory.mktemp("interop"), hdfs, site=QUICK_TASKS) as running:
        yield running


def pytest_configure(config: pytest.Config) -> None:
    """`scripts/interop.sh` runs these alone unless it is told to run all."""
    config.addinivalue_line("markers", "representative: the one test of a client that the short list runs")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Notes which row of the table a test belongs to: its module's `CLIENT`, else the module's own subject."""
    if item.path.parent == Path(__file__).parent:
        subject = item.path.stem.removeprefix("test_").replace("_", " ")
        item.user_properties.append(("client", getattr(getattr(item, "module", None), "CLIENT", subject)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what ran against real Hadoop: client, what it did, whether it came out right, and how long it took."""
    rows = [
        (dict(report.user_properties)["client"], _what(report.nodeid), outcome, f"{report.duration:.1f} s")
        for outcome in ("passed", "failed", "error", "skipped")
        for report in terminalreporter.stats.get(outcome, [])
        if "client" in dict(getattr(report, "user_properties", ()))
    ]
    if not rows:
        return
    terminalreporter.section("against real Hadoop")
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for client, what, outcome, seconds in sorted(rows, key=lambda row: row[0]):
        line = f"{client:{widths[0]}}  {what:{widths[1]}}  {outcome:{widths[2]}}  {seconds:>{widths[3]}}"
        terminalreporter.write_line(line)


def _what(node_id: str) -> str:
    return node_id.rpartition("::test_")[2].replace("_", " ")
