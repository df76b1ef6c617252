"""Submitting a job: check everything that can be checked here, upload, hand it to the ResourceManager.

What is wrong with a submission is said before anything starts, in one line (`SubmitError`, or the JobError,
StorageError, ConfigError of whoever noticed).
"""

import logging
import re
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from tez_adapter.client.archives import check_archives
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.job_keys import key_notes, refuse_keys
from tez_adapter.client.overwrite import check_replaceable, remove_results
from tez_adapter.client.rm_client import RmClient
from tez_adapter.client.sizes import (
    COMMAND_RESOURCES,
    MASTER_MEMORY_KEY,
    MEMORY_KEY,
    VCORES_KEY,
    command_size,
    in_single_units,
    master_memory_mb,
    said_twice,
    too_large,
)
from tez_adapter.client.staging import STAGING_KEY, Staging, SubmitError, alias_of
from tez_adapter.client.terms import set_terms
from tez_adapter.jobspec import (
    JOB_FILE,
    SPLITS_FILE,
    JobKind,
    JobResource,
    JobSpec,
    dump_splits,
    job_id_of,
)
from tez_adapter.master.launch import configured_environment, python_context, python_environment
from tez_adapter.master.plan import check_plan
from tez_adapter.merging.settings import STORAGE_KEY, check_merging, on_hdfs
from tez_adapter.output_codec import shuffle_codec
from tez_adapter.streaming.commands import NO_REDUCES, streaming_commands
from yaqd.config import Configuration
from yaqd.model import DEFAULT_RACK, ApplicationId, LocalResourceType, NodeState, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as pb
from yaqd.security import Credentials, JobTokenSecrets
from yaqd.storage import (
    NotAFile,
    PathDenied,
    check_output_possible,
    compute_streaming_splits,
    get_filesystem,
    locate,
    qualify,
)

log = logging.getLogger(__name__)
#: at most at the same time
_UPLOADS = 8
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

APPMASTER_ENTRY = "tez_adapter.master.appmaster:main"
REDUCES_MAX_KEY = "yaq.job.reduces-max"
TASKS_MAX_KEY = "yaq.job.tasks-max"


@dataclass(frozen=True, slots=True)
class Attachments:
    """Files that travel with a job, as the command line names them (`PATH` or `PATH#NAME`)."""

    files: Sequence[str] = ()
    #: .py, .zip, .egg: also put onto the import path
    py_files: Sequence[str] = ()
    archives: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What all kinds of job have in common."""

    conf: Configuration
    name: str
    queue: str = "default"
    attachments: Attachments = field(default_factory=Attachments)
    environment: Mapping[str, str] = field(default_factory=dict)
    application_type: str = "YAQ"


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
    _check_count(conf, TASKS_MAX_KEY, tasks, "containers", minimum=1)
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
    return _submit(request, JobKind.COMMAND, fields, [], ())


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
    _check_count(conf, REDUCES_MAX_KEY, count, "reduces")
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
    return _submit(
        request, JobKind.MAPREDUCE, fields, [s.to_json() for s in splits], (checked.path,), replaces=overwrite
    )


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
    _check_count(conf, REDUCES_MAX_KEY, count, "reduces")
    if overwrite:
        check_replaceable(conf, output, inputs)
    target = check_output(conf, output, overwrite=overwrite)
    splits = compute_streaming_splits(inputs, conf)
    _check_count(conf, TASKS_MAX_KEY, len(splits), "map tasks")
    fields = {"output": target, "reduces": count, "input_format": "bytes", "streaming": scripts}
    request = Request(conf, name or "streamjob", queue, attachments, environment or {}, application_type="MAPREDUCE")
    return _submit(request, JobKind.STREAMING, fields, [s.to_json() for s in splits], (), replaces=overwrite)


def check_output(conf: Configuration, output: str, *, overwrite: bool = False) -> str:
    """The qualified output folder, which must not exist unless `overwrite`, and which this user can make."""
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
    _check_count(conf, TASKS_MAX_KEY, len(splits), "map tasks")
    return splits


def _check_environment(option: str, environment: Mapping[str, str]) -> None:
    """What a NodeManager would refuse of each container."""
    for name in environment:
        if not _SHELL_NAME.match(name):
            raise SubmitError(f"{option}: environment variable name {name[:80]!r} is not a shell name: rename it")


def _check_count(conf: Configuration, key: str, count: int, what: str, minimum: int = 0) -> None:
    """Every task costs memory in the job manager, every reduce also in every map."""
    maximum = conf.get_int(key, minimum=1)
    if count < minimum:
        raise SubmitError(f"{count} {what}: ask for {minimum} or more")
    if count > maximum:
        raise SubmitError(f"{count} {what} are more than {maximum}: ask for fewer, or raise {key} with -D")


def _submit(
    request: Request,
    kind: JobKind,
    fields: dict[str, Any],
    splits: list[dict[str, Any]],
    scripts: Sequence[str],
    *,
    replaces: bool = False,
) -> SubmittedJob:
    """`replaces`: what stands in the output folder goes, once nothing but the submission itself can fail."""
    check_archives(request.attachments.archives)
    conf = in_single_units(request.conf)
    request = replace(request, conf=conf)
    if kind is not JobKind.COMMAND:
        check_plan(int(fields.get("reduces", 0)), conf)  # also what only the tasks will read
    if fields.get("reduces"):
        shuffle_codec(conf)  # what cannot be is said here, not by every attempt of the first map
        check_merging(conf)  # what cannot be is said here, not in the job manager's log
    if fields.get("reduces") and on_hdfs(conf):
        _check_on_hdfs(conf)
    rm = RmClient(conf)
    try:
        application_id, largest = rm.new_application()
        problem = too_large(kind, int(fields.get("reduces", 0)), conf, largest)
        if problem is not None:
            raise SubmitError(problem)
        _check_nodes(rm, fields.get("nodes", ()))
        job_id = job_id_of(application_id)
        staging = Staging(conf, rm.user, job_id)
        staging.create()
        try:
            texts = {} if kind is JobKind.COMMAND else {SPLITS_FILE: dump_splits(splits)}
            resources, written = _send(staging, request.attachments, scripts, texts)
            spec = JobSpec(
                job_id=job_id,
                name=request.name,
                user=rm.user,
                kind=kind,
                conf=_conf_values(conf),
                staging=staging.path,
                resources=resources,
                py_files=tuple(alias_of(p)[1] for p in request.attachments.py_files),
                environment=request.environment,
                racks=_racks(rm) if any(split.get("hosts") for split in splits) else {},
                **fields,
            )
            context = _context(request, spec, written, staging, application_id, largest)
            if replaces:
                remove_results(conf, fields["output"])
            rm.submit(context)
        except BaseException:
            staging.remove()
            raise
        return SubmittedJob(conf, application_id, rm)
    except BaseException:
        rm.close()
        raise


def _check_on_hdfs(conf: Configuration) -> None:
    """Map outputs go where the job's staging folder is."""
    root = qualify(conf.require(STAGING_KEY), conf)
    if not root.startswith("hdfs://"):
        raise SubmitError(
            f"map outputs cannot be on HDFS ({STORAGE_KEY}): the staging folder {root} is not; set fs.defaultFS or "
            f"{STAGING_KEY} to a folder on hdfs://"
        )


