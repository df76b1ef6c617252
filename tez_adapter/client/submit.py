"""Submitting a job: check everything that can be checked here, upload, hand it to the ResourceManager.

What is wrong with a submission is said before anything starts, in one line (`SubmitError`, or the JobError,
StorageError, ConfigError of whoever noticed).
"""

import logging
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.job_keys import key_notes, refuse_keys
from tez_adapter.client.overwrite import check_replaceable
from tez_adapter.client.sizes import COMMAND_RESOURCES, MEMORY_KEY, VCORES_KEY, command_size, said_twice
from tez_adapter.client.staging import SubmitError
from tez_adapter.client.submission import Attachments, Draft, Request, submit
from tez_adapter.jobspec import JobKind
from tez_adapter.streaming.commands import NO_REDUCES, streaming_commands
from yaqd.config import Configuration
from yaqd.storage import (
    NotAFile,
    PathDenied,
    check_output_possible,
    compute_streaming_splits,
    get_filesystem,
    locate,
)

__all__ = [
    "Attachments",
    "SubmitError",
    "SubmittedJob",
    "check_output",
    "submit_command",
    "submit_mapreduce",
    "submit_streaming",
]

log = logging.getLogger(__name__)
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

REDUCES_MAX_KEY = "yaq.job.reduces-max"
TASKS_MAX_KEY = "yaq.job.tasks-max"


def submit_command(
    conf: Configuration,
    command: Sequence[str],
    *,
    tasks: int = 1,
    memory_mb: int | None = None,
    vcores: int | None = None,
    attachments: Attachments = Attachments(),
    environment: Mapping[str, str] | None = None,
    queue: str = "default",
    name: str | None = None,
    nodes: Sequence[str] = (),
    resources: Mapping[str, str] | None = None,
) -> SubmittedJob:
    """Run a command in `tasks` containers, on these hosts alone where some are named.

    `resources`: amounts of each container by name, such as {"yarn.io/gpu": "1"}.
    """
    if not command:
        raise SubmitError("no command: write it after --, as in: yaq run -- date")
    _check_environment("--env", environment or {})
    check_count(conf, TASKS_MAX_KEY, tasks, "containers", minimum=1)
    for option, key, value in (("--memory", MEMORY_KEY, memory_mb), ("--vcores", VCORES_KEY, vcores)):
        if value is not None:
            conf = conf.with_overrides({key: str(value)}, source=option)
    twice = said_twice(memory_mb, vcores, resources or {})
    if twice is not None:
        raise SubmitError(twice)
    named = {COMMAND_RESOURCES + name: amount for name, amount in (resources or {}).items()}
    conf = conf.with_overrides(named, source="--resource")
    command_size(conf)  # what cannot be is said before anybody is asked
    request = Request(conf, name or command[0].rpartition("/")[2], queue, attachments, environment or {})
    fields = {"command": f"exec {shlex.join(command)}", "tasks": tasks, "nodes": tuple(nodes)}
    return submit(Draft(request, JobKind.COMMAND, fields))


def submit_mapreduce(
    conf: Configuration,
    script: str,
    *,
    inputs: Sequence[str],
    output: str,
    class_name: str | None = None,
    reduces: int | None = None,
    attachments: Attachments = Attachments(),
    queue: str = "default",
    name: str | None = None,
    notify: Callable[[str], None] = log.warning,
    overwrite: bool = False,
) -> SubmittedJob:
    """Run the job class of a Python script. `notify` is told what is odd and no error. `overwrite`: results in the
    output folder go when the job is submitted."""
    from tez_adapter.tasks.scripts import check_script, sample_boundaries

    refuse_keys(conf, is_streaming=False)
    checked = check_script(conf, script, class_name, attachments.py_files, attachments.files)
    for note in checked.notes:
        notify(note)
    job = checked.job_class
    count = job.reduces if reduces is None else reduces
    check_count(conf, REDUCES_MAX_KEY, count, "reduces")
    if overwrite:
        check_replaceable(conf, output, inputs)
    target = check_output(conf, output, overwrite=overwrite)
    splits = _splits(conf, inputs, job.input_format)
    boundaries: list[bytes] = []
    if job.partitioner == "range" and count > 1:
        boundaries = sample_boundaries(checked, splits, count, conf)
    fields: dict[str, Any] = {
        "script": checked.script_name,
        "class_name": job.__name__,
        "output": target,
        "reduces": count,
        "input_format": job.input_format,
        "output_format": job.output_format,
        "boundaries": tuple(key.hex() for key in boundaries),
    }
    request = Request(conf, name or job.name or job.__name__, queue, attachments, application_type="MAPREDUCE")
    pieces = [split.to_json() for split in splits]
    return submit(Draft(request, JobKind.MAPREDUCE, fields, pieces, (checked.path,), replaces=overwrite))


