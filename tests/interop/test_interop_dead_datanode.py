"""A DataNode that is dead and still listed: what we write goes elsewhere at once, as with Hadoop's own client."""

import os
from collections.abc import Iterator

import pytest

from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.daemons import StockHdfs
from yaqd.config import Configuration
from yaqd.storage import get_filesystem

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
CLIENT = "HDFS with a dead DataNode"
#: with as many, one at least would be placed on the dead node alone
FILES = 12


@pytest.fixture(scope="module")
def half_dead(hadoop: HadoopJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockHdfs]:
    """One of two DataNodes is killed; the NameNode would take ten minutes to see it."""
    with StockHdfs(hadoop, tmp_path_factory.mktemp("half"), datanodes=2) as hdfs:
        hdfs.daemons["datanode"].kill()
        yield hdfs


#: length of each file
EMPTY, ONE_PACKET, MANY_PACKETS = 0, 1000, 3 << 20


@pytest.mark.parametrize(
    ("copies", "size"),
    [
        pytest.param(1, EMPTY, marks=pytest.mark.full),
        (1, ONE_PACKET),
        (1, MANY_PACKETS),
        pytest.param(2, EMPTY, marks=pytest.mark.full),
        pytest.param(2, ONE_PACKET, marks=pytest.mark.full),
        (2, MANY_PACKETS),
    ],
)
def test_what_is_written_goes_to_those_that_live(
    half_dead: StockHdfs, monkeypatch: pytest.MonkeyPatch, copies: int, size: int
) -> None:
    monkeypatch.setattr("yaqd.storage.filesystem._open_systems", {})
    conf = Configuration.load(half_dead.conf_dir, environ={}).with_overrides({"dfs.replication": str(copies)})
    files = get_filesystem("hdfs:///", conf)
    folder = f"/tmp/dead-{copies}-{size}"
    files.mkdirs(folder)
    written = [os.urandom(size) for _ in range(FILES)]
    for number, data in enumerate(written):
        writer = files.create(f"{folder}/{number}")
        for at in range(0, size, 1 << 20):
            writer.write(data[at : at + (1 << 20)])
        writer.close()
    assert sorted(status.path.rpartition("/")[2] for status in files.list(folder)) == sorted(map(str, range(FILES)))
    for number, data in enumerate(written):
        with files.open(f"{folder}/{number}") as reader:
            assert reader.read() == data
    assert half_dead.live_datanodes() == 2