def _check_nodes(rm: RmClient, wanted: Sequence[str]) -> None:
    """A container for a host without a node would never come."""
    if not wanted:
        return
    there = {node.id.host for node in rm.nodes((NodeState.RUNNING,))}
    absent = [host for host in wanted if host not in there]
    if absent:
        raise SubmitError(f"no node runs on {', '.join(absent)}: `yaq node list` shows which hosts there are")


def _racks(rm: RmClient) -> dict[str, str]:
    """Of hosts with a node, where it is not the default one."""
    return {node.id.host: node.rack for node in rm.nodes((NodeState.RUNNING,)) if node.rack not in ("", DEFAULT_RACK)}


def _conf_values(conf: Configuration) -> dict[str, str]:
    """What differs from the shipped defaults, variables replaced."""
    values = {key: conf.get(key) for key in conf.changed_keys()}
    return {key: value for key, value in values.items() if value is not None}


def _send(
    staging: Staging, attachments: Attachments, scripts: Sequence[str], texts: Mapping[str, bytes]
) -> tuple[tuple[JobResource, ...], tuple[JobResource, ...]]:
    """What tasks get, and what `texts` became, all uploaded at once: HDFS may need half a second to close each."""
    files = [*scripts, *attachments.files, *attachments.py_files]
    names = [alias_of(text)[1] for text in (*files, *attachments.archives)]
    for name in names:
        if names.count(name) > 1 or name in (JOB_FILE, SPLITS_FILE):
            raise SubmitError(f"two files would be {name} in the container: name one of them with PATH#NAME")
    with ThreadPoolExecutor(_UPLOADS) as pool:
        written = [pool.submit(staging.write, name, data) for name, data in texts.items()]
        sent = staging.add(files, pool) + staging.add(attachments.archives, pool, LocalResourceType.ARCHIVE)
    return tuple(each.result() for each in sent), tuple(each.result() for each in written)


def _context(
    request: Request,
    spec: JobSpec,
    written: Sequence[JobResource],
    staging: Staging,
    application_id: ApplicationId,
    largest: Resource,
) -> pb.ApplicationSubmissionContext:
    conf = request.conf
    # the file lists what tasks get, itself excepted: its size and time are known only now, and go as arguments
    own = staging.write(JOB_FILE, spec.dump())
    environment = python_environment(conf.get("yaq.job.python")) | configured_environment(
        conf, "yarn.app.mapreduce.am.env"
    )
    arguments = ("--job-file", own.uri, str(own.bytes), str(own.timestamp_ms))
    launch = python_context(APPMASTER_ENTRY, arguments, [own, *written], environment)
    token = JobTokenSecrets(secrets.token_bytes).mint(spec.job_id)
    launch.tokens = Credentials({spec.job_id: token}).write()
    memory_mb = master_memory_mb(spec.kind, spec.tasks, conf)
    if memory_mb > largest.memory_mb:
        raise SubmitError(
            f"the job manager's {memory_mb} MB ({MASTER_MEMORY_KEY}) are more than the "
            f"{largest.memory_mb} MB that a container can have here"
        )
    context = pb.ApplicationSubmissionContext(
        application_id=convert.application_id_pb(application_id),
        application_name=request.name,
        queue=request.queue,
        am_container_spec=launch,
        maxAppAttempts=conf.get_int("mapreduce.am.max-attempts", 2, minimum=1),
        applicationType=request.application_type,
        resource=convert.resource_pb(
            Resource(memory_mb, conf.get_int("yarn.app.mapreduce.am.resource.cpu-vcores", 1, minimum=1))
        ),
    )
    set_terms(context, conf)
    return context
