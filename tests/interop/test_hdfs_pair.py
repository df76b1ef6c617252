"""A name service of two NameNodes: the one that is asked first is on standby, then dead, and a DataNode is dead too."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest

from benchmarks.stock import conf as stock_conf
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import StockClients
from benchmarks.stock.daemons import StockHdfs
from benchmarks.stock.processes import accepts, free_ports
from yaqd.config import Configuration
from yaqd.storage import FileSystem, get_filesystem
from yaqd.storage.hdfs.alive import check_namenode
from yaqd.storage.paths import hadoop_user

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
CLIENT = "HDFS with two NameNodes"
SERVICE = "pair"
STANDBY, ACTIVE = "first", "second"
_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_ADMIN = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"
MB = 1 << 20


class PairedHdfs(StockHdfs):
    """Two NameNodes that share their edits in a folder, and two DataNodes."""

    def start(self) -> None:
        self.uri = f"hdfs://{SERVICE}"
        ports = self.ports
        places = dict(zip((STANDBY, ACTIVE), ((ports.namenode, ports.namenode_http), free_ports(2)), strict=True))
        datanode = (ports.datanode, ports.datanode_http, ports.datanode_ipc)
        site = stock_conf.hdfs_site(self.directory, ports.namenode_http, datanode)
        del site["dfs.namenode.http-address"], site["dfs.namenode.name.dir"]
        site |= {
            "dfs.nameservices": SERVICE,
            f"dfs.ha.namenodes.{SERVICE}": f"{STANDBY},{ACTIVE}",
            "dfs.namenode.shared.edits.dir": f"file://{self.directory}/shared",
            "dfs.ha.fencing.methods": "shell(true)",
            f"dfs.client.failover.proxy.provider.{SERVICE}": (
                "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
            ),
        }
        for name, (rpc, http) in places.items():
            site |= {
                f"dfs.namenode.rpc-address.{SERVICE}.{name}": f"127.0.0.1:{rpc}",
                f"dfs.namenode.http-address.{SERVICE}.{name}": f"127.0.0.1:{http}",
                f"dfs.namenode.name.dir.{SERVICE}.{name}": f"file://{self.directory}/name-{name}",
            }
        core = stock_conf.core_site(self.uri, self.directory)
        stock_conf.write_conf(self.conf_dir, {"core": core, "hdfs": site})
        programs = StockClients(self.jars, self.conf_dir)
        programs.run(_NAMENODE, ["-D", f"dfs.ha.namenode.id={STANDBY}", "-format", "-nonInteractive"]).checked()
        shutil.copytree(self.directory / f"name-{STANDBY}", self.directory / f"name-{ACTIVE}")
        for name in places:
            self._start(name, _NAMENODE, args=["-D", f"dfs.ha.namenode.id={name}"])
        for name, (rpc, _) in places.items():
            self.daemons[name].await_ready(partial(accepts, "127.0.0.1", rpc), 60)
        programs.run(_ADMIN, ["-transitionToActive", ACTIVE]).checked()
        self.ports = type(ports)(places[ACTIVE][0], places[ACTIVE][1], *datanode)
        for number in range(2):
            self.start_datanode(number)
        self.daemons[ACTIVE].await_ready(self._takes_blocks, 60)


@pytest.fixture(scope="module")
def pair(hadoop: HadoopJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairedHdfs]:
    with PairedHdfs(hadoop, tmp_path_factory.mktemp("pair"), datanodes=2) as hdfs:
        yield hdfs


@pytest.mark.full
def test_the_active_one_is_found_by_every_way(pair: PairedHdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the library, block locations and WebHDFS, which goes on with the file when a DataNode dies in the middle."""
    data = os.urandom(30 * MB)
    files = opened(pair, monkeypatch)
    assert files.uri == f"hdfs://{SERVICE}"
    files.mkdirs("/tmp")
    writer = files.create("/tmp/standby")
    writer.write(data[: 20 * MB])
    pair.daemons["datanode"].kill()
    writer.write(data[20 * MB :])
    writer.close()
    pair.daemons[STANDBY].kill()
    files = opened(pair, monkeypatch)
    writer = files.create("/tmp/dead")
    writer.write(data)
    writer.close()
    for name in ("standby", "dead"):
        with closing(files.open(f"/tmp/{name}")) as reader:
            assert reader.read() == data, name
        assert len(files.block_locations(f"/tmp/{name}", 0, len(data))) == 4


def opened(pair: PairedHdfs, monkeypatch: pytest.MonkeyPatch) -> FileSystem:
    monkeypatch.setattr("yaqd.storage.opening._open_systems", {})
    settings = {"dfs.replication": "2", "dfs.blocksize": str(8 * MB)}
    conf = Configuration.load(pair.conf_dir, environ={}).with_overrides(settings)
    check_namenode(SERVICE, conf, hadoop_user(), 20.0)
    return get_filesystem("hdfs:///", conf)
