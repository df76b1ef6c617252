"""Stock clients on our daemons against stock daemons: `python -m benchmarks.interop`.

Both sides run the same unmodified clients with the same settings over one HDFS: two nodes of 4 GB and 4 vcores, and
the stock JobHistoryServer. Both clusters are up all the time, and the sides take turns run by run. Rows `mr-*` and
`ds-200` are the wall time of the submitting command, from its start to its exit; every answer is checked. Rows
`shuffle-*` put the same files and the same client before one node's shuffle service. Rows `*-memory` are PSS when
everything else that was asked for has run, a NodeManager's with the processes it keeps prepared. Stock daemons and
clients run with small heaps and the quick compiler (they start sooner and stay smaller so); masters and tasks run with
the Java virtual machine's own defaults.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .inputs import Digest, check_total_order, check_word_counts, record_file, text_file
from .interop_cluster import make_hdfs_folders
from .interop_sides import OurSide, Side, StockSide
from .options import Options, parse_options, progress, show, stock_jars
from .report import Row, make_row
from .shuffle_client import MAPS_PER_REQUEST, fetch_all, shuffle_target, write_outputs
from .stock.artifacts import HadoopJars
from .stock.clients import ClientFailure, StockClients
from .stock.daemons import StockHdfs

_MB = 1 << 20
_SPLIT_BYTES = 128 * _MB
_RM, _NM = "rm-memory", "nm-memory"
_SEGMENTS, _BYTES = "shuffle-segments", "shuffle-bytes"
Check = Callable[[Sequence[bytes], Digest], None]


@dataclass(frozen=True, slots=True)
class Job:
    """A MapReduce example from a file to a folder."""

    program: str
    make_input: Callable[[int], tuple[Path, Digest]]
    size: int
    check: Check


_JOBS = {
    "mr-wordcount": Job("wordcount", text_file, 256 * _MB, check_word_counts),
    "mr-terasort": Job("terasort", record_file, 5_000_000, check_total_order),
}
#: how many times better ours shall be
AT_LEAST = {
    "mr-wordcount": 1.0,
    "mr-terasort": 1.0,
    "mr-pi": 1.25,
    "ds-200": 2.0,
    _SEGMENTS: 1.0,
    _BYTES: 1.0,
    _RM: 2.0,
    _NM: 1.0,
}
_UNITS = {_SEGMENTS: "segments/s", _BYTES: "MB/s", _RM: "MB", _NM: "MB"}


@dataclass(slots=True)
class Runs:
    """What the runs of one row gave on either side."""

    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)


class Bench:
    """Runs the wanted rows on one side after the other."""

    def __init__(self, options: Options, jars: HadoopJars, folder: Path, hdfs: StockHdfs) -> None:
        self._options = options
        self._jars = jars
        self._folder = folder
        self._hdfs = hdfs
        self._files = StockClients(jars, hdfs.conf_dir)
        self._put: set[str] = set()
        self.runs = {row: Runs() for row in AT_LEAST if options.wants(row)}

    def run(self) -> None:
        """Runs both sides."""
        make_hdfs_folders(self._files)
        self._files.fs("-mkdir", "/input").checked()
        with ExitStack() as stack:
            sides: list[tuple[str, Side, Callable[[Runs], list[float]]]] = []
            if self._options.theirs:
                stock = stack.enter_context(StockSide(self._jars, self._folder / "stock", self._hdfs))
                sides.append(("stock", stock, lambda runs: runs.theirs))
            if self._options.ours:
                ours = stack.enter_context(OurSide(self._jars, self._folder / "ours", self._hdfs))
                sides.append(("our", ours, lambda runs: runs.ours))
            self._run_works(sides)
            for name, side, chosen in sides:
                self._shuffle(name, side, chosen)
                if _RM in self.runs:
                    chosen(self.runs[_RM]).append(side.rm_memory_mb())
                if _NM in self.runs:
                    chosen(self.runs[_NM]).extend(side.nm_memory_mb())

    def _run_works(self, sides: list[tuple[str, Side, Callable[[Runs], list[float]]]]) -> None:
        """The sides take turns, run by run: what else the machine does in these minutes meets both alike."""
        rows = [row for row in self.runs if row not in (_SEGMENTS, _BYTES, _RM, _NM)]
        if not rows and (_RM in self.runs or _NM in self.runs):
            rows = ["mr-pi"]
        for row in rows:
            for number in range(self._options.runs):
                for name, side, chosen in sides:
                    taken = self._work(row, side)()
                    progress(f"{row}: {name} run {number + 1}: {taken:.2f} s")
                    if row in self.runs:
                        chosen(self.runs[row]).append(taken)

    def _work(self, row: str, side: Side) -> Callable[[], float]:
        if row == "mr-pi":
            return lambda: self._pi(side)
        if row == "ds-200":
            return lambda: self._distributed_shell(side)
        return lambda: self._job(_JOBS[row], side)

    def _job(self, job: Job, side: Side) -> float:
        path, expected = job.make_input(max(1000, int(job.size * self._options.scale)))
        if path.name not in self._put:
            self._files.fs("-put", str(path), f"/input/{path.name}").checked()
            self._put.add(path.name)
        split = f"mapreduce.input.fileinputformat.split.minsize={_SPLIT_BYTES}"
        options = ("-D", "mapreduce.job.reduces=2", "-D", split)
        # TeraSort finds its partition file only where both carry the file system's name.
        source, target = f"{self._hdfs.uri}/input/{path.name}", f"{self._hdfs.uri}/output"
        seconds = side.clients.example(job.program, *options, source, target).checked().seconds
        got = self._folder / "got"
        self._files.fs("-get", target, str(got)).checked()
        job.check([part.read_bytes() for part in sorted(got.glob("part-*"))], expected)
        shutil.rmtree(got)
        self._files.fs("-rm", "-r", "-skipTrash", target).checked()
        return seconds

    def _pi(self, side: Side) -> float:
        run = side.clients.example("pi", "4", "1000").checked()
        if "Estimated value of Pi is 3.14" not in run.stdout:
            raise ClientFailure(f"pi is wrong: {run.stdout[-200:]}")
        return run.seconds

    def _distributed_shell(self, side: Side) -> float:
        count = max(1, int(200 * self._options.scale))
        memory = ("-container_memory", "128", "-master_memory", "512")
        run = side.clients.distributed_shell("-shell_command", "true", "-num_containers", str(count), *memory).checked()
        if not re.search("Application completed successfully", run.stdout + run.stderr):
            raise ClientFailure(f"distributed shell: {run.stderr[-500:]}")
        return run.seconds

    def _shuffle(self, name: str, side: Side, chosen: Callable[[Runs], list[float]]) -> None:
        if _SEGMENTS not in self.runs and _BYTES not in self.runs:
            return
        scale = self._options.scale
        with shuffle_target(side) as target:
            if _SEGMENTS in self.runs:
                small = write_outputs(target, 0, max(20, int(1000 * scale)), partitions=20, segment_bytes=1024)
                for number in range(self._options.runs + 1):
                    taken = fetch_all(target, small, maps_per_request=MAPS_PER_REQUEST, rounds=2, compares=number == 0)
                    chosen(self.runs[_SEGMENTS]).append(2 * len(small.attempts) * small.partitions / taken)
                    progress(f"{_SEGMENTS}: {name}: {chosen(self.runs[_SEGMENTS])[-1]:.0f} /s")
                del chosen(self.runs[_SEGMENTS])[0]
            if _BYTES in self.runs:
                size = max(1, int(64 * scale)) * _MB
                large = write_outputs(target, 100_000, 8, partitions=1, segment_bytes=size)
                for number in range(self._options.runs + 1):
                    taken = fetch_all(target, large, maps_per_request=1, rounds=4, compares=number == 0)
                    chosen(self.runs[_BYTES]).append(4 * len(large.attempts) * size / taken / 1e6)
                    progress(f"{_BYTES}: {name}: {chosen(self.runs[_BYTES])[-1]:.0f} MB/s")
                del chosen(self.runs[_BYTES])[0]  # both get one to warm up


def _rows(runs: dict[str, Runs]) -> list[Row]:
    return [
        make_row(row, got.ours, got.theirs, _UNITS.get(row, "s"), higher_is_better=row in (_SEGMENTS, _BYTES))
        for row, got in runs.items()
        if got.ours
    ]


def main() -> int:
    """Runs the benchmark; 2 where stock Hadoop cannot run here."""
    options = parse_options("interop", "stock clients on our daemons and on stock ones", list(AT_LEAST))
    jars = stock_jars()
    if jars is None:
        return 2
    with tempfile.TemporaryDirectory(prefix="yaqd-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # stock nodes read public files below it
        with StockHdfs(jars, folder / "hdfs") as hdfs:
            bench = Bench(options, jars, folder, hdfs)
            bench.run()
    beside: dict[str, dict[str, Any]] = {
        row: {"at least": f"{AT_LEAST[row]:g}x", "our runs": got.ours, "their runs": got.theirs, "cpus": os.cpu_count()}
        for row, got in bench.runs.items()
    }
    return show(_rows(bench.runs), beside, options)


if __name__ == "__main__":
    sys.exit(main())
