"""`yaq ml plot`: curves as pictures."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yaqd.cli.exits import CommandError
from yaqd.cli.options import json_option, with_conf
from yaqd.cli.output import print_json
from yaqd.config import Configuration

if TYPE_CHECKING:
    from yaqd.cli.ml.drawing import PlottedCurve

_FORMATS = (".png", ".svg")
#: a picture of more lines shows none
_CURVES_MAX = 60


@click.command("plot")
@click.argument("curves", nargs=-1, required=True, metavar="CURVES...")
@click.option("--output", required=True, type=click.Path(path_type=Path), metavar="FILE", help="A .png or .svg file.")
@click.option("--only", multiple=True, metavar="NAME", help="Of many curves, this algorithm; may be repeated.")
@click.option("--normalized", is_flag=True, help="Each loss from 1 at its begin to 0 at its least.")
@json_option
@with_conf
def plot(
    conf: Configuration,
    curves: tuple[str, ...],
    output: Path,
    only: tuple[str, ...],
    normalized: bool,
    as_json: bool,
) -> None:
    """Draw the losses of training jobs: applications, and files of `yaq ml local --curve` and `yaq ml record`. An
    exploration is drawn alone, with its trials' curves and where they are predicted to go.

    One curve alone goes on as the scheduler predicts it, with a band that has held 9 of 10 predictions; an application
    also shows its cores.

    \b
    Example:
      yaq ml plot application_1700000000000_0001 --output job.png
      yaq ml plot first.jsonl second.jsonl --output both.svg
    """
    from yaqd.cli.ml.drawing import draw

    if output.suffix not in _FORMATS:
        raise CommandError(f"--output {output}: name a file that ends in .png or .svg")
    if (
        len(curves) == 1
        and not Path(curves[0]).exists()
        and _drew_exploration(conf, curves[0], output, as_json=as_json)
    ):
        return
    found = [drawn for text in curves for drawn in _read(conf, text, only)]
    if not 0 < len(found) <= _CURVES_MAX:
        raise CommandError(f"{len(found)} curves: choose from 1 to {_CURVES_MAX} with --only")
    draw(found, output, normalized=normalized)
    if as_json:
        print_json({"output": str(output), "curves": [drawn.name for drawn in found]})
    else:
        click.echo(str(output))


def _drew_exploration(conf: Configuration, text: str, output: Path, *, as_json: bool) -> bool:
    """Draw an application if it is an exploration; tell whether it is."""
    from yaqd.cli.ml.explore.look import is_exploration, looked_at, report_of

    _refuse_file(text)
    if not is_exploration(report_of(conf, text)):
        return False
    from yaqd.cli.ml.explore.plot import draw_exploration

    many = draw_exploration(looked_at(conf, text), output)
    if as_json:
        print_json({"output": str(output), "curves": many})
    else:
        click.echo(str(output))
    return True


def _refuse_file(text: str) -> None:
    if "." in text or "/" in text:
        raise CommandError(f"{text}: no such file")


def _read(conf: Configuration, text: str, only: Sequence[str]) -> "list[PlottedCurve]":
    """A file of JSON lines has one curve."""
    from yaqd.cli.ml.curve_files import read_lines
    from yaqd.cli.ml.drawing import PlottedCurve
    from yaqd.cli.ml.record import read_curves

    path = Path(text)
    if not path.exists():
        return [_of_application(conf, text)]
    if path.suffix != ".json":
        return [_with_losses(PlottedCurve(path.stem, read_lines(path)), text)]
    return [
        PlottedCurve(f"{curve['algorithm']} {curve.get('config', '')}".rstrip(), list(enumerate(curve["losses"])))
        for curve in read_curves(path)
        if not only or curve["algorithm"] in only
    ]


def _of_application(conf: Configuration, text: str) -> "PlottedCurve":
    from tez_adapter.client.training_view import TrainingWatch
    from yaqd.cli.applications.known import known_application
    from yaqd.cli.client import rm_client
    from yaqd.cli.ml.drawing import PlottedCurve
    from yaqd.cli.ml.explore.look import is_exploration

    _refuse_file(text)
    with rm_client(conf) as rm:
        report = rm.report(known_application(conf, text))
    if is_exploration(report):
        raise CommandError(f"{report.id} is an exploration: draw it alone, without other curves")
    watch = TrainingWatch(conf, report)
    try:
        view: Any = watch.look(report)
    finally:
        watch.close()
    points = [(point.iteration, point.loss) for point in view.points if point.loss is not None]
    finite = [(iteration, loss) for iteration, loss in points if math.isfinite(loss)]
    cores = [(point.iteration, point.cores) for point in view.points]
    return _with_losses(PlottedCurve(f"{report.name} ({report.id})", finite, cores), text)


def _with_losses(drawn: "PlottedCurve", text: str) -> "PlottedCurve":
    if not drawn.losses:
        raise CommandError(f"{text} has no loss to draw")
    return drawn
