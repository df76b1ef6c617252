"""One long job beside an hour of short ones: how late an order by what is left makes it, and what others gain by that.

All is as a cluster has it that configures nothing: heartbeats every second and out of turn, decisions when asked.
"""

from dataclasses import replace
from typing import Final

from yaqd.sim.experiments.ground import NEVER, SHIPPED
from yaqd.sim.experiments.model import Case, Experiment, Measure, Plot, Row
from yaqd.sim.shape import ClusterShape
from yaqd.sim.workloads import Arrivals, Drawn
from yaqd.sim.workloads.drawn import SHORT_WORK_S

_SHAPE: Final = ClusterShape(nodes=4, slots=4, heartbeat_s=1.0, start_gap_s=0.1, noise=0.1)
_LASTS_S: Final = 3600.0
_LOADS: Final = (0.9, 1.0, 1.1)
_LIVE: Final = replace(SHIPPED, out_of_turn=True, at_asks=True)
_SYSTEMS: Final = {
    "ours": _LIVE,
    "ours, FIFO": replace(_LIVE, order="fifo", job_order="fifo"),
    "ours, nobody starved": replace(_LIVE, job_starve_s=NEVER, job_starve_ratio=NEVER),
}
#: how much later than by arrival a job may be, beside the threshold
_TIMES: Final = 1.5


def _case(system: str, load: float) -> Case:
    jobs = round(load * _SHAPE.total_slots * _LASTS_S / SHORT_WORK_S)
    return Case(
        _label(system, load), Drawn("long-among-short", jobs, Arrivals("poisson", load)), _SHAPE, _SYSTEMS[system]
    )


def _label(system: str, load: float) -> str:
    return f"{system}, {load:g}"


LONGEST: Final = Experiment(
    name="longest-under-load",
    title="a job of 96 tasks beside an hour of short ones, by what is left and by arrival",
    source="no job is later than 1.5 times by arrival and the threshold (3.3, 3.4.1)",
    cases=tuple(_case(system, load) for load in _LOADS for system in _SYSTEMS),
    rows=tuple(
        row
        for load in _LOADS
        for row in (
            Row(f"long-{load:g}",
                f"load {load:g}: the long job, {_TIMES:g} x by FIFO + {_LIVE.job_starve_s:g} s against ours",
                Measure("largest", _label("ours", load), _label("ours, FIFO", load), _TIMES, _LIVE.job_starve_s), 1.0),
            Row(f"short-{load:g}", f"load {load:g}: short jobs, median, ours against FIFO",
                Measure("others_median", _label("ours", load), _label("ours, FIFO", load)), 1.0),
            Row(f"long-{load:g}-s", f"load {load:g}: the long job, ours", Measure("largest", _label("ours", load)),
                unit="s", sense="shown"),
            Row(f"long-{load:g}-fifo", f"load {load:g}: the long job, FIFO",
                Measure("largest", _label("ours, FIFO", load)), unit="s", sense="shown"),
            Row(f"long-{load:g}-never", f"load {load:g}: the long job, nobody starved",
                Measure("largest", _label("ours, nobody starved", load)), unit="s", sense="shown"),
        )
    ),
    plots=(
        Plot("bars", "long", "The long job, from submission", "largest"),
        Plot("bars", "short", "Short jobs, median from submission", "others_median"),
    ),
    seeds=5,
)  # fmt: skip
