"""What keeps tasks from waiting for ever: starvation threshold and longest wait together, and moves between queues.

The paper chose its threshold without a longest wait (4.7.3). A live node gives a container back that has waited for
`yaq.queue.max-wait`, and it is placed where it starts at once; a threshold above that never makes a difference.
"""

from dataclasses import replace
from typing import Final

from yaqd.sim.experiments.ground import HIVE_SHAPE, NEVER, OURS, OURS_D, hive, shape
from yaqd.sim.experiments.model import Case, Experiment, Measure, Plot, Row
from yaqd.sim.shape import System
from yaqd.sim.workloads import Arrivals, Drawn

_LOAD: Final = 0.9
_SHIPPED: Final = f"ST {OURS.starve_s:g} s, wait {OURS.max_wait_s:g} s"
#: threshold and longest wait, s
_PAIRS: Final = (
    *((st, OURS.max_wait_s) for st in (2.0, 10.0, 30.0, OURS.starve_s, NEVER)),
    (30.0, 30.0),
    (9.0, 9.0),
    (120.0, 120.0),
    (300.0, 0.0),
)


def _name(st: float, wait: float) -> str:
    return f"ST {st:g} s, wait {wait:g} s" if wait else f"ST {st:g} s, any wait"


def _guarded(load: str, st: float, wait: float) -> Case:
    system = replace(OURS, starve_s=st, max_wait_s=wait)
    return _arriving(f"{load}: {_name(st, wait)}", load, system)


def _arriving(label: str, load: str, system: System) -> Case:
    if load == "Mixed-5-50":
        return Case(label, Drawn("mixed-5-50-jobs", 150, Arrivals("poisson", _LOAD)), shape(10), system)
    return hive(label, system, load=_LOAD)


_LOADS: Final = ("Hive-MS", "Mixed-5-50")

GUARDS: Final = Experiment(
    name="yaq-guards",
    title="starvation threshold (ST) and longest wait, chosen together, jobs arriving",
    source="section 4.7.3 chose ST without a longest wait; how they work together is ours to ask",
    cases=tuple(_guarded(load, st, wait) for load in _LOADS for st, wait in _PAIRS),
    rows=tuple(
        Row(f"{load.lower()}-{row}", f"{load}: {what}, the shipped guards against {_name(st, wait)}",
            Measure(metric, f"{load}: {_SHIPPED}", f"{load}: {_name(st, wait)}"), sense="shown")
        for load in _LOADS
        for row, what, metric, st, wait in (
            ("st-2", "median", "sub_median", 2.0, OURS.max_wait_s),
            ("st-10", "median", "sub_median", 10.0, OURS.max_wait_s),
            ("st-30", "median", "sub_median", 30.0, OURS.max_wait_s),
            ("st-never", "median", "sub_median", NEVER, OURS.max_wait_s),
            ("wait-9", "median", "sub_median", 9.0, 9.0),
            ("wait-30", "median", "sub_median", 30.0, 30.0),
            ("wait-none", "median", "sub_median", 300.0, 0.0),
            ("longest-none", "longest job", "jct_max", 300.0, 0.0),
            ("longest-120", "longest job", "jct_max", 120.0, 120.0),
        )
    ),
    plots=tuple(
        Plot("bars", load.lower(), f"{load}: starvation threshold and longest wait", "sub_mean",
             cases=tuple(f"{load}: {_name(st, wait)}" for st, wait in _PAIRS))
        for load in _LOADS
    ),
)  # fmt: skip

_LENGTHS: Final = replace(OURS_D, rebalance=True, rebalance_gain_s=0.0)
_MOVES: Final = {
    "none": replace(OURS_D, rebalance=False),
    "by length": _LENGTHS,
    **{f"and a gain of {gain:g} s": replace(_LENGTHS, rebalance_gain_s=gain) for gain in (2.0, 10.0, 30.0)},
}
#: every third node takes two and a half times as long
_UNEQUAL: Final = replace(HIVE_SHAPE, speeds=(1.0, 1.0, 0.4))


def _moved(label: str, system: System) -> Case:
    return hive(label, system, load=_LOAD, on=shape(10))


def _moved_unequal(label: str, system: System) -> Case:
    return hive(f"unequal: {label}", system, load=0.7, on=_UNEQUAL)


REBALANCING: Final = Experiment(
    name="yaq-rebalancing",
    title="queues corrected after the fact: by length as Hadoop does, and by what a move gains",
    source="section 3.2, dynamic queue rebalancing; table 4.2",
    cases=(
        *(_moved(label, system) for label, system in _MOVES.items()),
        *(_moved_unequal(label, system) for label, system in _MOVES.items()),
    ),
    rows=tuple(
        Row(f"{row}{label.replace(' ', '-')}", f"median from submission, {before}{label} against none",
            Measure("sub_median", f"{before}{label}", f"{before}none"), sense="shown")
        for row, before in (("", ""), ("unequal-", "unequal: "))
        for label in _MOVES
        if label != "none"
    ),
    plots=(
        Plot("cdf", "jct", "Hive-MS on equal nodes, by rebalancing", cases=tuple(_MOVES)),
        Plot("cdf", "unequal", "Hive-MS where every third node is slow, by rebalancing",
             cases=tuple(f"unequal: {label}" for label in _MOVES)),
    ),
    notes=("Nodes, managers and waits as live: a task that is moved keeps the time that it has waited.",),
)  # fmt: skip
