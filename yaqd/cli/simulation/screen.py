"""An experiment on the screen: progress while it runs, then its report; files where they were asked for."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import click

from yaqd.cli.exits import FAILED, CommandError
from yaqd.sim.experiments import Experiment
from yaqd.sim.experiments.plots import NoPlots, draw_plots
from yaqd.sim.experiments.report import as_json as report_json
from yaqd.sim.experiments.report import lines
from yaqd.sim.experiments.runner import PolicyFailed, Progress, run_experiment
from yaqd.sim.shape import Stuck
from yaqd.sim.workload import Workload


def show(
    experiment: Experiment,
    seeds: Sequence[int],
    *,
    is_quick: bool = False,
    workers: int = 1,
    out: Path | None = None,
    as_json: bool = False,
    workload: Workload | None = None,
) -> dict[str, Any]:
    """Run, print (unless `as_json`), write files; the report as a JSON value. Raises CommandError."""
    if out is not None:
        make_folder(out)
    with progress_bar(experiment.name) as progress:
        try:
            runs = run_experiment(experiment, seeds, progress, workers=workers, workload=workload)
        except (ValueError, Stuck, PolicyFailed) as error:
            raise CommandError(f"{experiment.name}: {error}", FAILED) from None
    value = report_json(experiment, runs, quick=is_quick)
    if not as_json:
        for line in lines(experiment, runs, quick=is_quick):
            click.echo(line.rstrip())
        click.echo()
    if out is not None:
        path = out / f"{experiment.name}.json"
        path.write_text(json.dumps(value, indent=1) + "\n")
        wrote(path)
        try:
            for path in draw_plots(experiment, runs, out):
                wrote(path)
        except NoPlots as error:
            click.echo(f"yaq: {error}", err=True)
    return value


def compared(experiment: Experiment, options: dict[str, Any], workload: Workload | None, as_json: bool) -> None:
    """Run `compare` or `replay` and print what it finds."""
    from yaqd.cli.output import print_json

    seeds = range(1, 1 + options["seeds"])
    value = show(experiment, seeds, out=options["out"], as_json=as_json, workload=workload)
    if as_json:
        print_json(value)


def make_folder(folder: Path) -> None:
    """Make a folder that takes files, or raise CommandError.

    Before anything is computed: hours of it would be lost where the folder takes no files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CommandError(f"--out {folder}: {error.strerror or error}") from None


def wrote(path: Path) -> None:
    """Say on standard error that a file is written."""
    click.echo(f"wrote {path}", err=True)


@contextmanager
def progress_bar(name: str) -> Iterator[Progress]:
    """Draw a bar at a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done, total, what: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(name), BarColumn(), TextColumn("{task.completed}/{task.total} {task.fields[what]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task(name, total=None, what="")

        def tell(done: int, total: int, what: str) -> None:
            bar.update(shown, completed=done, total=total, what=what)

        told: Callable[[int, int, str], None] = tell
        yield told
