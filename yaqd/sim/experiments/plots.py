"""An experiment's figures, as PNG and SVG. Needs matplotlib (`pip install 'yaqd[plots]'`), imported when it is drawn.

One rule for all: axes say what they count and in which unit, and what the paper reports is a black mark. Seeds are
shown as spread and not hidden in a mean. Under the axes stand the cluster and the load of the figure.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from yaqd.sim.experiments.measures import NAMES, SHARE_WINDOW_S
from yaqd.sim.experiments.model import Experiment, Plot, Run
from yaqd.sim.experiments.outcome import conditions, metrics_of, middle, span

FORMATS: Final = ("png", "svg")
#: dots per inch of the PNG
_DPI: Final = 130
#: colours that differ for most eyes and in print (Okabe and Ito 2008), the first for what we compare with
COLOURS: Final = ("#6b6b6b", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
LINES: Final = ("-", "-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), "-")
#: inches
_WIDTH: Final = 8.2
_HEIGHT: Final = 5.0
#: of the lines under the figure; what is longer is broken, in characters and points
_FOOT_SIZE: Final = 7
_FOOT_CHARS: Final = 165
_FOOT_WIDTH: Final = 570.0
#: how many there may be, and of a figure that is made higher for long names
_FOOT_LINES: Final = 4
_FOOT_LINES_LONG: Final = 20
#: a legend with a longer name is below the axes, where it covers no curve
_NAME_CHARS: Final = 40
_LEGEND_SIZE: Final = 8
#: points that its lines may take: the figure's width less what is left of the axes and of the names
_LEGEND_WIDTH: Final = 505.0
#: a name with neither blank nor comma is broken anywhere, after so many characters: the widest fit in a line
_PIECE_CHARS: Final = 60
#: from the axes down to that legend, points: the numbers and the name of the axis are between them
_LEGEND_GAP: Final = 36
#: a line's height by the size of its letters
_LINE: Final = 1.25


class NoPlots(Exception):
    """matplotlib is not installed."""


def draw_plots(experiment: Experiment, runs: Sequence[Run], folder: Path) -> list[Path]:
    """Draw every figure as `<experiment>-<plot>.png` and `.svg` in `folder`. Raises NoPlots, OSError."""
    written = []
    with plotting(experiment.name):
        for plot in experiment.plots:
            written += save(draw_plot(experiment, runs, plot), folder, f"{experiment.name}-{plot.name}")
    return written


@contextmanager
def plotting(name: str) -> Iterator[Any]:
    """Have matplotlib's pyplot, in the style of all figures here, as long as this lasts. Raises NoPlots.

    `name`: what the ids in an SVG are made of, so that the same numbers make the same file.
    """
    try:
        import matplotlib
    except ImportError:
        raise NoPlots("figures need matplotlib: pip install 'yaqd[plots]' (the numbers are in the JSON file)") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context({"svg.hashsalt": name, "font.size": 10, "axes.spines.right": False,
                         "axes.spines.top": False, "axes.grid": True, "grid.alpha": 0.25}):  # fmt: skip
        yield plt


def save(figure: Any, folder: Path, stem: str, kinds: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure in each of the formats, close it, and return the files."""
    import matplotlib.pyplot as plt

    written = []
    for kind in kinds:
        path = folder / f"{stem}.{kind}"
        figure.savefig(path, dpi=_DPI, metadata={"Date": None} if kind == "svg" else None)
        written.append(path)
    plt.close(figure)
    return written


def draw_plot(experiment: Experiment, runs: Sequence[Run], plot: Plot) -> Any:
    """Draw one figure, in the style that matplotlib has at the time; whoever called closes it."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    _KINDS[plot.kind](axes, plot, [run for run in runs if not plot.cases or run.label in plot.cases])
    title(axes, plot.title)
    foot = _foot(figure, experiment, runs, plot)
    figure.supxlabel(foot, fontsize=_FOOT_SIZE, x=0.01, ha="left", color="#444444")
    more = foot.count("\n") + 1 - _FOOT_LINES
    if more > 0:
        figure.set_figheight(figure.get_figheight() + more * _FOOT_SIZE * _LINE / 72)
    return figure


def title(axes: Any, text: str) -> None:
    """Put a figure's title where all have it."""
    axes.set_title(text, loc="left", fontsize=11, fontweight="bold")


def _foot(figure: Any, experiment: Experiment, runs: Sequence[Run], plot: Plot) -> str:
    shown = [c for c in experiment.cases if not plot.cases or c.label in plot.cases]
    text = "; ".join(conditions(experiment_of(experiment, shown), runs))
    wide = _width_in(figure, _FOOT_SIZE)
    lines = _broken(text, lambda line: len(line) <= _FOOT_CHARS and wide(line) <= _FOOT_WIDTH)
    most = _FOOT_LINES_LONG if any(len(case.label) > _NAME_CHARS for case in shown) else _FOOT_LINES
    return "\n".join(lines[:most]) + ("..." if len(lines) > most else "")


