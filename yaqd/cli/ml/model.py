"""`yaq ml model`: what a training class on the cluster has come to."""

import hashlib
from pathlib import Path
from typing import Any

import click

from yaqd.cli.exits import CommandError
from yaqd.cli.options import json_option, with_conf
from yaqd.cli.output import print_fields, print_json
from yaqd.cli.shell.completing import all_applications
from yaqd.config import Configuration


@click.command("model")
@click.argument("application", shell_complete=all_applications)
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Write it, as yaqd.ml.arrays has it.")
@json_option
@with_conf
def model(conf: Configuration, application: str, output: Path | None, as_json: bool) -> None:
    """Fetch the last state of a training class, once its job has ended: Python reads it with yaqd.ml.arrays.from_bytes.

    \b
    Example:
      yaq ml model application_1700000000000_0001 --output model
    """
    from tez_adapter.client.training import folder_of
    from tez_adapter.training.keeper import read_model
    from yaqd.cli.applications.known import known_application
    from yaqd.cli.client import rm_client
    from yaqd.storage.errors import PathNotFound

    with rm_client(conf) as rm:
        report = rm.report(known_application(conf, application))
    try:
        found = read_model(conf, folder_of(conf, report.user, report.id))
    except PathNotFound:
        raise CommandError(
            f"{report.id} has left no model: only a class that was trained to its end does; a program writes its own"
        ) from None
    except ValueError as error:
        raise CommandError(f"{report.id}: its model cannot be read: {error}") from None
    frame = found.pieces[0]
    if output is not None:
        output.write_bytes(frame)
    told: dict[str, Any] = {
        "application_id": str(report.id),
        "iteration": found.iteration,
        "bytes": len(frame),
        "sha256": hashlib.sha256(frame).hexdigest(),
    }
    if as_json:
        print_json(told)
    else:
        print_fields([(name.replace("_", " "), value) for name, value in told.items()])
