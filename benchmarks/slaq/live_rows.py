"""SLAQ live on this machine beside equal shares, and both beside their simulation.

18 jobs, the nine algorithms twice, come to a cluster of three nodes that divides this machine's two cores in parts of
1/20. Each is a program that replays a recorded curve: an iteration burns the drawn processor time, waits its fixed
part, and reports the recorded loss. Both sides run the same programs on the same runtime with the same throttle, one
after the other, in alternating order; `yaq.quality.policy` alone differs. Each pair has a draw of its own, seeds 1, 2
and so on: of 18 jobs, one that misses its mark by an iteration before others come moves the mean by a fifth.

`live-t90`: mean seconds from submission until nine tenths of the fall, `finish` (ours) and `fair` (theirs); medians of
all pairs, and the median of their ratios. `live-simulated`: the simulated mean of the same jobs as a part of the live
one, both sides.

    python -m benchmarks.slaq.live_rows --runs 1
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.options import Options, parse_options, progress, show
from benchmarks.ours import OurCluster, OursFailed
from benchmarks.report import Row, make_row, spread
from benchmarks.stock.conf import NodeShape
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.training import submit_training
from tez_adapter.jobspec import Training
from yaqd.cli.rm_web import get_json
from yaqd.config import Configuration
from yaqd.sim.training import TrainingSystem, simulate_training
from yaqd.sim.workloads.training import ITERATIONS, LIVE, TrainingJob, draw_training, nine

ROWS: Final = ("live-t90", "live-simulated")
LEAST: Final = {"live-t90": "1.4x", "live-simulated": "0.85 to 1.15"}
POLICIES: Final = ("finish", "fair")
#: of a core, in what is divided
UNIT: Final = 50
_NODES: Final = 3
#: parts of the fall; 0: the first report
_MARKS: Final = (0.0, 0.9, 0.95, 1.0)

#: burns as its job was drawn; the processor time is the whole process's, so that the throttle is felt and not passed by
_REPLAY: Final = """
import json
import os
import sys
import threading
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
import numpy as np

from yaqd.ml import report

job = json.load(open(sys.argv[1]))
losses, target, times = job["losses"], [0.0], []
square = np.ones((160, 160))
turn, done = threading.Barrier(job["threads"] + 1), threading.Barrier(job["threads"] + 1)

def burn():
    while True:
        turn.wait()
        while time.process_time() < target[0]:
            square @ square
        done.wait()

for _ in range(job["threads"]):
    threading.Thread(target=burn, daemon=True).start()
report(iteration=0, loss=losses[0])
times.append(time.time())
for iteration in range(1, len(losses)):
    target[0] = time.process_time() + job["work_s"]
    turn.wait()
    done.wait()
    time.sleep(job["fixed_s"])
    report(iteration=iteration, loss=losses[iteration])
    times.append(time.time())
with open(sys.argv[2] + ".new", "w") as out:
    json.dump(times, out)