def _broken(text: str, fits: Callable[[str], bool]) -> list[str]:
    """In lines that fit: at blanks, behind commas, and anywhere in what is long and has neither."""
    lines = [""]
    for word in text.split(" "):
        for part in re.split(r"(?<=,)(?! )", word + " "):
            for piece in (part[at : at + _PIECE_CHARS] for at in range(0, len(part), _PIECE_CHARS)):
                if lines[-1] and not fits((lines[-1] + piece).rstrip()):
                    lines.append("")
                lines[-1] += piece
    return lines


def _width_in(figure: Any, size: float) -> Callable[[str], float]:
    """What a line of letters of this size takes, points."""
    from matplotlib.font_manager import FontProperties

    renderer, font = figure.canvas.get_renderer(), FontProperties(size=size)
    return lambda line: float(renderer.get_text_width_height_descent(line, font, False)[0] * 72 / figure.dpi)


def experiment_of(experiment: Experiment, cases: Sequence[Any]) -> Experiment:
    return Experiment(experiment.name, experiment.title, experiment.source, tuple(cases))


def _labels(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.label for run in runs))


def _of(runs: Sequence[Run], label: str, metric: str) -> list[float]:
    return metrics_of([run for run in runs if run.label == label], metric)


def _cdf(axes: Any, plot: Plot, runs: Sequence[Run]) -> None:
    """One curve a case over all seeds' jobs; the median is marked."""
    labels = _labels(runs)
    # what is compared with is grey; where there is no such thing nothing is
    first = 0 if labels and _bar_colour(labels[0]) == 0 else 1
    for at, label in enumerate(labels, first):
        times = np.sort(np.concatenate([run.jct for run in runs if run.label == label]))
        if not times.size:
            continue
        part = np.arange(1, times.size + 1) / times.size * 100
        colour = COLOURS[at % len(COLOURS)]
        median = float(np.median(times))
        axes.plot(times, part, color=colour, linestyle=LINES[at % len(LINES)], linewidth=_width(label),
                  label=f"{label} (median {median:.0f} s)")  # fmt: skip
        axes.plot([median], [50], "o", color=colour, markersize=5)
    if plot.log:
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0)
    axes.set_ylim(0, 101)
    axes.set_xlabel(plot.axis or "job completion time from the job's start (s)")
    axes.set_ylabel("jobs (%)")
    if max(map(len, labels), default=0) > _NAME_CHARS:
        _legend_below(axes)
    else:
        axes.legend(frameon=False, loc="lower right")


def _legend_below(axes: Any) -> None:
    """Of long names, for which the figure is made higher."""
    from matplotlib.transforms import ScaledTranslation

    figure = axes.figure
    wide = _width_in(figure, _LEGEND_SIZE)
    handles, names = axes.get_legend_handles_labels()
    broken = (_broken(name, lambda line: wide(line) <= _LEGEND_WIDTH) for name in names)
    texts = ["\n".join(line.rstrip() for line in lines) for lines in broken]
    below = axes.transAxes + ScaledTranslation(0, -_LEGEND_GAP / 72, figure.dpi_scale_trans)
    axes.legend(handles, texts, frameon=False, fontsize=_LEGEND_SIZE, loc="upper left", borderaxespad=0, borderpad=0,
                bbox_to_anchor=(0, 0), bbox_transform=below)  # fmt: skip
    # half a line between two names
    lines = sum(text.count("\n") + 1.5 for text in texts)
    figure.set_figheight(figure.get_figheight() + lines * _LEGEND_SIZE * _LINE / 72)


def _bars(axes: Any, plot: Plot, runs: Sequence[Run]) -> None:
    labels = _labels(runs)
    shared = _shared(labels)
    short = [label[shared:] for label in labels]
    reported = dict(plot.reported)
    for at, label in enumerate(labels):
        values = _of(runs, label, plot.metric)
        mid = middle(values)
        low, high = span(values)
        axes.bar(at, mid, 0.62, color=COLOURS[_bar_colour(short[at])], zorder=2)
        axes.errorbar(at, mid, [[mid - low], [high - mid]], color="#222222", capsize=3, zorder=3, linewidth=1)
        axes.annotate(f"{mid:.3g}", (at, mid / 2), ha="center", color="white", fontsize=8, zorder=4)
        if label in reported:
            axes.plot([at - 0.4, at + 0.4], [reported[label]] * 2, color="black", linewidth=2, zorder=4,
                      label="reported by the paper" if label == next(iter(reported)) else None)  # fmt: skip
    many = max(map(len, short), default=0) * len(short) > 80
    axes.set_xticks(range(len(short)), short, rotation=30 if many else 0, ha="right" if many else "center")
    axes.grid(axis="x", visible=False)
    axes.set_ylabel(plot.axis or NAMES.get(plot.metric, plot.metric))
    if plot.log:
        axes.set_yscale("log")
    if reported:
        axes.legend(frameon=False, loc="upper right", bbox_to_anchor=(1.0, 1.09))


def _shared(labels: Sequence[str]) -> int:
    """Length of what all labels begin with, up to a colon: the figure's title says it once."""
    heads = {label.partition(": ")[0] for label in labels if ": " in label}
    is_shared = len(heads) == 1 and all(": " in label for label in labels)
    return len(heads.pop()) + 2 if is_shared else 0


