"""Flows on this machine under a queue that decides by stages: the learned policy, weighted fair sharing, FIFO.

Each flow is a recorded graph of TPC-H on 2 or 5 GB; its tasks sleep as long as was recorded. 20 flows share 20 slots;
their masters have room beside them. The slots come once all masters have asked: two cores start 20 masters one after
another, and the first ones would have taken all slots by then. The policy alone differs. The same flows run in
simulated time.

- `live-jct`: mean time from when the slots are there until each flow's end, theirs beside ours.
- `live-simulated`: the simulated mean as a part of the live one, each policy; a move takes as long as was seen live.
  Beside it all heuristics in simulated time, each at its best options.

A task of ours costs this machine some 40 ms of processor time beside its sleep. Recorded tasks take 0.25 s in the
mean, and two cores cannot serve 20 slots of them. So tasks sleep `_SLOWER` times as long, live and simulated.

`--runs N`: seeds. `--scale S`: so many of the 20 flows, and of the slots.

    YAQD_TPCH=.../tpch python -m benchmarks.clotho.live_rows --runs 3
"""

import re
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.options import Options, parse_options, progress, show
from benchmarks.ours import OurCluster
from benchmarks.report import Row, spread
from benchmarks.stock.conf import NodeShape
from tez_adapter.client.flow import plan_script, submit_flow
from tez_adapter.client.submit import SubmittedJob
from tez_adapter.history import read_history
from yaqd.cli.rm_web import get_json
from yaqd.config import Configuration
from yaqd.config.stage_weights import shipped_weights
from yaqd.config.xmlfile import write_properties
from yaqd.policies.clotho.facts import StagePolicy
from yaqd.policies.clotho.heuristics import Fifo, WeightedFair
from yaqd.policies.clotho.learned import Learned
from yaqd.policies.clotho.weights import unpack
from yaqd.sim.stages.draws import uniform
from yaqd.sim.stages.rules import Rules
from yaqd.sim.stages.world import run_load
from yaqd.sim.workloads.graphs import GraphLoad, GraphSet, draw_load
from yaqd.sim.workloads.tpch import find_tpch, tpch

ROWS: Final = ("live-jct", "live-simulated")
_POLICIES: Final = ("clotho", "weighted-fair", "fifo")
_LEAST: Final = {"weighted-fair": "8 % lower", "fifo": "50 % lower"}
_FLOWS: Final = 20
_SLOTS: Final = 20
_SEEDS_FROM: Final = 31_000
_SIZES: Final = (2, 5)
_SLOWER: Final = 4.0
#: memory of a master and of a slot, MB: masters that end never make room for a further slot
_MASTER_MB, _SLOT_MB = 128, 4096
_CALCULATOR: Final = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
_TIMEOUT_S: Final = 3600.0
#: until all masters have asked, s
_ASKED_S: Final = 120.0
_SCRIPT: Final = Path(__file__).parents[1] / "jobs" / "recorded_graph.py"
_LINE: Final = "0123456789\n"


def drawn(graphs: GraphSet, seed: int, flows: int) -> GraphLoad:
    """Return the flows of a seed."""
    return draw_load(graphs, seed, flows, among=np.flatnonzero(np.isin(graphs.size, _SIZES)))


Stage = tuple[int, list[int], list[float]]


def stages_of(load: GraphLoad) -> list[list[Stage]]:
    """Return each job's stages in an order in which each reads earlier ones, with its tasks' durations as drawn."""
    graphs, begin, jobs = load.graphs, 0, list[list[Stage]]()
    for graph in load.graph.tolist():
        rows = graphs.rows(graph)
        reads: list[list[int]] = [[] for _ in range(rows.stop - rows.start)]
        for at in range(len(reads)):
            source = rows.start + at
            for child in graphs.child[graphs.child_at[source] : graphs.child_at[source + 1]].tolist():
                reads[child].append(at)
        order, place = list[int](), dict[int, int]()
        while len(order) < len(reads):
            order.extend(at for at in range(len(reads)) if at not in place and all(one in place for one in reads[at]))
            place = {at: number for number, at in enumerate(order)}
        jobs.append(
            [
                (
                    int(graphs.tasks[rows.start + at]),
                    [place[one] for one in reads[at]],
                    _durations(load, begin + at, rows.start + at),
                )
                for at in order
            ]
        )
        begin += len(reads)
    return jobs


