"""Who has how many executors, over time: one panel for each policy, one colour for each job."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from yaqd.policies.clotho.facts import StagePolicy
from yaqd.policies.curves.samples import Floats
from yaqd.sim.experiments.plots import NoPlots
from yaqd.sim.stages.rules import Rules
from yaqd.sim.stages.world import run_load
from yaqd.sim.workloads.graphs import GraphLoad

_WIDTH_IN: Final = 9.0
_PANEL_IN: Final = 2.2
_DPI: Final = 110
#: about two for each dot of the picture
_POINTS: Final = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class JobsPanel:
    """What one policy made of a load."""

    name: str
    mean_s: float
    makespan_s: float
    #: (points,), s; (jobs, points): tasks that run then
    times: Floats = field(repr=False)
    running: Floats = field(repr=False)


def watched(name: str, load: GraphLoad, policy: StagePolicy, rules: Rules) -> JobsPanel:
    """Run a load under a policy and note what runs. Raises ValueError where its jobs never end."""
    tasks: list[list[tuple[float, float]]] = [[] for _ in range(len(load))]
    found = run_load(load, policy, rules, watch=lambda job, *when_s: tasks[job].append(when_s))
    times = np.linspace(0.0, found.makespan_s, _POINTS)
    running = np.zeros((len(load), _POINTS))
    for job, own in enumerate(tasks):
        for ends, sign in zip(np.array(own).T, (1.0, -1.0), strict=True):
            running[job] += sign * np.searchsorted(np.sort(ends), times, side="right")
    return JobsPanel(name, float(found.took_s.mean()), found.makespan_s, times, running)


def draw(panels: Sequence[JobsPanel], slots: int, path: Path) -> None:
    """Write a picture. Raises NoPlots, OSError, and ValueError for a kind of picture that is not known."""
    try:
        import matplotlib
    except ImportError:
        raise NoPlots("pictures need matplotlib: pip install 'yaqd[plots]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (_WIDTH_IN, _PANEL_IN * len(panels) + 0.6)
    figure, rows = plt.subplots(len(panels), figsize=size, sharex=True, squeeze=False, layout="constrained")
    last_s = max(panel.makespan_s for panel in panels)
    for axes, panel in zip(rows[:, 0], panels, strict=True):
        colours = plt.colormaps["tab20"](np.arange(len(panel.running)) % 20)
        axes.stackplot(panel.times, panel.running, step="post", colors=colours, linewidth=0.0)
        axes.axvline(panel.makespan_s, color="#444444", linewidth=0.8, linestyle="--")
        axes.set(xlim=(0.0, 1.02 * last_s), ylim=(0, slots), ylabel="executors that run")
        title = f"{panel.name}: mean {panel.mean_s:.1f} s, last job ends after {panel.makespan_s:.1f} s"
        axes.set_title(title, loc="left", fontsize=10)
    rows[-1, 0].set_xlabel("time (s); one colour for each job")
    figure.savefig(path, dpi=_DPI, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)
