"""`yaq ml list` and `yaq ml watch`: losses in the terminal."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from yaqd.cli.ended import EndedBySignal, clears_up
from yaqd.cli.exits import CommandError
from yaqd.cli.ml.charts import chart, spark
from yaqd.cli.options import FiniteFloat, json_option, with_conf
from yaqd.cli.output import duration, print_json, print_table, shortened
from yaqd.cli.shell.completing import all_applications
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.client.rm_client import ApplicationReport
    from tez_adapter.client.training_view import TrainingView

_HEADINGS = (
    *("application", "name", "state", "iteration", "loss", "normalized", "gain", "to 90 %", "cores", "workers"),
    *("time", "curve"),
)
_SPARK = 12
_RM_TIMEOUT_S = 5.0
_CHART_ROWS = 12
_CHART_COLUMNS = 72


@click.command("list")
@click.option("--all", "show_all", is_flag=True, help="Also those that have ended.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many, the latest.")
@json_option
@with_conf
def list_jobs(conf: Configuration, show_all: bool, limit: int, as_json: bool) -> None:
    """List training jobs: how far they are, their loss, their cores; then explorations, with their best metric.

    `normalized` is 1 at the first loss and 0 at the predicted last one, `gain` how far it is predicted to fall until
    cores are divided again, and `to 90 %` when nine tenths of its fall are done. The ResourceManager predicts; where it
    does not, 0 is the least loss so far.

    \b
    Example:
      yaq ml list --all
    """
    from yaqd.cli.ml.explore.listing import print_explorations, summaries
    from yaqd.cli.ml.explore.look import is_exploration

    reports = _reports(conf, show_all=show_all, is_wanted=lambda one: _is_training(one) or is_exploration(one))[:limit]
    views = _looks(conf, [report for report in reports if _is_training(report)])
    explorations = summaries(conf, [report for report in reports if is_exploration(report)])
    predicted = _predictions(conf, is_quiet=as_json) if views else {}
    pairs = [(view, predicted.get(str(view.report.id), {})) for view in views]
    if as_json:
        print_json([*(_as_dict(view) | _predicted(found) for view, found in pairs), *explorations])
        return
    if pairs or not explorations:
        rows = [_row(view, found) for view, found in pairs]
        print_table(_HEADINGS, rows, empty="no training jobs: yaq ml submit starts one")
    if explorations:
        if pairs:
            click.echo()
        print_explorations(explorations)


def _predictions(conf: Configuration, *, is_quiet: bool) -> dict[str, dict[str, Any]]:
    """What the ResourceManager predicts, by application; a stock one predicts nothing, and a line says so."""
    from yaqd.cli.rm_web import NoSuchResource, get_json

    try:
        jobs = get_json(conf, "/ws/v1/yaq/training", timeout_s=_RM_TIMEOUT_S)["jobs"]
        return {str(job["id"]): job for job in jobs}
    except NoSuchResource:
        if not is_quiet:
            click.echo("this ResourceManager is a stock one: it predicts no losses and divides no cores", err=True)
        return {}
    except (CommandError, KeyError, TypeError):
        return {}


def _predicted(found: dict[str, Any]) -> dict[str, Any]:
    """Where nothing is predicted, nothing is said."""
    fields = {"gain": "gain", "ninetyS": "to_90_percent_s", "normalizedLoss": "normalized", "reason": "reason"}
    return {ours: found[theirs] for theirs, ours in fields.items() if found.get(theirs) is not None}


@click.command("watch")
@click.argument("application", required=False, shell_complete=all_applications)
@click.option("--interval", type=FiniteFloat(min=0.2), default=1.0, show_default=True, help="Seconds.")
@click.option("--once", is_flag=True, help="Print it once and end, as it does where the output is no terminal.")
@json_option
@clears_up
@with_conf
def watch(conf: Configuration, application: str | None, interval: float, once: bool, as_json: bool) -> None:
    """Watch a training job's loss fall, or those of all that run, or an exploration's trials. --json prints all
    points of the curves once.

    \b
    Example:
      yaq ml watch application_1700000000000_0001
    """
    from tez_adapter.client.training_view import TrainingWatch
    from yaqd.cli.ml.explore.look import is_exploration, report_of

    reports = [report_of(conf, application)] if application else _reports(conf, show_all=False)
    if application and is_exploration(reports[0]):
        from yaqd.cli.ml.explore.watch import watch_exploration

        watch_exploration(conf, reports[0], interval=interval, once=once, as_json=as_json)
        return
    watches = [TrainingWatch(conf, report) for report in reports]
    try:
        if as_json:
            views = [each.look() for each in watches]
            print_json([_as_dict(view) | {"curve": [point.as_json() for point in view.points]} for view in views])
        elif once or not sys.stdout.isatty():
            click.echo(_page([each.look() for each in watches]))
        else:
            _live(watches, interval)
    finally:
        for each in watches:
            each.close()


def _live(watches: "list[Any]", interval: float) -> None:
    """Until all have ended, or it is interrupted; `rich` is imported only here."""
    from rich.live import Live
    from rich.text import Text

    try:
        with Live(auto_refresh=False) as live:
            while True:
                views = [each.look() for each in watches]
                live.update(Text(_page(views), no_wrap=True), refresh=True)
                if all(view.report.state.is_final for view in views):
                    return
                time.sleep(interval)
    except EndedBySignal:
        raise
    except KeyboardInterrupt:
        return


def _page(views: "list[TrainingView]") -> str:
    """One job as a chart, several as lines."""
    if not views:
        return "no training job runs"
    if len(views) > 1:
        width = max(len(shortened(view.report.name, 30)) for view in views)
        return "\n".join(
            f"{shortened(view.report.name, 30):<{width}}  {spark(_losses(view), _CHART_COLUMNS)}  {_now(view)}"
            for view in views
        )
    (view,) = views
    losses = [(p.iteration, p.loss) for p in view.points if p.loss is not None]
    drawn = chart(losses, _CHART_COLUMNS, _CHART_ROWS)
    ending = _ending(view.report)
    lines = [f"{view.report.id} {view.report.name} {_state(view)}", *drawn, _now(view)]
    return "\n".join([*lines, *([ending] if ending else [])])


def _now(view: "TrainingView") -> str:
    parts = []
    if (iteration := _iteration(view)) is not None:
        parts.append(f"iteration {iteration}")
    if (loss := _loss(view)) is not None:
        parts.append(f"loss {loss}")
    if view.cores is not None:
        parts.append(f"{view.cores:g} cores")
    if view.workers:
        parts.append(f"{view.workers} workers")
    if view.model_sha256:
        parts.append(f"model {view.model_sha256[:16]}")
    return ", ".join(parts) or "no report yet"


def _is_training(report: "ApplicationReport") -> bool:
    from tez_adapter.client.training import APPLICATION_TYPE

    return report.type == APPLICATION_TYPE


def _reports(
    conf: Configuration, *, show_all: bool, is_wanted: "Callable[[ApplicationReport], bool]" = _is_training
) -> "list[ApplicationReport]":
    """Jobs of a kind, the latest first."""
    from yaqd.cli.client import rm_client
    from yaqd.model import YarnApplicationState

    states = () if show_all else [state for state in YarnApplicationState if not state.is_final]
    with rm_client(conf) as rm:
        found = [report for report in rm.applications(states=states) if is_wanted(report)]
    return sorted(found, key=lambda report: (report.id.cluster_timestamp, report.id.id), reverse=True)


def _looks(conf: Configuration, reports: "list[ApplicationReport]") -> "list[TrainingView]":
    from tez_adapter.client.training_view import TrainingWatch

    views = []
    for report in reports:
        looking = TrainingWatch(conf, report)
        try:
            views.append(looking.look(report))
        finally:
            looking.close()
    return views


def _losses(view: "TrainingView") -> list[float]:
    return [point.loss for point in view.points if point.loss is not None]


def _iteration(view: "TrainingView") -> str | None:
    """Say how many iterations are done, of how many where that is known."""
    if view.iteration is None:
        return None
    return f"{view.iteration}/{view.iterations_expected}" if view.iterations_expected else str(view.iteration)


def _loss(view: "TrainingView") -> str | None:
    """Say the last loss, and since when newer ones are no numbers."""
    loss = None if view.loss is None else f"{view.loss:.6g}"
    if view.odd is None:
        return loss
    since = f"{view.odd[0]:g} since iteration {view.odd[1]}"
    return since if loss is None else f"{loss} ({since})"


def _row(view: "TrainingView", predicted: dict[str, Any]) -> tuple[object, ...]:
    report = view.report
    end_ms = report.finish_ms or time.time() * 1000
    normalized = predicted.get("normalizedLoss", view.normalized)
    gain, ninety_s = predicted.get("gain"), predicted.get("ninetyS")
    return (
        report.id,
        shortened(report.name, 24),
        _state(view),
        _iteration(view) or "-",
        _loss(view) or "-",
        "-" if normalized is None else f"{normalized:.3f}",
        "-" if gain is None else f"{gain:.4f}",
        "-" if ninety_s is None else "done" if ninety_s <= 0.0 else duration(1000 * ninety_s),
        "-" if view.cores is None else f"{view.cores:g}",
        _or_dash(view.workers),
        duration(end_ms - report.start_ms) if report.start_ms else "-",
        spark(_losses(view), _SPARK),
    )


def _ending(report: "ApplicationReport") -> str:
    """Say in a line why a job that is over has ended."""
    return report.diagnostics.partition("\n")[0].strip() if report.state.is_final else ""


def _state(view: "TrainingView") -> str:
    """Say how a job stands, and of one that is over how it ended."""
    report = view.report
    if view.stopped is not None:
        return "STOPPED"
    return report.final_status.name if report.state.is_final else report.state.name


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)


def _as_dict(view: "TrainingView") -> dict[str, Any]:
    return {
        "application_id": str(view.report.id),
        "name": view.report.name,
        "user": view.report.user,
        "state": view.report.state.name,
        "final": view.report.final_status.name if view.report.state.is_final else None,
        "stopped_by": None if view.stopped is None else view.stopped[0],
        "iteration": view.iteration,
        "iterations_expected": view.iterations_expected,
        "loss": view.loss,
        "odd_loss": None if view.odd is None else str(view.odd[0]),
        "odd_since": None if view.odd is None else view.odd[1],
        "normalized": view.normalized,
        "cores": view.cores,
        "workers": view.workers,
        "partitions": view.partitions,
        "checkpoint_iteration": view.checkpoint_iteration,
        "model_sha256": view.model_sha256,
    }
