"""Unmodified MapReduce whose map outputs our node merges by itself, through faults of the merger and of files."""

import json
import os
import random
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import ClientRun
from benchmarks.stock.daemons import StockHdfs
from riffle_merger.format.merged import DATA_SUFFIX, INDEX_SUFFIX, MERGED_FOLDER, MergedIndex
from tests.interop.interop_master import await_value
from yaqd.config import Configuration

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
CLIENT = "Hadoop Streaming, merged by the node"

#: all maps of a job run at once, most of them held
MERGING = {
    "yaq.riffle.enabled": "true",
    "yaq.riffle.shuffle.policy": "files",
    "yaq.riffle.shuffle.files": "2",
    "yaq.riffle.shuffle.block-size-max": "1g",
    "yarn.nodemanager.resource.memory-mb": 6144,
    "yarn.nodemanager.resource.cpu-vcores": 12,
    "yarn.log-aggregation-enable": "false",
}
#: inputs, and so maps: two whose merge takes a while, three merges of others, and the last that reduces wait for
INPUTS = {"large": 2, "small": 6, "last": 1}
INPUT_LINES = {"large": 12_000, "small": 100, "last": 1}
#: with one that no other is left to be merged with
ODD_INPUTS = {"small": 7, "last": 1}
#: of a line, in bytes
VALUE_BYTES = 1000
MAPS, REDUCES = sum(INPUTS.values()), 2
PATIENCE_S = 120.0
MAPPER = """cat
kind=$(basename "$mapreduce_map_input_file" | cut -d- -f1)
while [ -e "{folder}/held-$kind" ]; do sleep 0.05; done
"""
#: begins when all of the reduce's part is there
REDUCER = """touch "{folder}/read-$mapreduce_task_partition"
while [ -e "{folder}/held-reduce" ]; do sleep 0.05; done
cat
"""
#: one reduce after the other, and none before all maps are done
OPTIONS = {
    "mapreduce.job.reduces": REDUCES,
    "mapreduce.job.reduce.slowstart.completedmaps": "1.0",
    "mapreduce.job.running.reduce.limit": 1,
    "mapreduce.map.speculative": "false",
    "mapreduce.reduce.speculative": "false",
}


class Node:
    """The only one of a cluster, as its administrator sees it."""

    def __init__(self, cluster: InteropCluster, disks: list[Path]) -> None:
        conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(cluster.ours.conf_dir)})
        host, port = conf.get_address("yarn.resourcemanager.webapp.address")
        (node,) = _get(f"http://{host}:{port}/ws/v1/cluster/nodes")["nodes"]["node"]
        (pid,) = (cluster.ours.directory / "run").glob("nodemanager*.pid")
        (self.log,) = (cluster.ours.directory / "logs").glob("nodemanager*.log")
        self.disks = disks
        self._directory = cluster.ours.directory
        self._url = f"http://{node['nodeHTTPAddress']}/ws/v1/node"
        self._process = psutil.Process(int(pid.read_text().split()[0]))

    def merger(self) -> psutil.Process | None:
        for process in self._process.children():
            with suppress(psutil.NoSuchProcess):
                if "riffle_merger.service" in process.cmdline():
                    return process
        return None

    def figures(self) -> dict[str, Any]:
        """Of its shuffle service."""
        found: dict[str, Any] = _get(f"{self._url}/info")["nodeInfo"]["shuffle"]
        return found

    def shuffle_of(self, application: str) -> dict[str, Any]:
        found: dict[str, Any] = _get(f"{self._url}/apps/{application}/shuffle")["shuffle"]
        return found

    def settled_shuffle_of(self, application: str) -> dict[str, Any] | None:
        """None while something is being merged."""
        found = self.shuffle_of(application)
        return None if found["merging"] else found

    def merged_files(self) -> list[Path]:
        """Of all applications, half-written ones too."""
        return sorted(p for disk in self.disks for p in disk.glob(f"*/usercache/*/appcache/*/{MERGED_FOLDER}/*"))

    def output_of(self, map_id: str) -> Path:
        (found,) = (path for disk in self.disks for path in disk.glob(f"*/usercache/*/appcache/*/output/{map_id}"))
        return found

    def outputs_of(self, application: str) -> list[Path]:
        return [path for disk in self.disks for path in disk.glob(f"*/usercache/*/appcache/{application}/output/*")]

    def logs_of_tasks(self) -> list[str]:
        return [path.read_text(errors="replace") for path in self._directory.rglob("syslog*")]

    def of_applications(self) -> list[Path]:
        return [path for disk in self.disks for path in disk.glob("*/usercache/*/appcache/*")]


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def cluster(
    hadoop: HadoopJars, hdfs: StockHdfs, quick_tasks: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[InteropCluster, Node]]:
    folder = tmp_path_factory.mktemp("merging")
    disks = [folder / "disk-a", folder / "disk-b"]
    site = {**quick_tasks, **MERGING, "yarn.nodemanager.local-dirs": ",".join(map(str, disks))}
    with InteropCluster(hadoop, folder / "c", hdfs, nodes=1, site=site) as running:
        yield running, Node(running, disks)


