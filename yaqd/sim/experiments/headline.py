"""The paper's headline tables on Hive-MS: Yaq-c (table 4.1, figure 4.1) and Yaq-d (table 4.2, figure 4.2)."""

from dataclasses import replace
from typing import Final

from yaqd.sim.experiments.ground import NEVER, YAQ_C, YAQ_D, YARN, hive
from yaqd.sim.experiments.model import Experiment, Measure, Plot, Row
from yaqd.sim.shape import System

_AT_ONCE: Final = (2, 4, 6, 8, 12, 16, 24, 32)


def _row(row: str, what: str, metric: str, case: str, reported: float, unit: str, sense: str, reason: str = "") -> Row:
    return Row(row, what, Measure(metric, case), reported, unit, sense, digits=1, reason=reason)  # type: ignore[arg-type]


CENTRAL: Final = Experiment(
    name="yaq-c",
    title="Hive-MS on Yaq-c and on YARN",
    source="table 4.1, figure 4.1 (4.4)",
    cases=(
        hive("YARN", YARN, limits=_AT_ONCE),
        hive("Yaq-c", YAQ_C, limits=_AT_ONCE),
        hive("Yaq-c unbounded", replace(YAQ_C, bound=0), limits=_AT_ONCE),
        hive("Yaq-c no reorder", replace(YAQ_C, order="ejf", starve_s=NEVER), limits=_AT_ONCE),
    ),
    rows=(
        Row("jct", "median JCT, Yaq-c against YARN", Measure("jct_median", "Yaq-c", "YARN"), 1.7),
        Row("jobs", "throughput, Yaq-c against YARN", Measure("jobs_per_min", "YARN", "Yaq-c"), 1.58),
        _row("jobs-yaq", "throughput of Yaq-c", "jobs_per_min", "Yaq-c", 13.9, "jobs/min", "at-least"),
        _row("delay-mean", "queuing delay, mean", "delay_mean", "Yaq-c", 8.5, "s", "at-most"),
        _row("delay-median", "queuing delay, median", "delay_median", "Yaq-c", 1.1, "s", "at-most"),
        _row("unbounded-mean", "unbounded: delay, mean", "delay_mean", "Yaq-c unbounded", 65.5, "s", "shown"),
        _row("unbounded-median", "unbounded: delay, median", "delay_median", "Yaq-c unbounded", 30.4, "s", "shown"),
        _row("no-reorder-mean", "no reorder: delay, mean", "delay_mean", "Yaq-c no reorder", 53.2, "s", "shown"),
        _row("no-reorder-median", "no reorder: delay, median", "delay_median", "Yaq-c no reorder", 25.4, "s", "shown"),
    ),
    plots=(Plot("cdf", "jct", "Hive-MS: Yaq-c and YARN"),),
)

_MERCURY: Final = System("mercury")
_SAMPLING: Final = System("sparrow")

DISTRIBUTED: Final = Experiment(
    name="yaq-d",
    title="Hive-MS on Yaq-d, on distributed Mercury and on batch sampling",
    source="table 4.2, figure 4.2 (4.5)",
    cases=(
        hive("Yaq-d", YAQ_D, limits=_AT_ONCE),
        hive("Yaq-d no rebalance", replace(YAQ_D, rebalance=False), limits=_AT_ONCE),
        hive("Mercury", _MERCURY, limits=_AT_ONCE),
        hive("batch sampling", _SAMPLING, limits=_AT_ONCE),
    ),
    rows=(
        Row("jct-mercury", "median JCT, Yaq-d against Mercury", Measure("jct_median", "Yaq-d", "Mercury"), 3.9),
        Row(
            "jct-sampling", "median JCT, Yaq-d against sampling", Measure("jct_median", "Yaq-d", "batch sampling"), 9.3
        ),
        _row("jobs", "throughput of Yaq-d", "jobs_per_min", "Yaq-d", 16.6, "jobs/min", "at-least"),
        _row("delay-mean", "queuing delay, mean", "delay_mean", "Yaq-d", 17.9, "s", "at-most"),
        _row("delay-median", "queuing delay, median", "delay_median", "Yaq-d", 0.35, "s", "at-most"),
        _row("plain-mean", "no rebalance: delay, mean", "delay_mean", "Yaq-d no rebalance", 34.2, "s", "shown"),
        _row("plain-median", "no rebalance: delay, median", "delay_median", "Yaq-d no rebalance", 5.6, "s", "shown"),
        _row("mercury-mean", "Mercury: delay, mean", "delay_mean", "Mercury", 49.7, "s", "shown"),
        _row("mercury-median", "Mercury: delay, median", "delay_median", "Mercury", 12.9, "s", "shown"),
        _row("sampling-mean", "sampling: delay, mean", "delay_mean", "batch sampling", 81.4, "s", "shown"),
        _row("sampling-median", "sampling: delay, median", "delay_median", "batch sampling", 26.2, "s", "shown"),
    ),
    plots=(Plot("cdf", "jct", "Hive-MS: Yaq-d, Mercury and batch sampling"),),
)
