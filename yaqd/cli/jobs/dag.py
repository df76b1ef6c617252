"""`yaq dag`: jobs of many steps, from a Flow in a Python script, on the cluster or on this machine."""

from typing import TYPE_CHECKING, Any

import click

from yaqd.cli.applications.known import known_application
from yaqd.cli.ended import clears_up
from yaqd.cli.exits import FAILED, CommandError
from yaqd.cli.jobs.attached import attached
from yaqd.cli.options import assignments, json_option, quiet_option, terms_options, with_conf, words
from yaqd.cli.output import print_json, print_table
from yaqd.cli.seeded import seeded
from yaqd.cli.shell.completing import all_applications
from yaqd.config import Configuration
from yaqd.model.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tez_adapter.client.flow import PlannedFlow
    from tez_adapter.tasks.local_tasks import Work

_paths = click.option(
    "--path",
    "paths",
    multiple=True,
    metavar="NAME=PATH",
    help="Where an input or output is that the script calls NAME; may be repeated.",
)
_overwrite = click.option(
    "--overwrite", is_flag=True, help="Replace the results of an earlier job in the output folders; nothing else."
)


@click.group(help="Run jobs of many steps: a Flow in a Python script.")
def dag() -> None:
    pass


@dag.command("plan")
@click.argument("script", metavar="SCRIPT[:FLOW]")
@_paths
@json_option
@with_conf
def plan(conf: Configuration, script: str, paths: tuple[str, ...], as_json: bool) -> None:
    """Show the stages that a flow becomes: what runs in one task, and what is shuffled. Its inputs are looked at.

    \b
    Example:
      yaq dag plan examples/flow.py --path lines=README.md
    """
    from tez_adapter.client.flow import plan_script

    planned = plan_script(conf, script, assignments("--path", paths), overwrite=True)
    for note in planned.notes:
        _note(note)
    stages = [_stage(planned, at) for at in range(len(planned.plan.stages))]
    if as_json:
        outputs = [{"path": output.path, "format": output.format} for output in planned.spec.outputs]
        print_json({"name": planned.name, "stages": stages, "outputs": outputs})
        return
    said = {"task_s": "task s"} if any(stage["task_s"] is not None for stage in stages) else {}
    columns = {"name": "stage", "tasks": "tasks", **said, "reads": "reads", "then": "then", "writes": "writes"}
    rows = [[_cell(stage[key]) for key in columns] for stage in stages]
    print_table(tuple(columns.values()), rows, empty="no stages")


def _cell(found: Any) -> Any:
    """Steps are named by a script, which may call them what breaks a line."""
    if isinstance(found, str):
        return printable(found)
    return "" if found is None else found


def _stage(planned: "PlannedFlow", at: int) -> dict[str, Any]:
    from tez_adapter.flow.shown import reads_of, steps_of, writes_of

    stage = planned.plan.stages[at]
    return {
        "name": stage.name,
        "tasks": stage.tasks,
        "task_s": stage.task_s,
        "reads": reads_of(planned.plan, at),
        "then": steps_of(planned.program.flow, stage),
        "writes": writes_of(planned.plan, planned.spec, at),
    }


@dag.command("submit")
@click.argument("script", metavar="SCRIPT[:FLOW]")
@_paths
@attached
@click.option("--queue", help="Queue to submit to.")
@click.option("--name", help="Name of the job [default: the flow's, or the script's].")
@_overwrite
@click.option("--no-wait", is_flag=True, help="Print the application's id and return.")
@quiet_option
@json_option
@clears_up
@with_conf
@terms_options
@click.pass_context
def submit(
    ctx: click.Context,
    conf: Configuration,
    script: str,
    paths: tuple[str, ...],
    files: tuple[str, ...],
    py_files: tuple[str, ...],
    archives: tuple[str, ...],
    queue: str | None,
    name: str | None,
    overwrite: bool,
    no_wait: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run a flow on the cluster. -D NAME=VALUE also sets options of its steps.

    \b
    Example:
      yaq dag submit examples/flow.py --path lines=README.md --path top=top --path shares=shares
    """
    from tez_adapter.client.flow import submit_flow
    from tez_adapter.client.submit import Attachments
    from yaqd.cli.applications.following import follow

    job = submit_flow(
        conf,
        script,
        paths=assignments("--path", paths),
        attachments=Attachments(words(files), words(py_files), words(archives)),
        queue=queue or conf.require("mapreduce.job.queuename"),
        name=name or conf.get("mapreduce.job.name"),
        notify=_note,
        overwrite=overwrite,
    )
    ctx.exit(follow(job, wait=not no_wait, as_json=as_json, is_quiet=quiet))


@dag.command("watch")
@click.argument("application", shell_complete=all_applications)
@quiet_option
@json_option
@with_conf
@click.pass_context
def watch(ctx: click.Context, conf: Configuration, application: str, quiet: bool, as_json: bool) -> None:
    """Follow a flow that runs to its end, stage by stage.

    \b
    Example:
      yaq dag watch application_1700000000000_0001
    """
    from tez_adapter.client.follow import SubmittedJob
    from yaqd.cli.applications.following import follow

    job = SubmittedJob(conf, known_application(conf, application))
    ctx.exit(follow(job, wait=True, as_json=as_json, is_quiet=quiet, is_new=False))


@dag.command("local")
@click.argument("script", metavar="SCRIPT[:FLOW]")
@_paths
@attached
@_overwrite
@quiet_option
@json_option
@seeded
@clears_up
@with_conf
def local(
    conf: Configuration,
    script: str,
    paths: tuple[str, ...],
    files: tuple[str, ...],
    py_files: tuple[str, ...],
    archives: tuple[str, ...],
    overwrite: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run a flow on this machine, without a cluster; the results are the same.

    \b
    Example:
      yaq dag local examples/flow.py --path lines=README.md --path top=top --path shares=shares
    """
    from tez_adapter.client.flow import plan_script, run_flow_here, work_of_flow
    from tez_adapter.client.submit import Attachments
    from tez_adapter.tasks.local_tasks import LocalTasks
    from tez_adapter.tasks.scripts import texts
    from yaqd.cli.applications.following import local_progress, show_counters
    from yaqd.mapreduce import JobError

    def load(before: "Callable[[Path], None]") -> "Work":
        return work_of_flow(script, texts(conf), before)

    with LocalTasks(load, conf, prints_aside=as_json) as tasks:
        planned = plan_script(conf, script, assignments("--path", paths), overwrite=overwrite)
        for note in planned.notes:
            _note(note)
        try:
            counters = run_flow_here(
                planned,
                conf,
                tasks,
                attachments=Attachments(words(files), words(py_files), words(archives)),
                progress=local_progress(is_quiet=as_json or quiet),
                overwrite=overwrite,
            )
        except JobError as error:
            raise CommandError("\n".join(part for part in (str(error), error.detail) if part), FAILED) from error
    outputs = [output.path for output in planned.spec.outputs]
    if as_json:
        print_json({"state": "SUCCEEDED", "outputs": outputs, "counters": counters.to_json()})
    elif not quiet:
        show_counters(counters.to_json())


def _note(line: str) -> None:
    click.echo(f"yaq: {line}", err=True)
