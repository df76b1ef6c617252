"""Capacity shares although tasks are reordered (4.6)."""

from dataclasses import replace
from typing import Final

from yaqd.sim.experiments.ground import GRIDMIX_SHAPE, YAQ_C, YARN
from yaqd.sim.experiments.model import Case, Experiment, Measure, Plot, Row
from yaqd.sim.shape import System
from yaqd.sim.workloads import Drawn

_QUEUES: Final = (("A", 70.0), ("B", 30.0))
_SHAPE: Final = replace(GRIDMIX_SHAPE, queues=_QUEUES)


def _shared(label: str, system: System) -> Case:
    """Both queues always have work: jobs go to either with equal probability, more than can be done."""
    drawn = Drawn("5-sec", 500, queues=tuple(name for name, _ in _QUEUES))
    return Case(label, drawn, _SHAPE, system, horizon_s=180.0, warm_up_s=30.0)


SHARES: Final = Experiment(
    name="yaq-shares",
    title="queues A 70 % and B 30 %, both backlogged, tasks of 5 s",
    source="figure 4.3 (4.6)",
    cases=(
        _shared("YARN", YARN),
        _shared("Yaq-c", replace(YAQ_C, bound=6, order_scope="all")),
        _shared("Yaq-c by queue", replace(YAQ_C, bound=6)),
    ),
    rows=tuple(
        Row(row, what, Measure("share_off", label), 5.0, "points", "at-most", digits=1)
        for row, what, label in (
            ("yaq-c", "largest deviation over 60 s, Yaq-c", "Yaq-c"),
            ("yaq-c-queue", "the same, reordering inside a queue", "Yaq-c by queue"),
        )
    ),
    plots=(
        Plot("shares", "time", "Part of the used slots by queue, 70 % and 30 % configured",
             cases=("Yaq-c", "Yaq-c by queue"), reported=(("A", 70.0), ("B", 30.0))),
    ),
)  # fmt: skip
