"""Who goes where and first: placement (4.7.2), orders (4.7.3, 3.4.1), starvation, estimates."""

from dataclasses import replace
from typing import Final

from yaqd.sim.experiments.ground import (
    GRIDMIX_AT_ONCE,
    GRIDMIX_SHAPE,
    NEVER,
    OURS,
    YAQ_C,
    YAQ_D,
    YARN,
    fixed,
    gridmix,
    hive,
    shape,
)
from yaqd.sim.experiments.model import Case, Experiment, Measure, Plot, Row
from yaqd.sim.shape import System
from yaqd.sim.workloads import Drawn

#: what nodes are known by, in order of arrival at the nodes and without rebalancing: the placement alone
_PLACED: Final = {
    "wait": replace(YAQ_D, order="fifo", rebalance=False, place="wait"),
    "length": replace(YAQ_D, order="fifo", rebalance=False, place="length"),
    "batch sampling": System("sparrow", late_binding=False, probes=2.0),
    "random": System("sparrow", late_binding=False, probes=0.0),
}

_AVERAGED: Final = (
    "ten slots a node run tasks of many jobs, whose durations average out: a queue's wait is nearly its length times "
    "their mean over ten. With one slot a node, where they cannot, the ratio appears: one-slot-length, one-slot-random"
)
#: 4 jobs at a time on 80 slots, as many as the others' 40 on 800
_ONE: Final = {place: Case(f"1 slot: {place}", Drawn("mixed-5-50-jobs", 80), shape(1), replace(system, jobs_at_once=4))
               for place, system in _PLACED.items()}  # fmt: skip
_TOLD: Final = (("length", "length", 1.2), ("random", "random", 1.4), ("batch", "batch sampling", None))

PLACEMENT: Final = Experiment(
    name="yaq-placement",
    title="which node's queue a task goes to, no reordering",
    source="figure 4.6 (4.7.2)",
    cases=(*(gridmix(place, system) for place, system in _PLACED.items()), *_ONE.values()),
    rows=(
        *(
            Row(f"wait-over-{row}", f"median JCT, by wait against {other}", Measure("jct_median", "wait", other), told,
                reason=_AVERAGED)
            for row, other, told in _TOLD
        ),
        *(
            Row(f"one-slot-{row}", f"1 slot a node, by wait against {other}",
                Measure("jct_median", "1 slot: wait", f"1 slot: {other}"), told)
            for row, other, told in _TOLD
        ),
    ),
    plots=(
        Plot("cdf", "jct", "GridMix-MS by placement, no reordering", cases=tuple(_PLACED)),
        Plot("cdf", "one-slot", "Mixed-5-50 jobs on nodes of one slot, by placement",
             cases=tuple(case.label for case in _ONE.values())),
    ),
    notes=(
        "The jobs place their tasks themselves. The ResourceManager of Yaq-c fills each node's queue at that node's",
        "heartbeat, where there is nothing to choose: by wait, by length and at random give the same run. The paper",
        "saw the same of Yaq-c and Yaq-d (4.7).",
    ),
)  # fmt: skip

#: "a queue length of ten slots and no hard or relative starvation thresholds"
_ORDERED: Final = replace(YAQ_C, bound=10, starve_s=NEVER)
_ORDERS: Final = ("srjf", "lrtf", "stf", "ejf")

_ALIKE: Final = (
    "GridMix jobs all have 100 tasks and come to the nodes in order of arrival, so the fewest tasks left are those of "
    "the earliest job: LRTF is order of arrival. Where 100 is only the mean of the jobs' tasks it is not: lrtf-sizes"
)
_LONG: Final = (
    "a queue of 10 holds 8 of 40 jobs, so the order chooses among few; with the same order of jobs at the "
    "ResourceManager it chooses among all, and gains more the more jobs there are at a time: srjf-both, srjf-many"
)
_OVER: Final = (
    "Jobs that are over within the 30 minutes count, as in the paper: what an order leaves for later does not."
)
_BOTH: Final = (("srjf", "srjf"), ("lrtf", "lrtf"), ("stf", "sjf"))
#: jobs at a time; half of what a tenth of 800 slots of 4 GB lets in of masters of 2 GB
_MANY: Final = 80


def _both(order: str, jobs: str) -> System:
    return replace(_ORDERED, order=order, job_order=jobs, bound=4, job_starve_s=NEVER)


