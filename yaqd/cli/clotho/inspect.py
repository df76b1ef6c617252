"""`yaq clotho inspect`: what a file of weights is."""

from pathlib import Path

import click

from yaqd.cli.exits import CommandError
from yaqd.cli.options import json_option
from yaqd.cli.output import print_fields, print_json


@click.command("inspect")
@click.argument("weights", required=False, type=click.Path(path_type=Path))
@json_option
def inspect(weights: Path | None, as_json: bool) -> None:
    """Verify weights and print the command, the seed and the curve that made them. Without WEIGHTS: the shipped ones.

    \b
    Example:
      yaq clotho inspect stages.npz
    """
    from yaqd.cli.clotho.files import read_weights
    from yaqd.policies.clotho.shapes import SIZE
    from yaqd.policies.clotho.weights import WeightsError, unpack

    data, name = read_weights(weights)
    try:
        found = unpack(data)
    except WeightsError as error:
        raise CommandError(f"{name}: {error}") from None
    curve = found.told.get("curve") or []
    told = {"weights": name, "bytes": len(data), "numbers": SIZE, **found.told}
    if as_json:
        print_json(told)
        return
    print_fields(
        [
            ("weights", name),
            ("bytes", len(data)),
            ("numbers", SIZE),
            ("command", found.told.get("command", "-")),
            ("seed", found.told.get("seed", "-")),
        ]
    )
    for point in curve if isinstance(curve, list) else []:
        click.echo("  ".join(f"{key} {value:g}" for key, value in point.items()))