def _width(label: str) -> float:
    """Our own setting is the thick line."""
    return 2.6 if label.startswith("ours") else 1.5


def _bar_colour(label: str) -> int:
    """What stock systems do is grey in every figure."""
    return 0 if label.startswith(("YARN", "yarn")) else 1


#: the number of a `lines` case: "5 s tasks: b 6" is the point 6 of the line "5 s tasks"
_POINT: Final = re.compile(r"\A(?P<line>.*\S): [^\d]*(?P<x>[\d.]+).*\Z")


def _lines(axes: Any, plot: Plot, runs: Sequence[Run]) -> None:
    points: dict[str, list[tuple[float, list[float]]]] = {}
    flat: list[str] = []
    for label in _labels(runs):
        found = _POINT.match(label)
        if found is None:
            flat.append(label)
        else:
            points.setdefault(found["line"], []).append((float(found["x"]), _of(runs, label, plot.metric)))
    for at, (line, values) in enumerate(points.items(), 1):
        values.sort(key=lambda point: point[0])
        xs = [x for x, _ in values]
        colour = COLOURS[at % len(COLOURS)]
        axes.plot(xs, [middle(v) for _, v in values], "o-", color=colour, markersize=4, label=line)
        axes.fill_between(
            xs, [span(v)[0] for _, v in values], [span(v)[1] for _, v in values], color=colour, alpha=0.15
        )
    for at, label in enumerate(flat):
        axes.axhline(middle(_of(runs, label, plot.metric)), color=COLOURS[0], linestyle=("--", ":", "-.")[at % 3],
                     label=label)  # fmt: skip
    for label, number in plot.reported:
        found = _POINT.match(label)
        if found is not None:
            axes.plot([float(found["x"])], [number], "k*", markersize=11, zorder=5, label=f"paper, {label}: {number:g}")
    axes.set_xlabel(plot.x_axis)
    axes.set_ylabel(plot.axis or NAMES.get(plot.metric, plot.metric))
    axes.legend(frameon=False, fontsize=8)


def _matrix(axes: Any, plot: Plot, runs: Sequence[Run]) -> None:
    """Cases are called `row / column`."""
    cells = {tuple(label.split(" / ")): middle(_of(runs, label, plot.metric)) for label in _labels(runs)}
    rows = list(dict.fromkeys(key[0] for key in cells))
    columns = list(dict.fromkeys(key[-1] for key in cells))
    grid = np.array([[cells.get((row, column), np.nan) for column in columns] for row in rows])
    axes.imshow(grid, cmap="viridis_r", aspect="auto")
    best = np.nanmin(grid)
    for y, x in np.ndindex(grid.shape):
        dark = grid[y, x] > (best + np.nanmax(grid)) / 2
        weight = "bold" if grid[y, x] == best else "normal"
        axes.text(
            x, y, f"{grid[y, x]:.0f}", ha="center", va="center", color="white" if dark else "black", weight=weight
        )
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.grid(visible=False)
    axes.set_xlabel("order inside a node's queue")
    axes.set_ylabel("order of jobs at the ResourceManager")


def _shares(axes: Any, plot: Plot, runs: Sequence[Run]) -> None:
    """The first seed's, over time; the configured share as a black line."""
    for at, (label, run) in enumerate({run.label: run for run in reversed(runs)}.items()):
        for queue_at, (queue, parts) in enumerate(sorted(run.shares.items())):
            times = (np.arange(len(parts)) + 0.5) * SHARE_WINDOW_S
            axes.plot(times, np.array(parts) * 100, color=COLOURS[1 + queue_at], linestyle=LINES[(1, 2, 4)[at % 3]],
                      label=f"queue {queue}, {label}", linewidth=1.3)  # fmt: skip
    for at, (_, number) in enumerate(plot.reported):
        axes.axhline(number, color="black", linewidth=1, label="configured" if not at else None)
    axes.set_ylim(0, 100)
    axes.set_xlabel("time after the warm-up (s)")
    axes.set_ylabel("part of the used slots (%)")
    axes.legend(frameon=False, ncols=2, loc="upper right", fontsize=8)


#: epochs of 1 s in a window of a course
_COURSE_S: Final = 5


def _course(axes: Any, plot: Plot, runs: Sequence[Run]) -> None:
    """The first seed's mean loss over time."""
    first = {run.label: run for run in reversed(runs)}
    for at, (label, run) in enumerate(reversed(first.items())):
        times = (np.arange(len(run.course)) + 0.5) * _COURSE_S
        axes.plot(times, run.course, color=COLOURS[at % len(COLOURS)], linestyle=LINES[at % len(LINES)],
                  label=label, linewidth=1.3)  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time (s)")
    axes.set_ylabel(plot.axis or "mean normalized loss of the jobs there")
    axes.legend(frameon=False, loc="upper right", fontsize=8)


_KINDS: Final[dict[str, Callable[[Any, Plot, Sequence[Run]], None]]] = {
    "cdf": _cdf,
    "bars": _bars,
    "lines": _lines,
    "matrix": _matrix,
    "shares": _shares,
    "course": _course,
}
