"""Real Hadoop for tests: fetched once, started once per session, on loopback.

Where Java or Maven is missing these tests are skipped with the reason; under CI (CI=true) a skip is a failure.
"""

import os
from collections.abc import Iterator

import pytest

from benchmarks.interop_cluster import InteropCluster, make_hdfs_folders
from benchmarks.stock.artifacts import HadoopJars, StockUnavailable, fetch
from benchmarks.stock.clients import StockClients
from benchmarks.stock.daemons import StockHdfs, StockYarn


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
def hdfs(hadoop: HadoopJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockHdfs]:
    """A NameNode and a DataNode with `/tmp` and the user's folder; `.uri`, `.conf_dir`."""
    with StockHdfs(hadoop, tmp_path_factory.mktemp("hdfs")) as running:
        make_hdfs_folders(StockClients(hadoop, running.conf_dir))
        yield running


@pytest.fixture(scope="session")
def stock_yarn(hadoop: HadoopJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockYarn]:
    """A stock ResourceManager and two NodeManagers on the local file system; `.rm_address`, `.conf_dir`."""
    with StockYarn(hadoop, tmp_path_factory.mktemp("yarn"), history=False) as running:
        yield running


@pytest.fixture(scope="session")
def interop(hadoop: HadoopJars, hdfs: StockHdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteropCluster]:
    """Our ResourceManager and two of our NodeManagers on that HDFS, with the stock JobHistoryServer."""
    with InteropCluster(hadoop, tmp_path_factory.mktemp("interop"), hdfs) as running:
        yield running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what ran against real Hadoop, and how long each took."""
    rows = [
        (report.nodeid.rpartition("/")[2], outcome, report.duration)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call" and "tests/interop/" in report.nodeid
    ]
    if rows:
        terminalreporter.section("against real Hadoop")
    for name, outcome, seconds in rows:
        terminalreporter.write_line(f"{outcome:7} {seconds:7.1f} s  {name}")
