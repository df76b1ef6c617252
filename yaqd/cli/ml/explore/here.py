"""`yaq ml explore --local`: an exploration on this machine."""

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import click

from tez_adapter.core.exploration.runs import Run
from tez_adapter.exploration.local.driver import LocalExploration
from tez_adapter.exploration.settings import ExplorationSettings
from tez_adapter.exploration.view import ExplorationView
from yaqd.cli.exits import FAILED, CommandError
from yaqd.cli.ml.explore.asked import Asked
from yaqd.cli.ml.explore.export import refuse_lost, write_lines
from yaqd.cli.ml.explore.table import best_fields, params_text, print_rows, rows, summary
from yaqd.cli.output import duration, print_fields, print_json
from yaqd.config import Configuration

#: rows of the table at the end
_SHOWN = 15
#: between lines of progress
_EVERY_S = 1.0


def explore_here(
    conf: Configuration,
    given: Asked,
    name: str,
    *,
    py_files: Sequence[str],
    environment: Mapping[str, str],
    logs: Path | None,
    exported: Path | None,
    as_json: bool,
    is_quiet: bool,
) -> int:
    """Run an exploration to its end and show its trials; return the exit code: 1 where none reported or all failed."""
    _prepare(py_files, environment)
    if exported is not None:
        if exported.exists():
            raise CommandError(f"--export {exported}: it is there already: give another file")
        refuse_lost(exported, "--export")
    if logs is not None:
        _refuse_used(logs)
        logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="yaq-explore-") if logs is None else nullcontext(str(logs)) as folder:
        exploration = LocalExploration(
            given.terms,
            given.joined,
            ExplorationSettings.read(conf),
            Path(folder),
            name=name,
            heard=_silent if is_quiet or as_json else partial(_progress, given, [-_EVERY_S]),
            note=_note,
        )
        try:
            exploration.run()
        finally:  # what was found is shown also where it was interrupted
            view = exploration.view()
            if exported is not None:
                write_lines(view, exported)
            _tell(view, as_json=as_json, is_quiet=is_quiet)
    return 0 if view.has_reported and not exploration.has_failed else FAILED


def _refuse_used(logs: Path) -> None:
    """Refuse a folder with logs of another exploration: both would be in the same files."""
    used = next(logs.glob("trial-*.log"), None)
    if used is not None:
        raise CommandError(f"--logs {logs}: {used.name} of an earlier exploration is there: give another folder")


def _prepare(py_files: Sequence[str], environment: Mapping[str, str]) -> None:
    """Set what the trials' processes take over from this one."""
    for path in py_files:
        if not Path(path).exists():
            raise CommandError(f"--py-files {path}: no such file")
    paths = [str(Path(path).resolve()) for path in py_files]
    if paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ.update(environment)


def _progress(given: Asked, said_at: list[float], run: Run) -> None:
    """Write a line of a report, at most one a second."""
    if time.monotonic() - said_at[0] < _EVERY_S or not run.shown:
        return
    said_at[0] = time.monotonic()
    value = f"{given.terms.metric} {run.shown[-1]:.6g}"
    click.echo(f"trial {run.number}  epoch {len(run.shown)}  {value}  {params_text(run.values)}", err=True)


def _silent(run: Run) -> None:
    """Say nothing."""


def _tell(view: ExplorationView, *, as_json: bool, is_quiet: bool) -> None:
    if as_json:
        print_json({**summary(view), "notices": list(view.notices)})
        return
    if is_quiet:
        return
    print_rows(view, rows(view), _SHOWN, "--export FILE writes all")
    click.echo()
    print_fields([("ended", view.ending), ("took", duration(1000 * view.now_s)), *best_fields(view).items()])


def _note(line: str) -> None:
    click.echo(f"yaq: {line}", err=True)
