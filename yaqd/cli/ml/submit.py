"""`yaq ml submit`, `stop` and `resume`."""

from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yaqd.cli.applications.known import known_application
from yaqd.cli.ended import clears_up
from yaqd.cli.exits import CommandError
from yaqd.cli.options import FiniteFloat, json_option, quiet_option, terms_options, with_conf, words
from yaqd.cli.output import print_json
from yaqd.cli.shell.completing import all_applications, open_applications
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.client.follow import SubmittedJob

_no_wait = click.option("--no-wait", is_flag=True, help="Print the application's id and return.")


@click.command("submit", context_settings={"allow_interspersed_args": True})
@click.argument("script", metavar="SCRIPT[:CLASS]")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS...]")
@click.option(
    "--class",
    "curve",
    type=click.Choice(("auto", "sublinear", "superlinear")),
    default="auto",
    show_default=True,
    help="How the loss falls: gradient descent is sublinear; L-BFGS, Newton and EM are superlinear.",
)
@click.option("--target", type=FiniteFloat(), metavar="LOSS", help="End the job when its loss is there.")
@click.option("--weight", type=FiniteFloat(min=0, min_open=True), default=1.0, show_default=True,
              help="Of its loss beside other jobs'.")  # fmt: skip
@click.option("--min-cores", type=FiniteFloat(min=0), default=0.0, show_default=True,
              help="It gets no less where all jobs' least fit.")  # fmt: skip
@click.option("--max-cores", type=FiniteFloat(min=0, min_open=True), metavar="N",
              help="It gets no more [default: one for each partition; 1 for a program].")  # fmt: skip
