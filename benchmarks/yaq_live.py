"""Queues at the nodes against stock YARN, live: `python -m benchmarks.yaq_live [--only ROW]`.

One ResourceManager and four NodeManagers a side, stock or ours, 3 s heartbeats, tasks are real `sleep` processes. The
masters run in this process (`benchmarks.live_master`), the same for every side: only ResourceManager and NodeManagers
differ. Completion times count to the end of the last task's process. Each row prints heartbeat, the masters' polling
interval, whether they say that they tolerate waiting, the bound of the queues, the median gap between one process and
the next on a slot, whether heartbeats out of turn were on, and whether the ResourceManager decided when it was asked
too. In `utilization-*` both are off for ours, which is a handicap: stock's nodes report each end at once, which no
setting turns off, and ours wait for their regular heartbeats.

The masters say where they register that their containers may wait, which is an extension of ours; all that the rows
must reach is for such masters. Those of MapReduce, Tez and Spark do not say so, and what they ask for waits at a node
for `yaq.queue.max-wait-unaware` at most: `--unaware` has the same rows with masters like theirs, live and simulated.

Every trace that was run has its simulated twin in the end, both sides, with what was measured for it. There "ours" is
what was lived and "theirs" what was simulated, as in the rows `fidelity-*`. `--keep FOLDER` keeps the runs of traces,
and a later call with the same folder and code takes them from there.

`hive-fair-*`, `small-first-*` and `heartbeat-3s-*` have stock with its best policy of the study, below its capacity.
All three sides of `queue-or-event` have jobs in srjf. Stock is in fifo throughout, and beyond its capacity in `hive-*`.

Rows that share a run (`hive-median` and `hive-p95`) are measured in one. The `fidelity-*` rows hold the runs of ours
against the simulator's of the same jobs: the ratio should be 1.
Times at `--scale 1`: `utilization-*` 2 minutes a variant; `hive-*`, `fidelity-*`, `queue-or-event` and `low-load` 15
minutes a variant and run; `short-jobs` and `longest-job` 8; `longest-under-load` 11; `shares` 4; `start-latency` 3;
`hive-fair-*` and `heartbeat-3s-*` 20; `small-first-*` 7. `--scale` shortens windows and traces.
"""

import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yaqd.ipc.loop import run
from yaqd.sim.workload import Workload

from . import live_runs as runs
from .live_cluster import JOB_ORDER, NODES, Variant, beats_within, ours, running, stock, stock_opportunistic
from .live_facts import bound_of, facts_of
from .live_fair import FAIR_ROWS, measure_fair, percentile
from .live_load_twins import backlog_twin, latency_twin, shares_twin
from .live_mixes import hive, longest, mixed
from .live_runs import Loaded, Traced
from .live_simulated import quantile
from .live_traced import Traces
from .options import Options, parse_options, progress, show, stock_jars
from .report import Row, make_row
from .stock.artifacts import HadoopJars

#: what the masters of MapReduce and distributed shell do by default
POLL_S = 1.0
_QUICK_POLL_S = 0.02
_HEARTBEAT_S = 3.0
_SLOTS = 8
_LONGEST_SLOTS = 4
_HIVE_SLOTS = 16
#: places in stock's own queues: three quarters of the slots, as the paper's 5 s tasks need
_STOCK_QUEUE, _STOCK_HIVE_QUEUE = 6, 12
_WINDOW_S = 60.0
_SHARES = {"a": 70, "b": 30}
_SHARES_WINDOW_S, _SHARES_SPAN_S = 180.0, 60.0
_ASKS = 20

AT_LEAST = {
    "utilization-5s": "97 %",
    "utilization-1s": "90 %",
    "hive-median": "2.3x",
    "hive-p95": "1.2x",
    "hive-median-opp": "1.6x",
    "hive-p95-opp": "0.95x",
    "fidelity-median": "0.9x to 1.1x",
    "fidelity-p95": "0.9x to 1.1x",
    "queue-or-event": "printed",
    "low-load": "1x",
    "short-jobs": "3x",
    "longest-job": "0.87x",
    "longest-under-load": "at most 1.5 x by FIFO + 60 s, and short jobs' median under FIFO's",
    "shares": "5 points",
    "start-latency": "20x",
    **FAIR_ROWS,
}
_NODE_ORDER, _SHIPPED_JOB_ORDER = "yaq.queue.order", "yaq.queue.job-order"
_QUEUES = ours(queues=True, events=False)
#: the order of jobs is that of the other two: a leaf queue that names none goes to fifo where queues are off
_EVENTS = ours(queues=False, events=True, site={JOB_ORDER: "srjf"})
_BOTH = ours(queues=True, events=True)
#: how far queues fill slots where that is what is asked of them; as shipped they leave a twentieth idle
_FILLED = {"yaq.queue.target-utilization": "0.99"}
#: ours hears of ends with regular heartbeats alone, and decides then; stock's nodes report ends at once
UTILIZATION = (stock(), stock_opportunistic(_STOCK_QUEUE), ours(queues=True, events=False, at_asks=False, site=_FILLED))
_UNAWARE = "unaware"