def submit_streaming(
    conf: Configuration,
    *,
    inputs: Sequence[str],
    output: str,
    mapper: str,
    reducer: str = "",
    combiner: str = "",
    reduces: int | None = None,
    attachments: Attachments = Attachments(),
    environment: Mapping[str, str] | None = None,
    queue: str = "default",
    name: str | None = None,
    notify: Callable[[str], None] = log.warning,
    overwrite: bool = False,
) -> SubmittedJob:
    """Run executables as mapper, combiner and reducer; the reducer NONE makes the map output the job's output.
    `notify` is told what is odd and no error. `overwrite`: results in the output folder go then."""
    from tez_adapter.streaming.settings import check_combiner, stream_settings

    if not mapper:
        raise SubmitError("no mapper: give one with -mapper, as in -mapper cat")
    _check_environment("-cmdenv", environment or {})
    refuse_keys(conf, is_streaming=True)
    for note in key_notes(conf, is_streaming=True):
        notify(note)
    settings = stream_settings(conf)  # what cannot be is said here, not by every attempt of the first map
    scripts = streaming_commands(mapper, reducer, combiner)
    if scripts.combiner:
        check_combiner(settings, conf)
    count = conf.get_int("mapreduce.job.reduces", 1) if reduces is None else reduces
    if reducer == NO_REDUCES:
        count = 0
    check_count(conf, REDUCES_MAX_KEY, count, "reduces")
    if overwrite:
        check_replaceable(conf, output, inputs)
    target = check_output(conf, output, overwrite=overwrite)
    splits = compute_streaming_splits(inputs, conf)
    check_count(conf, TASKS_MAX_KEY, len(splits), "map tasks")
    fields = {"output": target, "reduces": count, "input_format": "bytes", "streaming": scripts}
    request = Request(conf, name or "streamjob", queue, attachments, environment or {}, application_type="MAPREDUCE")
    return submit(Draft(request, JobKind.STREAMING, fields, [s.to_json() for s in splits], replaces=overwrite))


def check_output(conf: Configuration, output: str, *, overwrite: bool = False) -> str:
    """Return the qualified output folder. It must not exist unless `overwrite`, and this user can make it.

    Raises SubmitError.
    """
    location = locate(output, conf)
    target = str(location)
    files = get_filesystem(target, conf)
    try:
        if files.exists(target):
            if overwrite:
                return target
            remove = "remove it or " if location.path.strip("/") else ""
            raise SubmitError(f"output folder {target} exists already: {remove}name another")
        check_output_possible(files, location.path)
    except (NotAFile, PathDenied) as error:
        raise SubmitError(f"output folder {target} cannot be made: {error}") from None
    return target


def _splits(conf: Configuration, inputs: Sequence[str], input_format: str) -> list[Any]:
    from yaqd.mapreduce.formats import InputFormat
    from yaqd.storage import compute_splits

    splits = compute_splits(inputs, InputFormat.parse(input_format), conf)
    check_count(conf, TASKS_MAX_KEY, len(splits), "map tasks")
    return splits


def _check_environment(option: str, environment: Mapping[str, str]) -> None:
    """What a NodeManager would refuse of each container."""
    for name in environment:
        if not _SHELL_NAME.match(name):
            raise SubmitError(f"{option}: environment variable name {name[:80]!r} is not a shell name: rename it")


def check_count(conf: Configuration, key: str, count: int, what: str, minimum: int = 0) -> None:
    """Raise SubmitError beyond a limit: every task costs memory in the job manager, every reduce also in every map."""
    maximum = conf.get_int(key, minimum=1)
    if count < minimum:
        raise SubmitError(f"{count} {what}: ask for {minimum} or more")
    if count > maximum:
        raise SubmitError(f"{count} {what} are more than {maximum}: ask for fewer, or raise {key} with -D")
