"""Unmodified MapReduce beside node queues: `python -m benchmarks.attempts`.

The same stock clients run on three clusters of two nodes over one HDFS: ours as shipped, ours with
`yaq.queue.enabled=false`, and stock. All are up all the time and take turns, run by run. Each row ends with its
opponent. Rows `sleep`, `words` and `sort` are one job alone. Rows `together` are twenty jobs of the three kinds
submitted at once, from the first submission to the last job's end. Beside each row stand the attempts that the jobs'
own counters tell, and the median of (queues on / opponent) over the pairs of runs. Second attempts of slow tasks are
off everywhere: they would be no matter of queues.
"""

import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .interop_cluster import InteropCluster, make_hdfs_folders
from .options import Options, parse_options, progress, show, stock_jars
from .ours import AS_STOCK
from .report import Row, make_row
from .stock.artifacts import HadoopJars, fetch_sleep
from .stock.clients import ClientFailure, ClientRun, StockClients
from .stock.conf import NodeShape
from .stock.daemons import StockHdfs, StockYarn

_ON, _OFF, _STOCK = "on", "off", "stock"
_KINDS = ("sleep", "words", "sort")
_TOGETHER = "together"
_JOBS = 20
_NODE_MB = 8192
_SHAPE = NodeShape(memory_mb=_NODE_MB)
#: Masters that filled both nodes would stand still on any scheduler.
_MASTERS = {"yarn.scheduler.capacity.maximum-am-resource-percent": 0.5}
_CLIENT_TIMEOUT_S = 1800.0
_OPTIONS = {
    "yarn.app.mapreduce.am.resource.mb": 512,
    "mapreduce.map.memory.mb": 512,
    "mapreduce.reduce.memory.mb": 512,
    "mapreduce.map.speculative": "false",
    "mapreduce.reduce.speculative": "false",
}
#: (maps, reduces) of a job alone, and of each of many; a file a map
_ALONE, _OF_MANY = (12, 3), (3, 1)
_LINES = 20_000
_TEXT = "org.apache.hadoop.mapreduce.lib"


@dataclass(frozen=True, slots=True)
class Attempts:
    """What the jobs of one run launched, by their own counters."""

    maps: int
    reduces: int
    #: attempts that failed or were killed
    lost: int

    def __add__(self, other: "Attempts") -> "Attempts":
        return Attempts(self.maps + other.maps, self.reduces + other.reduces, self.lost + other.lost)


@dataclass(slots=True)
class Runs:
    """What the runs of one load gave on one cluster."""

    seconds: list[float] = field(default_factory=list)
    attempts: list[Attempts] = field(default_factory=list)


def attempts_of(run: ClientRun) -> Attempts:
    """The counters that a stock client prints at the end; raises ClientFailure where it printed none."""

    def counted(kind: str) -> int:
        return sum(map(int, re.findall(rf"\s{kind} tasks=(\d+)", run.stderr)))

    launched = Attempts(
        counted("Launched map"), counted("Launched reduce"), counted("(?:Killed|Failed) (?:map|reduce)")
    )
    if not launched.maps:
        raise ClientFailure(f"{run.command} tells no attempts: {run.stderr[-2000:]}")
    return launched


