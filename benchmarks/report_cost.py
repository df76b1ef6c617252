"""What one report costs a training program: `python -m benchmarks.report_cost [--json] [--only ROW]`.

A program reports in a loop and does nothing else. Each run is the median of its rounds, microseconds a report by the
clock.

| row | what is measured |
| --- | --- |
| report-cost | in a container of a cluster of ours, where a thread carries the reports to the job manager |
| report-cost-alone | outside of a cluster, where a report does nothing |

Beside each: processor time of the reporting thread, microseconds a report.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .options import Options, parse_options, progress, show
from .ours import OurCluster, OursFailed
from .report import Row, make_row

ROWS = ("report-cost", "report-cost-alone")
#: reports of a round at full scale
_REPORTS = 100_000
_ROUNDS = 7
_PROGRAM = """
import json, sys, time
from yaqd.ml import report

path, reports, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
found = []
for number in range(rounds):
    clock, processor = time.perf_counter(), time.thread_time()
    for iteration in range(number * reports, (number + 1) * reports):
        report(iteration=iteration, loss=0.5)
    found.append(((time.perf_counter() - clock) / reports * 1e6, (time.thread_time() - processor) / reports * 1e6))
with open(path, "w") as file:
    json.dump(found, file)
"""


def _measured(path: Path) -> tuple[float, float]:
    """By the clock and of processor time."""
    rounds = json.loads(path.read_text())
    return statistics.median(one[0] for one in rounds), statistics.median(one[1] for one in rounds)


def measure_inside(folder: Path, reports: int) -> tuple[float, float]:
    """Return microseconds of a report in a container, by the clock and of processor time."""
    program, result = folder / "reports.py", folder / "inside.json"
    program.write_text(_PROGRAM)
    with OurCluster(folder / "cluster", nodes=1) as cluster:
        cluster.yaq("ml", "submit", str(program), "--quiet", "--", str(result), str(reports), str(_ROUNDS))
    if not result.exists():
        raise OursFailed("the program wrote no result")
    return _measured(result)


def measure_alone(folder: Path, reports: int) -> tuple[float, float]:
    """Return microseconds of a report outside of a cluster, by the clock and of processor time."""
    result = folder / "alone.json"
    subprocess.run([sys.executable, "-c", _PROGRAM, str(result), str(reports), str(_ROUNDS)], check=True, timeout=600)
    return _measured(result)


def measure_rows(options: Options) -> tuple[list[Row], dict[str, dict[str, Any]]]:
    """Measure the rows that are wanted, and what there is to say beside each."""
    rows: list[Row] = []
    beside: dict[str, dict[str, Any]] = {}
    for row_id in filter(options.wants, ROWS):
        measure = measure_inside if row_id == "report-cost" else measure_alone
        found = []
        for number in range(options.runs):
            with tempfile.TemporaryDirectory(prefix="yaq-report-") as name:
                found.append(measure(Path(name), max(1, round(_REPORTS * options.scale))))
            progress(f"{row_id}: run {number}: {found[-1][0]:.2f} us")
        rows.append(make_row(row_id, [clock for clock, _ in found], None, "us", higher_is_better=False))
        beside[row_id] = {"processor us": [processor for _, processor in found]}
    return rows, beside


def main() -> int:
    """Run the benchmark."""
    options = parse_options("report_cost", "what one report costs a training program", ROWS)
    return show(*measure_rows(options), options)


if __name__ == "__main__":
    sys.exit(main())
