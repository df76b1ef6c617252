"""What unmodified MapReduce gets from merging: rows `terasort-*` and `service-*`.

`terasort-reads` and `terasort-time` run one stock TeraSort of 200 maps and 50 reduces on one of our nodes, with
merging (ours) and without (theirs), reducers starting after the maps. That all is merged, 40 to a file, is told: the
shipped choice leaves so small a job alone on a fast disk. Reads are all that the counters of the shuffle service and of
the merger have: of map outputs' and merged files' bytes, and of both kinds' indexes, on both sides. What the merger
writes stands beside, added to them (`io-terasort` compares the counters with strace). With the default slow start only
the counts are printed. `service-*` put the same files before our merged
shuffle service and before the stock ShuffleHandler, which one client asks (benchmarks/shuffle_client.py). Beside
them: the processor time that a segment took of the process that serves and of the client, which tells who of them was
waited for, and hardly changes while a machine does other things.
"""

import json
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import psutil

from yaqd.config import Configuration

from ..inputs import check_total_order, record_file
from ..interop_cluster import InteropCluster, make_hdfs_folders
from ..interop_sides import StockSide
from ..options import Options, progress, stock_jars
from ..ours import AS_STOCK
from ..report import Row, make_row
from ..shuffle_client import MAPS_PER_REQUEST, fetch_all, shuffle_target, write_outputs
from ..stock.artifacts import HadoopJars
from ..stock.clients import StockClients
from ..stock.daemons import StockHdfs

#: a NodeManager that serves all day has its best compiler, unlike the daemons of tests that are soon to be stopped
_SERVING_JVM: Final = ("-XX:+UseSerialGC", "-Xmx512m")
#: passes of each side that count for nothing, mostly for that compiler
_WARM_UPS: Final = 3
_MAPS: Final = 200
_REDUCES: Final = 50
_SPLIT_BYTES: Final = 500_000
_MB: Final = 1 << 20
_CLIENT_TIMEOUT_S: Final = 1800.0
_MERGED_TIMEOUT_S: Final = 60.0
_MERGER_READS: Final = "merger's reads"
_MERGER_WRITES: Final = "merger's writes"
READS, TIME = "terasort-reads", "terasort-time"
SEGMENTS, BYTES = "service-segments", "service-bytes"
ROWS: Final = (READS, TIME, SEGMENTS, BYTES)
#: small tasks, since two hundred of them run one after the other on few cores
_TASKS: Final = {
    "mapreduce.map.memory.mb": 512,
    "mapreduce.reduce.memory.mb": 512,
    "mapreduce.map.java.opts": "-Xmx300m -XX:TieredStopAtLevel=1",
    "mapreduce.reduce.java.opts": "-Xmx300m -XX:TieredStopAtLevel=1",
    "mapreduce.task.io.sort.mb": 16,
    "mapreduce.job.reduces": _REDUCES,
    "mapreduce.input.fileinputformat.split.maxsize": _SPLIT_BYTES,
    # a node that is slow for a moment is no reason to run a map twice and count its reads twice
    "mapreduce.map.speculative": "false",
    "mapreduce.reduce.speculative": "false",
}
_MERGING: Final = {
    "yaq.riffle.enabled": "true",
    "yaq.riffle.shuffle.policy": "files",
    "yaq.riffle.shuffle.block-size-max": "1g",
}
Facts = dict[str, Mapping[str, Any]]


def measure(options: Options) -> tuple[list[Row], Facts]:
    """The rows asked for; none where stock Hadoop cannot run."""
    jars = stock_jars()
    if jars is None:
        return [], {}
    rows: list[Row] = []
    facts: Facts = {}
    with tempfile.TemporaryDirectory(prefix="yaqd-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with StockHdfs(jars, folder / "hdfs") as hdfs:
            make_hdfs_folders(StockClients(jars, hdfs.conf_dir))
            if options.wants(READS) or options.wants(TIME):
                _terasort(options, jars, hdfs, folder, rows, facts)
            if options.wants(SEGMENTS) or options.wants(BYTES):
                _service(options, jars, hdfs, folder, rows, facts)
    return rows, facts


@contextmanager
def _cluster(jars: HadoopJars, hdfs: StockHdfs, folder: Path, *, merges: bool) -> Iterator[InteropCluster]:
    """One node of ours."""
    site = {**AS_STOCK, **(_MERGING if merges else {"yaq.riffle.enabled": "false"})}
    where = folder / ("merging" if merges else "plain")
    with InteropCluster(jars, where, hdfs, nodes=1, site=site) as cluster:
        cluster.clients = StockClients(jars, cluster.ours.conf_dir, timeout_s=_CLIENT_TIMEOUT_S)
        yield cluster


def _figures(conf_dir: Path) -> dict[str, Any]:
    """The shuffle's counts of the one node."""
    conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(conf_dir)})
    host, port = conf.get_address("yarn.resourcemanager.webapp.address")
    (node,) = _get(f"http://{host}:{port}/ws/v1/cluster/nodes")["nodes"]["node"]
    figures: dict[str, Any] = _get(f"http://{node['nodeHTTPAddress']}/ws/v1/node/info")["nodeInfo"]["shuffle"]
    return figures


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


