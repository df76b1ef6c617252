"""Map outputs on HDFS: what its DataNode is asked for, and how long mergers' queues become.

`hdfs-reads` runs one job of ours, 2,000 maps and 200 reduces, on three of our nodes, its outputs on a real HDFS: merged
(ours) and not (theirs). Counted are the blocks that the DataNode read for its clients, by its own counters, the
mergers' reads included; our own requests stand beside them. Input and output are local files, so that nothing but the
shuffle and some ten staged files comes from HDFS. `hdfs-queues` gives three real mergers 150 merges at once, each to
the one of two with the shorter queue (ours) or to any (theirs), as the job manager does: the longest queue, by their
own count.
"""

import asyncio
import json
import random
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nm.merger import MergerProcess, MergerProcessSettings
from riffle_merger.format.packed import index_of
from riffle_merger.plan.choice import MergerChoice
from riffle_merger.plan.decisions import MapOutput, SendMerge
from tez_adapter.client.submit import submit_mapreduce
from tez_adapter.history import read_history
from tez_adapter.merging.links import MergerLinks, SharedOutputs
from yaqd.config import Configuration
from yaqd.security import JOB_TOKEN, Token
from yaqd.security.writable import encode_text
from yaqd.storage import get_filesystem

from ..interop_cluster import make_hdfs_folders
from ..options import Options, progress, stock_jars
from ..ours import AS_STOCK, OurCluster
from ..report import Row, make_row
from ..stock.clients import StockClients
from ..stock.daemons import StockHdfs, current_user

READS, QUEUES = "hdfs-reads", "hdfs-queues"
ROWS: Final = (READS, QUEUES)
_MAPS: Final = 2000
_REDUCES: Final = 200
_NODES: Final = 3
_FILES: Final = 40
_JOB_TIMEOUT_S: Final = 3600.0
_MERGES: Final = 150
_INPUTS: Final = 5
_SECRET: Final = b"of the benchmark's job"
_JOB: Final = "job_1700000000000_0001"
#: every map has one record for every reduce
_SCRIPT: Final = """
from yaqd.mapreduce import Job
class Spread(Job):
    reduces = 0
    def map(self, key, value):
        width = int(value.split()[0])
        return [(number, 1) for number in range(width)]
    def partition(self, key, partitions):
        return key % partitions
    def reduce(self, key, values):
        yield key, sum(values)
"""
_LINE_BYTES: Final = 16
Facts = dict[str, Mapping[str, Any]]


def measure(options: Options) -> tuple[list[Row], Facts]:
    """The rows asked for; none where stock Hadoop cannot run."""
    jars = stock_jars()
    if jars is None or not options.ours:
        return [], {}
    rows: list[Row] = []
    facts: Facts = {}
    with tempfile.TemporaryDirectory(prefix="yaqd-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with StockHdfs(jars, folder / "hdfs") as hdfs:
            make_hdfs_folders(StockClients(jars, hdfs.conf_dir))
            if options.wants(READS):
                _reads(options, hdfs, folder, rows, facts)
            if options.wants(QUEUES):
                _queues(options, hdfs, rows, facts)
    return rows, facts


# One job, merged and not ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Counts:
    """Of one job."""

    blocks_read: int
    shuffle: dict[str, Any]
    reads: int
    seconds: float
    longest_queue: int


def _reads(options: Options, hdfs: StockHdfs, folder: Path, rows: list[Row], facts: Facts) -> None:
    scale = options.scale**0.5  # what is counted grows with both
    maps, reduces = max(_FILES, int(_MAPS * scale)), max(2, int(_REDUCES * scale))
    (folder / "spread.py").write_text(_SCRIPT)
    line = f"{reduces}".ljust(_LINE_BYTES - 1) + "\n"
    (folder / "input.txt").write_text(line * maps)
    site = {**AS_STOCK, "yaq.riffle.enabled": "true"}
    found: dict[bool, _Counts] = {}
    with OurCluster(folder / "cluster", hdfs=hdfs.uri, nodes=_NODES, site=site) as cluster:
        conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(cluster.conf_dir)})
        for merges in (True, False):
            if merges or options.theirs:
                found[merges] = counts = _run(conf, hdfs, folder, maps, reduces, merges=merges)
                progress(f"{maps} x {reduces}, {'merged' if merges else 'not merged'}: {counts}")
    theirs = [found[False].blocks_read] if False in found else None
    rows.append(make_row(READS, [found[True].blocks_read], theirs, "reads", higher_is_better=False))
    ours = found[True]
    facts[READS] = {
        "maps x reduces": f"{maps} x {reduces}",
        "requests of reduces": {("merged" if merges else "not"): counts.reads for merges, counts in found.items()},
        "requests of mergers": ours.shuffle["merge_requests"],
        "merges of each": list(ours.shuffle["mergers"].values()),
        "longest queue": ours.longest_queue,
        "s": {("merged" if merges else "not"): round(counts.seconds, 1) for merges, counts in found.items()},
    }