@contextmanager
def held_job(
    cluster: InteropCluster, folder: Path, further: Mapping[str, object], inputs: Mapping[str, int] = INPUTS
) -> Iterator[Future[ClientRun]]:
    """A streaming job whose small and last maps and whose reduces wait until `let_go`."""
    rng = random.Random(7)
    (folder / "in").mkdir()
    for kind, count in inputs.items():
        for number in range(count):
            lines = (
                f"{rng.getrandbits(64):016x}\t{rng.randbytes(VALUE_BYTES // 2).hex()}\n"
                for _ in range(INPUT_LINES[kind])
            )
            (folder / "in" / f"{kind}-{number}").write_text("".join(lines))
    (folder / "map.sh").write_text(MAPPER.format(folder=folder))
    (folder / "reduce.sh").write_text(REDUCER.format(folder=folder))
    kinds = ("small", "last", "reduce")
    for kind in kinds:
        (folder / f"held-{kind}").touch()
    options = [word for key, value in {**OPTIONS, **further}.items() for word in ("-D", f"{key}={value}")]
    scripts = ("-mapper", f"bash {folder}/map.sh", "-reducer", f"bash {folder}/reduce.sh")
    places = ("-input", f"file://{folder}/in", "-output", f"file://{folder}/out")
    with ThreadPoolExecutor(1) as pool:
        client = pool.submit(cluster.clients.streaming, *options, *places, *scripts)
        try:
            yield client
        finally:
            for kind in kinds:
                let_go(folder, kind)


def let_go(folder: Path, kind: str) -> None:
    (folder / f"held-{kind}").unlink(missing_ok=True)