os.rename(sys.argv[2] + ".new", sys.argv[2])
"""


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """Return the rows asked for, and what belongs beside each."""
    if not any(options.wants(row_id) for row_id in ROWS):
        return [], {}
    pairs: list[_Pair] = []
    for run in range(options.runs):
        jobs = draw_training(LIVE, nine(), seed=run + 1)[: max(2, round(LIVE.jobs * min(1.0, options.scale)))]
        times, longest_ms = {}, 0.0
        for policy in POLICIES if run % 2 == 0 else reversed(POLICIES):
            progress(f"live, {policy}, run {run + 1} of {options.runs}")
            times[policy], division_ms = _live(jobs, policy)
            longest_ms = max(longest_ms, division_ms)
        pairs.append(_Pair(times, {policy: _simulated(jobs, policy) for policy in POLICIES}, longest_ms))
    rows: list[Row] = []
    beside: dict[str, Mapping[str, Any]] = {}
    if options.wants("live-t90"):
        ours, theirs = ([pair.mean(policy, 0.9) for pair in pairs] for policy in POLICIES)
        ratios = [pair.ratio for pair in pairs]
        middle = statistics.median(ratios)
        rows.append(
            Row("live-t90", statistics.median(ours), statistics.median(theirs), "s", middle, spread(ratios), len(pairs))
        )
        beside["live-t90"] = {
            "at least": LEAST["live-t90"],
            "ratios of the pairs": " ".join(f"{ratio:.2f}x" for ratio in ratios),
            "longest division": f"{max(pair.longest_ms for pair in pairs):.1f} ms",
        } | {
            f"t{100 * mark:.0f} {policy}, mean and worst job": " ".join(
                f"{pair.mean(policy, mark):.1f}/{max(pair.times[policy][mark]):.1f}" for pair in pairs
            )
            for mark in _MARKS
            for policy in POLICIES
        }
    if options.wants("live-simulated"):
        parts = {policy: [pair.simulated[policy] / pair.mean(policy, 0.9) for pair in pairs] for policy in POLICIES}
        rows.append(make_row("live-simulated", parts["finish"], parts["fair"], "x", higher_is_better=True))
        beside["live-simulated"] = {"within": LEAST["live-simulated"]} | {
            f"simulated t90 {policy}, and as a part of the live one": " ".join(
                f"{pair.simulated[policy]:.2f}s/{part:.2f}" for pair, part in zip(pairs, parts[policy], strict=True)
            )
            for policy in POLICIES
        }
    return rows, beside


@dataclass(frozen=True, slots=True)
class _Pair:
    """One draw of jobs under both policies."""

    #: by policy and part of the fall, each job's time from submission, s
    times: Mapping[str, Mapping[float, list[float]]]
    #: by policy, mean time to nine tenths, s
    simulated: Mapping[str, float]
    longest_ms: float

    def mean(self, policy: str, mark: float) -> float:
        return statistics.mean(self.times[policy][mark])

    @property
    def ratio(self) -> float:
        return self.mean("fair", 0.9) / self.mean("finish", 0.9)


def _live(jobs: tuple[TrainingJob, ...], policy: str) -> tuple[dict[float, list[float]], float]:
    """Return each job's time from submission to each part of the fall, s, and the longest division of cores, ms."""
    site = {
        "yaq.quality.policy": policy,
        "yaq.quality.cores": LIVE.cores,
        "yaq.quality.unit": UNIT / 1000,
        "yarn.scheduler.maximum-allocation-vcores": LIVE.cores,
        "yarn.scheduler.capacity.maximum-am-resource-percent": 1.0,
    }
    with tempfile.TemporaryDirectory(prefix="yaq-slaq-") as folder:
        root = Path(folder)
        (root / "replay.py").write_text(_REPLAY)
        with OurCluster(root / "cluster", nodes=_NODES, shape=NodeShape(16384, 32), site=site) as cluster:
            conf = Configuration.load(cluster.conf_dir)
            began = time.monotonic()
            submitted = []
            for at, job in enumerate(jobs):
                time.sleep(max(0.0, began + job.arrival_s - time.monotonic()))
                submitted.append((time.time(), _submit(conf, root, at, job)))
            for _, one in submitted:
                ended = one.wait()
                if not ended.succeeded:
                    raise OursFailed(f"{ended.application_id} {ended.state}: {ended.diagnostics}")
            longest_ms = float(get_json(conf, "/ws/v1/yaq/training", timeout_s=10)["longestDivisionMs"])
            reached = [_reached(root / f"times-{at}.json", job, submitted[at][0]) for at, job in enumerate(jobs)]
    return {mark: [times[mark] for times in reached] for mark in _MARKS}, longest_ms


def _submit(conf: Configuration, root: Path, at: int, job: TrainingJob) -> SubmittedJob:
    """Submit a job. One process does so for all: a client of each would poll and use the cores that are measured."""
    described = root / f"job-{at}.json"
    work = {"losses": job.curve.losses[: ITERATIONS + 1], "work_s": job.work_s, "fixed_s": job.fixed_s}
    described.write_text(json.dumps(work | {"threads": job.cap}))
    arguments = (str(described), str(root / f"times-{at}.json"))
    terms = Training(max_cores=float(job.cap), iterations=ITERATIONS, arguments=arguments)
    script = str(root / "replay.py")
    return submit_training(conf, script, terms, memory_mb=256, name=f"{job.curve.algorithm}-{at}")


def _reached(path: Path, job: TrainingJob, submitted: float) -> dict[float, float]:
    times = json.loads(path.read_text())
    losses = job.curve.losses[: ITERATIONS + 1]
    fallen = [(losses[0] - loss) / job.curve.whole_fall for loss in losses]
    first = {mark: next(at for at, part in enumerate(fallen) if part >= mark - 1e-9) for mark in _MARKS[:-1]}
    return {mark: times[at] - submitted for mark, at in (first | {1.0: ITERATIONS}).items()}


def _simulated(jobs: tuple[TrainingJob, ...], policy: str) -> float:
    result = simulate_training(jobs, LIVE.cores, TrainingSystem(policy=policy, unit=UNIT, floor=UNIT))
    return float(result.t90.mean())


def main() -> int:
    options = parse_options("slaq.live_rows", "Cores of this machine go to the jobs whose loss falls.", ROWS, runs=5)
    return show(*measure(options), options)


if __name__ == "__main__":
    sys.exit(main())
