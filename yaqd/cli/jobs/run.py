"""`yaq run`: a command line in N containers."""

from typing import TYPE_CHECKING

import click

from yaqd.cli.ended import clears_up
from yaqd.cli.exits import CommandError
from yaqd.cli.options import json_option, quiet_option, terms_options, with_conf
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.client.follow import SubmittedJob


@click.command("run", context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True)
@click.option("-n", "tasks", type=int, default=1, show_default=True, help="How many containers run the command.")
@click.option("--memory", "memory_mb", type=int, metavar="MB", help="Memory of each container.")
@click.option("--vcores", type=int, help="Virtual cores of each container.")
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="NAME=AMOUNT",
    help="Further resource of each container, as yarn.io/gpu=1; may be repeated.",
)
@click.option("--files", multiple=True, metavar="PATHS", help="Files for the containers: PATH or PATH#NAME, commas.")
@click.option("--archives", multiple=True, metavar="PATHS", help="Archives to unpack for them, likewise.")
@click.option("--env", "environment", multiple=True, metavar="NAME=VALUE", help="Environment of the command.")
@click.option("--node", "nodes", multiple=True, metavar="HOSTS", help="Run on these hosts alone, in turns; commas.")
@click.option("--queue", help="Queue to submit to.")
@click.option("--name", help="Name of the application [default: the command's].")
@click.option("--no-wait", is_flag=True, help="Print the application's id and return.")
@click.option(
    "--logs",
    "show_logs",
    is_flag=True,
    help="Print what the containers printed, once they are done; with --json as its field logs.",
)
@quiet_option
@json_option
@clears_up
@with_conf
@terms_options
@click.pass_context
def run(
    ctx: click.Context,
    conf: Configuration,
    command: tuple[str, ...],
    tasks: int,
    memory_mb: int | None,
    vcores: int | None,
    resources: tuple[str, ...],
    files: tuple[str, ...],
    archives: tuple[str, ...],
    environment: tuple[str, ...],
    nodes: tuple[str, ...],
    queue: str | None,
    name: str | None,
    no_wait: bool,
    show_logs: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run any command in N containers; exit code 1 if one of them fails.

    \b
    Example:
      yaq run -n 4 --memory 512 --logs -- hostname
      yaq run --resource yarn.io/gpu=1 --logs -- nvidia-smi
    """
    if show_logs and no_wait:
        raise CommandError("--logs is printed at the end, and --no-wait does not wait for it: leave one of them out")
    from tez_adapter.client.submit import Attachments, submit_command
    from yaqd.cli.options import assignments, words

    job = submit_command(
        conf,
        command,
        tasks=tasks,
        memory_mb=memory_mb,
        vcores=vcores,
        attachments=Attachments(files=words(files), archives=words(archives)),
        environment=assignments("--env", environment),
        queue=queue or conf.require("mapreduce.job.queuename"),
        name=name,
        nodes=words(nodes),
        resources=assignments("--resource", resources),
    )
    ctx.exit(_follow(conf, job, wait=not no_wait, show_logs=show_logs, as_json=as_json, is_quiet=quiet))


def _follow(
    conf: Configuration, job: "SubmittedJob", *, wait: bool, show_logs: bool, as_json: bool, is_quiet: bool
) -> int:
    """Returns the exit code."""
    from functools import partial

    from yaqd.cli.applications.following import follow
    from yaqd.cli.applications.logs import Choice, print_logs, read_logs

    choice = Choice(files=("stdout", "stderr"), only_tasks=True)
    logs = partial(read_logs, conf, job.application_id, choice) if show_logs else None
    code = follow(job, wait=wait, as_json=as_json, logs=logs, is_quiet=is_quiet)
    if show_logs and not as_json:
        print_logs(conf, job.application_id, choice)
    return code