class Bench:
    """Runs the wanted loads on one cluster after the other."""

    def __init__(self, options: Options, jars: HadoopJars, folder: Path, hdfs: StockHdfs) -> None:
        self._options = options
        self._jars = jars
        self._folder = folder
        self._hdfs = hdfs
        self._jobs = max(2, round(_JOBS * options.scale))
        self._outputs = 0
        self.runs: dict[tuple[str, str], Runs] = {}

    def run(self) -> None:
        """Runs all clusters."""
        files = StockClients(self._jars, self._hdfs.conf_dir)
        make_hdfs_folders(files)
        files.fs("-mkdir", "/out").checked()
        files.fs("-put", str(self._inputs()), "/words").checked()
        with ExitStack() as stack:
            clusters = {_ON: self._ours(stack, _ON), _OFF: self._ours(stack, _OFF)}
            if any(self._options.wants(f"{load}/{_STOCK}") for load in (*_KINDS, _TOGETHER)):
                clusters[_STOCK] = self._stock(stack)
            for load in (*_KINDS, _TOGETHER):
                if not any(self._options.wants(f"{load}/{rival}") for rival in (_OFF, _STOCK)):
                    continue
                for number in range(self._options.runs):
                    for name, conf_dir in clusters.items():
                        got = self.runs.setdefault((load, name), Runs())
                        seconds, attempts = self._load(load, conf_dir)
                        got.seconds.append(seconds)
                        got.attempts.append(attempts)
                        progress(f"{load}: {name} run {number + 1}: {seconds:.2f} s, {_said(attempts)}")

    def _inputs(self) -> Path:
        folder = self._folder / "words"
        folder.mkdir()
        for number in range(_ALONE[0]):
            (folder / f"{number:02}.txt").write_text(f"a b word{number}\n" * _LINES)
        return folder

    def _ours(self, stack: ExitStack, name: str) -> Path:
        site = {
            **AS_STOCK,
            **_MASTERS,
            "yarn.app.mapreduce.am.staging-dir": f"/tmp/staging-{name}",
            "yarn.nodemanager.resource.memory-mb": _NODE_MB,
            "yaq.queue.enabled": str(name == _ON).lower(),
        }
        cluster = stack.enter_context(InteropCluster(self._jars, self._folder / name, self._hdfs, site=site))
        return cluster.ours.conf_dir

    def _stock(self, stack: ExitStack) -> Path:
        yarn = StockYarn(self._jars, self._folder / _STOCK, hdfs=self._hdfs, shape=_SHAPE, queues=_MASTERS)
        return stack.enter_context(yarn).conf_dir

    def _load(self, load: str, conf_dir: Path) -> tuple[float, Attempts]:
        """Seconds until all has ended, and what was launched."""
        kinds = [_KINDS[number % len(_KINDS)] for number in range(self._jobs)] if load == _TOGETHER else [load]
        size = _OF_MANY if load == _TOGETHER else _ALONE
        clients = StockClients(self._jars, conf_dir, timeout_s=_CLIENT_TIMEOUT_S, more=[fetch_sleep()])
        outputs = [f"/out/{self._outputs + number}" for number in range(len(kinds))]
        self._outputs += len(kinds)
        started = time.perf_counter()
        with ThreadPoolExecutor(len(kinds)) as pool:
            done = [pool.submit(_job, clients, kind, size, output) for kind, output in zip(kinds, outputs, strict=True)]
            runs = [each.result().checked() for each in done]
        seconds = time.perf_counter() - started
        return seconds, sum((attempts_of(run) for run in runs), Attempts(0, 0, 0))


def _job(clients: StockClients, kind: str, size: tuple[int, int], output: str) -> ClientRun:
    maps, reduces = size
    inputs = f"/words/{{{','.join(f'{number:02}' for number in range(maps))}}}.txt"
    settings = {**_OPTIONS, "mapreduce.job.reduces": reduces}
    words = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
    if kind == "sleep":
        lengths = ["-m", str(maps), "-r", str(reduces), "-mt", "1000", "-rt", "100"]
        return clients.run("org.apache.hadoop.mapreduce.SleepJob", [*words, *lengths])
    if kind == "words":
        return clients.example("wordcount", *words, inputs, output)
    formats = ["-inFormat", f"{_TEXT}.input.TextInputFormat", "-outFormat", f"{_TEXT}.output.TextOutputFormat"]
    types = ["-outKey", "org.apache.hadoop.io.LongWritable", "-outValue", "org.apache.hadoop.io.Text"]
    return clients.example("sort", *words, "-r", str(reduces), *formats, *types, inputs, output)


def _said(attempts: Attempts) -> str:
    lost = f", {attempts.lost} failed or killed" if attempts.lost else ""
    return f"{attempts.maps} + {attempts.reduces}{lost}"


def _rows(options: Options, runs: dict[tuple[str, str], Runs]) -> tuple[list[Row], dict[str, dict[str, Any]]]:
    rows: list[Row] = []
    beside: dict[str, dict[str, Any]] = {}
    for (load, rival), theirs in runs.items():
        row = f"{load}/{rival}"
        if rival == _ON or not options.wants(row):
            continue
        ours = runs[load, _ON]
        rows.append(make_row(row, ours.seconds, theirs.seconds, "s", higher_is_better=False))
        pairs = [mine / other for mine, other in zip(ours.seconds, theirs.seconds, strict=True)]
        beside[row] = {
            "on / opponent by pairs": pairs,
            "their median": statistics.median(pairs),
            "attempts, maps + reduces, on": "; ".join(map(_said, ours.attempts)),
            f"attempts, {rival}": "; ".join(map(_said, theirs.attempts)),
            "our runs, s": ours.seconds,
            "their runs, s": theirs.seconds,
            "cpus": os.cpu_count(),
        }
    return rows, beside


def main(words: Sequence[str] | None = None) -> int:
    """Runs the benchmark; 2 where stock Hadoop cannot run here."""
    names = [f"{load}/{rival}" for load in (*_KINDS, _TOGETHER) for rival in (_OFF, _STOCK)]
    options = parse_options("attempts", "stock MapReduce with and without node queues", names, words=words)
    jars = stock_jars()
    if jars is None:
        return 2
    with tempfile.TemporaryDirectory(prefix="yaqd-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # stock nodes read public files below it
        with StockHdfs(jars, folder / "hdfs") as hdfs:
            bench = Bench(options, jars, folder, hdfs)
            bench.run()
    rows, beside = _rows(options, bench.runs)
    return show(rows, beside, options)


if __name__ == "__main__":
    sys.exit(main())
