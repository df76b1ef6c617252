"""`yaq ml trials` and `yaq ml export`."""

from pathlib import Path

import click

from yaqd.cli.options import json_option, with_conf
from yaqd.cli.output import print_json
from yaqd.cli.shell.completing import all_applications
from yaqd.config import Configuration

_SHOWN = 30
_FORMATS = ("jsonl", "tensorboard", "optuna")


@click.command("trials")
@click.argument("application", shell_complete=all_applications)
@click.option("--all", "show_all", is_flag=True, help="All that have begun, not the first 30.")
@json_option
@with_conf
def trials(conf: Configuration, application: str, show_all: bool, as_json: bool) -> None:
    """List an exploration's trials: values, metric, what each promises, and why it runs, waits or has ended.

    `p` is the chance that it reaches the target in its epochs and the time that is left, `ERT` the slot time that it is
    expected to need for it. RUNNING* is a promising trial: its slot is its own. A curve's newest value is on the right.

    \b
    Example:
      yaq ml trials application_1700000000000_0001
    """
    from yaqd.cli.ml.explore import table
    from yaqd.cli.ml.explore.look import looked_at

    view = looked_at(conf, application)
    if as_json:
        print_json(table.everything(view))
        return
    found = table.rows(view)
    table.print_rows(view, found, None if show_all else _SHOWN, "--all shows them")
    click.echo(f"\n{table.headline(view)}")


@click.command("export")
@click.argument("application", shell_complete=all_applications)
@click.option("--format", "form", type=click.Choice(_FORMATS), default="jsonl", show_default=True,
              help="JSON lines, TensorBoard's event files, or a study of Optuna in an SQLite file.")  # fmt: skip
@click.option("--output", required=True, type=click.Path(path_type=Path), metavar="PATH",
              help="A file; for TensorBoard a folder.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Write over what an earlier export left there.")
@json_option
@with_conf
def export(conf: Configuration, application: str, form: str, output: Path, overwrite: bool, as_json: bool) -> None:
    """Write an exploration's trials for other tools, while it runs or afterwards.

    What is there already is refused without --overwrite. A trial that waits is written to a study as pruned, since
    Optuna has no state for it.

    \b
    Examples:
      yaq ml export application_1700000000000_0001 --output trials.jsonl
      yaq ml export application_1700000000000_0001 --format optuna --output study.db
    """
    from yaqd.cli.ml.explore.export import make_room, write_lines, write_optuna, write_tensorboard
    from yaqd.cli.ml.explore.look import looked_at

    view = looked_at(conf, application)
    make_room(output, form, overwrite=overwrite)
    write = {"jsonl": write_lines, "tensorboard": write_tensorboard, "optuna": write_optuna}[form]
    many = write(view, output)
    if as_json:
        print_json({"output": str(output), "format": form, "trials": many})
    else:
        click.echo(f"{output}: {many} trials")
