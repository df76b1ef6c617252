"""MapReduce against stock MapReduce: `python -m benchmarks.mapreduce`.

Each time is the wall time of the submitting command, from its start to its exit, on an idle cluster of two nodes of
4 GB and 4 vcores on this machine; both sides read the same file in splits of 128 MB and their answers are checked.
Stock daemons and clients run with small heaps and the quick compiler (they start sooner so); stock masters and tasks
run with the Java virtual machine's own defaults and 768 and 820 MB of heap. TeraSort runs on HDFS, because stock
TeraSort does not find its partition file on the local file system.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .inputs import Digest, check_total_order, check_word_counts, record_file, text_file
from .interop_cluster import make_hdfs_folders
from .memory import MemorySampler
from .options import Options, parse_options, progress, show, stock_jars
from .ours import AS_STOCK, OurCluster
from .report import make_row
from .stock.artifacts import HadoopJars
from .stock.clients import StockClients
from .stock.daemons import StockHdfs, StockYarn

JOBS = Path(__file__).parent / "jobs"
_SPLIT_BYTES = 128 << 20
_SCRIPTS = ("wc_map.py", "wc_sum.py")
Check = Callable[[Sequence[bytes], Digest], None]


@dataclass(frozen=True, slots=True)
class Work:
    """One row: what runs, where its files lie and how its answer is checked."""

    id: str
    at_least: float
    #: Makes the input; the size is already scaled.
    make_input: Callable[[int], tuple[Path, Digest]]
    size: int
    on_hdfs: bool
    #: Command lines from input and output URI.
    ours: Callable[[str, str], list[str]]
    theirs: Callable[[str, str], tuple[str, list[str]]]
    check: Check


def _stock_options(*more: str) -> list[str]:
    split = f"mapreduce.input.fileinputformat.split.minsize={_SPLIT_BYTES}"
    return ["-D", "mapreduce.job.reduces=2", "-D", split, *more]


def _stock_example(program: str) -> Callable[[str, str], tuple[str, list[str]]]:
    return lambda source, target: (program, [*_stock_options(), source, target])


def _stock_streaming(source: str, target: str) -> tuple[str, list[str]]:
    files = ",".join(str(JOBS / name) for name in _SCRIPTS)
    return "streaming", [*_stock_options("-files", files), *_streaming(source, target)]


def _streaming(source: str, target: str) -> list[str]:
    python = sys.executable
    return [
        *("-input", source, "-output", target, "-mapper", f"{python} wc_map.py"),
        *("-combiner", f"{python} wc_sum.py", "-reducer", f"{python} wc_sum.py"),
    ]


def _our_job(script: str) -> Callable[[str, str], list[str]]:
    def command(source: str, target: str) -> list[str]:
        return ["mr", "submit", str(JOBS / script), "--input", source, "--output", target, "--reduces", "2"]

    return command


def _our_streaming(source: str, target: str) -> list[str]:
    files = ",".join(str(JOBS / name) for name in _SCRIPTS)
    return ["mr", "streaming", "-D", "mapreduce.job.reduces=2", "-files", files, *_streaming(source, target)]


_MB = 1 << 20
_WORD_COUNT = (_our_job("wordcount.py"), _stock_example("wordcount"), check_word_counts)
WORKS = (
    Work("wordcount-record", 3.0, text_file, 256 * _MB, False, *_WORD_COUNT),
    Work("wordcount-record-hdfs", 3.0, text_file, 256 * _MB, True, *_WORD_COUNT),
    Work("wordcount-streaming", 1.5, text_file, 256 * _MB, False, _our_streaming, _stock_streaming, check_word_counts),
    Work("wordcount-small", 10.0, text_file, 2_000_000, False, *_WORD_COUNT),
    Work(
        *("sort", 4.0, record_file, 5_000_000, True),
        *(_our_job("terasort.py"), _stock_example("terasort"), check_total_order),
    ),
)


@dataclass(slots=True)
class Runs:
    """What the runs of one row gave."""

    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    beside: dict[str, Any] = field(default_factory=dict)


class Bench:
    """Runs rows on clusters that it starts as they are needed."""

    def __init__(self, options: Options, jars: HadoopJars | None, folder: Path) -> None:
        self._options = options
        self._jars = jars
        self._folder = folder

    def run(self, works: Sequence[Work]) -> dict[str, Runs]:
        """Runs all rows; those with the same file system share their clusters."""
        runs = {work.id: Runs() for work in works}
        for on_hdfs in (False, True):
            group = [work for work in works if work.on_hdfs == on_hdfs]
            if group and (self._jars is not None or not on_hdfs):
                self._run_group(group, on_hdfs, runs)
            elif group:
                progress("rows on HDFS are left out: they need the stock jars")
        if self._options.ours and self._options.theirs:
            for work in works:
                self._measure_plain_tools(work, runs[work.id])
        return runs

    def _run_group(self, works: Sequence[Work], on_hdfs: bool, runs: dict[str, Runs]) -> None:
        name = "hdfs" if on_hdfs else "local"
        with ExitStack() as stack:
            hdfs = None
            if on_hdfs and self._jars is not None:
                hdfs = stack.enter_context(StockHdfs(self._jars, self._folder / "hdfs"))
                clients = StockClients(self._jars, hdfs.conf_dir)
                make_hdfs_folders(clients)
                clients.fs("-mkdir", "/input", "/output").checked()
            files = Files(self._folder / f"files-{name}", self._jars, hdfs)
            if self._jars is not None and self._options.theirs:
                with StockYarn(self._jars, self._folder / f"stock-{name}", hdfs=hdfs) as yarn:
                    for work in works:
                        self._run_stock(work, yarn, files, runs[work.id])
            if self._options.ours:
                with OurCluster(
                    self._folder / f"ours-{name}", hdfs=hdfs.uri if hdfs else None, site=AS_STOCK
                ) as cluster:
                    for work in works:
                        self._run_ours(work, cluster, files, runs[work.id])

    def _run_stock(self, work: Work, yarn: StockYarn, files: "Files", runs: Runs) -> None:
        clients = StockClients(yarn.jars, yarn.conf_dir, timeout_s=900.0)
        path, expected = work.make_input(self._scaled(work))
        source = files.put(path)
        roots = [daemon.pid for daemon in yarn.daemons.values()]
        with MemorySampler(roots, [yarn.directory]) as memory:
            for number in range(self._options.runs):
                with files.output() as target:
                    what, args = work.theirs(source, target)
                    run = clients.streaming(*args) if what == "streaming" else clients.example(what, *args)
                    runs.theirs.append(run.checked().seconds)
                    work.check(files.parts(target), expected)
                progress(f"{work.id}: stock run {number + 1}: {runs.theirs[-1]:.1f} s")
        runs.beside["their runs, s"] = runs.theirs
        runs.beside["PSS of theirs"] = memory.summary()

    def _run_ours(self, work: Work, cluster: OurCluster, files: "Files", runs: Runs) -> None:
        path, expected = work.make_input(self._scaled(work))
        source = files.put(path)
        with MemorySampler(cluster.pids(), [cluster.directory]) as memory:
            for number in range(self._options.runs):
                with files.output() as target:
                    runs.ours.append(cluster.yaq(*work.ours(source, target)).seconds)
                    work.check(files.parts(target), expected)
                progress(f"{work.id}: our run {number + 1}: {runs.ours[-1]:.1f} s")
        runs.beside["our runs, s"] = runs.ours
        runs.beside["at least"] = f"{work.at_least:g}x"
        runs.beside["PSS of ours"] = memory.summary()

    def _measure_plain_tools(self, work: Work, runs: Runs) -> None:
        path, _ = work.make_input(self._scaled(work))
        python = sys.executable
        if work.id == "wordcount-streaming":
            mapper, adder = (f"{python} {JOBS / name}" for name in _SCRIPTS)
            runs.beside["the mapper alone, s"] = _seconds(f"{mapper} < {path} > /dev/null")
            pipe = f"{mapper} < {path} | LC_ALL=C sort -S 1G --parallel=2 | {adder} > /dev/null"
            runs.beside["mapper | sort | reducer, s"] = _seconds(pipe)
        if work.id == "sort":
            runs.beside["GNU sort, s"] = _seconds(f"LC_ALL=C sort -S 2G --parallel=2 -o {self._folder}/sorted {path}")

    def _scaled(self, work: Work) -> int:
        return max(1000, int(work.size * self._options.scale))


class Files:
    """Puts inputs where a group's jobs read them, and reads back what they wrote."""

    def __init__(self, folder: Path, jars: HadoopJars | None, hdfs: StockHdfs | None) -> None:
        self._folder = folder
        self._hdfs = hdfs
        self._clients = StockClients(jars, hdfs.conf_dir) if jars is not None and hdfs is not None else None
        self._put: set[str] = set()
        self._outputs = 0
        folder.mkdir()

    def put(self, path: Path) -> str:
        """URI of an input."""
        if self._clients is None or self._hdfs is None:
            return path.as_uri()
        if path.name not in self._put:
            self._clients.fs("-put", str(path), f"/input/{path.name}").checked()
            self._put.add(path.name)
        return f"{self._hdfs.uri}/input/{path.name}"

    @contextmanager
    def output(self) -> Iterator[str]:
        """URI of an output folder that is not there yet; removed in the end."""
        self._outputs += 1
        name = f"out-{self._outputs}"
        if self._clients is None or self._hdfs is None:
            yield (self._folder / name).as_uri()
            shutil.rmtree(self._folder / name)
        else:
            yield f"{self._hdfs.uri}/output/{name}"
            self._clients.fs("-rm", "-r", "-f", "-skipTrash", f"/output/{name}").checked()

    def parts(self, target: str) -> list[bytes]:
        """Contents of the part files in their order."""
        folder = Path(target.removeprefix("file://"))
        if self._clients is not None:
            folder = self._folder / "got"
            self._clients.fs("-get", target, str(folder)).checked()
        if not (folder / "_SUCCESS").exists():
            raise FileNotFoundError(f"{target} has no _SUCCESS")
        contents = [part.read_bytes() for part in sorted(folder.glob("part-*"))]
        if self._clients is not None:
            shutil.rmtree(folder)
        return contents


def _seconds(command: str) -> float:
    started = time.perf_counter()
    subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True)
    return time.perf_counter() - started


def main() -> int:
    """Runs the benchmark."""
    options = parse_options("mapreduce", "MapReduce against stock MapReduce", [work.id for work in WORKS])
    works = [work for work in WORKS if options.wants(work.id)]
    with tempfile.TemporaryDirectory(prefix="yaqd-bench-") as folder:
        runs = Bench(options, stock_jars(), Path(folder)).run(works)
    rows = [
        make_row(work.id, runs[work.id].ours, runs[work.id].theirs, "s", higher_is_better=False)
        for work in works
        if runs[work.id].ours
    ]
    return show(rows, {work.id: runs[work.id].beside for work in works}, options)


if __name__ == "__main__":
    sys.exit(main())
