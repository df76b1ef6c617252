"""Submitting jobs from Python programs, as `yaq mr submit` does from a terminal.

from yaqd.client import submit

result = submit(WordCount, inputs="books/", output="counts", reduces=2).wait()
print(result.state, result.counters)
"""

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tez_adapter.client.follow import JobResult, JobStatus, SubmittedJob
from tez_adapter.client.rm_client import RmUnavailable
from tez_adapter.client.staging import SubmitError
from tez_adapter.client.submit import Attachments, submit_mapreduce
from yaqd.config import Configuration
from yaqd.config.check import Severity, check_overrides
from yaqd.config.errors import ConfigError
from yaqd.ipc.errors import YarnError
from yaqd.mapreduce import Job, JobError, split_script
from yaqd.model import ApplicationId
from yaqd.storage import StorageError

log = logging.getLogger(__name__)

__all__ = [
    "ConfigError",
    "JobError",
    "JobResult",
    "JobStatus",
    "RmUnavailable",
    "StorageError",
    "SubmitError",
    "SubmittedJob",
    "YarnError",
    "attach",
    "submit",
]

Paths = str | Sequence[str]


def submit(
    job: str | type[Job],
    *,
    inputs: Paths,
    output: str,
    reduces: int | None = None,
    options: Mapping[str, object] | None = None,
    conf_dir: str | Path | None = None,
    files: Paths = (),
    py_files: Paths = (),
    archives: Paths = (),
    queue: str | None = None,
    name: str | None = None,
    notify: Callable[[str], None] = log.warning,
) -> SubmittedJob:
    """Hand a job to the cluster and return at once; `.wait()` of what is returned blocks and gives a JobResult.

    `job` is a script's path (`job.py` or `job.py:Class`), or a class at the top of a file, which is sent along.
    `options` is what -D sets: the job's own by name, configuration by key. Without `conf_dir` it is HADOOP_CONF_DIR.
    JobError, ConfigError, StorageError, SubmitError say in one line what is wrong, RmUnavailable that nobody answers;
    nothing is left behind then. `notify` is told what is odd and no error.
    """
    if reduces is not None and not isinstance(reduces, int):
        raise SubmitError(f"reduces is a {type(reduces).__name__}: give a whole number")
    script, class_name = _located(job) if isinstance(job, type) else split_script(job)
    conf = _configuration(conf_dir, {key: _text(value) for key, value in (options or {}).items()}, notify)
    if reduces is None and "mapreduce.job.reduces" in conf.changed_keys():
        reduces = conf.get_int("mapreduce.job.reduces", minimum=0)
    try:
        return submit_mapreduce(
            conf,
            script,
            class_name=class_name,
            inputs=_paths(inputs),
            output=output,
            reduces=reduces,
            attachments=Attachments(_paths(files), _paths(py_files), _paths(archives)),
            queue=queue or conf.require("mapreduce.job.queuename"),
            name=name or conf.get("mapreduce.job.name"),
            notify=notify,
        )
    except YarnError as error:  # the ResourceManager refuses it, as of a queue that is not there
        raise SubmitError(str(error)) from error


def attach(application_id: str, *, conf_dir: str | Path | None = None) -> SubmittedJob:
    """Find a job that was submitted earlier, by whomever. Raises ValueError for text that is no application's id.

    Whether there is one is seen when it is asked for: `.wait()` and others raise YarnError where there is none.
    """
    return SubmittedJob(_configuration(conf_dir, {}, log.warning), ApplicationId.parse(application_id))


def _configuration(
    conf_dir: str | Path | None, overrides: Mapping[str, str], notify: Callable[[str], None]
) -> Configuration:
    for finding in check_overrides(dict(overrides)):
        if finding.severity is Severity.ERROR:
            raise ConfigError(finding.message, key=finding.key, source="options")
        notify(str(finding))
    return Configuration.load(None if conf_dir is None else Path(conf_dir), overrides=overrides)


def _located(job: type[Job]) -> tuple[str, str]:
    """The script that a class stands in."""
    try:
        path = inspect.getsourcefile(job)
    except (TypeError, OSError):
        path = None
    if path is None or not Path(path).is_file():
        raise JobError(f"{job.__name__} stands in no file: put it into a script, and give that or its class")
    if job.__qualname__ != job.__name__:
        raise JobError(
            f"{path}: {job.__qualname__} stands within something else: tasks import the top of the file alone"
        )
    return path, job.__name__


def _paths(value: Paths) -> Sequence[str]:
    return (value,) if isinstance(value, str) else value


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
