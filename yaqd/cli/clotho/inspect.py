"""`yaq clotho inspect`: what a file of weights is."""

from pathlib import Path

import click

from yaqd.cli.exits import CommandError
from yaqd.cli.options import json_option
from yaqd.cli.output import print_fields, print_json
from yaqd.model.printable import printable


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
    from yaqd.policies.clotho.weights import WeightsError, is_linear, unpack

    data, name = read_weights(weights)
    try:
        found = unpack(data)
    except WeightsError as error:
        raise CommandError(f"{name}: {error}") from None
    linear = is_linear(found.arrays)
    facts = {"weights": name, "bytes": len(data), "numbers": SIZE, "linear": linear}
    if as_json:
        print_json(facts | {key: value for key, value in found.told.items() if key not in facts})
        return
    print_fields(
        [
            ("weights", name),
            ("bytes", len(data)),
            ("numbers", SIZE),
            ("hidden layers", "do not count: linear terms alone decide" if linear else "count"),
            ("command", printable(found.told.get("command", "-"))),
            ("seed", printable(str(found.told.get("seed", "-")))),
        ]
    )
    for point in found.told.get("curve", []):
        click.echo("  ".join(f"{printable(key)} {value:g}" for key, value in point.items()))
