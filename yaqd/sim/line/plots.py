"""The plot of the line: slots that work by nodes, a panel for each heartbeat and kind of task."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from yaqd.sim.experiments.plots import COLOURS, plotting, save, title
from yaqd.sim.line.report import LinePoint

#: inches
_PANEL: Final = (3.2, 2.6)
_WAYS: Final = {"off": COLOURS[0], "auto": COLOURS[1], "always": COLOURS[2]}


def draw_line(found: Sequence[LinePoint], folder: Path, kinds: Sequence[str], said: str) -> list[Path]:
    """Draw it as `line.<kind>`; `said` goes below. Raises NoPlots, OSError."""
    heartbeats = list(dict.fromkeys(one.heartbeat_s for one in found))
    tasks = list(dict.fromkeys(one.task_s for one in found))
    size = (_PANEL[0] * len(tasks), _PANEL[1] * len(heartbeats) + 0.4)
    with plotting("line") as plt:
        figure, panels = plt.subplots(
            len(heartbeats), len(tasks), figsize=size, layout="constrained", sharex=True, sharey=True, squeeze=False
        )
        for row, heartbeat_s in zip(panels, heartbeats, strict=True):
            for axes, task_s in zip(row, tasks, strict=True):
                _panel(axes, [one for one in found if (one.heartbeat_s, one.task_s) == (heartbeat_s, task_s)])
                title(axes, f"tasks of {task_s:g} s, heartbeat {heartbeat_s:g} s")
            row[0].set_ylabel("slots that work (%)")
        for axes in panels[-1]:
            axes.set_xlabel("nodes")
        panels[0][0].legend(frameon=False, fontsize=8, loc="lower left")
        figure.supxlabel(said, fontsize=7, x=0.01, ha="left", color="#444444")
        return save(figure, folder, "line", kinds)


def _panel(axes: Any, found: Sequence[LinePoint]) -> None:
    nodes = [one.nodes for one in found]
    for way, colour in _WAYS.items():
        used = [100 * one.found[way].used for one in found]
        axes.plot(nodes, used, marker="o", markersize=3.5, color=colour, linewidth=1.6, label=f"queues {way}")
    busy = [100 * one.found["off"].busy for one in found]
    axes.plot(nodes, busy, color="black", linewidth=1, linestyle=":", label="ResourceManager busy, queues off")
    axes.set_xscale("log")
    axes.set_xticks(nodes, [f"{many}" for many in nodes], fontsize=7, rotation=45)
    axes.minorticks_off()
    axes.set_ylim(0, 103)
