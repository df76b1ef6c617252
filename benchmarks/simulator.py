"""How fast the simulator is: a full cluster of so many nodes in one process on one core.

`python -m benchmarks.simulator [--json] [--system NAME]`. Nodes of 8 slots, heartbeats of 3 s, tasks of 20 s in mean
(exponential), more of them than slots throughout. Row `events`: seconds of CPU time for 1,000,000 tasks on 10,000
nodes. Rows `event-cost-N`: microseconds for each event (a container's coming or end, a manager's poll, a heartbeat) on
N nodes with 100 tasks for each. Queues at the nodes are off there, which is not as shipped. Row `yaq-c-events` and
rows `event-cost-N-yaq-c`: the same with queues at the nodes as they are shipped, their bounds found by themselves, jobs
ordered by what is left of them. The scheduler and the node queues in it are the live ones, and most of the time is
theirs. There is nothing to compare with, so `theirs` is empty.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import time

from benchmarks.report import Row, make_row, print_table, to_json
from yaqd.model.compiled import is_compiled
from yaqd.sim.experiments.ground import OURS
from yaqd.sim.simulation import ClusterShape, SimResult, System, simulate
from yaqd.sim.workload import SimJob, SimStage, SimTask, Workload

SLOTS = 8
TASK_S = 20.0
#: by system; others as yaq-c
TASKS_A_NODE = {"yarn": 100, "yaq-c": 100, "yarn-opportunistic": 20, "yaq-d": 20}
SIZES = (100, 1_000, 10_000)


def tasks_of(nodes: int, name: str) -> int:
    return nodes * TASKS_A_NODE.get(name, TASKS_A_NODE["yaq-c"])


def workload(tasks: int) -> Workload:
    """100 jobs that are all there from the beginning."""
    drawn = random.Random(1)
    in_a_job = tasks // 100

    def job(index: int) -> SimJob:
        tasks = tuple(SimTask(drawn.expovariate(1.0 / TASK_S)) for _ in range(in_a_job))
        return SimJob(f"job{index}", (SimStage("task", tasks),), arrival_s=index * 0.1)

    return Workload(tuple(job(index) for index in range(100)))


def measure(nodes: int, system: System) -> tuple[float, SimResult]:
    """CPU seconds, with what it takes to make the cluster up, and the result."""
    jobs = workload(tasks_of(nodes, system.name))
    start = time.process_time()
    result = simulate(ClusterShape(nodes=nodes, slots=SLOTS), jobs, system, seed=1)
    return time.process_time() - start, result


def events(result: SimResult) -> int:
    """Everything that happened: single events, heartbeats, and containers' coming to their nodes."""
    return sum(result.counts.get(name, 0) for name in ("events", "heartbeats", "allocated"))


def measure_apart(nodes: int, name: str) -> tuple[float, float, float]:
    """The same in a process of its own: CPU seconds, microseconds for each event, peak megabytes."""
    code = f"from benchmarks.simulator import report; report({nodes}, {name!r})"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=os.environ)
    seconds, cost, peak = (float(word) for word in found.stdout.split())
    return seconds, cost, peak


def report(nodes: int, name: str) -> None:
    """Print what `measure_apart` reads."""
    seconds, result = measure(nodes, systems()[name])
    if result.tasks != tasks_of(nodes, name):
        raise SystemExit(f"{result.tasks} tasks of {tasks_of(nodes, name)} are done")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    print(seconds, seconds / events(result) * 1e6, peak)


def systems() -> dict[str, System]:
    others = {name: System(name, bound=SLOTS) for name in ("yarn", "yarn-opportunistic", "yaq-d")}
    return {**others, OURS.name: OURS}


def rows_of(name: str, sizes: tuple[int, ...], runs: int) -> tuple[list[Row], float]:
    """And the peak of the largest cluster, MB."""
    rows: list[Row] = []
    peak = 0.0
    mark = "" if name == "yarn" else f"-{name}"
    for nodes in sizes:
        found = [measure_apart(nodes, name) for _ in range(runs)]
        costs = [cost for _, cost, _ in found]
        rows.append(make_row(f"event-cost-{nodes}{mark}", costs, None, "us", higher_is_better=False))
        if nodes == SIZES[-1]:
            seconds = [taken for taken, _, _ in found]
            row = "events" if name == "yarn" else f"{name}-events"
            rows.insert(0, make_row(row, seconds, None, "s", higher_is_better=False))
        peak = max(peak, *(size for _, _, size in found))
    return rows, peak


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulator", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--system", action="append", choices=tuple(systems()), help="default: yarn and yaq-c")
    parser.add_argument("--nodes", type=int, action="append", help="default: 100, 1,000 and 10,000")
    options = parser.parse_args()
    rows: list[Row] = []
    peaks: dict[str, str] = {}
    for name in options.system or ["yarn", "yaq-c"]:
        found, peak = rows_of(name, tuple(options.nodes or SIZES), options.runs)
        rows += found
        peaks[name] = f"{peak:.0f} MB"
    if options.json:
        print(
            to_json(
                rows,
                memory=peaks,
                heartbeat_s=3.0,
                slots=SLOTS,
                task_s=TASK_S,
                out_of_turn=False,
                compiled=is_compiled(),
            )
        )
    else:
        print_table(rows)
        print("what decides is compiled:", "yes" if is_compiled() else "no: scripts/compiled.sh does it")
        print("peak memory:", ", ".join(f"{name} {peak}" for name, peak in peaks.items()))


if __name__ == "__main__":
    main()
