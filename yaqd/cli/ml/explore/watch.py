"""`yaq ml watch` of an exploration: slots, the best trials, and where their curves are predicted to go."""

import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np

from tez_adapter.exploration.view import ExplorationView
from yaqd.cli.ended import EndedBySignal
from yaqd.cli.ml.charts import chart, spark
from yaqd.cli.ml.explore.table import TrialRow, everything, rows, state_text
from yaqd.cli.output import duration, print_json
from yaqd.config import Configuration
from yaqd.policies.curves.outlook import Reach
from yaqd.policies.explore.facts import TrialState
from yaqd.policies.explore.promise import reach_of

if TYPE_CHECKING:
    from tez_adapter.client.exploration import ExplorationWatch
    from tez_adapter.client.rm_client import ApplicationReport

#: part of its futures that a band holds
BAND: Final = 0.9
_ROWS: Final = 12
_CHART_ROWS: Final = 8
_COLUMNS: Final = 72
_SPARK: Final = 24


def watch_exploration(
    conf: Configuration, report: "ApplicationReport", *, interval: float, once: bool, as_json: bool
) -> None:
    """Show an exploration until it ends, or once."""
    from tez_adapter.client.exploration import ExplorationWatch

    watch = ExplorationWatch(conf, report)
    try:
        if as_json:
            view = watch.look()
            print_json({"application_id": str(report.id)} if view is None else everything(view))
        elif once or not sys.stdout.isatty():
            click.echo(_page_or_wait(watch.look()))
        else:
            _live(watch, interval)
    finally:
        watch.close()


def _live(watch: "ExplorationWatch", interval: float) -> None:
    from rich.live import Live
    from rich.text import Text

    try:
        with Live(auto_refresh=False) as live:
            while True:
                view = watch.look()
                live.update(Text(_page_or_wait(view), no_wrap=True), refresh=True)
                if watch.report.state.is_final:
                    return
                time.sleep(interval)
    except EndedBySignal:
        raise
    except KeyboardInterrupt:
        return


def _page_or_wait(view: ExplorationView | None) -> str:
    return "the exploration has not begun yet" if view is None else page(view)


def page(view: ExplorationView) -> str:
    """Return an exploration as text: a headline, its slots, the best curve, and a line for each of the first trials."""
    found = rows(view)
    running = [row for row in found if row.trial.state is TrialState.RUNNING]
    promising = sum(row.is_promising for row in running)
    waiting = sum(row.trial.state is TrialState.PARKED for row in found)
    ended = sum(row.trial.state is TrialState.ENDED for row in found)
    target = "rises when it is reached" if view.target is None else f"{view.target:g}"
    lines = [
        f"{view.application} {view.name}  {view.metric_name} {view.metric.mode}, target {target}, policy {view.policy}",
        f"slots {view.slots}: {promising} promising, {len(running) - promising} opportunistic, "
        f"{max(0, view.slots - len(running))} unused; {waiting} wait, {ended} ended, "
        f"{sum(row.trial.begun > 0 for row in found)} begun",
    ]
    best = view.best
    if best is not None:
        points = [(float(epoch), value) for epoch, value in enumerate(best.values, 1)]
        lines += ["", f"trial {best.number}:", *chart(points, _COLUMNS, _CHART_ROWS)]
    lines += ["", *(_line(view, row, reach_of(view.level)) for row in found[:_ROWS])]
    lines.append(f"{duration(1000 * view.now_s)} so far" + (f"; ended: {view.ending}" if view.is_over else ""))
    return "\n".join(lines)


def _line(view: ExplorationView, row: TrialRow, reach: Reach) -> str:
    trial = row.trial
    curve = spark(trial.values, _SPARK)
    last = f"{trial.values[-1]:.5g}" if trial.values else "-"
    chance = "" if row.chance is None else f"p {row.chance:.3f}  "
    return (
        f"trial {trial.number:<5} {state_text(view, row):<9} {curve:<{_SPARK}} {last:>8} "
        f"epoch {len(trial.values):>4}  {chance}{_band_text(view, row, reach)}"
    ).rstrip()


def _band_text(view: ExplorationView, row: TrialRow, reach: Reach) -> str:
    trial = row.trial
    if not trial.values or trial.state is TrialState.ENDED or len(trial.values) >= view.epochs:
        return ""
    bands = band(view, trial.values, reach, [view.epochs])
    (_, low, high) = bands[0]
    return f"epoch {view.epochs}: {low:.4g} to {high:.4g}"


def band(view: ExplorationView, values: Any, reach: Reach, epochs: list[int]) -> list[tuple[int, float, float]]:
    """Return between which metrics a curve is predicted to lie in each of some epochs, 9 of 10 times."""
    risen = np.array([[view.metric.risen(value) for value in values]], dtype=np.float64)
    outlook = reach.outlook(risen, np.array([len(values)]), view.epochs)
    found = []
    for epoch in epochs:
        low, high = outlook.interval(epoch, BAND)
        first, last = sorted(_bounded(view, float(each[0])) for each in (low, high))
        found.append((epoch, first, last))
    return found


def _bounded(view: ExplorationView, risen: float) -> float:
    """Return a predicted metric as the user has it, between its bounds."""
    value, metric = view.metric.shown(risen), view.metric
    value = value if metric.lower is None else max(value, metric.lower)
    return value if metric.upper is None else min(value, metric.upper)