# TeraSort -------------------------------------------------------------------------------------------------------------


def _terasort(options: Options, jars: HadoopJars, hdfs: StockHdfs, folder: Path, rows: list[Row], facts: Facts) -> None:
    reads: dict[bool, list[float]] = {True: [], False: []}
    times: dict[bool, list[float]] = {True: [], False: []}
    beside: dict[str, Any] = {}
    with ExitStack() as stack:
        wanted = [merges for merges, is_wanted in ((True, options.ours), (False, options.theirs)) if is_wanted]
        sides = {merges: stack.enter_context(_cluster(jars, hdfs, folder, merges=merges)) for merges in wanted}
        job = _TeraSort(jars, hdfs, folder, options.scale)
        for number in range(options.runs):
            for merges, cluster in sides.items():
                seconds, counts = job.run(cluster, slow_start=1.0)
                reads[merges].append(_reads(counts))
                times[merges].append(seconds)
                which = "merging" if merges else "not merging"
                progress(f"terasort {which} run {number + 1}: {seconds:.1f} s, {counts}")
                beside[f"counts {which}"] = counts
        for merges, cluster in sides.items() if len(sides) == 2 else ():
            seconds, counts = job.run(cluster, slow_start=0.05)
            beside[f"default slow start, {'merging' if merges else 'not merging'}"] = {"s": seconds, **counts}
    if options.wants(READS) and options.ours:
        rows.append(make_row(READS, reads[True], reads[False], "reads", higher_is_better=False))
        facts[READS] = beside
        if len(sides) == 2:
            ours, theirs = beside["counts merging"], beside["counts not merging"]
            both = _reads(ours) + ours[_MERGER_WRITES]
            facts[READS] = {**beside, "with what the merger writes": f"{_reads(theirs) / both:.2f}x fewer"}
    if options.wants(TIME) and options.ours:
        rows.append(make_row(TIME, times[True], times[False], "s", higher_is_better=False))
        facts[TIME] = {"merging, s": times[True], "not merging, s": times[False]}


def _reads(counts: Mapping[str, float]) -> float:
    """Everybody's, of segments and indexes; each input's index is one of the merger's reads."""
    return counts["reads"] + counts["indexReads"] + counts.get(_MERGER_READS, 0.0)