def _durations(load: GraphLoad, number: int, source: int) -> list[float]:
    graphs = load.graphs
    at, many = int(graphs.wave_at[source, 0, 0]), int(graphs.wave_len[source, 0, 0])
    picks = [uniform(load.seed, number, task, 1) * many for task in range(int(graphs.tasks[source]))]
    return [round(float(graphs.values[at + min(many - 1, int(pick))]), 4) for pick in picks]


# ---------------------------------------------------------------------------------------------- live


@dataclass(frozen=True, slots=True)
class Ran:
    """One run: each flow's time since there were slots, and what its tasks took, s."""

    took_s: list[float]
    #: what a task took beyond its sleep, the mean, and a new container until its first task, the median, s
    beyond_s: float
    move_s: float


def run_live(load: GraphLoad, policy: str, folder: Path, slots: int) -> Ran:
    """Run the flows of a load on a cluster that is started for them."""
    jobs = stages_of(load)
    site = {
        "yarn.scheduler.capacity.resource-calculator": _CALCULATOR,
        "yaq.clotho.policy": policy,
    }
    masters_mb = len(jobs) * _MASTER_MB
    shape = NodeShape(memory_mb=slots * _SLOT_MB + masters_mb, vcores=slots + len(jobs))
    with OurCluster(folder / "c", nodes=1, shape=shape, site=site) as cluster:
        share = 100.0 * (masters_mb + _MASTER_MB / 2) / shape.memory_mb
        _limit(cluster, share, share)  # there is room for masters alone
        conf = Configuration.load(cluster.conf_dir).with_overrides(
            {
                "yarn.app.mapreduce.am.resource.mb": str(_MASTER_MB),
                "mapreduce.map.memory.mb": str(_SLOT_MB),
                "mapreduce.reduce.memory.mb": str(_SLOT_MB),
                "mapreduce.input.fileinputformat.split.maxsize": str(len(_LINE)),
                "mapreduce.job.reduce.slowstart.completedmaps": "1.0",
            }
        )
        written = [_written(conf, number, stages, folder) for number, stages in enumerate(jobs)]
        submitted = [submit_flow(conf, flow.script, paths=flow.paths) for flow in written]
        _wait_for_asks(conf, sum(tasks for stages in jobs for tasks, reads, _ in stages if not reads))
        _limit(cluster, share, 100.0)
        return _ran(conf, time.time(), submitted, jobs, written)


def _wait_for_asks(conf: Configuration, tasks: int) -> None:
    """Return once masters have asked for so many containers. Raises RuntimeError after a while."""
    deadline = time.monotonic() + _ASKED_S
    while (asked := get_json(conf, "/ws/v1/cluster/metrics")["clusterMetrics"]["containersPending"]) < tasks:
        if time.monotonic() > deadline:
            raise RuntimeError(f"after {_ASKED_S:g} s {asked} containers are asked for, and not {tasks}")
        time.sleep(0.1)


def _limit(cluster: OurCluster, share: float, most: float) -> None:
    """Give the queue a share of the cluster, and let it have so much at most, percent. Another queue has the rest."""
    values = {
        "maximum-am-resource-percent": "1.0",
        "resource-calculator": _CALCULATOR,
        "root.queues": "default,rest",
        "root.default.capacity": f"{share:.4f}",
        "root.default.maximum-capacity": f"{most:.4f}",
        "root.default.user-limit-factor": "100",
        "root.default.ordering-policy": "clotho",
        "root.rest.capacity": f"{100.0 - share:.4f}",
    }
    rows = [(f"yarn.scheduler.capacity.{key}", value, "") for key, value in values.items()]
    write_properties(cluster.conf_dir / "capacity-scheduler.xml", rows)
    cluster.yaq("rm", "refresh", "queues")


