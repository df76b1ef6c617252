"""What the runtime of training jobs costs: a report, and an iteration that computes nothing.

Both run on a cluster of ours with two nodes, as jobs of `yaq ml submit`. `overhead`: milliseconds of an iteration with
an empty `step`, 8 partitions, 2 workers, a state and partials of 100 KB, median of 400; target 25 ms. `report-cost`:
microseconds of one `report` in a program, mean of a million; target 5 us. Beside it: the same program outside of a
cluster, where a report does nothing. The programs take the times themselves.

    python -m benchmarks.slaq.runtime_rows --only overhead
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.options import Options, parse_options, progress, show
from benchmarks.ours import OurCluster
from benchmarks.report import Row, make_row
from benchmarks.stock.conf import NodeShape

ROWS: Final = {"overhead": "ms", "report-cost": "us"}
LEAST: Final = {"overhead": "25 ms", "report-cost": "5 us"}
_ITERATIONS: Final = 400
_REPORTS: Final = 1_000_000

_EMPTY: Final = """
import json
import time

import numpy as np

from yaqd.ml import IterativeJob, Param

class Empty(IterativeJob):
    partitions = 8
    out = Param(str)

    def load(self, partition):
        return None

    def initial(self):
        self.times = []
        return np.zeros(12_500)

    def step(self, state, data):
        return state

    def combine(self, state, partials):
        self.times.append(time.perf_counter())
        if len(self.times) == self.limit:
            each = 1000 * np.diff(self.times)
            found = {"value": float(np.median(each)), "p99": float(np.percentile(each, 99))}
            with open(self.out, "w") as out:
                json.dump(found, out)
        return state, 1.0 / len(self.times)
"""

_REPORTING: Final = """
import json
import resource
import sys
import time

from yaqd.ml import report

count = int(sys.argv[1])
report(0, 1.0)
began = time.perf_counter()
for i in range(1, count):
    report(iteration=i, loss=0.5)
each = 1e6 * (time.perf_counter() - began) / count
with open(sys.argv[2], "w") as out:
    json.dump({"value": each, "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}, out)
"""


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """Return the rows asked for, and what belongs beside each."""
    rows: list[Row] = []
    beside: dict[str, Mapping[str, Any]] = {}
    wanted = [row_id for row_id in ROWS if options.wants(row_id)]
    if not wanted:
        return rows, beside
    with tempfile.TemporaryDirectory(prefix="yaq-runtime-") as folder:
        shape = NodeShape(memory_mb=4096, vcores=8)
        with OurCluster(Path(folder) / "c", nodes=2, shape=shape, site={"yaq.quality.cores": 8}) as cluster:
            for row_id in wanted:
                found = [_run(cluster, Path(folder), row_id, number, options) for number in range(options.runs)]
                values = [one.pop("value") for one in found]
                rows.append(make_row(row_id, values, None, ROWS[row_id], higher_is_better=False))
                beside[row_id] = {"at most": LEAST[row_id], **{name: [o[name] for o in found] for name in found[0]}}
    return rows, beside


def _run(cluster: OurCluster, folder: Path, row_id: str, number: int, options: Options) -> dict[str, float]:
    script, out = folder / f"{row_id}.py", folder / f"{row_id}.{number}.json"
    if row_id == "overhead":
        script.write_text(_EMPTY)
        iterations = max(20, int(_ITERATIONS * options.scale))
        words = ["--max-cores", "2", "--iterations", str(iterations), "-D", f"out={out}"]
    else:
        script.write_text(_REPORTING)
        words = ["--", str(max(1000, int(_REPORTS * options.scale))), str(out)]
    cluster.yaq("ml", "submit", str(script), "--quiet", *words)
    found: dict[str, float] = json.loads(out.read_text())
    if row_id == "report-cost":
        subprocess.run([sys.executable, str(script), *words[1:]], check=True, timeout=600)
        found["outside, us"] = json.loads(out.read_text())["value"]
    progress(f"{row_id}: run {number}: {found}")
    return found


def main() -> int:
    """Run both rows alone."""
    options = parse_options("slaq.runtime_rows", "what training's runtime costs", tuple(ROWS))
    return show(*measure(options), options)


if __name__ == "__main__":
    sys.exit(main())
