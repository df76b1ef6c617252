"""Who goes where and first: placement (4.7.2), orders (4.7.3, 3.4.1), starvation, estimates."""

from dataclasses import replace
from typing import Final

from yaqd.sim.experiments.ground import NEVER, YAQ_C, YARN, gridmix, hive
from yaqd.sim.experiments.model import Experiment, Measure, Plot, Row

_PLACES: Final = ("wait", "length", "two-choices", "random")
_PLACED: Final = replace(YAQ_C, bound=6, order="ejf", starve_s=NEVER)

PLACEMENT: Final = Experiment(
    name="yaq-placement",
    title="which node's queue a task goes to, six queue slots, no reordering",
    source="figure 4.6 (4.7.2)",
    cases=tuple(gridmix(place, replace(_PLACED, place=place)) for place in _PLACES),
    rows=tuple(
        Row(f"wait-over-{other}", f"median JCT, by wait against by {other}", Measure("jct_median", "wait", other), told)
        for other, told in (("length", 1.2), ("random", 1.4), ("two-choices", None))
    ),
    plots=(Plot("cdf", "jct", "GridMix-MS by placement, b = 6, no reordering"),),
)

#: "a queue length of ten slots and no hard or relative starvation thresholds"
_ORDERED: Final = replace(YAQ_C, bound=10, starve_s=NEVER)
_ORDERS: Final = ("srjf", "lrtf", "stf", "ejf")

ORDERING: Final = Experiment(
    name="yaq-ordering",
    title="order of the tasks in a node's queue, ten queue slots, no starvation guard",
    source="figure 4.7 (4.7.3)",
    cases=(
        gridmix("YARN", YARN),
        *(gridmix(order.upper(), replace(_ORDERED, order=order)) for order in (*_ORDERS, "cpath")),
        gridmix("SRJF, unbounded", replace(_ORDERED, bound=0, order="srjf")),
    ),
    rows=tuple(
        Row(order, f"median JCT, {order.upper()} against YARN", Measure("jct_median", order.upper(), "YARN"), told)
        for order, told in (("lrtf", 2.4), ("srjf", 2.2), ("stf", 1.4))
    ),
    plots=(Plot("cdf", "jct", "GridMix-MS by order inside the queues, b = 10"),),
)

HEAVY_TAIL: Final = Experiment(
    name="yaq-heavy-tail",
    title="a heavy tail: the longest 20 % of GridMix-MS's tasks 500 s longer, SRJF",
    source="figure 4.9 (4.7.4)",
    cases=(
        gridmix("YARN", YARN, "heavy-tailed", 80),
        gridmix("SRJF", _ORDERED, "heavy-tailed", 80),
        gridmix("FIFO queues", replace(_ORDERED, order="ejf"), "heavy-tailed", 80),
    ),
    rows=(
        Row("heavy-tail", "median JCT, SRJF against YARN", Measure("jct_median", "SRJF", "YARN"), 1.8),
        Row("heavy-tail-fifo", "the same with FIFO queues", Measure("jct_median", "FIFO queues", "YARN")),
    ),
    plots=(Plot("cdf", "jct", "Heavy-tailed GridMix-MS, b = 10"),),
)

#: jobs arrive, so that there is something to put in order at the ResourceManager
_LOAD: Final = 0.9
_GLOBAL: Final = ("fifo", "srjf", "lrtf", "sjf")

MATRIX: Final = Experiment(
    name="yaq-matrix",
    title="every order of jobs at the ResourceManager with every order inside the queues",
    source="section 3.4.1, where the authors left it open",
    cases=tuple(
        hive(f"{outer} / {inner}", replace(YAQ_C, job_order=outer, order=inner, starve_s=60.0), load=_LOAD)
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

STARVATION: Final = Experiment(
    name="yaq-starvation",
    title="after which wait a task goes first, whatever the order says",
    source="figure 4.8 (4.7.3)",
    cases=(
        *(gridmix(f"STF: ST {guard:g} s", replace(_ORDERED, order="stf", starve_s=guard)) for guard in _GUARDS),
        gridmix("STF: never", replace(_ORDERED, order="stf")),
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
        ),
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
        hive("each task's own", replace(YAQ_C, estimates="task"), load=_LOAD),
        hive("stage mean", YAQ_C, load=_LOAD),
        hive("off by 2x", replace(YAQ_C, estimate_error=2.0), load=_LOAD),
        hive("off by 10x", replace(YAQ_C, estimate_error=10.0), load=_LOAD),
        hive("learned in the job", replace(YAQ_C, estimates="learned"), load=_LOAD),
        hive("none, SRJF", replace(YAQ_C, estimates="none"), load=_LOAD),
        hive("none, LRTF", replace(YAQ_C, estimates="none", order="lrtf", place="length"), load=_LOAD),
    ),
    rows=tuple(
        Row(
            row,
            f"median JCT against YARN, {label}",
            Measure("jct_median", label, "YARN"),
            1.7 if label == "stage mean" else 1.0,
            sense="at-least",
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