@dataclass(frozen=True, slots=True)
class Written:
    """A flow's script, its paths, and the names of its stages."""

    script: str
    paths: dict[str, str]
    names: list[str]


def _written(conf: Configuration, number: int, stages: list[Stage], folder: Path) -> Written:
    script = folder / f"graph_{number}.py"
    text = re.sub(r"^STAGES.*$", f"STAGES: list = {stages!r}", _SCRIPT.read_text(), count=1, flags=re.MULTILINE)
    script.write_text(text)
    paths = {}
    for at, (tasks, reads, _) in enumerate(stages):
        if not reads:
            lines = folder / f"lines-{tasks}"
            lines.write_text(_LINE * tasks)
            paths[f"lines-{tasks}"] = str(lines)
        if not any(at in others for _, others, _ in stages):
            paths[f"out-{at}"] = str(folder / f"out-{number}-{at}")
    flow = f"{script}:flow"
    planned = plan_script(conf, flow, paths).plan.stages
    if [stage.tasks for stage in planned] != [tasks for tasks, _, _ in stages]:
        raise RuntimeError(f"{script}: its stages are not those of the recorded graph")
    return Written(flow, paths, [stage.name for stage in planned])


def _ran(
    conf: Configuration, since_s: float, submitted: list[SubmittedJob], jobs: list[list[Stage]], written: list[Written]
) -> Ran:
    """Wait for the flows; `since_s`: wall clock, s."""
    took, beyond, moves = [], list[float](), list[float]()
    for job, stages, flow in zip(submitted, jobs, written, strict=True):
        result = job.wait(timeout_s=_TIMEOUT_S)
        if not result.succeeded:
            raise RuntimeError(f"{job.application_id}: {result.diagnostics}")
        report = job.report()
        job.close()
        history = read_history(conf, job.application_id)
        took.append(report.finish_ms / 1000 - since_s)
        seconds = {name: each for name, (_, _, each) in zip(flow.names, stages, strict=True)}
        new = set[str]()
        for attempt in sorted(history.attempts, key=lambda one: one["began_ms"] or 0):
            if not attempt["began_ms"]:
                continue
            sleeps = seconds[attempt["vertex"]][attempt["task"]]
            beyond.append((attempt["finished_ms"] - attempt["began_ms"]) / 1000 - sleeps)
            if attempt["container"] not in new:
                new.add(attempt["container"])
                moves.append((attempt["began_ms"] - attempt["started_ms"]) / 1000)
    return Ran(took, statistics.fmean(beyond), statistics.median(moves))


# ---------------------------------------------------------------------------------------------- simulated


def simulated(load: GraphLoad, policy: str, ran: Ran, slots: int) -> float:
    """Return the mean time until a flow's end in simulated time, s: all are there from the beginning."""
    made: Mapping[str, StagePolicy] = {
        "clotho": Learned(shipped_weights()), "weighted-fair": WeightedFair(), "fifo": Fifo()
    }  # fmt: skip
    return float(run_load(as_seen(load, ran), made[policy], Rules(slots, ran.move_s, 0.0)).took_s.mean())


def as_seen(load: GraphLoad, ran: Ran) -> GraphLoad:
    """Return a load whose jobs are all there from the beginning, and whose tasks take what they took live, s."""
    graphs = load.graphs
    slower = replace(graphs, mean_s=graphs.mean_s + ran.beyond_s, values=graphs.values + ran.beyond_s)
    return GraphLoad(slower, load.graph, np.zeros(len(load.graph)), load.error, load.seed)


def tuned(loads: list[GraphLoad], move_s: float, slots: int) -> dict[str, str]:
    """Return what all heuristics make of these loads in simulated time, each at its best options: means, s."""
    from yaqd.sim.stages.measuring import FIFO, OTHERS, WEIGHTED, best_of, means, run_weights  # needs numba

    rules = Rules(slots, move_s, 0.0)
    weighted, others = (best_of(each, loads, rules) for each in (WEIGHTED, OTHERS))
    ours = means(run_weights(unpack(shipped_weights()).flat(), loads, rules))
    table = sorted(others.table.items(), key=lambda one: one[1])
    return {
        "learned": f"{ours.mean():.1f}",
        weighted.name: f"{weighted.each.mean():.1f}",
        **{name: f"{mean:.1f}" for name, mean in table if name == FIFO.name},
        **{name: f"{mean:.1f}" for name, mean in table[:4]},
    }