@dataclass(slots=True)
class Bench:
    """Runs what is asked for, each variant of a workload once per run."""

    options: Options
    jars: HadoopJars | None
    folder: Path
    rows: list[Row] = field(default_factory=list)
    beside: dict[str, dict[str, Any]] = field(default_factory=dict)
    traces: Traces = field(init=False)
    _clusters: int = 0

    def __post_init__(self) -> None:
        self.traces = Traces(self.options, self.jars, self.place, POLL_S, self.tolerates_waiting)

    @property
    def tolerates_waiting(self) -> bool:
        """Do the masters say that their containers may wait?"""
        return _UNAWARE not in self.options.switches

    def wanted(self, variants: Sequence[Variant]) -> list[Variant]:
        """Those of the sides that are asked for."""
        return [v for v in variants if (self.options.ours if v.is_ours else self.options.theirs)]

    def place(self) -> Path:
        """A folder for the next cluster."""
        self._clusters += 1
        made = self.folder / f"run{self._clusters}"
        made.mkdir()
        made.chmod(0o755)
        return made

    def note(self, row: str, variant: Variant, text: str, *, poll_s: float = POLL_S) -> None:
        tolerates = self.tolerates_waiting
        common = {
            "at least": AT_LEAST[row] if tolerates else "nothing is set for masters that do not tolerate waiting",
            "masters poll every": f"{poll_s:g} s",
            "masters say that they tolerate waiting": "yes" if tolerates else "no",
        }
        facts = self.beside.setdefault(row, common)
        said = facts.get(variant.name, variant.facts())
        facts[variant.name] = said if text in said else f"{said}; {text}"
        progress(f"{row}: {variant.name}: {text}")

    def add(
        self, row: str, own: Sequence[float], theirs: Sequence[float], unit: str, *, higher_is_better: bool = False
    ) -> None:
        if own:
            self.rows.append(make_row(row, own, theirs, unit, higher_is_better=higher_is_better))

    # Utilization ------------------------------------------------------------------------------------------------------

    def utilization(self, row: str, duration_s: float) -> None:
        """Slots used while more is asked for than fits; ours hears and decides at regular heartbeats alone."""
        found: dict[str, list[float]] = {}
        twins: dict[str, list[float]] = {}
        for variant in self.wanted(UTILIZATION):
            for _ in range(self.options.runs):
                loaded = self._backlog(variant, duration_s)
                found.setdefault(variant.name, []).append(100 * loaded.utilization)
                self.note(row, variant, f"{100 * loaded.utilization:.1f} %, {facts_of(loaded, variant)}")
                twins.setdefault(variant.name, []).append(self._backlog_twin(variant, loaded, duration_s))
        for name, foretold in twins.items():
            self.add(f"twin of {row}: {name}", found[name], foretold, "% of slots")
        theirs, _, own = (found.get(variant.name, []) for variant in UTILIZATION)
        self.add(row, own, theirs, "% of slots", higher_is_better=True)

    def _backlog_twin(self, variant: Variant, loaded: Loaded, duration_s: float) -> float:
        by_seed = backlog_twin(
            variant, loaded, slots=_SLOTS, duration_s=duration_s, poll_s=POLL_S, aware=self.tolerates_waiting
        )
        return 100 * statistics.median(by_seed)

    def _backlog(self, variant: Variant, duration_s: float) -> Loaded:
        place = self.place()
        with running(variant, self.jars, place / "cluster", _SLOTS) as where:
            return run(
                runs.backlog(
                    where,
                    place,
                    slots=NODES * _SLOTS,
                    duration_s=duration_s,
                    poll_s=POLL_S,
                    heartbeat_s=_HEARTBEAT_S,
                    window_s=_WINDOW_S * self.options.scale,
                    opportunistic=variant.opportunistic,
                    tolerates_waiting=self.tolerates_waiting,
                )
            )

    # Traces -----------------------------------------------------------------------------------------------------------

    def traced(self, row: str, what: str, workload: Workload, variant: Variant, slots: int) -> list[Traced]:
        """The trace's runs on that variant, made once however many rows look at them."""
        lived = self.traces.run(what, workload, variant, slots)
        for traced in lived:
            submitted, started = traced.from_submission_s, traced.from_start_s
            text = (
                f"from submission p50 {quantile(submitted, 0.5):.1f} p95 {quantile(submitted, 0.95):.1f} "
                f"worst {max(submitted):.1f} s, "
                f"from start p50 {quantile(started, 0.5):.1f} p95 {quantile(started, 0.95):.1f} s, "
                f"{len(submitted)} jobs in {traced.took_s:.0f} s, {facts_of(traced, variant)}"
            )
            self.note(row, variant, text)
        return lived

    def hive(self, row: str, share: float, theirs: Variant) -> None:
        """One percentile of Hive-MS at 0.9 of capacity."""
        workload = hive(self.options.scale, NODES * _HIVE_SLOTS, load=0.9)
        self._compare(row, "hive", workload, [_BOTH], theirs, share)

    def fidelity(self, row: str, share: float) -> None:
        """One percentile of Hive-MS, live against simulated; the row is ours, stock's stands beside it."""
        workload = hive(self.options.scale, NODES * _HIVE_SLOTS, load=0.9)
        for variant in self.wanted([stock(), _BOTH]):
            self.traced(row, "hive", workload, variant, _HIVE_SLOTS)
            twin = self.traces.twin("hive", variant)
            self.note(row, variant, twin.facts())
            if variant.is_ours:
                self.add(row, twin.live(share), [twin.foretold.at(share)], "s")

    def low_load(self, row: str) -> None:
        """A tenth of the load, so a tenth of the jobs in the same time."""
        workload = hive(0.1 * self.options.scale, NODES * _HIVE_SLOTS, load=0.09)
        self._compare(row, "low", workload, [_BOTH], stock(), 0.5)

    def queue_or_event(self, row: str) -> None:
        """What queues and events are each worth; the row itself is both against the better one alone."""
        workload = hive(self.options.scale, NODES * _HIVE_SLOTS, load=0.9)
        found = {
            v.name: [quantile(t.from_submission_s, 0.5) for t in self.traced(row, "hive", workload, v, _HIVE_SLOTS)]
            for v in self.wanted([_QUEUES, _EVENTS, _BOTH])
        }
        if found:
            alone = min((found[_QUEUES.name], found[_EVENTS.name]), key=statistics.median)
            self.add(row, found[_BOTH.name], alone, "s")

    def _compare(
        self, row: str, what: str, workload: Workload, own: Sequence[Variant], theirs: Variant, share: float
    ) -> None:
        found: dict[bool, list[float]] = {True: [], False: []}
        for variant in self.wanted([theirs, *own]):
            for traced in self.traced(row, what, workload, variant, _HIVE_SLOTS):
                found[variant.is_ours].append(quantile(traced.from_submission_s, share))
        self.add(row, found[True], found[False], "s")

    def mix(self, row: str, value: Callable[[Traced], float]) -> None:
        """Short and long jobs: least remaining work first, at ResourceManager and nodes, against FIFO at both."""
        workload = mixed(self.options.scale, NODES * _SLOTS)
        found = []
        for order in ("srjf", "fifo"):
            site = {_NODE_ORDER: order, _SHIPPED_JOB_ORDER: order}
            variant = ours(queues=True, events=True, name=f"ours, {order}", site=site)
            if self.options.ours:
                found.append([value(traced) for traced in self.traced(row, "mix", workload, variant, _SLOTS)])
        if found:
            self.add(row, found[0], found[1], "s")

    def longest(self, row: str) -> None:
        """One long job beside short ones that ask for all the cluster can do; the same two sides as of `mix`."""
        workload = longest(self.options.scale, NODES * _LONGEST_SLOTS, load=1.0)
        found = []
        for order in ("srjf", "fifo") if self.options.ours else ():
            site = {_NODE_ORDER: order, _SHIPPED_JOB_ORDER: order}
            variant = ours(queues=True, events=True, name=f"ours, {order}", site=site)
            traces = self.traced(row, "longest", workload, variant, _LONGEST_SLOTS)
            found.append([percentile(1.0, "long")(traced) for traced in traces])
            for traced in traces:
                long_s, short_s = percentile(1.0, "long")(traced), percentile(0.5, "short")(traced)
                self.note(row, variant, f"the long job {long_s:.1f} s, short ones p50 {short_s:.1f} s")
        if found:
            self.add(row, found[0], found[1], "s")

    # The rest ---------------------------------------------------------------------------------------------------------

    def shares(self, row: str) -> None:
        """Largest deviation from 70 % and 30 % over any minute."""
        found: dict[bool, list[float]] = {True: [], False: []}
        own = ours(queues=True, events=False, site={"yaq.queue.scope": "queue"})
        for variant in self.wanted([stock(), own]):
            for _ in range(self.options.runs):
                place = self.place()
                with running(variant, self.jars, place / "cluster", _SLOTS, _SHARES) as where:
                    worst, loaded = run(
                        runs.shares(
                            where,
                            place,
                            _SHARES,
                            slots=NODES * _SLOTS,
                            duration_s=5.0,
                            poll_s=POLL_S,
                            heartbeat_s=_HEARTBEAT_S,
                            window_s=max(_SHARES_WINDOW_S * self.options.scale, _SHARES_SPAN_S),
                            span_s=_SHARES_SPAN_S,
                            tolerates_waiting=self.tolerates_waiting,
                        )
                    )
                found[variant.is_ours].append(worst)
                self.note(row, variant, f"at most {worst:.1f} points off, {facts_of(loaded, variant)}")
                foretold = shares_twin(
                    variant,
                    loaded,
                    _SHARES,
                    slots=_SLOTS,
                    duration_s=5.0,
                    poll_s=POLL_S,
                    span_s=_SHARES_SPAN_S,
                    aware=self.tolerates_waiting,
                )
                self.add(f"twin of {row}: {variant.name}", [worst], foretold, "points")
        self.add(row, found[True], found[False], "points")

    def start_latency(self, row: str) -> None:
        """Ask to running process on an idle cluster."""
        variants = [stock(), stock(1000), _BOTH, ours(queues=True, events=False)]
        found = {}
        for variant in self.wanted(variants):
            place = self.place()
            heartbeat_s = variant.heartbeat_ms / 1000
            count = max(3, int(_ASKS * self.options.scale))
            with running(variant, self.jars, place / "cluster", _SLOTS) as where:
                beats_within_s = beats_within(variant, place / "cluster")
                taken, bounds, launches = run(
                    runs.latencies(
                        where,
                        place,
                        count=count,
                        poll_s=_QUICK_POLL_S,
                        heartbeat_s=heartbeat_s,
                        tolerates_waiting=self.tolerates_waiting,
                    )
                )
            found[variant.name] = taken
            text = f"median {1000 * quantile(taken, 0.5):.0f} ms, 95 % within {1000 * quantile(taken, 0.95):.0f} ms"
            if beats_within_s < heartbeat_s:
                text += f", nodes beat within {1000 * beats_within_s:.0f} ms of each other"
            self.note(row, variant, f"{text}, {bound_of(bounds, variant)}, nothing waits", poll_s=_QUICK_POLL_S)
            foretold = latency_twin(
                variant,
                statistics.median(launches),
                beats_within_s=beats_within_s,
                slots=_SLOTS,
                poll_s=_QUICK_POLL_S,
                aware=self.tolerates_waiting,
            )
            self.add(f"twin of {row}: {variant.name}", taken, foretold, "s")
        self.add(row, found.get(variants[2].name, []), found.get(variants[0].name, []), "s")

    def run(self) -> None:
        """Every wanted row, in the table's order."""
        work: Mapping[str, Callable[[str], None]] = {
            "utilization-5s": lambda row: self.utilization(row, 5.0),
            "utilization-1s": lambda row: self.utilization(row, 1.0),
            "hive-median": lambda row: self.hive(row, 0.5, stock()),
            "hive-p95": lambda row: self.hive(row, 0.95, stock()),
            "hive-median-opp": lambda row: self.hive(row, 0.5, stock_opportunistic(_STOCK_HIVE_QUEUE)),
            "hive-p95-opp": lambda row: self.hive(row, 0.95, stock_opportunistic(_STOCK_HIVE_QUEUE)),
            "fidelity-median": lambda row: self.fidelity(row, 0.5),
            "fidelity-p95": lambda row: self.fidelity(row, 0.95),
            "queue-or-event": self.queue_or_event,
            "low-load": self.low_load,
            "short-jobs": lambda row: self.mix(row, percentile(0.5, "short")),
            "longest-job": lambda row: self.mix(row, percentile(1.0, "long")),
            "longest-under-load": self.longest,
            "shares": self.shares,
            "start-latency": self.start_latency,
            **{row: lambda row: measure_fair(self, row, self.options.scale) for row in FAIR_ROWS},
        }
        for row in AT_LEAST:
            if self.options.wants(row):
                work[row](row)
        for twin in self.traces.twins():
            self.rows += twin.rows()
            self.beside[f"twin {twin.name}"] = {"measured": twin.facts()}


def main() -> int:
    """Runs the benchmark."""
    options = parse_options(
        "yaq_live",
        "queues at the nodes against stock YARN",
        list(AT_LEAST),
        runs=1,
        keeps=True,
        switches={_UNAWARE: "masters that do not say that they tolerate waiting, as those of MapReduce and Spark"},
    )
    jars = stock_jars() if options.theirs else None
    if options.theirs and jars is None:
        return 2
    with tempfile.TemporaryDirectory(prefix="yaqd-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # stock nodes read public files below it
        bench = Bench(options, jars, folder)
        bench.run()
    for facts in bench.beside.values():
        facts["cpus"] = os.cpu_count()
    return show(bench.rows, bench.beside, options)


if __name__ == "__main__":
    sys.exit(main())
