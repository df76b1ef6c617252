"""`yaq mr`: MapReduce jobs from Python classes or from any programs, on the cluster or in one process."""

from typing import TYPE_CHECKING

import click

from yaqd.cli.ended import clears_up
from yaqd.cli.exits import FAILED, CommandError
from yaqd.cli.jobs.attached import attached
from yaqd.cli.options import json_option, load_conf, quiet_option, terms_options, with_conf, words
from yaqd.cli.output import print_json
from yaqd.cli.seeded import seeded
from yaqd.config import Configuration

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tez_adapter.client.follow import SubmittedJob
    from tez_adapter.client.submit import Attachments
    from tez_adapter.tasks.local_tasks import Work
    from yaqd.cli.jobs.streaming_options import StreamingOptions
    from yaqd.mapreduce import Counters

_inputs = click.option(
    "--input", "inputs", multiple=True, required=True, metavar="PATH", help="File, folder or pattern; may be repeated."
)
_output = click.option("--output", required=True, metavar="DIR", help="Folder for the results; must not exist.")
_reduces = click.option("--reduces", type=int, metavar="N", help="Reduce tasks; 0 writes the map output as it is.")
_overwrite = click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the results of an earlier job in the output folder; nothing else. They go when the job begins: one "
    "that fails leaves none.",
)


@click.group(help="Run MapReduce jobs: Python classes or streaming programs.")
def mr() -> None:
    pass


@mr.command("submit")
@click.argument("script", metavar="SCRIPT[:CLASS]")
@_inputs
@_output
@_reduces
@attached
@click.option("--queue", help="Queue to submit to.")
@click.option("--name", help="Name of the job [default: its class's].")
@click.option(
    "--shuffle",
    type=click.Choice(("local", "hdfs")),
    help="Where map outputs are: disks of the nodes, or HDFS, where any merger merges them [yaq.riffle.storage].",
)
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
    inputs: tuple[str, ...],
    output: str,
    reduces: int | None,
    files: tuple[str, ...],
    py_files: tuple[str, ...],
    archives: tuple[str, ...],
    queue: str | None,
    name: str | None,
    shuffle: str | None,
    overwrite: bool,
    no_wait: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run the job class of a Python script on the cluster. -D NAME=VALUE also sets the job's own options.

    \b
    Example:
      yaq mr submit examples/wordcount.py --input big.txt --output counts --reduces 2 -D min_length=4
    """
    from tez_adapter.client.submit import Attachments, submit_mapreduce
    from yaqd.cli.applications.following import follow
    from yaqd.mapreduce import split_script

    path, class_name = split_script(script)
    if shuffle is not None:
        conf = conf.with_overrides({"yaq.riffle.storage": shuffle}, source="--shuffle")
    job = submit_mapreduce(
        conf,
        path,
        class_name=class_name,
        inputs=inputs,
        output=output,
        reduces=_reduce_count(conf, reduces),
        attachments=Attachments(words(files), words(py_files), words(archives)),
        queue=queue or conf.require("mapreduce.job.queuename"),
        name=name or conf.get("mapreduce.job.name"),
        notify=_note,
        overwrite=overwrite,
    )
    ctx.exit(follow(job, wait=not no_wait, as_json=as_json, is_quiet=quiet))


class _StreamingCommand(click.Command):
    """Hands its words on unparsed: Hadoop Streaming's options are not of click's kind."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if any(word in ("-help", "--help", "-h", "-info") for word in args):
            return super().parse_args(ctx, ["--help"])
        ctx.obj = args
        return super().parse_args(ctx, [])


@mr.command("streaming", cls=_StreamingCommand, options_metavar="-input PATH -output DIR -mapper COMMAND [OPTIONS]")
@clears_up
@click.pass_context
def streaming(ctx: click.Context) -> None:
    """Run any programs as mapper, combiner and reducer, with Hadoop Streaming's options.

    \b
      -input PATH           file, folder or pattern; may be repeated
      -output DIR           folder for the results; must not exist
      -mapper COMMAND       reads lines, writes key TAB value lines
      -combiner COMMAND     the same on sorted map output
      -reducer COMMAND      the same on sorted input; NONE: no reduce phase
      -numReduceTasks N     reduce tasks
      -partitioner CLASS    Hadoop's KeyFieldBasedPartitioner or HashPartitioner
      -io FORMAT            what the programs read and write: text, rawbytes or typedbytes
      -file PATH            ship a file; may be repeated
      -files PATHS          ship files, commas; PATH#NAME renames
      -archives PATHS       ship and unpack archives, likewise
      -cmdenv NAME=VALUE    environment of the programs; may be repeated
      -D KEY=VALUE          set a configuration key; may be repeated
      -queue NAME           queue to submit to
      -conf DIR             configuration folder
      -background           print the application's id and return
      --overwrite           replace the results of an earlier job in the output folder; nothing else
      --quiet               say nothing but what goes wrong
      --json                print one JSON value

    \b
    Example:
      yaq mr streaming -input big.txt -output counts -file map.py -file reduce.py \\
        -mapper 'python3 map.py' -reducer 'python3 reduce.py' -numReduceTasks 2
    """
    from pathlib import Path

    from yaqd.cli.jobs.streaming_options import parse_streaming

    options = parse_streaming(ctx.obj or [])
    conf = load_conf(Path(options.conf_dir) if options.conf_dir else None, options.defines)
    for key, option in options.named_by.items():
        conf = conf.with_overrides({key: options.defines[key]}, source=option)

    from yaqd.cli.applications.following import follow

    job = _submit_streaming(conf, options)
    ctx.exit(follow(job, wait=not options.is_background, as_json=options.as_json, is_quiet=options.is_quiet))