# ---------------------------------------------------------------------------------------------- rows


def measure(options: Options) -> tuple[list[Row], dict[str, dict[str, Any]]]:
    """Return the rows, and what belongs beside each."""
    flows, slots = (max(2, round(number * min(1.0, options.scale))) for number in (_FLOWS, _SLOTS))
    graphs = tpch(find_tpch()).even(_SLOWER)
    runs: dict[str, list[Ran]] = {policy: [] for policy in _POLICIES}
    again: dict[str, list[float]] = {policy: [] for policy in _POLICIES}
    seen = list[GraphLoad]()
    for run in range(options.runs):
        load = drawn(graphs, _SEEDS_FROM + run, flows)
        for turn in range(len(_POLICIES)):
            policy = _POLICIES[(run + turn) % len(_POLICIES)]
            with tempfile.TemporaryDirectory(prefix="yaq-clotho-") as name:
                ran = run_live(load, policy, Path(name), slots)
            runs[policy].append(ran)
            again[policy].append(simulated(load, policy, ran, slots))
            seen += [as_seen(load, ran)] if policy == "clotho" else []
            live_s = statistics.fmean(ran.took_s)
            progress(
                f"live-jct, seed {_SEEDS_FROM + run}, {policy}: {live_s:.1f} s, simulated {again[policy][-1]:.1f} s, "
                f"a task {1000 * ran.beyond_s:.0f} ms beyond its sleep, a move {ran.move_s:.2f} s"
            )
    rows, beside = _rows(runs, again)
    move_s = statistics.fmean(ran.move_s for ran in runs["clotho"])
    beside["live-simulated-clotho"]["simulated, tuned, s"] = tuned(seen, move_s, slots)
    return rows, beside


def _rows(
    runs: Mapping[str, list[Ran]], again: Mapping[str, list[float]]
) -> tuple[list[Row], dict[str, dict[str, Any]]]:
    means = {policy: [statistics.fmean(ran.took_s) for ran in each] for policy, each in runs.items()}
    ours = means["clotho"]
    rows: list[Row] = []
    beside: dict[str, dict[str, Any]] = {}
    for policy in _POLICIES:
        live_s, simulated_s = statistics.fmean(means[policy]), statistics.fmean(again[policy])
        if policy != "clotho":
            row = f"live-jct-{policy}"
            ratios = [other / own for other, own in zip(means[policy], ours, strict=True)]
            rows.append(
                Row(
                    row, statistics.fmean(ours), live_s, "s", live_s / statistics.fmean(ours), spread(ratios), len(ours)
                )
            )
            beside[row] = {
                "at least": _LEAST[policy],
                "lower by": f"{1 - statistics.fmean(ours) / live_s:.1%}",
                "by seed": " ".join(f"{ratio:.2f}x" for ratio in ratios),
                "slowest flow, ours and theirs": [
                    round(max(max(ran.took_s) for ran in runs[one]), 1) for one in ("clotho", policy)
                ],
            }
        row = f"live-simulated-{policy}"
        rows.append(Row(row, simulated_s, live_s, "s", simulated_s / live_s, 0.0, len(again[policy])))
        beside[row] = {
            "within": "0.85 to 1.15",
            "each": " ".join(f"{a / b:.2f}" for a, b in zip(again[policy], means[policy], strict=True)),
            "a move, s": [round(ran.move_s, 2) for ran in runs[policy]],
            "beyond a task's sleep, ms": [round(1000 * ran.beyond_s) for ran in runs[policy]],
        }
    return rows, beside


def main() -> int:
    options = parse_options("clotho.live_rows", "Flows under policies of stages, live.", ROWS, runs=3)
    return show(*measure(options), options)


if __name__ == "__main__":
    sys.exit(main())
