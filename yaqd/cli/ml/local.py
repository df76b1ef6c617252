"""`yaq ml local`: a training job in this process."""

import hashlib
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yaqd.cli.ended import clears_up
from yaqd.cli.exits import FAILED, CommandError
from yaqd.cli.options import FiniteFloat, json_option, quiet_option, with_conf, words
from yaqd.cli.output import duration, print_fields, print_json
from yaqd.cli.seeded import seeded
from yaqd.config import Configuration

if TYPE_CHECKING:
    from yaqd.cli.ml.here import CurveKeeper, Point
    from yaqd.ml import IterativeJob

#: between lines of progress
_EVERY_S = 1.0


@click.command("local")
@click.argument("script", metavar="SCRIPT[:CLASS]")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS]")
@click.option(
    "--iterations",
    type=click.IntRange(1),
    metavar="N",
    help="End after so many [default: what the class or program says].",
)
@click.option("--target", type=FiniteFloat(), metavar="LOSS", help="End once the loss is no higher.")
@click.option("--data", multiple=True, metavar="PATHS", help="Files of a class's partitions, dealt round; commas.")
@click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="For what a class draws [default: 0].")
@click.option("--py-files", multiple=True, metavar="PATHS", help=".py or .zip files to import from, commas.")
@click.option(
    "--model", type=click.Path(path_type=Path), metavar="FILE", help="Write the last state, as yaqd.ml.arrays has it."
)
@click.option("--curve", type=click.Path(path_type=Path), metavar="FILE", help="Write each report as a JSON line.")
@click.option("--tensorboard", type=click.Path(path_type=Path), metavar="DIR", help="Write TensorBoard's event files.")
@quiet_option
@json_option
@seeded
@clears_up
@with_conf
def local(
    conf: Configuration,
    script: str,
    arguments: tuple[str, ...],
    iterations: int | None,
    target: float | None,
    data: tuple[str, ...],
    seed: int,
    py_files: tuple[str, ...],
    model: Path | None,
    curve: Path | None,
    tensorboard: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train on this machine, without a cluster, to the same model.

    A script with a class derived from yaqd.ml.IterativeJob is trained over its partitions, one after the other; the
    SHA-256 of its last state is that of a run on a cluster with any number of workers. -D NAME=VALUE sets the class's
    options. Any other script is run as `python SCRIPT ARGUMENTS` is, and its reports are shown.

    \b
    Examples:
      yaq ml local train.py -- --epochs 20
      yaq ml local kmeans.py --iterations 50 --curve kmeans.jsonl -D clusters=20
    """
    from yaqd.cli.ml.curve_files import writers
    from yaqd.cli.ml.data import data_files, refuse_of_classes
    from yaqd.cli.ml.here import CurveKeeper, prints_aside
    from yaqd.ml.driving import TrainingError
    from yaqd.ml.loading import is_iterative

    is_class = is_iterative(script)
    _add_py_files(words(py_files))
    job = _class(conf, script, data_files(words(data), conf), seed, iterations, arguments) if is_class else None
    if not is_class:
        refuse_of_classes(script, data, seed, model)
    show = _progress(is_quiet=quiet or as_json)
    with writers(curve, tensorboard) as write, prints_aside() if as_json else nullcontext():

        def heard(point: "Point") -> None:
            show(point)
            write(point)

        channel = CurveKeeper((iterations or 0) if job is None else job.limit, target=target, heard=heard, note=_note)
        began = time.monotonic()
        try:
            frame = _train(conf, script, arguments, job, channel)
        except TrainingError as error:
            raise CommandError("\n".join(part for part in (str(error), error.detail) if part), FAILED) from error
        taken_s = time.monotonic() - began
    if frame is not None and model is not None:
        model.write_bytes(frame)
    _tell(channel, frame and hashlib.sha256(frame).hexdigest(), taken_s, as_json=as_json, is_quiet=quiet)


def _class(
    conf: Configuration,
    script: str,
    data: tuple[str, ...],
    seed: int,
    iterations: int | None,
    arguments: tuple[str, ...],
) -> "IterativeJob":
    from tez_adapter.tasks.scripts import is_given, texts
    from yaqd.mapreduce import parse_params, unread_names
    from yaqd.ml.loading import load_iterative

    job = load_iterative(script)
    if arguments:
        raise CommandError(f"{job.__name__} takes no ARGUMENTS: give its options with -D NAME=VALUE")
    given = {key: conf.raw(key) or "" for key in conf.changed_keys() if is_given(conf, key)}
    for name in unread_names(job, given):
        _note(f"-D {name}: {job.__name__} has no such option, so it sets nothing")
    return job(parse_params(job, texts(conf)), seed=seed, data=data, iterations=iterations or 0)


def _train(
    conf: Configuration, script: str, arguments: tuple[str, ...], job: "IterativeJob | None", channel: "CurveKeeper"
) -> bytes | None:
    """The frame of the last state; None: a program has none."""
    from yaqd.cli.ml.here import train_class, train_script
    from yaqd.storage.seekable import open_seekable

    if job is not None:
        return train_class(job, channel, opener=lambda path: open_seekable(path, conf))
    train_script(Path(script), arguments, channel)
    if not channel.reports:
        _note(f"{script} reported nothing: call yaqd.ml.report(iteration=..., loss=...) in its loop")
    return None


def _add_py_files(paths: list[str]) -> None:
    from tez_adapter.tasks.scripts import add_import_path

    for path in paths:
        if not Path(path).exists():
            raise CommandError(f"--py-files {path}: no such file")
        add_import_path(Path(path))


def _progress(*, is_quiet: bool) -> Any:
    """Writes a line of a report, at most one a second."""
    said_at = 0.0

    def show(point: "Point") -> None:
        nonlocal said_at
        if is_quiet or point.time_s - said_at < _EVERY_S:
            return
        said_at = point.time_s
        further = "".join(f"  {name} {value:.6g}" for name, value in point.metrics.items())
        loss = "-" if point.loss is None else f"{point.loss:.6g}"
        click.echo(f"iteration {point.iteration}  loss {loss}{further}", err=True)

    return show


def _tell(channel: "CurveKeeper", digest: str | bytes | None, taken_s: float, *, as_json: bool, is_quiet: bool) -> None:
    losses = channel.losses
    last = channel.points[-1].iteration if channel.points else None
    if as_json:
        found = {
            "state": "SUCCEEDED",
            "reports": channel.reports,
            "iteration": last,
            "first_loss": losses[0] if losses else None,
            "last_loss": losses[-1] if losses else None,
            "seconds": round(taken_s, 3),
        }
        print_json({**found, "sha256": digest} if digest else found)
    elif not is_quiet:
        shown = f"{losses[0]:.6g} to {losses[-1]:.6g}" if losses else "not reported"
        fields = [("iteration", "-" if last is None else last), ("loss", shown), ("took", duration(1000 * taken_s))]
        print_fields([*fields, ("sha256", digest)] if digest else fields)


def _note(line: str) -> None:
    click.echo(f"yaq: {line}", err=True)
