"""`yaq ml record`: curves of the nine examples, or of a job of one's own, for the simulator."""

from pathlib import Path

import click

from yaqd.cli.ended import clears_up
from yaqd.cli.exits import FAILED, CommandError
from yaqd.cli.options import assignments, json_option, quiet_option
from yaqd.cli.output import print_json

#: losses of a shipped curve
_ITERATIONS = 160


@click.command("record")
@click.argument("script", metavar="[SCRIPT[:CLASS]]", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS]")
@click.option("--output", required=True, type=click.Path(path_type=Path), metavar="FILE", help="Curve file to write.")
@click.option("--append", is_flag=True, help="Keep the curves that it has.")
@click.option(
    "--iterations", type=click.IntRange(2), default=_ITERATIONS, metavar="N", help="Losses of a curve [default: 160]."
)
@click.option("--only", multiple=True, metavar="NAME", help="Of the nine, this one; may be repeated.")
@click.option(
    "--held-out", "is_held_out", is_flag=True, help="The nine with other options and other data, for a second opinion."
)
@click.option("--name", metavar="NAME", help="The algorithm's name in the file [default: the script's].")
@click.option(
    "--class",
    "curve_class",
    type=click.Choice(("sublinear", "superlinear")),
    default="sublinear",
    help="How its loss falls: 1/k, or as a power [default: sublinear].",
)
@click.option("-D", "defines", multiple=True, metavar="NAME=VALUE", help="An option of the class; may be repeated.")
@click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="For what a class draws [default: 0].")
@quiet_option
@json_option
@clears_up
def record(
    script: str | None,
    arguments: tuple[str, ...],
    output: Path,
    append: bool,
    iterations: int,
    only: tuple[str, ...],
    is_held_out: bool,
    name: str | None,
    curve_class: str,
    defines: tuple[str, ...],
    seed: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train here and write the losses of each iteration. A job that ends early keeps its last loss.

    Without SCRIPT the nine examples are recorded, each in its configurations: that is how the shipped curves were made.
    No setting was ever chosen on those of --held-out. `yaq sim run --curves FILE` simulates what was recorded.

    \b
    Examples:
      yaq ml record --output nine.json
      yaq ml record --held-out --output held_out.json
      yaq ml record train.py --output mine.json --append --class superlinear -D rate=0.5 -- --rows 1000
    """
    from yaqd.cli.ml.here import prints_aside
    from yaqd.cli.ml.record import Chosen, read_curves, record_recipe, record_script, write_curves
    from yaqd.ml.driving import TrainingError
    from yaqd.ml.examples.held_out import HELD_OUT
    from yaqd.ml.examples.recipes import CLASSES, RECIPES

    unknown = [each for each in only if each not in CLASSES]
    if unknown or (only and script):
        raise CommandError(f"--only {(unknown or only)[0]}: without SCRIPT, one of {', '.join(CLASSES)}")
    if is_held_out and script:
        raise CommandError("--held-out: without SCRIPT")
    if append and output.exists():
        read_curves(output)  # before it trains: what is no curve file is refused
    recipes = HELD_OUT if is_held_out else RECIPES
    curves = []
    try:
        with prints_aside():
            if script is not None:
                options = assignments("-D", defines)
                curves.append(record_script(Chosen(script, name, curve_class, options, seed, arguments), iterations))
            for recipe in recipes if script is None else ():
                if not only or recipe.algorithm in only:
                    curves.append(record_recipe(recipe, iterations))
                    if not (quiet or as_json):
                        click.echo(f"{recipe.algorithm}  {recipe.config}", err=True)
    except TrainingError as error:
        raise CommandError("\n".join(part for part in (str(error), error.detail) if part), FAILED) from error
    count = write_curves(output, curves, append=append)
    if as_json:
        print_json({"output": str(output), "curves": count, "recorded": len(curves)})
    elif not quiet:
        click.echo(f"{output}: {count} curves, {len(curves)} of them new")
