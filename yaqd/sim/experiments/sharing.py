"""Capacity shares although tasks are reordered (4.6), and how soon a queue gets its share that another one holds."""

from dataclasses import replace
from typing import Final, Literal

from yaqd.sim.experiments.ground import GRIDMIX_SHAPE, OURS, YAQ_C, YARN
from yaqd.sim.experiments.model import Case, Experiment, Measure, Plot, Row
from yaqd.sim.shape import System
from yaqd.sim.workloads import Drawn
from yaqd.sim.workloads.drawn import LATE_S

_QUEUES: Final = (("A", 70.0), ("B", 30.0))
_SHAPE: Final = replace(GRIDMIX_SHAPE, queues=_QUEUES)
_PREEMPTING: Final = replace(OURS, preempt=True)


def _shared(label: str, system: System, tasks: str = "5-sec") -> Case:
    """Both queues always have work: jobs go to either with equal probability, more than can be done."""
    drawn = Drawn(tasks, 500, queues=tuple(name for name, _ in _QUEUES))
    return Case(label, drawn, _SHAPE, system, horizon_s=180.0, warm_up_s=LATE_S)


def _late(label: str, system: System) -> Case:
    """B has filled the cluster and its queues with tasks of 300 s when A comes, which then always has work."""
    return _shared(f"A comes late: {label}", system, "late-queue")


def _lasts(row: str, what: str, label: str, most: float | None) -> Row:
    """The longest time for which a queue is off its share; `most`: what is promised, s; None: nothing."""
    sense: Literal["shown", "at-most"] = "shown" if most is None else "at-most"
    return Row(row, what, Measure("share_lasts", label), most, "s", sense, digits=0)


SHARES: Final = Experiment(
    name="yaq-shares",
    title="queues A 70 % and B 30 %, both backlogged, tasks of 5 s; and A coming when B holds all slots",
    source="figure 4.3 (4.6), where no deviation is to outlast the threshold of starvation (3.4.2)",
    cases=(
        _shared("YARN", YARN),
        _shared("Yaq-c", replace(YAQ_C, bound=6, order_scope="all")),
        _shared("Yaq-c by queue", replace(YAQ_C, bound=6)),
        _shared("ours", OURS),
        _shared("ours, preempting", _PREEMPTING),
        _late("YARN, preempting", replace(YARN, preempt=True)),
        _late("ours", OURS),
        _late("ours, preempting", _PREEMPTING),
        _late("ours, preempting, ST 20 s", replace(_PREEMPTING, starve_s=20.0)),
    ),
    rows=(
        *(
            Row(row, what, Measure("share_off", label), 5.0, "points", "at-most", digits=1)
            for row, what, label in (
                ("yaq-c", "largest deviation over 60 s, Yaq-c", "Yaq-c"),
                ("yaq-c-queue", "the same, reordering inside a queue", "Yaq-c by queue"),
                ("ours", "the same, ours", "ours"),
            )
        ),
        _lasts("lasts-yarn", "longest time off by 5 points, YARN", "YARN", None),
        _lasts("lasts-yaq-c", "the same against ST, Yaq-c", "Yaq-c", YAQ_C.starve_s),
        _lasts("lasts-ours", "the same, ours", "ours", OURS.starve_s),
        _lasts("lasts-preempting", "the same, ours with preemption", "ours, preempting", OURS.starve_s),
        _lasts("late-yarn", "A late: YARN with preemption", "A comes late: YARN, preempting", None),
        _lasts("late-plain", "A late: ours without preemption", "A comes late: ours", None),
        _lasts("late-ours", "A late: ours with it, against ST", "A comes late: ours, preempting", OURS.starve_s),
        _lasts("late-20", "A late: the same with ST 20 s", "A comes late: ours, preempting, ST 20 s", 20.0),
    ),
    plots=(
        Plot("shares", "time", "Part of the used slots by queue, 70 % and 30 % configured",
             cases=("Yaq-c", "Yaq-c by queue"), reported=(("A", 70.0), ("B", 30.0))),
        Plot("shares", "late", "The same where A comes when B holds all slots, with and without preemption",
             cases=("A comes late: ours", "A comes late: ours, preempting"), reported=(("A", 70.0), ("B", 30.0))),
    ),
)  # fmt: skip