@click.option("--iterations", type=click.IntRange(min=1), metavar="N", help="After which the job ends.")
@click.option("--data", multiple=True, metavar="PATHS", help="Files that the partitions are dealt, in order; commas.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of what is random in the job.")
@click.option("--memory", "memory_mb", type=click.IntRange(min=1), metavar="MB", help="Of each worker, or the program.")
@click.option("--files", multiple=True, metavar="PATHS", help="Files for the containers: PATH or PATH#NAME, commas.")
@click.option("--py-files", multiple=True, metavar="PATHS", help=".py, .zip or .egg files to import from, likewise.")
@click.option("--env", "environment", multiple=True, metavar="NAME=VALUE", help="Environment of the program.")
@click.option("--queue", help="Queue to submit to.")
@click.option("--name", help="Name of the job [default: its class's, or the script's].")
@_no_wait
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
    arguments: tuple[str, ...],
    curve: str,
    target: float | None,
    weight: float,
    min_cores: float,
    max_cores: float | None,
    iterations: int | None,
    data: tuple[str, ...],
    seed: int,
    memory_mb: int | None,
    files: tuple[str, ...],
    py_files: tuple[str, ...],
    environment: tuple[str, ...],
    queue: str | None,
    name: str | None,
    no_wait: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train a model on the cluster: with a class derived from yaqd.ml.IterativeJob in workers, or with any program
    that calls yaqd.ml.report in one container. -D NAME=VALUE also sets the class's own options.

    \b
    Example:
      yaq ml submit train.py --max-cores 8 --class sublinear -D rate=0.1
      yaq ml submit fit.py --max-cores 2 --target 0.05 -- --depth 3
    """
    from tez_adapter.client.submit import Attachments
    from tez_adapter.client.training import look_at, submit_training
    from tez_adapter.jobspec import Training
    from yaqd.cli.ml.data import data_files, refuse_of_classes
    from yaqd.cli.options import assignments

    program = look_at(conf, script)
    if not program.class_name:
        refuse_of_classes(script, data, seed)
    terms = Training(
        curve=curve,
        target=target,
        weight=weight,
        min_cores=min_cores,
        max_cores=max_cores if max_cores is not None else max(min_cores, float(program.partitions or 1)),
        iterations=iterations or 0,
        data=data_files(words(data), conf),
        seed=seed,
        arguments=arguments,
    )
    job = submit_training(
        conf,
        script,
        terms,
        memory_mb=memory_mb,
        attachments=Attachments(words(files), words(py_files)),
        environment=assignments("--env", environment),
        queue=queue or conf.require("mapreduce.job.queuename"),
        name=name,
    )
    ctx.exit(_follow(job, no_wait=no_wait, as_json=as_json, quiet=quiet))


def _follow(job: "SubmittedJob", *, no_wait: bool, as_json: bool, quiet: bool) -> int:
    """Shows the job to its end, and what it was trained to."""
    from yaqd.cli.applications.following import follow

    reached = partial(_reached, job, as_json=as_json)
    return follow(job, wait=not no_wait, as_json=as_json, is_quiet=quiet, reached=reached)


def _reached(job: "SubmittedJob", *, as_json: bool) -> dict[str, object]:
    """The last iteration and loss, and of a class its model; nothing where that cannot be read."""
    from tez_adapter.client.rm_client import RmUnavailable
    from tez_adapter.client.training_view import TrainingWatch

    try:
        with closing(TrainingWatch(job.conf, job.report())) as watch:
            view = watch.look()
    except RmUnavailable:
        return {}
    known: dict[str, object] = {"iteration": view.iteration, "loss": view.loss, "model_sha256": view.model_sha256}
    if as_json:
        return known
    fields = {name.replace("_", " "): value for name, value in known.items() if value is not None}
    if view.loss is not None:
        fields["loss"] = f"{view.loss:.6g}"
    if view.model_sha256:
        fields["model"] = f"yaq ml model {job.application_id} --output FILE"
    return fields


@click.command("stop")
@click.argument("applications", nargs=-1, required=True, metavar="APPLICATION...", shell_complete=open_applications)
@json_option
@with_conf
def stop(conf: Configuration, applications: tuple[str, ...], as_json: bool) -> None:
    """End training jobs after the iteration that they are in, and explorations. Each leaves what `yaq ml resume` goes
    on from. A program that does not heed it goes on; `yaq app kill` ends it.

    \b
    Example:
      yaq ml stop application_1700000000000_0001
    """
    from tez_adapter.client.follow import SubmittedJob

    told, words = {}, {}
    for text in applications:
        job = SubmittedJob(conf, known_application(conf, text))
        try:
            is_told, will = _stopped(job)
            told[str(job.application_id)] = is_told
            words[str(job.application_id)] = will if is_told else "is not running: nothing to stop"
        finally:
            job.close()
    if as_json:
        print_json(told)
        return
    for application_id, line in words.items():
        click.echo(f"{application_id} {line}")


def _stopped(job: "SubmittedJob") -> tuple[bool, str]:
    """Tell a job to stop; return whether it was told, and what it does then. CommandError: it is another kind."""
    from tez_adapter.client.exploration import APPLICATION_TYPE as EXPLORATION
    from tez_adapter.client.exploration import stop_exploration
    from tez_adapter.client.training import APPLICATION_TYPE as TRAINING
    from tez_adapter.client.training import stop_training

    kind = job.report().type
    if kind == EXPLORATION:
        answer = stop_exploration(job)
        will = "ends once the trials that run have made checkpoints"
        if answer is not None and answer.begins_anew:
            will = "ends with the next reports of its trials; those without checkpoints begin anew with yaq ml resume"
        return answer is not None, will
    if kind != TRAINING:
        raise CommandError(
            f"{job.application_id} is no training job or exploration ({kind}): yaq app kill {job.application_id}"
        )
    return stop_training(job), "ends with its next report"


@click.command("resume")
@click.argument("application", shell_complete=all_applications)
@click.option("--target", type=FiniteFloat(), metavar="X", help="Of an exploration: another target.")
@click.option("--max-time", metavar="TIME", help="Of an exploration: another time for it all, 90m or 24h.")
@click.option("--slots", type=click.IntRange(1, 10_000), metavar="N", help="Of an exploration: trials at once.")
@click.option(
    "--space",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of an exploration: hold that its space is still this.",
)
@click.option("--queue", help="Queue to submit to.")
@_no_wait
@quiet_option
@json_option
@clears_up
@with_conf
@click.pass_context
def resume(
    ctx: click.Context,
    conf: Configuration,
    application: str,
    target: float | None,
    max_time: str | None,
    slots: int | None,
    space: Path | None,
    queue: str | None,
    no_wait: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Submit a training job or an exploration of yours again that has ended; it goes on from its last checkpoints.

    \b
    Example:
      yaq ml resume application_1700000000000_0001
    """
    from tez_adapter.client.training import resume_training
    from yaqd.cli.applications.known import parse_application_id
    from yaqd.cli.client import rm_client
    from yaqd.cli.ml.explore.look import was_exploration
    from yaqd.ipc.errors import ApplicationNotFound

    application_id = parse_application_id(application)
    with rm_client(conf) as rm:
        user = rm.user
        with suppress(ApplicationNotFound):  # the ResourceManager forgets; what a job has left stays
            state = rm.report(application_id).state
            if not state.is_final:
                raise CommandError(
                    f"{application_id} has not ended ({state.name}): end it first with `yaq ml stop {application_id}`"
                )
    chosen = queue or conf.require("mapreduce.job.queuename")
    terms = {"target": target, "max-time": max_time, "slots": slots, "space": space}
    changed = [name for name, value in terms.items() if value is not None]
    if was_exploration(conf, user, application_id):
        from yaqd.cli.ml.explore.submit import follow_exploration, go_on

        job = go_on(conf, user, application_id, chosen, target=target, max_time=max_time, slots=slots, space=space)
        ctx.exit(follow_exploration(job, no_wait=no_wait, as_json=as_json, is_quiet=quiet))
    if changed:
        raise CommandError(f"--{changed[0]} is of explorations, and {application_id} is a training job: leave it out")
    job = resume_training(conf, user, application_id, queue=chosen)
    ctx.exit(_follow(job, no_wait=no_wait, as_json=as_json, quiet=quiet))
