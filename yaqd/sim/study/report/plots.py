"""The plots of the study, in the style of the experiments' figures: effects of switches, loads, queues at nodes.

A bar across a mark of a ratio is its interval of 95 %. The line at 1 is no difference.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from yaqd.sim.experiments.plots import COLOURS, LINES, plotting, save, title
from yaqd.sim.study.design import FIRST_SEED
from yaqd.sim.study.report.effects import CONTRASTS, effects, queue_duels
from yaqd.sim.study.report.findings import SHOWN, short
from yaqd.sim.study.report.intervals import Interval
from yaqd.sim.study.report.tables import Results, main_loads

#: inches
_WIDTH: Final = 9.6
#: a mark of a load beside that of another, in lines of the figure
_APART: Final = 0.22
#: of `loads`: stock's are grey and black
_SIDES: Final = (COLOURS[0], COLOURS[7], COLOURS[4], COLOURS[1], COLOURS[2])


def draw_study(results: Results, folder: Path, kinds: Sequence[str]) -> list[Path]:
    """Draw the plots of the parts that are there, as `study-<plot>.<kind>`. Raises NoPlots, OSError."""
    written = []
    with plotting("study") as plt:
        for name, part, draw in _PLOTS:
            if results.cells(part):
                written += save(draw(plt, results), folder, f"study-{name}", kinds)
    return written


def _effects(plt: Any, results: Results) -> Any:
    figure, panels = plt.subplots(1, 2, figsize=(_WIDTH, 4.4), layout="constrained", sharey=True)
    for axes, (metric, name) in zip(panels, SHOWN, strict=True):
        for at, load in enumerate(main_loads(results)):
            found = [effect.overall for effect in effects(results, metric, load)]
            _marks(axes, found, at, len(main_loads(results)), f"load {load:g}")
        _ratio_axis(axes, [what for *_, what in CONTRASTS], f"{name}: times as fast")
    title(panels[0], "What one switch does, in the middle of all combinations of the others")
    panels[1].legend(frameon=False, fontsize=8, loc="best")
    _foot(figure, results, "main")
    return figure


def _queues(plt: Any, results: Results) -> Any:
    figure, panels = plt.subplots(1, 2, figsize=(_WIDTH, 5.6), layout="constrained", sharey=True)
    loads = main_loads(results)
    for axes, (metric, name) in zip(panels, SHOWN, strict=True):
        names: list[str] = []
        for at, load in enumerate(loads):
            found = [duel for duel in queue_duels(results, metric) if duel.load == load]
            names = [_switches(short(duel.cell)) for duel in found]
            _marks(axes, [duel.faster for duel in found], at, len(loads), f"load {load:g}")
        _ratio_axis(axes, names, f"{name}: times as fast with queues always")
    title(panels[0], "Queues at each node always, against none: they pay on the right of 1, and cost on the left")
    panels[1].legend(frameon=False, fontsize=8, loc="best")
    _foot(figure, results, "main")
    return figure


def _switches(name: str) -> str:
    """A cell's name without the queues and the order at the nodes."""
    return ", ".join(part for part in name.split(", ") if not part.startswith(("queues ", "nodes ")))


def _marks(axes: Any, found: Sequence[Interval], at: int, of: int, label: str) -> None:
    """One load's marks, a line of the figure for each, below those of the load before."""
    for line, one in enumerate(found):
        y = line + (at - (of - 1) / 2) * _APART
        colour = COLOURS[1 + at % (len(COLOURS) - 1)]
        if one.low == one.low:
            axes.plot([one.low, one.high], [y, y], color=colour, linewidth=1.6)
        axes.plot([one.mid], [y], "o", color=colour, markersize=4.5, label=label if line == 0 else None)


def _ratio_axis(axes: Any, names: Sequence[str], what: str) -> None:
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(what)


def _loads(plt: Any, results: Results) -> Any:
    figure, panels = plt.subplots(1, 2, figsize=(_WIDTH, 4.4), layout="constrained")
    cells = results.cells("loads")
    names = list(dict.fromkeys(cell.name for cell in cells))
    for axes, (metric, name) in zip(panels, SHOWN, strict=True):
        for side, colour, line in zip(names, _SIDES, LINES, strict=False):
            mine = sorted((cell for cell in cells if cell.name == side), key=lambda cell: cell.load)
            # no intervals: they are those of the seeds' own jobs, far wider than what sides differ by on the same ones
            found = [results.mean(cell, metric).mid for cell in mine]
            axes.plot([cell.load for cell in mine], found, marker="o", markersize=4, color=colour, linestyle=line,
                      linewidth=1.6, label=side)  # fmt: skip
        axes.axvline(1.0, color="black", linewidth=1, linestyle=":")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.set_xlabel("load, part of the side's own capacity (dotted: capacity)")
        axes.set_ylabel(f"job completion time, {name} (s)")
    title(panels[0], "Each side at parts of its own measured capacity")
    panels[0].legend(frameon=False, fontsize=8, loc="upper left")
    _foot(figure, results, "loads")
    return figure


def _foot(figure: Any, results: Results, part: Any) -> None:
    many = len(results.seeds[part])
    ground = results.cells(part)[0].ground
    shape = ground.shape
    spread = "intervals of 95 % by Student's t" if part == "main" else "means over them"
    said = (
        f"{ground.workload}, {ground.jobs} jobs, {shape.nodes} nodes x {shape.slots} slots, heartbeat "
        f"{shape.heartbeat_s:g} s; {many} seeds from {FIRST_SEED}, {spread}"
    )
    figure.supxlabel(said, fontsize=7, x=0.01, ha="left", color="#444444")


_PLOTS: Final[tuple[tuple[str, Any, Callable[[Any, Results], Any]], ...]] = (
    ("effects", "main", _effects),
    ("queues", "main", _queues),
    ("loads", "loads", _loads),
)