def killed_in_mid_merge(node: Node, client: "Future[ClientRun]") -> str:
    """Kills the merger when it has begun with a file; the application that this was of."""
    merger = await_value("the merger", node.merger, PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while not (begun := node.merged_files()):
        assert not client.done() and time.monotonic() < deadline
        time.sleep(0.001)
    merger.suspend()
    left = node.merged_files()
    merger.kill()
    assert left and all(path.name.startswith(".") for path in left), "it was faster"
    return begun[0].parent.parent.name


@pytest.mark.full
def test_stock_mapreduce_reads_on_whatever_happens_to_the_merger_and_its_files(
    cluster: tuple[InteropCluster, Node], tmp_path: Path
) -> None:
    """Damage before any reduce has read, and more when one of two has."""
    running, node = cluster
    with held_job(running, tmp_path, {}) as client:
        application = killed_in_mid_merge(node, client)
        await_value("the next merger", lambda: (node.figures()["merger"] or {}).get("restarts"), PATIENCE_S)
        let_go(tmp_path, "small")
        await_value("all that is merged", lambda: node.figures()["mergedMaps"] == INPUTS["small"] or None, PATIENCE_S)
        # what has appeared is served before the merger has answered whoever asked for it
        facts = await_value("the merger's answers", lambda: node.settled_shuffle_of(application), PATIENCE_S)
        assert (facts["mergedFiles"], facts["mergesFailed"], facts["waiting"]) == (INPUTS["small"] // 2, 1, 0)
        merged = node.merged_files()
        assert len(merged) == INPUTS["small"] and not any(path.name.startswith(".") for path in merged)
        whole, damaged, lost = [path for path in merged if path.name.endswith(DATA_SUFFIX)]
        shutil.rmtree(node.output_of(flip_first_segment(damaged)))
        index_of(lost).unlink()
        let_go(tmp_path, "last")
        await_value("a reduce that has read", lambda: next(tmp_path.glob("read-*"), None), PATIENCE_S)
        os.truncate(whole, 0)
        let_go(tmp_path, "reduce")
    run = client.result().checked()

    assert_sorted(tmp_path)
    for counter in (f"Launched map tasks={MAPS}", f"Launched reduce tasks={REDUCES}", "Failed Shuffles=0"):
        assert counter in run.stderr, run.stderr
    await_value("the job's end at the node", lambda: node.shuffle_of(application)["isOver"] or None, PATIENCE_S)
    facts = node.shuffle_of(application)
    assert facts["segments"] == MAPS * REDUCES
    # of one part the whole file's, of one part both of the damaged file's, and of the other the one without original
    assert facts["mergedSegments"] == 2 + 2 + 1
    assert 2 <= facts["fallbacks"] <= 4  # a reduce may ask for both maps of a file at once, or for one after the other
    left_alone = [line for line in node.log.read_text().splitlines() if "the originals are served" in line]
    for file in (whole, damaged, index_of(lost)):
        assert sum(str(file) in line for line in left_alone) == 1, left_alone
    await_value("the node's folders to be empty", lambda: not node.of_applications() or None, PATIENCE_S)
    assert not [path for disk in node.disks for path in disk.rglob(MERGED_FOLDER)]


#: a reducer that is told that an output is lost asks again soon, and its job manager believes the first
TOLD_SOON = {
    "mapreduce.reduce.shuffle.retry-delay.max.ms": 3000,
    "mapreduce.reduce.shuffle.max-fetch-failures-notifications": 1,
}


@pytest.mark.full
def test_stock_mapreduce_runs_the_one_map_again_whose_last_copy_is_lost(
    cluster: tuple[InteropCluster, Node], tmp_path: Path
) -> None:
    """A reducer asks for it together with all others."""
    running, node = cluster
    before = node.figures()["mergedMaps"]
    with held_job(running, tmp_path, TOLD_SOON) as client:
        let_go(tmp_path, "small")
        merged = INPUTS["large"] + INPUTS["small"]
        await_value("all that is merged", lambda: node.figures()["mergedMaps"] == before + merged or None, PATIENCE_S)
        file = next(path for path in node.merged_files() if path.name.endswith(DATA_SUFFIX))
        lost = MergedIndex.load(index_of(file)).maps[1]
        index_of(file).unlink()
        file.unlink()
        shutil.rmtree(node.output_of(lost))
        let_go(tmp_path, "last")
        let_go(tmp_path, "reduce")
    run = client.result().checked()

    assert_sorted(tmp_path)
    for counter in (f"Launched map tasks={MAPS + 1}", "Failed map tasks=1"):
        assert counter in run.stderr, run.stderr


@pytest.mark.full
def test_stock_mapreduce_runs_all_maps_again_that_are_lost_of_which_it_hears_at_once(
    cluster: tuple[InteropCluster, Node], tmp_path: Path
) -> None:
    """One that was merged and one that never was."""
    running, node = cluster
    known = {path.name for path in node.of_applications()}
    with held_job(running, tmp_path, TOLD_SOON, ODD_INPUTS) as client:
        let_go(tmp_path, "small")
        merged, count = ODD_INPUTS["small"] // 2 * 2, ODD_INPUTS["small"]

        def settled() -> str | None:
            for name in {path.name for path in node.of_applications()} - known:
                with suppress(urllib.error.HTTPError):  # its master runs, and no map yet
                    facts = node.shuffle_of(name)
                    if (facts.get("mergedOutputs"), facts.get("outputs")) == (merged, count):
                        return name
            return None

        application = await_value("all that is merged", settled, PATIENCE_S)
        files = [path for path in node.merged_files() if path.name.endswith(DATA_SUFFIX) and application in path.parts]
        in_files = {name for path in files for name in MergedIndex.load(index_of(path)).maps}
        outputs = {path.name for path in node.outputs_of(application)}
        assert len(in_files) == merged
        lost = sorted([MergedIndex.load(index_of(files[0])).maps[1], *(outputs - in_files)])
        assert len(lost) == 2
        index_of(files[0]).unlink()
        files[0].unlink()
        for name in lost:
            shutil.rmtree(node.output_of(name))
        let_go(tmp_path, "last")
        let_go(tmp_path, "reduce")
    run = client.result().checked()

    assert_sorted(tmp_path)
    for counter in (f"Launched map tasks={sum(ODD_INPUTS.values()) + len(lost)}", f"Failed map tasks={len(lost)}"):
        assert counter in run.stderr, run.stderr
    lines = [line for log in node.logs_of_tasks() for line in log.splitlines() if "copyMapOutput failed for" in line]
    assert any(all(name in line for name in lost) for line in lines), lines


def index_of(file: Path) -> Path:
    return file.with_name(file.name.removesuffix(DATA_SUFFIX) + INDEX_SUFFIX)


def flip_first_segment(file: Path) -> str:
    """Of the first reduce; the name of the other map in that file."""
    index = MergedIndex.load(index_of(file))
    first, second = index.segments(0)
    with file.open("r+b") as opened:
        opened.seek(first.start + 100)
        (byte,) = opened.read(1)
        opened.seek(first.start + 100)
        opened.write(bytes([byte ^ 1]))
    assert first.part_length > 1000 and second.part_length > 1000
    return index.maps[1]


def assert_sorted(folder: Path) -> None:
    """Each part is in order, and together they are what went in."""
    parts = [path.read_text().splitlines() for path in sorted((folder / "out").glob("part-*"))]
    assert len(parts) == REDUCES and all(part == sorted(part) for part in parts)
    lines = [line for path in (folder / "in").iterdir() for line in path.read_text().splitlines()]
    assert sorted(line for part in parts for line in part) == sorted(lines)
