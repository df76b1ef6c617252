"""Real Hadoop for tests: fetched once, started once per session, on loopback.

Where Java or Maven is missing these tests are skipped with the reason; under CI (CI=true) a skip is a failure.
"""

import os
from collections.abc import Iterator

import pytest

from benchmarks.stock.artifacts import HadoopJars, StockUnavailable, fetch
from benchmarks.stock.clients import StockClients
from benchmarks.stock.daemons import StockHdfs, StockYarn, current_user


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
        clients = StockClients(hadoop, running.conf_dir)
        clients.fs("-mkdir", "-p", "/tmp", f"/user/{current_user()}").checked()
        clients.fs("-chmod", "1777", "/tmp").checked()
        yield running


@pytest.fixture(scope="session")
def stock_yarn(hadoop: HadoopJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockYarn]:
    """A stock ResourceManager and two NodeManagers on the local file system; `.rm_address`, `.conf_dir`."""
    with StockYarn(hadoop, tmp_path_factory.mktemp("yarn"), history=False) as running:
        yield running
