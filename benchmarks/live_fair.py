"""Live rows against stock with its best policy of the study (docs/study.md): `fair`, many containers at a heartbeat.

Both sides have the same jobs, at a load that stock can carry. Ours are the daemons as they come. Each row has the ratio
of medians over the runs of a side. With two runs and more its interval stands beside it. All runs are of one trace, so
the interval is of the machine and of the phases of heartbeats, not of the jobs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from yaqd.sim.study.report.intervals import ratio
from yaqd.sim.workload import Workload

from .live_cluster import NODES, Variant, shipped, stock_fair
from .live_mixes import hive, mixed
from .live_runs import Traced
from .live_simulated import quantile

#: what stock's `fair` can do at most at heartbeats of 1 s, and ours as shipped: parts of the slots (docs/study.md)
STOCK_CAPACITY: Final = 0.92
OUR_CAPACITY: Final = 0.95
_HIVE_SLOTS, _MIX_SLOTS = 16, 8
_LONG_JOBS: Final = 10
FAIR_ROWS: Final = {
    "hive-fair-median": "1.3x",
    "hive-fair-p95": "1x, the interval's lower end above 1",
    "small-first-short": "1.5x",
    "small-first-longest": "1x",
    "heartbeat-3s-median": "1.8x",
    "heartbeat-3s-p95": "1.2x",
}


class FairBench(Protocol):
    """What runs traces and keeps rows."""

    def wanted(self, variants: Sequence[Variant]) -> list[Variant]: ...

    def traced(self, row: str, what: str, workload: Workload, variant: Variant, slots: int) -> list[Traced]: ...

    def note(self, row: str, variant: Variant, text: str) -> None: ...

    def add(self, row: str, own: Sequence[float], theirs: Sequence[float], unit: str) -> None: ...


@dataclass(frozen=True, slots=True)
class FairRow:
    """One figure of both sides' runs of one trace."""

    what: str
    workload: Callable[[float], Workload]
    slots: int
    heartbeat_ms: int
    value: Callable[[Traced], float]


def percentile(share: float, kind: str = "") -> Callable[[Traced], float]:
    """Make the figure of a run that this share of the jobs of a kind stays within, from submission."""

    def value(traced: Traced) -> float:
        pairs = zip(traced.names, traced.from_submission_s, strict=True)
        return quantile([seconds for name, seconds in pairs if name.startswith(kind)], share)

    return value


def _hive(scale: float) -> Workload:
    return hive(scale, NODES * _HIVE_SLOTS, load=0.7 * STOCK_CAPACITY)


def _small(scale: float) -> Workload:
    return mixed(scale, NODES * _MIX_SLOTS, load=0.9 * OUR_CAPACITY, long_jobs=_LONG_JOBS)


_ROWS: Final[Mapping[str, FairRow]] = {
    "hive-fair-median": FairRow("hive-fair", _hive, _HIVE_SLOTS, 1000, percentile(0.5)),
    "hive-fair-p95": FairRow("hive-fair", _hive, _HIVE_SLOTS, 1000, percentile(0.95)),
    "small-first-short": FairRow("small-first", _small, _MIX_SLOTS, 1000, percentile(0.5, "short")),
    "small-first-longest": FairRow("small-first", _small, _MIX_SLOTS, 1000, percentile(1.0, "long")),
    "heartbeat-3s-median": FairRow("heartbeat-3s", _hive, _HIVE_SLOTS, 3000, percentile(0.5)),
    "heartbeat-3s-p95": FairRow("heartbeat-3s", _hive, _HIVE_SLOTS, 3000, percentile(0.95)),
}


def measure_fair(bench: FairBench, row: str, scale: float) -> None:
    """Run both sides of a row, or take their runs, and add it."""
    of = _ROWS[row]
    workload = of.workload(scale)
    found: dict[bool, list[float]] = {True: [], False: []}
    for variant in bench.wanted([stock_fair(of.heartbeat_ms), shipped(of.heartbeat_ms)]):
        found[variant.is_ours] = [of.value(t) for t in bench.traced(row, of.what, workload, variant, of.slots)]
        bench.note(row, variant, f"by run {' '.join(f'{seconds:.1f}' for seconds in found[variant.is_ours])} s")
    own, theirs = found[True], found[False]
    bench.add(row, own, theirs, "s")
    if len(own) == len(theirs) > 1:
        times = ratio(theirs, own)
        bench.note(row, shipped(of.heartbeat_ms), f"{times.mid:.2f}x ({times.low:.2f} to {times.high:.2f})")