def _run(conf: Configuration, hdfs: StockHdfs, folder: Path, maps: int, reduces: int, *, merges: bool) -> _Counts:
    settings = {
        "yaq.riffle.storage": "hdfs",
        "yaq.riffle.enabled": str(merges).lower(),
        "yaq.riffle.policy": "files",
        "yaq.riffle.files": str(_FILES),
        "yaq.riffle.best-effort": "1.0",
        "mapreduce.input.fileinputformat.split.maxsize": str(_LINE_BYTES),
        "mapreduce.job.reduce.slowstart.completedmaps": "1.0",
        "mapreduce.map.memory.mb": "512",
        "mapreduce.reduce.memory.mb": "512",
    }
    output = folder / f"output-{merges}"
    before, began = _blocks_read(hdfs), time.monotonic()
    job = submit_mapreduce(
        conf.with_overrides(settings),
        str(folder / "spread.py"),
        inputs=[f"file://{folder}/input.txt"],
        output=f"file://{output}",
        reduces=reduces,
    )
    try:
        status = job.wait(timeout_s=_JOB_TIMEOUT_S)
    finally:
        job.close()
    if status.state != "SUCCEEDED":
        raise RuntimeError(f"the job ended {status.state}: {status.diagnostics}")
    seconds, blocks = time.monotonic() - began, _blocks_read(hdfs) - before
    lines = sorted(line for part in output.glob("part-*") for line in part.read_text().splitlines())
    if lines != sorted(f"{number}\t{maps}" for number in range(reduces)):
        raise RuntimeError(f"the job's answer is wrong: {lines[:3]} ...")
    end = read_history(conf, job.application_id).end
    counters = end["counters"]["org.apache.hadoop.mapreduce.TaskCounter"]
    return _Counts(blocks, end.get("shuffle") or {}, counters["SHUFFLE_READS"], seconds, _longest_queue(conf))


def _longest_queue(conf: Configuration) -> int:
    """Of any node's merger since it started: those that ran, and those that waited."""
    host, port = conf.get_address("yarn.resourcemanager.webapp.address")
    nodes = _get(f"http://{host}:{port}/ws/v1/cluster/nodes")["nodes"]["node"]
    return max(int(_get(f"http://{n['nodeHTTPAddress']}/ws/v1/node/merger")["merger"]["unfinishedMax"]) for n in nodes)


def _blocks_read(hdfs: StockHdfs) -> int:
    """Reads of blocks, or parts of them, that the DataNode has served."""
    query = "qry=Hadoop:service=DataNode,name=DataNodeActivity-*"
    (bean,) = _get(f"http://127.0.0.1:{hdfs.ports.datanode_http}/jmx?{query}")["beans"]
    return int(bean["BlocksRead"])


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


# Many merges at once -------------------------------------------------------------------------------------------------


def _queues(options: Options, hdfs: StockHdfs, rows: list[Row], facts: Facts) -> None:
    conf = Configuration.load(None, overrides={"fs.defaultFS": hdfs.uri}, environ={})
    merges = max(_NODES * 2, int(_MERGES * options.scale))
    names = _make_outputs(conf, f"{hdfs.uri}/tmp/queues", _INPUTS)
    longest: dict[int, list[float]] = {1: [], 2: []}
    for number in range(options.runs):
        for asked in (2, 1) if options.theirs else (2,):
            peaks = asyncio.run(_burst(hdfs.uri, names, merges, asked, number))
            longest[asked].append(max(peaks))
            progress(f"{merges} merges at once, {asked} asked: longest queues {peaks}")
    get_filesystem(hdfs.uri + "/", conf).delete(f"{hdfs.uri}/tmp/queues", recursive=True)
    rows.append(make_row(QUEUES, longest[2], longest[1] or None, "merges", higher_is_better=False))
    facts[QUEUES] = {"merges at once": merges, "two asked": longest[2], "any": longest[1]}


def _make_outputs(conf: Configuration, folder: str, count: int) -> list[str]:
    files = get_filesystem(folder, conf)
    names = [f"attempt_{number}" for number in range(count)]
    for name in names:
        writer = files.create(f"{folder}/{name}")
        writer.write(bytes(4) + index_of([name], [(4,)], [(0,)]))  # one empty segment: its checksum is 0
        writer.close()
    return names


async def _burst(uri: str, names: Sequence[str], merges: int, asked: int, run: int) -> list[int]:
    """The longest queue of each merger."""
    async with AsyncExitStack() as stack:
        mergers = [await _merger(stack, uri) for _ in range(_NODES)]
        known = [("127.0.0.1", merger.port or 0) for merger in mergers]
        ended = asyncio.Semaphore(0)
        failures: list[str] = []

        def failed(_: int, reason: str) -> None:
            failures.append(reason)
            ended.release()

        links = MergerLinks(
            _JOB,
            f"run{run}-{asked}",
            Token(encode_text(_JOB), _SECRET, JOB_TOKEN, ""),
            lambda _: None,
            timeout_s=600.0,
            on_merged=lambda *_: ended.release(),
            on_failed=failed,
            shared=SharedOutputs(
                f"{uri}/tmp/queues",
                1,
                lambda: known,
                MergerChoice(random.Random(run).sample, asked=asked),
                time.monotonic,
            ),
        )
        outputs = tuple(MapOutput(index, name, "hdfs", 4) for index, name in enumerate(names))
        for merge in range(merges):
            links.send(SendMerge(merge, "hdfs", outputs))
        for _ in range(merges):
            await ended.acquire()
        peaks = [(await merger.status()).unfinished_max for merger in mergers]
        await links.close()
        if failures:
            raise RuntimeError(f"{len(failures)} merges failed: {failures[0]}")
        return peaks


async def _merger(stack: AsyncExitStack, uri: str) -> MergerProcess:
    settings = MergerProcessSettings(
        is_enabled=True,
        bind_host="127.0.0.1",
        port=0,
        budget_bytes=64 << 20,
        running_max=1,
        waiting_max=10_000,
        niceness=0,
        is_idle_io=False,
        stall_s=600.0,
        storage={"fs.defaultFS": uri},
    )
    merger = MergerProcess(settings)
    merger.add_job(_JOB, _SECRET, [], current_user())  # before it starts: then it knows the job when it is ready
    merger.start()
    stack.push_async_callback(merger.stop)
    await merger.ready()
    return merger
