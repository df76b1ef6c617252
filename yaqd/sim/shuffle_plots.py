"""Plots of the merging model: job time and reads of a reduce over the number of files merged, spilling against
shuffling, and where merging pays. Needs matplotlib, as the experiments' plots do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from yaqd.sim.experiments.plots import FORMATS, NoPlots
from yaqd.sim.shuffle import growth, trade_off
from yaqd.sim.shuffle_figures import TASKS, Figure, by_fan_in

_DPI: Final = 130
_GREY, _BLUE, _ORANGE = "#6b6b6b", "#0072b2", "#d55e00"
_COUNTS: Final = [300, 400, 600, 800, 1000, 1500, 2000, 3000, 4000, 6000, 8000]


def draw(folder: Path, seed: int, paying: list[Figure]) -> list[Path]:
    """Draw five plots as PNG and SVG. Raises NoPlots, OSError."""
    try:
        import matplotlib
    except ImportError:
        raise NoPlots("plots need matplotlib: pip install 'yaqd[plots]'") from None
    matplotlib.use("Agg")
    written: list[Path] = []
    _draw_fan_in(folder, seed, written)
    with _axes(folder, "shuffle-spilling", "3 TB in more and more maps, 2,500 reduces", written) as axes:
        points = list(trade_off(3e12, 2500, _COUNTS))
        maps = [count for count, _, _ in points]
        axes.plot(maps, [spill for _, spill, _ in points], color=_ORANGE, label="spilling")
        axes.plot(maps, [shuffle for _, _, shuffle in points], color=_BLUE, label="shuffling")
        axes.plot(maps, [spill + shuffle for _, spill, shuffle in points], color=_GREY, label="both")
        axes.set(xlabel="maps", ylabel="s", xscale="log", ylim=(0, None))
    with _axes(folder, "shuffle-tasks", "tasks of 512 MB, as many reduces as maps: the shuffle", written) as axes:
        for files, style, colour, label in ((0, "o-", _BLUE, "no merging"), (40, "s--", _ORANGE, "40 files merged")):
            points_of = list(growth(512e6, TASKS, files))
            axes.plot([p.tasks for p in points_of], [p.seconds for p in points_of], style, color=colour, label=label)
        axes.plot([300, 10_000], [100, 4000], "k_", markersize=14, label="reported")
        axes.set(xlabel="tasks in each stage", ylabel="s", xscale="log", yscale="log")
    with _axes(folder, "shuffle-paying", "40 files merged, best effort 95 %, by size of a block", written) as axes:
        labels = [figure.what.split(":")[0].removeprefix("blocks of ") for figure in paying]
        axes.bar(labels, [figure.modelled for figure in paying], color=_BLUE, label="job's time without over with")
        axes.axhline(1.0, color=_GREY)
        axes.set(xlabel="average block", ylabel="times sooner")
    return written


def _draw_fan_in(folder: Path, seed: int, written: list[Path]) -> None:
    points = by_fan_in(seed)
    files = [point.files for point in points]
    with _axes(folder, "shuffle-time", "3 TB, 8,000 maps, 2,500 reduces: the job's time", written) as axes:
        axes.plot(files, [p.whole.job_s for p in points], "o-", color=_BLUE, label="all merges")
        axes.plot(files, [p.best_effort.job_s for p in points], "s--", color=_ORANGE, label="best effort 95 %")
        axes.plot([1, 40], [648, 424], "k_", markersize=14, label="reported")
        axes.set(xlabel="files merged into one", ylabel="s", xscale="log", ylim=(0, None))
    with _axes(folder, "shuffle-reads", "3 TB, 8,000 maps: reads of one reduce", written) as axes:
        axes.plot(files, [p.whole.files for p in points], "o-", color=_BLUE, label="all merges")
        axes.plot(files, [p.best_effort.files for p in points], "s--", color=_ORANGE, label="best effort 95 %")
        axes.plot([1, 40, 40], [8000, 200, 589], "k_", markersize=14, label="reported")
        axes.set(xlabel="files merged into one", ylabel="reads", xscale="log", yscale="log")


@contextmanager
def _axes(folder: Path, name: str, title: str, written: list[Path]) -> Iterator[Any]:
    import matplotlib.pyplot as plt

    with plt.rc_context({"svg.hashsalt": name, "axes.spines.right": False, "axes.spines.top": False}):
        figure, axes = plt.subplots(figsize=(7.0, 4.4), layout="constrained")
        yield axes
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
        axes.legend(frameon=False)
        for kind in FORMATS:
            path = folder / f"{name}.{kind}"
            figure.savefig(path, dpi=_DPI, metadata={"Date": None} if kind == "svg" else None)
            written.append(path)
        plt.close(figure)