class _TeraSort:
    """The stock program on one input; its answer is checked."""

    def __init__(self, jars: HadoopJars, hdfs: StockHdfs, folder: Path, scale: float) -> None:
        self._hdfs = hdfs
        self._folder = folder
        self._files = StockClients(jars, hdfs.conf_dir)
        self._maps = max(2, int(_MAPS * scale))
        path, self._expected = record_file(self._maps * _SPLIT_BYTES // 100)
        self._files.fs("-mkdir", "-p", "/riffle").checked()
        self._files.fs("-put", str(path), "/riffle/input").checked()

    def run(self, cluster: InteropCluster, *, slow_start: float) -> tuple[float, dict[str, float]]:
        """Seconds of the command, and what the node counted meanwhile."""
        before = _figures(cluster.ours.conf_dir)
        settings = {**_TASKS, "mapreduce.job.reduce.slowstart.completedmaps": slow_start}
        given = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        source, target = f"{self._hdfs.uri}/riffle/input", f"{self._hdfs.uri}/riffle/output"
        seconds = cluster.clients.example("terasort", *given, source, target).checked().seconds
        after = _figures(cluster.ours.conf_dir)
        self._check(target)
        names = (
            "requests",
            "segments",
            "reads",
            "readBytes",
            "mergedReads",
            "mergedSegments",
            "fallbacks",
            "opens",
            "indexReads",
        )
        counts = {name: float(after[name] - before[name]) for name in names}
        if after["merger"] is not None and before["merger"] is not None:
            for name in ("merges", "reads", "writes"):
                counts[f"merger's {name}"] = float(after["merger"][name] - before["merger"][name])
        return seconds, counts

    def _check(self, target: str) -> None:
        got = self._folder / "got"
        self._files.fs("-get", target, str(got)).checked()
        check_total_order([part.read_bytes() for part in sorted(got.glob("part-*"))], self._expected)
        shutil.rmtree(got)
        self._files.fs("-rm", "-r", "-skipTrash", target).checked()


# Service --------------------------------------------------------------------------------------------------------------


class _MergingSide:
    """One of our clusters in the shape of a benchmark's side."""

    def __init__(self, cluster: InteropCluster, directory: Path) -> None:
        self.clients = cluster.clients
        self.directory = directory


def _service(options: Options, jars: HadoopJars, hdfs: StockHdfs, folder: Path, rows: list[Row], facts: Facts) -> None:
    found: dict[str, dict[str, list[float]]] = {SEGMENTS: {}, BYTES: {}}
    costs: dict[str, dict[str, float]] = {}
    if options.theirs:
        with StockSide(jars, folder / "stock", hdfs, jvm=_SERVING_JVM) as side:
            _fetch_rows(options, "theirs", side, found, costs, lambda _: None)
    with _cluster(jars, hdfs, folder / "served", merges=True) as cluster:
        conf_dir = cluster.ours.conf_dir
        side_of_ours = _MergingSide(cluster, folder / "served")
        _fetch_rows(options, "ours", side_of_ours, found, costs, lambda maps: _await_merged(conf_dir, maps))
        beside = _figures(conf_dir)
    for row, unit in ((SEGMENTS, "segments/s"), (BYTES, "MB/s")):
        if options.wants(row):
            rows.append(make_row(row, found[row]["ours"], found[row].get("theirs"), unit, higher_is_better=True))
            facts[row] = {**found[row], "counts": beside}
    if SEGMENTS in facts:
        facts[SEGMENTS] = {**facts[SEGMENTS], "processor time, us per segment": costs}


class _ProcessorTime:
    """Seconds of the process that listens at a port, and of this one, since the start."""

    def __init__(self, port: int) -> None:
        """Whoever may not see it (not the user of the server, nor root) has 0 for it."""
        listening = (c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN)
        pid = next((c.pid for c in listening if c.laddr.port == port), None)
        self._server = None if pid is None else psutil.Process(pid)
        self._began = self._now()

    def since(self) -> tuple[float, float]:
        """Of the server and of this process."""
        (server_s, own_s), (server_from, own_from) = self._now(), self._began
        return server_s - server_from, own_s - own_from

    def _now(self) -> tuple[float, float]:
        server = None if self._server is None else self._server.cpu_times()
        return 0.0 if server is None else server.user + server.system, time.process_time()


def _await_merged(conf_dir: Path, maps: int) -> None:
    deadline = time.monotonic() + _MERGED_TIMEOUT_S
    while _figures(conf_dir)["mergedMaps"] < maps:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the node has not merged {maps} map outputs: {_figures(conf_dir)}")
        time.sleep(0.2)


def _fetch_rows(
    options: Options,
    name: str,
    side: Any,
    found: dict[str, dict[str, list[float]]],
    costs: dict[str, dict[str, float]],
    await_merged: Callable[[int], None],
) -> None:
    with shuffle_target(side) as target:
        maps = 0
        if options.wants(SEGMENTS):
            small = write_outputs(target, 0, max(20, int(1000 * options.scale)), partitions=20, segment_bytes=1024)
            maps += len(small.attempts)
            await_merged(maps)
            rates = found[SEGMENTS].setdefault(name, [])
            spent = _ProcessorTime(target.port)
            for number in range(options.runs + _WARM_UPS):
                if number == _WARM_UPS:
                    spent = _ProcessorTime(target.port)
                taken = fetch_all(target, small, maps_per_request=MAPS_PER_REQUEST, rounds=2, compares=number == 0)
                rates.append(2 * len(small.attempts) * small.partitions / taken)
                progress(f"{SEGMENTS}: {name}: {rates[-1]:.0f} /s")
            del rates[:_WARM_UPS]
            asked = 2 * len(small.attempts) * small.partitions * options.runs
            costs[name] = {w: s / asked * 1e6 for w, s in zip(("service", "client"), spent.since(), strict=True)}
            progress(f"{SEGMENTS}: {name}: {costs[name]} us per segment")
    with shuffle_target(side) as target:  # a job of its own: the node merges outputs of one shape
        if options.wants(BYTES):
            size = max(1, int(64 * options.scale)) * _MB
            large = write_outputs(target, 100_000, 8, partitions=1, segment_bytes=size)
            await_merged(len(large.attempts))
            rates = found[BYTES].setdefault(name, [])
            for number in range(options.runs + _WARM_UPS):
                taken = fetch_all(target, large, maps_per_request=1, rounds=4, compares=number == 0)
                rates.append(4 * len(large.attempts) * size / taken / 1e6)
                progress(f"{BYTES}: {name}: {rates[-1]:.0f} MB/s")
            del rates[:_WARM_UPS]
