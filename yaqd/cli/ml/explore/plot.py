"""`yaq ml plot` of an exploration: curves, the bands of their predictions, and each trial's slot time."""

import math
from pathlib import Path
from typing import Any, Final

from tez_adapter.exploration.view import ExplorationView
from yaqd.cli.exits import CommandError
from yaqd.cli.ml.explore.table import TrialRow, params_text, rows
from yaqd.cli.ml.explore.watch import band
from yaqd.cli.output import shortened
from yaqd.policies.explore.facts import TrialState
from yaqd.policies.explore.promise import reach_of

_SIZE: Final = (10.6, 6.4)
_DPI: Final = 130
#: curves with a band and a name; others are thin and grey
_NAMED: Final = 6
#: trials whose slot time is drawn
_BARS: Final = 40
_POINTS: Final = 30
_NAME_CHARS: Final = 48
#: part of the metrics' range that is shown beyond them
_BEYOND: Final = 0.15


def draw_exploration(view: ExplorationView, output: Path) -> int:
    """Write the picture; return how many curves it has. CommandError: nothing was reported, or no matplotlib."""
    try:
        import matplotlib
    except ImportError:
        raise CommandError("figures need matplotlib: pip install 'yaqd[plots]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found = [row for row in rows(view) if row.trial.values]
    if not found:
        raise CommandError(f"{view.application or view.name}: no trial has reported {view.metric_name} yet")
    with plt.rc_context({"svg.hashsalt": output.stem, "axes.grid": True, "grid.alpha": 0.25}):
        figure, axes = plt.subplots(2, 1, figsize=_SIZE, layout="constrained", height_ratios=(3, 1))
        _draw_curves(axes[0], view, found)
        _draw_slots(axes[1], found)
        for each in axes:
            each.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        figure.savefig(output, dpi=_DPI, metadata={"Date": None} if output.suffix == ".svg" else None)
        plt.close(figure)
    return len(found)


def _draw_curves(axes: Any, view: ExplorationView, found: list[TrialRow]) -> None:
    for row in found[_NAMED:]:
        axes.plot(range(1, len(row.trial.values) + 1), row.trial.values, color="0.75", linewidth=0.7)
    reach = reach_of(view.level)
    for at, row in enumerate(found[:_NAMED]):
        trial, color = row.trial, f"C{at}"
        name = f"{trial.number}: {shortened(params_text(trial.params), _NAME_CHARS)}"
        axes.plot(range(1, len(trial.values) + 1), trial.values, color=color, linewidth=1.4, label=name)
        count = len(trial.values)
        if trial.state is TrialState.ENDED or count >= view.epochs:
            continue
        step = max(1, (view.epochs - count) // _POINTS)
        ahead = band(view, trial.values, reach, [*range(count + 1, view.epochs, step), view.epochs])
        epochs, low, high = zip(*ahead, strict=True)
        axes.fill_between(epochs, low, high, color=color, alpha=0.15, linewidth=0)
    if view.target is not None:
        axes.axhline(view.target, color="0.2", linestyle="--", linewidth=1.0)
    axes.set_ylim(_range(view, found))
    axes.set_xlabel("epoch")
    axes.set_ylabel(view.metric_name)
    axes.set_title("bands hold 9 of 10 predicted futures", fontsize=8, loc="right")


def _range(view: ExplorationView, found: list[TrialRow]) -> tuple[float, float]:
    """Return what the axis shows: what was reported and the target, and a little of the bands beyond."""
    known = [value for row in found for value in row.trial.values if math.isfinite(value)]
    known += [] if view.target is None else [view.target]
    low, high = min(known, default=0.0), max(known, default=1.0)
    beyond = _BEYOND * (high - low) or 1.0
    return low - beyond, high + beyond


def _draw_slots(axes: Any, found: list[TrialRow]) -> None:
    """Draw each trial's slot time: promising, opportunistic, waiting and ended ones in colours of their own."""
    shown = sorted(found, key=lambda row: -row.trial.spent_s)[:_BARS]
    colors = {"promising": "C2", "opportunistic": "C0", "waiting": "C1", "ended": "0.6"}
    for kind, color in colors.items():
        bars = [(at, row.trial.spent_s) for at, row in enumerate(shown) if _kind(row) == kind]
        if bars:
            axes.bar(*zip(*bars, strict=True), color=color, label=kind)
    axes.set_xticks(range(len(shown)), [str(row.trial.number) for row in shown], fontsize=6)
    axes.set_xlabel("trial")
    axes.set_ylabel("slot time, s")
    if len(shown) < len(found):
        axes.set_title(f"the {len(shown)} of {len(found)} trials with the most", fontsize=8, loc="right")


def _kind(row: TrialRow) -> str:
    if row.trial.state is TrialState.RUNNING:
        return "promising" if row.is_promising else "opportunistic"
    return "waiting" if row.trial.state is TrialState.PARKED else "ended"
