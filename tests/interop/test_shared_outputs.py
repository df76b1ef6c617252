"""Map outputs on a real HDFS: merged by our mergers, through their faults, on our cluster and on a stock one."""

import json
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from benchmarks.ours import AS_STOCK, OurCluster, run_yaq
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.daemons import StockHdfs, StockYarn, current_user
from benchmarks.unmanaged_master import await_value
from riffle_merger.remote.reader import PackedFile
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.submit import submit_mapreduce
from tez_adapter.history import read_history
from yaqd.cli.app import yaq
from yaqd.config import Configuration
from yaqd.ipc import BlockingRpcClient
from yaqd.proto import hdfs_pb2
from yaqd.proto.protocols import NamenodeProtocol
from yaqd.storage import PathNotFound, get_filesystem

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
CLIENT = "map outputs on HDFS"

SCRIPT = """
import os, time
from yaqd.mapreduce import Job, Param
class Count(Job):
    wait_for = Param(str, default="/nothing")
    held_by = Param(str, default="/nothing")
    def map(self, key, value):
        while value == "held" and os.path.exists(self.held_by):
            time.sleep(0.02)
        for word in value.split():
            yield word, 1
    def reduce(self, key, values):
        while os.path.exists(self.wait_for):
            time.sleep(0.05)
        yield key, sum(values)
"""
MAPS = 18
#: merges for one user
WORKER = "riffle_merger.remote.worker"
TEXT = "".join(f"a b c{i % 10} d{i % 7}\n" for i in range(MAPS * 50)) + "held\n"
SETTINGS = {
    "yaq.riffle.storage": "hdfs",
    "yaq.riffle.enabled": "true",
    "yaq.riffle.policy": "files",
    "yaq.riffle.files": "3",
    "yaq.riffle.best-effort": "1.0",
    "mapreduce.map.memory.mb": "512",
    "mapreduce.reduce.memory.mb": "512",
    "mapreduce.input.fileinputformat.split.maxsize": str(len(TEXT) // MAPS + 1),
}


@pytest.fixture(scope="module")
def cluster(hdfs: StockHdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurCluster]:
    site = {**AS_STOCK, "yaq.riffle.enabled": "true"}
    with OurCluster(tmp_path_factory.mktemp("shared") / "c", hdfs=hdfs.uri, nodes=3, site=site) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def merging(cluster: OurCluster) -> Configuration:
    return Configuration.load(environ={"HADOOP_CONF_DIR": str(cluster.conf_dir)})


def submit(conf: Configuration, folder: Path, **more: str) -> SubmittedJob:
    (folder / "count.py").write_text(SCRIPT)
    (folder / "in.txt").write_text(TEXT)
    return submit_mapreduce(
        conf.with_overrides(SETTINGS | more),
        str(folder / "count.py"),
        inputs=[f"file://{folder}/in.txt"],
        output=f"file://{folder}/out",
        reduces=3,
    )


def check(conf: Configuration, folder: Path, job: SubmittedJob) -> dict[str, Any]:
    """The job ends well, its answer is right and nothing of it is left on HDFS; what its history says at the end."""
    try:
        status = job.wait(timeout_s=120)
        assert status.state == "SUCCEEDED", status
    finally:
        job.close()
    lines = (line.split("\t") for part in (folder / "out").glob("part-*") for line in part.read_text().splitlines())
    assert {word: int(count) for word, count in lines} == dict(Counter(TEXT.split()))
    assert left_of(conf, job) == []
    return dict(read_history(conf, job.application_id).end)


def left_of(conf: Configuration, job: SubmittedJob) -> list[str]:
    """Of the job's staging folder."""
    folder = f"/tmp/hadoop-yarn/staging/{current_user()}/.staging/{job.job_id}"
    try:
        return [status.path for status in get_filesystem("hdfs:///", conf).list(folder)]
    except PathNotFound:
        return []


def await_outputs(
    conf: Configuration, job: SubmittedJob, count: int, *, of: Callable[[str], bool] = lambda name: name[0] != "."
) -> None:
    """So many files, maps' and merged ones, lie in the job's folder."""
    files = get_filesystem("hdfs:///", conf)
    folder = f"/tmp/hadoop-yarn/staging/{current_user()}/.staging/{job.job_id}/shuffle/1"
    deadline = time.monotonic() + 60
    while True:
        try:
            names = [status.path.rpartition("/")[2] for status in files.list(folder)]
        except PathNotFound:
            names = []
        if sum(map(of, names)) >= count:
            return
        assert time.monotonic() < deadline, names
        time.sleep(0.05)


def test_mergers_killed_whenever_they_merge_cost_nothing_but_reads(
    merging: Configuration, cluster: OurCluster, tmp_path: Path
) -> None:
    done, killed = threading.Event(), set[int]()

    def kill() -> None:
        while not done.wait(0.01):
            if not processes(cluster, WORKER):
                continue
            for process in processes(cluster, "riffle_merger.service"):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
                    killed.add(process.pid)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        end = check(merging, tmp_path, submit(merging, tmp_path))
    finally:
        done.set()
        killer.join()
    assert len(killed) >= 3
    assert end["counters"]["org.apache.hadoop.mapreduce.JobCounter"]["TOTAL_LAUNCHED_MAPS"] == MAPS
    assert end["shuffle"]["merges"].get("done", 0) < MAPS // 3  # the others' originals were read


def processes(cluster: OurCluster, module: str) -> list[psutil.Process]:
    """Of this cluster's nodes that run the module."""
    found = []
    for node in (cluster.directory / "run").glob("nodemanager*.pid"):
        for child in psutil.Process(int(node.read_text().split()[0])).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if module in child.cmdline():
                    found.append(child)
    return found


def test_a_job_manager_killed_while_mergers_merge_is_replaced_and_its_job_read_in_few_requests(
    merging: Configuration, tmp_path: Path
) -> None:
    """The next one begins anew, beside what mergers still do for the first."""
    job = submit(merging, tmp_path)
    await_outputs(merging, job, MAPS // 2 + 1)
    port = job.report().rpc_port
    (master,) = {c.pid for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == port}
    assert master is not None
    psutil.Process(master).kill()
    end = check(merging, tmp_path, job)
    shuffle = end["shuffle"]
    assert shuffle["storage"] == "hdfs"
    assert shuffle["merges"] == {"done": MAPS // 3}
    assert sum(shuffle["mergers"].values()) == MAPS // 3
    reads = end["counters"]["org.apache.hadoop.mapreduce.TaskCounter"]["SHUFFLE_READS"]
    assert 3 * MAPS // 3 <= reads <= 2 * 3 * MAPS // 3


@pytest.mark.full
def test_a_datanode_that_is_killed_and_comes_back_costs_no_finished_map(
    merging: Configuration, hdfs: StockHdfs, tmp_path: Path
) -> None:
    """It goes once all maps have ended; merges fail, and reduces wait for it."""
    patient = {"mapreduce.job.reduce.slowstart.completedmaps": "1.0", "yaq.riffle.hdfs.patience-ms": "60s"}
    job = submit(merging, tmp_path, **patient)
    await_outputs(merging, job, MAPS, of=lambda name: name.startswith("attempt_"))
    hdfs.daemons["datanode"].kill()
    hdfs.start_datanode()
    end = check(merging, tmp_path, job)
    assert end["counters"]["org.apache.hadoop.mapreduce.JobCounter"]["TOTAL_LAUNCHED_MAPS"] == MAPS


@pytest.fixture(scope="module")
def two_datanodes(hadoop: HadoopJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockHdfs]:
    """A file system of its own, which gives a DataNode up after 11 s; in others clients go on writing there."""
    site = {"dfs.heartbeat.interval": 1, "dfs.namenode.heartbeat.recheck-interval": 500}
    with StockHdfs(hadoop, tmp_path_factory.mktemp("two"), datanodes=2, site=site) as hdfs:
        yield hdfs


@pytest.mark.parametrize(
    ("copies", "is_noticed"), [pytest.param(*one, marks=pytest.mark.full) for one in ((1, True), (2, True), (2, False))]
)
def test_a_datanode_that_stays_dead_costs_the_maps_whose_last_copy_it_had(
    merging: Configuration, two_datanodes: StockHdfs, tmp_path: Path, copies: int, is_noticed: bool
) -> None:
    """It goes while one map is held, when most outputs are merged and no reduce has read any. Where the NameNode has
    not noticed, what is written has to get past it."""
    other = {
        "fs.defaultFS": two_datanodes.uri,
        "dfs.replication": "2",
        "dfs.namenode.http-address": f"127.0.0.1:{two_datanodes.ports.namenode_http}",
    }
    settings = {"mapreduce.job.reduce.slowstart.completedmaps": "1.0", "yaq.riffle.hdfs.patience-ms": "1s"}
    holder = tmp_path / "holder"
    holder.touch()
    conf = merging.with_overrides(other | settings | {"yaq.riffle.hdfs.replication": str(copies)})
    job = submit(conf, tmp_path, held_by=str(holder))
    merged = (MAPS - 1) // 3
    await_outputs(conf, job, MAPS - 1 + merged)
    lost = {port: lost_with(conf, two_datanodes, job, port) for port in two_datanodes.data_ports}
    victim = max(lost, key=lambda port: len(lost[port]))
    number = two_datanodes.data_ports.index(victim)
    two_datanodes.daemons[two_datanodes.datanode_name(number)].kill()
    if is_noticed:
        await_value("its being given up", lambda: True if two_datanodes.live_datanodes() == 1 else None)
    holder.unlink()
    check(conf, tmp_path, job)
    attempts = [a for a in read_history(conf, job.application_id).attempts if a["vertex"] == "map"]
    assert bool(lost[victim]) == (copies == 1)
    # the held map has its output to write still
    finished = Counter(a["task"] for a in attempts if a["task"] != MAPS - 1 or not is_noticed)
    expected = range(MAPS - 1 if is_noticed else MAPS)
    assert finished == Counter([*expected, *lost[victim]]), [a for a in attempts if a["state"] != "SUCCEEDED"]
    two_datanodes.start_datanode(number)
    await_value("both DataNodes", lambda: True if two_datanodes.live_datanodes() == 2 else None)


def lost_with(conf: Configuration, hdfs: StockHdfs, job: SubmittedJob, port: int) -> set[int]:
    """Maps all of whose copies, merged ones too, lie on that DataNode."""
    folder = f"/tmp/hadoop-yarn/staging/{current_user()}/.staging/{job.job_id}/shuffle/1"
    files = get_filesystem("hdfs:///", conf)
    places: dict[str, set[int]] = {}
    with BlockingRpcClient("127.0.0.1", hdfs.ports.namenode, user=current_user()) as namenode:
        for status in files.list(folder):
            path = f"{folder}/{status.path.rpartition('/')[2]}"
            request = hdfs_pb2.GetBlockLocationsRequest(src=path, offset=0, length=1 << 40)
            (block,) = namenode.call(NamenodeProtocol.getBlockLocations, request).locations.blocks
            packed = PackedFile(files, path, maps=3, partitions=3)
            for name in packed.maps:
                places.setdefault(name, set()).update(place.id.xferPort for place in block.locs)
            packed.close()
    return {int(name.split("_")[-2]) for name, ports in places.items() if ports == {port}}


def test_a_killed_job_leaves_nothing_and_could_be_checked_while_it_was_there(
    merging: Configuration, cluster: OurCluster, hdfs: StockHdfs, tmp_path: Path
) -> None:
    """One of the processes that merge is killed; another merger does its work."""
    blocker = tmp_path / "blocker"
    blocker.touch()
    job = submit(merging, tmp_path, wait_for=str(blocker))
    try:
        deadline = time.monotonic() + 60
        while not (workers := processes(cluster, WORKER)):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        workers[0].kill()
        await_outputs(merging, job, MAPS + MAPS // 3)
        folder = f"{hdfs.uri}/tmp/hadoop-yarn/staging/{current_user()}/.staging/{job.job_id}"
        inspected = CliRunner().invoke(yaq, ["riffle", "inspect", folder, "--verify", "--json"])
        job.kill()
        status = job.wait(timeout_s=60)
    finally:
        job.close()
    assert status.state == "KILLED"
    assert left_of(merging, job) == []
    files = json.loads(inspected.stdout)
    assert inspected.exit_code == 0 and not any(file["damaged"] for file in files)
    assert Counter(len(file["maps"]) for file in files) == {1: MAPS, 3: MAPS // 3}


def reads_of(end: dict[str, Any]) -> int:
    """Requests for map outputs, of all reduces."""
    reads: int = end["counters"]["org.apache.hadoop.mapreduce.TaskCounter"]["SHUFFLE_READS"]
    return reads


def own_mergers() -> list[psutil.Process]:
    """Mergers in containers of jobs, of whichever cluster."""
    return [p for p in psutil.process_iter(["cmdline"]) if "tez_adapter.merging.container" in (p.info["cmdline"] or [])]


@pytest.mark.full
def test_on_a_stock_cluster_the_jobs_own_merger_merges_and_nobody_needs_it(
    hadoop: HadoopJars, hdfs: StockHdfs, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Once as it is; once with every merger of the job killed as soon as it is there."""
    folders = [tmp_path_factory.mktemp("stock") for _ in range(2)]
    done, killed = threading.Event(), set[int]()

    def kill() -> None:
        while not done.wait(0.01):
            for process in own_mergers():
                with suppress(psutil.NoSuchProcess):
                    process.kill()
                    killed.add(process.pid)

    killer = threading.Thread(target=kill)
    with StockYarn(hadoop, folders[0] / "yarn", hdfs=hdfs, history=False) as stock:
        conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(stock.conf_dir)})
        job = submit(conf, folders[0])
        merged = check(conf, folders[0], job)
        assert not own_mergers()
        explained = run_yaq(stock.conf_dir, "explain", str(job.application_id)).stdout
        killer.start()
        try:
            alone = check(conf, folders[1], submit(conf, folders[1]))
        finally:
            done.set()
            killer.join()
    assert merged["shuffle"]["merges"] == {"done": MAPS // 3}
    assert (merged["shuffle"]["own_mergers"], merged["shuffle"]["own_mergers_trouble"]) == (1, "")
    assert "no node had a merger: the job started 1 in containers of its own\n" in explained
    assert 3 * MAPS // 3 <= reads_of(merged) <= 2 * 3 * MAPS // 3
    assert killed
    assert "done" not in alone["shuffle"]["merges"]
    assert alone["shuffle"]["own_mergers_trouble"]
    assert 3 * MAPS <= reads_of(alone) <= 2 * 3 * MAPS
    assert alone["counters"]["org.apache.hadoop.mapreduce.JobCounter"]["TOTAL_LAUNCHED_MAPS"] == MAPS


@pytest.mark.full
def test_the_jobs_own_merger_gives_its_container_back_when_all_is_merged(hdfs: StockHdfs, tmp_path: Path) -> None:
    """No node of this cluster merges; the job's reduces go on without its merger."""
    blocker = tmp_path / "blocker"
    blocker.touch()
    site = {**AS_STOCK, "yaq.riffle.enabled": "false", "yaq.nm.warm-start.enabled": "false"}  # a forked one has no name
    with OurCluster(tmp_path / "c", hdfs=hdfs.uri, nodes=2, site=site) as cluster:
        conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(cluster.conf_dir)})
        job = submit(conf, tmp_path, wait_for=str(blocker))
        merger = await_value("the job's merger", lambda: next(iter(own_mergers()), None))
        await_value("three reduces", lambda: True if reduces_running(job) == 3 else None, 60)
        merger.wait(10)
        # its master and its reduces
        await_value("the merger's room", lambda: True if running_containers(conf, job) == 4 else None, 10)
        assert reduces_running(job) == 3
        blocker.unlink()
        end = check(conf, tmp_path, job)
    assert end["shuffle"]["merges"] == {"done": MAPS // 3}
    assert (end["shuffle"]["own_mergers"], end["shuffle"]["own_mergers_trouble"]) == (1, "")


def reduces_running(job: SubmittedJob) -> int:
    return sum(vertex.running for vertex in job.status().vertices if vertex.name == "reduce")


def running_containers(conf: Configuration, job: SubmittedJob) -> int:
    """As the ResourceManager counts them."""
    host, port = conf.get_address("yarn.resourcemanager.webapp.address")
    url = f"http://{host}:{port}/ws/v1/cluster/apps/{job.application_id}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        count: int = json.load(answer)["app"]["runningContainers"]
    return count
