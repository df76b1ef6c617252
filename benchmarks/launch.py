"""How long the smallest program takes from submission to its end: `python -m benchmarks.launch`.

Row `run-true`: `yaq run -- true` against stock distributed shell with one container of `true`, each command timed from
its start to its exit on an idle cluster of two nodes, the local file system below both. Both get one warm-up run. The
stock client runs with a small heap and the quick compiler, which is the faster choice for a program this short.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from .memory import MemorySampler
from .options import Options, parse_options, progress, show, stock_jars
from .ours import OurCluster
from .report import make_row
from .stock.artifacts import HadoopJars
from .stock.clients import StockClients
from .stock.daemons import StockYarn

ROW = "run-true"
_AT_LEAST = "10x"


def run_stock(jars: HadoopJars, folder: Path, runs: int, beside: dict[str, Any]) -> list[float]:
    """Times distributed shell on a stock cluster."""
    times = []
    with StockYarn(jars, folder, history=False) as yarn:
        clients = StockClients(jars, yarn.conf_dir)
        roots = [daemon.pid for daemon in yarn.daemons.values()]
        with MemorySampler(roots, [yarn.directory]) as memory:
            for number in range(runs + 1):
                args = ("-shell_command", "true", "-num_containers", "1", "-container_memory", "128")
                seconds = clients.distributed_shell(*args, "-master_memory", "256").checked().seconds
                progress(f"{ROW}: stock run {number}: {seconds:.2f} s")
                times.append(seconds)
        beside["PSS of theirs"] = memory.summary()
    return times[1:]


def run_ours(folder: Path, runs: int, beside: dict[str, Any]) -> list[float]:
    """Times `yaq run` on our cluster."""
    times = []
    with OurCluster(folder) as cluster, MemorySampler(cluster.pids(), [folder]) as memory:
        for number in range(runs + 1):
            seconds = cluster.yaq("run", "--memory", "128", "--", "true").seconds
            progress(f"{ROW}: our run {number}: {seconds:.2f} s")
            times.append(seconds)
    beside["PSS of ours"] = memory.summary()
    return times[1:]


def _measure(options: Options) -> tuple[list[float], list[float], dict[str, Any]]:
    beside: dict[str, Any] = {"at least": _AT_LEAST}
    theirs: list[float] = []
    ours: list[float] = []
    jars = stock_jars() if options.theirs else None
    with tempfile.TemporaryDirectory(prefix="yaqd-bench-") as folder:
        Path(folder).chmod(0o755)  # stock nodes read public files below it
        if jars is not None:
            theirs = run_stock(jars, Path(folder) / "stock", options.runs, beside)
        if options.ours:
            ours = run_ours(Path(folder) / "ours", options.runs, beside)
    return ours, theirs, beside


def main() -> int:
    """Runs the benchmark."""
    options = parse_options("launch", "the smallest program, submission to end", [ROW], runs=5)
    ours, theirs, beside = _measure(options)
    beside |= {"our runs, s": ours, "their runs, s": theirs, "cpus": os.cpu_count()}
    rows = [make_row(ROW, ours, theirs, "s", higher_is_better=False)] if ours else []
    return show(rows, {ROW: beside}, options)


if __name__ == "__main__":
    sys.exit(main())
