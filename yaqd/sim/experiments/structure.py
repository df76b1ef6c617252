"""What the paper left for later: jobs that are graphs, tasks of two sizes, nodes that differ, stages that fight."""

from dataclasses import replace
from typing import Final

from yaqd.sim.experiments.ground import HIVE_SHAPE, OURS_D, YARN, fixed, shape
from yaqd.sim.experiments.model import Case, Experiment, Measure, Plot, Row
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.workloads import Arrivals, Drawn

#: more than the slots can do while jobs arrive, so that there is something to put in order
_LOAD: Final = 1.3
_ON: Final = shape(10)
#: long enough to have an order
_FOUR: Final = fixed(4)


def _graphs(label: str, system: System) -> Case:
    return Case(label, Drawn("graphs", 250, Arrivals("poisson", _LOAD)), replace(_ON, nodes=40), system)


_ORDERS: Final = ("fifo", "srjf", "lrtf", "cpath")

GRAPHS: Final = Experiment(
    name="yaq-graphs",
    title="jobs that are graphs of 3 to 10 stages: orders that know their critical path and those that do not",
    source="section 3.3 leaves structure-aware orders for later",
    cases=(
        _graphs("YARN", YARN),
        *(_graphs(f"{order.upper()}", replace(_FOUR, order=order, job_order=order)) for order in _ORDERS),
        _graphs("SRJF of jobs, CPATH of tasks", replace(_FOUR, order="cpath", job_order="srjf")),
    ),
    rows=(
        *(
            Row(order, f"median from submission, {order.upper()} against YARN",
                Measure("sub_median", order.upper(), "YARN"), sense="shown")
            for order in _ORDERS
        ),
        Row("cpath-p95", "95th percentile, CPATH against SRJF", Measure("sub_p95", "CPATH", "SRJF"), sense="shown"),
        Row("mixed", "median, SRJF of jobs and CPATH of tasks, against SRJF",
            Measure("sub_median", "SRJF of jobs, CPATH of tasks", "SRJF"), sense="shown"),
    ),
    plots=(Plot("cdf", "jct", "Graphs of stages, by order of jobs and tasks"),),
)  # fmt: skip


def _sizes(label: str, system: System) -> Case:
    return Case(label, Drawn("two-sizes", 250, Arrivals("poisson", _LOAD)), replace(_ON, nodes=40), system)


SIZES: Final = Experiment(
    name="yaq-two-sizes",
    title="tasks of one slot and of four: whether one that fits may pass one that does not (+pack)",
    source="section 3.3 leaves packing-aware violations of the order for later",
    cases=(
        _sizes("YARN", YARN),
        _sizes("SRJF", _FOUR),
        _sizes("SRJF+PACK", replace(_FOUR, order="srjf+pack")),
        _sizes("FIFO", replace(_FOUR, order="fifo", job_order="fifo")),
        _sizes("FIFO+PACK", replace(_FOUR, order="fifo+pack", job_order="fifo")),
    ),
    rows=(
        Row("srjf", "median from submission, SRJF against YARN", Measure("sub_median", "SRJF", "YARN"), sense="shown"),
        Row("pack", "median, SRJF+PACK against SRJF", Measure("sub_median", "SRJF+PACK", "SRJF"), sense="shown"),
        Row("pack-p95", "95th percentile, SRJF+PACK against SRJF", Measure("sub_p95", "SRJF+PACK", "SRJF"),
            sense="shown"),
        Row("pack-fifo", "median, FIFO+PACK against FIFO", Measure("sub_median", "FIFO+PACK", "FIFO"), sense="shown"),
    ),
    plots=(Plot("cdf", "jct", "Tasks of one slot and of four"),),
)  # fmt: skip

#: every second node has three times the slots, every third is half as fast
_UNEQUAL: Final = replace(HIVE_SHAPE, nodes=40, sizes=(1.0, 3.0), speeds=(1.0, 1.0, 0.5))
_PLACES: Final = ("wait", "length-per-slot", "length", "two-choices", "random")
#: a node full of one stage's tasks takes twice as long for each
_CROWDED: Final = replace(_ON, nodes=40, crowding=1.0)
_AVOIDS: Final = (0.0, 0.5, 1.0, 3.0)


def _placed(label: str, system: System, on: ClusterShape = _UNEQUAL, load: float = 0.7) -> Case:
    return Case(label, Drawn("mixed-5-50-jobs", 120, Arrivals("poisson", load)), on, system)


def _asked(avoids: float) -> System:
    """Placed when it is asked for, so that there is more than one queue to choose from."""
    return replace(fixed(4), at_asks=True, interference=avoids)


PLACES: Final = Experiment(
    name="yaq-places",
    title="which queue on nodes that differ; keeping tasks of one stage apart where they slow each other",
    source="section 3.2; power-of-two-choices and random as Sparrow and others have them",
    cases=(
        *(_placed(f"Yaq-d, {place}", replace(OURS_D, place=place)) for place in _PLACES),
        *(_placed(f"Yaq-c, {place}", replace(_asked(0.0), place=place)) for place in _PLACES),
        *(_placed(f"crowded: {avoids:g}", _asked(avoids), _CROWDED, 0.75) for avoids in _AVOIDS),
    ),
    rows=(
        *(
            Row(f"{row}-{place}", f"median from submission, {name} by wait against {place}",
                Measure("sub_median", f"{name}, wait", f"{name}, {place}"), sense="shown")
            for row, name in (("d", "Yaq-d"), ("c", "Yaq-c"))
            for place in _PLACES
            if place != "wait"
        ),
        *(
            Row(f"apart-{avoids:g}", f"stages that slow themselves: kept apart by {avoids:g} against not at all",
                Measure("sub_median", f"crowded: {avoids:g}", "crowded: 0"), sense="shown")
            for avoids in _AVOIDS
            if avoids
        ),
    ),
    plots=(
        Plot("bars", "median", "Nodes that differ: by what a queue is chosen", "sub_median",
             cases=tuple(f"{name}, {place}" for name in ("Yaq-d", "Yaq-c") for place in _PLACES)),
    ),
)  # fmt: skip
