"""A flow of five steps beside five jobs in turn, each of which reads what the one before has written.

- `chain`: seconds for 64 MB of text on a cluster of two nodes, from the command to its end. The jobs are submitted by
  `yaq mr submit`, one after the other, as a script would. Both results are compared.

    python -m benchmarks.clotho.chain_rows --runs 3
"""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.inputs import text_file
from benchmarks.options import Options, parse_options, progress, show
from benchmarks.ours import OurCluster
from benchmarks.report import Row, make_row
from benchmarks.stock.conf import NodeShape

ROWS: Final = ("chain",)
_BYTES: Final = 64 << 20
_SCRIPT: Final = Path(__file__).parents[1] / "jobs" / "chain.py"
_JOBS: Final = ("Words", "BeginningsAlone", "LengthsAlone", "WidestAlone", "OrderAlone")


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """Return the row, and what belongs beside it."""
    text, _ = text_file(int(_BYTES * options.scale))
    ours: list[float] = []
    theirs: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="yaq-chain-") as name,
        OurCluster(Path(name) / "c", nodes=2, shape=NodeShape(memory_mb=4096, vcores=4)) as cluster,
    ):
        folder = Path(name)
        for run in range(options.runs):
            sides = [("ours", ours, _flow), ("theirs", theirs, _jobs)]
            for side, times, go in sides if run % 2 == 0 else sides[::-1]:
                if side in options.sides:
                    times.append(go(cluster, text, folder / f"{side}-{run}"))
                    progress(f"chain, run {run + 1}, {'flow' if side == 'ours' else 'jobs'}: {times[-1]:.1f} s")
            if ours and theirs:
                _compare(folder / f"ours-{run}", folder / f"theirs-{run}")
    rows = [make_row("chain", ours or theirs, theirs if ours else None, "s", higher_is_better=False)]
    return rows, {"chain": {"at least": "1.5x", "flow": _rounded(ours), "jobs": _rounded(theirs)}}


def _flow(cluster: OurCluster, text: Path, folder: Path) -> float:
    words = ("--path", f"text={text}", "--path", f"result={folder}/result", "--quiet")
    return cluster.yaq("dag", "submit", str(_SCRIPT), *words).seconds


def _jobs(cluster: OurCluster, text: Path, folder: Path) -> float:
    took, source = 0.0, str(text)
    for at, job in enumerate(_JOBS):
        output = str(folder / ("result" if at == len(_JOBS) - 1 else f"step-{at}"))
        words = ("--input", source, "--output", output, "--quiet")
        took += cluster.yaq("mr", "submit", f"{_SCRIPT}:{job}", *words).seconds
        source = output
    return took


def _compare(one: Path, other: Path) -> None:
    found = [sorted(line for part in each.glob("result/part-*") for line in part.open()) for each in (one, other)]
    if found[0] != found[1] or not found[0]:
        raise RuntimeError("the flow and the jobs have come to different results")


def _rounded(times: list[float]) -> list[float]:
    return [round(seconds, 1) for seconds in times]


def main() -> int:
    options = parse_options("clotho.chain_rows", "A flow beside jobs in turn.", ROWS, runs=3)
    return show(*measure(options), options)


if __name__ == "__main__":
    sys.exit(main())