def _submit_streaming(conf: Configuration, options: "StreamingOptions") -> "SubmittedJob":
    from tez_adapter.client.submit import Attachments, submit_streaming

    return submit_streaming(
        conf,
        inputs=options.inputs,
        output=options.output,
        mapper=options.mapper,
        combiner=options.combiner,
        reducer=options.reducer,
        reduces=options.reduces,
        attachments=Attachments(files=options.files, archives=options.archives),
        environment=options.environment,
        queue=conf.require("mapreduce.job.queuename"),
        name=conf.get("mapreduce.job.name"),
        notify=_note,
        overwrite=options.overwrite,
    )


@mr.command("local")
@click.argument("script", metavar="SCRIPT[:CLASS]")
@_inputs
@_output
@_reduces
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
    inputs: tuple[str, ...],
    output: str,
    reduces: int | None,
    files: tuple[str, ...],
    py_files: tuple[str, ...],
    archives: tuple[str, ...],
    overwrite: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run the job class on this machine, without a cluster; the results are the same.

    \b
    Example:
      yaq mr local examples/wordcount.py --input README.md --output counts
    """
    from tez_adapter.client.job_keys import refuse_keys
    from tez_adapter.client.submit import Attachments
    from yaqd.cli.applications.following import show_counters

    refuse_keys(conf, is_streaming=False)
    attachments = Attachments(words(files), words(py_files), words(archives))
    count = _reduce_count(conf, reduces)
    if count is not None and count < 0:
        raise CommandError(f"--reduces {count}: ask for 0 or more")
    counters = _run_here(
        conf, script, inputs, output, count, attachments, overwrite=overwrite, as_json=as_json, is_quiet=quiet
    )
    if as_json:
        print_json({"state": "SUCCEEDED", "output": output, "counters": counters.to_json()})
    elif not quiet:
        show_counters(counters.to_json())


def _run_here(
    conf: Configuration,
    script: str,
    inputs: tuple[str, ...],
    output: str,
    reduces: int | None,
    attachments: "Attachments",
    *,
    overwrite: bool,
    as_json: bool,
    is_quiet: bool,
) -> "Counters":
    """Loads the script and runs its tasks. Raises CommandError for a task that fails."""
    from tez_adapter.client.local import run_local
    from tez_adapter.tasks.local_tasks import LocalTasks, work_of
    from tez_adapter.tasks.scripts import check_script
    from yaqd.cli.applications.following import local_progress
    from yaqd.mapreduce import JobError

    def load(before: "Callable[[Path], None]") -> "Work":
        checked = check_script(conf, script, None, attachments.py_files, attachments.files, before=before)
        return work_of(checked.job_class, checked.params)

    progress = local_progress(is_quiet=as_json or is_quiet)
    with LocalTasks(load, conf, prints_aside=as_json) as tasks:
        checked = check_script(conf, script, None, attachments.py_files, attachments.files)
        for note in checked.notes:
            _note(note)
        try:
            return run_local(
                checked.job_class,
                inputs,
                output,
                conf,
                reduces,
                checked.params,
                tasks=tasks,
                attachments=attachments,
                progress=progress,
                notify=_note,
                overwrite=overwrite,
            )
        except JobError as error:
            raise CommandError("\n".join(part for part in (str(error), error.detail) if part), FAILED) from error


def _note(line: str) -> None:
    click.echo(f"yaq: {line}", err=True)


def _reduce_count(conf: Configuration, given: int | None) -> int | None:
    """The option, else what a site file or -D sets, else None: the job's class decides."""
    from tez_adapter.tasks.scripts import is_given

    key = "mapreduce.job.reduces"
    if given is not None:
        if is_given(conf, key) and conf.get(key) != str(given):
            _note(f"--reduces {given} counts, and not -D {key}={conf.get(key)}")
        return given
    return conf.get_int(key, minimum=0) if key in conf.changed_keys() else None