ORDERING: Final = Experiment(
    name="yaq-ordering",
    title="order of the tasks in a node's queue, ten queue slots, no starvation guard",
    source="figure 4.7 (4.7.3)",
    cases=(
        gridmix("YARN", YARN),
        *(gridmix(order.upper(), replace(_ORDERED, order=order)) for order in _ORDERS),
        *(gridmix(f"{order.upper()} both", _both(order, jobs)) for order, jobs in _BOTH),
        gridmix(f"YARN, {_MANY} jobs", YARN, at_once=_MANY),
        gridmix(f"SRJF both, {_MANY} jobs", _both("srjf", "srjf"), at_once=_MANY),
        gridmix("YARN, jobs of any size", YARN, "gridmix-sizes", _MANY),
        gridmix("LRTF both, jobs of any size", _both("lrtf", "lrtf"), "gridmix-sizes", _MANY),
    ),
    rows=(
        *(
            Row(order, f"median JCT, {order.upper()} against YARN", Measure("jct_median", order.upper(), "YARN"), told,
                reason=why)
            for order, told, why in (("lrtf", 2.4, _ALIKE), ("srjf", 2.2, _LONG), ("stf", 1.4, _LONG))
        ),
        *(
            Row(f"{order}-both", f"{order.upper()} at nodes, {jobs.upper()} of jobs, b 4",
                Measure("jct_median", f"{order.upper()} both", "YARN"), told, reason=why)
            for (order, jobs), told, why in zip(_BOTH, (2.2, 2.4, 1.4), (_LONG, _ALIKE, ""), strict=True)
        ),
        Row("srjf-many", f"SRJF at both, {_MANY} jobs at a time",
            Measure("jct_median", f"SRJF both, {_MANY} jobs", f"YARN, {_MANY} jobs"), 2.2),
        Row("lrtf-sizes", f"LRTF at both, jobs of any size, {_MANY} at a time",
            Measure("jct_median", "LRTF both, jobs of any size", "YARN, jobs of any size"), 2.4),
    ),
    plots=(
        Plot("cdf", "jct", "GridMix-MS by order inside the queues, b = 10", cases=("YARN", *map(str.upper, _ORDERS))),
        Plot("cdf", "both", "GridMix-MS, the same order of jobs at the ResourceManager, b = 4",
             cases=("YARN", *(f"{order.upper()} both" for order, _ in _BOTH))),
        Plot("cdf", "many", f"GridMix-MS, {_MANY} jobs at a time",
             cases=(f"YARN, {_MANY} jobs", f"SRJF both, {_MANY} jobs", "YARN, jobs of any size",
                    "LRTF both, jobs of any size")),
    ),
    notes=(_OVER,),
)  # fmt: skip

HEAVY_TAIL: Final = Experiment(
    name="yaq-heavy-tail",
    title="a heavy tail: the longest 20 % of GridMix-MS's tasks 500 s longer, SRJF",
    source="figure 4.9 (4.7.4)",
    cases=(
        gridmix("YARN", YARN, "heavy-tailed"),
        gridmix("SRJF", _ORDERED, "heavy-tailed"),
        gridmix("FIFO queues", replace(_ORDERED, order="ejf"), "heavy-tailed"),
        gridmix("SRJF both", replace(_ORDERED, job_order="srjf", bound=2), "heavy-tailed"),
    ),
    rows=(
        Row(
            "heavy-tail",
            "median JCT, SRJF against YARN",
            Measure("jct_median", "SRJF", "YARN"),
            1.8,
            reason="the median is between jobs with and without tasks over 500 s; of all seeds' jobs it is 1.89x",
        ),
        Row("heavy-tail-both", "the same, SRJF of jobs too, b 2", Measure("jct_median", "SRJF both", "YARN"), 1.8),
        Row("heavy-tail-fifo", "the same with FIFO queues", Measure("jct_median", "FIFO queues", "YARN")),
    ),
    plots=(Plot("cdf", "jct", "Heavy-tailed GridMix-MS, b = 10"),),
    seeds=9,
    notes=(
        "Jobs that are over within the 30 minutes count, as in the paper: what an order leaves for later does not.",
    ),
)

#: jobs arrive, so that there is something to put in order at the ResourceManager
_LOAD: Final = 0.9
#: a queue that is long enough to have an order
_LINED_UP: Final = fixed(4)
_GLOBAL: Final = ("fifo", "srjf", "lrtf", "sjf")

MATRIX: Final = Experiment(
    name="yaq-matrix",
    title="every order of jobs at the ResourceManager with every order inside the queues",
    source="section 3.4.1, where the authors left it open",
    cases=tuple(
        hive(f"{outer} / {inner}", replace(_LINED_UP, job_order=outer, order=inner), load=_LOAD)
        for outer in _GLOBAL
        for inner in _ORDERS
    ),
    rows=tuple(
        Row(
            f"{outer}-{inner}",
            f"median JCT, {outer} / {inner} against fifo / ejf",
            Measure("sub_median", f"{outer} / {inner}", "fifo / ejf"),
            sense="shown",
        )
        for outer, inner in (("fifo", "srjf"), ("srjf", "ejf"), ("srjf", "srjf"), ("lrtf", "lrtf"), ("sjf", "stf"))
    ),
    plots=(
        Plot("matrix", "median", "Hive-MS: median completion time from submission (s)", "sub_median"),
        Plot("matrix", "p95", "Hive-MS: 95th percentile of completion time from submission (s)", "sub_p95"),
    ),
)

_GUARDS: Final = (0.5, 1.5, 10.0, 60.0)
_RATIOS: Final = (1.0, 3.0)
_BELOW: Final = (
    "tasks of 49 s wait 44 s, stf-waits, so both thresholds are below every wait; where they wait 8 s, in between, "
    "there is no difference either. What hurts is to have none: stf-tail, stf-short-tail"
)


