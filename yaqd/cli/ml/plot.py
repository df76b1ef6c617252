"""`yaq ml plot`: curves as pictures."""

from collections.abc import Sequence
from pathlib import Path

import click

from yaqd.cli.exits import CommandError
from yaqd.cli.options import json_option
from yaqd.cli.output import print_json

_FORMATS = (".png", ".svg")
#: iterations and losses
_Curve = Sequence[tuple[int, float]]
#: a picture of more lines shows none
_CURVES_MAX = 60


@click.command("plot")
@click.argument("curves", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True), metavar="CURVES...")
@click.option("--output", required=True, type=click.Path(path_type=Path), metavar="FILE", help="A .png or .svg file.")
@click.option("--only", multiple=True, metavar="NAME", help="Of many curves, this algorithm; may be repeated.")
@click.option("--normalized", is_flag=True, help="Each loss from 1 at its begin to 0 at its end.")
@json_option
def plot(curves: tuple[Path, ...], output: Path, only: tuple[str, ...], normalized: bool, as_json: bool) -> None:
    """Draw the losses of curve files, those of `yaq ml local --curve` and of `yaq ml record`.

    \b
    Example:
      yaq ml plot first.jsonl second.jsonl --output both.svg
    """
    if output.suffix not in _FORMATS:
        raise CommandError(f"--output {output}: name a file that ends in .png or .svg")
    found = {name: curve for path in curves for name, curve in _read(path, only).items()}
    if not 0 < len(found) <= _CURVES_MAX:
        raise CommandError(f"{len(found)} curves: choose from 1 to {_CURVES_MAX} with --only")
    if normalized:
        found = {name: _normalized(curve) for name, curve in found.items()}
    _draw(found, output, "normalized loss" if normalized else "loss")
    if as_json:
        print_json({"output": str(output), "curves": list(found)})
    else:
        click.echo(str(output))


def _read(path: Path, only: Sequence[str]) -> dict[str, _Curve]:
    """By name. A file of JSON lines has one curve."""
    from yaqd.cli.ml.curve_files import read_lines
    from yaqd.cli.ml.record import read_curves

    if path.suffix != ".json":
        lines = read_lines(path)
        if not lines:
            raise CommandError(f"{path} has no loss")
        return {path.stem: lines}
    return {
        f"{curve['algorithm']} {curve.get('config', '')}": list(enumerate(curve["losses"]))
        for curve in read_curves(path)
        if not only or curve["algorithm"] in only
    }


def _normalized(curve: _Curve) -> _Curve:
    first, last = curve[0][1], curve[-1][1]
    return [(iteration, (loss - last) / ((first - last) or 1.0)) for iteration, loss in curve]


def _draw(curves: dict[str, _Curve], output: Path, label: str) -> None:
    try:
        import matplotlib
    except ImportError:
        raise CommandError("figures need matplotlib: pip install 'yaqd[plots]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    # fixed ids, so that the same curves make the same file
    with plt.rc_context({"svg.hashsalt": output.stem, "axes.grid": True, "grid.alpha": 0.25}):
        figure, axes = plt.subplots(figsize=(8.2, 5.0), layout="constrained")
        for name, curve in curves.items():
            axes.plot([point[0] for point in curve], [point[1] for point in curve], label=name, linewidth=1.2)
        axes.set_xlabel("iteration")
        axes.set_ylabel(label)
        axes.legend(fontsize=7 if len(curves) > 12 else 9, ncols=1 + len(curves) // 20)
        figure.savefig(output, dpi=130, metadata={"Date": None} if output.suffix == ".svg" else None)
        plt.close(figure)