def _briefly(label: str, guard: float) -> Case:
    """Jobs of 5 s and 50 s tasks, which wait about 8 s at the nodes: not longer than every threshold."""
    system = replace(_ORDERED, order="stf", starve_s=guard, jobs_at_once=GRIDMIX_AT_ONCE)
    return Case(label, Drawn("mixed-5-50-jobs", 300), GRIDMIX_SHAPE, system)


STARVATION: Final = Experiment(
    name="yaq-starvation",
    title="after which wait a task goes first, whatever the order says",
    source="figure 4.8 (4.7.3)",
    cases=(
        *(gridmix(f"STF: ST {guard:g} s", replace(_ORDERED, order="stf", starve_s=guard)) for guard in _GUARDS),
        gridmix("STF: never", replace(_ORDERED, order="stf")),
        *(_briefly(f"STF, short waits: ST {guard:g} s", guard) for guard in (0.5, 10.0, NEVER)),
        *(hive(f"SRJF Hive-MS: ST {guard:g} s", replace(YAQ_C, starve_s=guard)) for guard in _GUARDS),
        hive("SRJF Hive-MS: never", replace(YAQ_C, starve_s=NEVER)),
        *(
            hive(f"SRJF Hive-MS ratio: ST_r {ratio:g}", replace(YAQ_C, starve_s=NEVER, starve_ratio=ratio))
            for ratio in _RATIOS
        ),
    ),
    rows=(
        Row(
            "stf-early",
            "STF: median JCT of ST 0.5 s against 10 s",
            Measure("jct_median", "STF: ST 0.5 s", "STF: ST 10 s"),
            1.0,
            reason=_BELOW,
        ),
        Row(
            "stf-tail",
            "STF: 95th percentile of ST 0.5 s against no threshold",
            Measure("jct_p95", "STF: ST 0.5 s", "STF: never"),
            1.0,
        ),
        Row(
            "stf-short-waits",
            "the same where tasks wait 8 s",
            Measure("jct_median", "STF, short waits: ST 0.5 s", "STF, short waits: ST 10 s"),
            1.0,
            reason=_BELOW,
        ),
        Row(
            "stf-short-tail",
            "and its 95th percentile against no threshold",
            Measure("jct_p95", "STF, short waits: ST 0.5 s", "STF, short waits: ST inf s"),
            1.0,
        ),
        Row("stf-waits", "STF, ST 10 s: queuing delay, median", Measure("delay_median", "STF: ST 10 s"), unit="s"),
        Row(
            "srjf-late",
            "SRJF on Hive-MS: median JCT of ST 10 s against 0.5 s",
            Measure("jct_median", "SRJF Hive-MS: ST 10 s", "SRJF Hive-MS: ST 0.5 s"),
            1.0,
        ),
    ),
    plots=(
        Plot(
            "cdf",
            "stf",
            "GridMix-MS, STF, b = 10, by starvation threshold",
            cases=(*(f"STF: ST {guard:g} s" for guard in _GUARDS), "STF: never"),
        ),
        Plot(
            "cdf",
            "srjf",
            "Hive-MS, SRJF, b = 4, by starvation threshold",
            cases=(*(f"SRJF Hive-MS: ST {guard:g} s" for guard in _GUARDS), "SRJF Hive-MS: never"),
        ),
    ),
)

ESTIMATES: Final = Experiment(
    name="yaq-estimates",
    title="estimates that are rough, wrong or missing",
    source='section 3: "performs well even with only rough estimates"; how wrong is ours to ask',
    cases=(
        hive("YARN", YARN, load=_LOAD),
        hive("each task's own", replace(OURS, estimates="task"), load=_LOAD),
        hive("stage mean", OURS, load=_LOAD),
        hive("off by 2x", replace(OURS, estimate_error=2.0), load=_LOAD),
        hive("off by 10x", replace(OURS, estimate_error=10.0), load=_LOAD),
        hive("learned in the job", replace(OURS, estimates="learned"), load=_LOAD),
        hive("none, SRJF", replace(OURS, estimates="none"), load=_LOAD),
        hive("none, LRTF", replace(OURS, estimates="none", order="lrtf", job_order="lrtf"), load=_LOAD),
    ),
    rows=tuple(
        Row(
            row,
            f"median JCT against YARN, {label}",
            Measure("jct_median", label, "YARN"),
            1.7 if label == "stage mean" else 1.0,
            sense="at-least",
            reason="tasks of 23 s on four slots need no more than one place a node: jct-arriving-b1 of yaq-c",
        )
        for row, label in (
            ("stage", "stage mean"),
            ("task", "each task's own"),
            ("off-2x", "off by 2x"),
            ("off-10x", "off by 10x"),
            ("learned", "learned in the job"),
            ("none-srjf", "none, SRJF"),
            ("none-lrtf", "none, LRTF"),
        )
    ),
    plots=(Plot("bars", "median", "Hive-MS by quality of the estimates", "jct_median"),),
)
