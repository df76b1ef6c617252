"""One file per job: what it was, every attempt with its times, place and counters, and how it ended.

JSON lines: a `job` line, an `attempt` line for each attempt, an `end` line. The job manager writes the file once,
under its final name, before it unregisters; whatever looks at a finished job (status, estimates of the next run,
replay in the simulator) reads it. Times are epoch milliseconds.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tez_adapter.client.terms import VIEW_KEY
from yaqd.config import Configuration
from yaqd.model import ApplicationId
from yaqd.storage import FileSystem, PathDenied, StorageError, get_filesystem, qualify

HISTORY_DIR_KEY = "yaq.job.history-dir"
_BYTES_MAX = 1 << 30
#: as Hadoop's folder of jobs that are done: everybody adds to it, nobody removes another's
_FOLDER_MODE = 0o1777
#: for its owner and the folder's group
_PRIVATE_MODE = 0o660


class NoHistory(Exception):
    """The job wrote none, or it was removed."""


@dataclass(frozen=True, slots=True)
class JobHistory:
    #: job_id, name, user, kind, submitted_ms, started_ms, output; of flows edges too
    job: dict[str, Any]
    #: vertex, task, number, name, state, container, node, started_ms, began_ms, finished_ms, error, counters, phases
    attempts: list[dict[str, Any]] = field(default_factory=list)
    #: state, diagnostics, exit_code, finished_ms, counters
    end: dict[str, Any] = field(default_factory=dict)


def history_path(conf: Configuration, application_id: ApplicationId) -> str:
    folder = qualify(conf.require(HISTORY_DIR_KEY), conf)
    return f"{folder}/job_{application_id.cluster_timestamp}_{application_id.id:04d}.jsonl"


def write_history(conf: Configuration, application_id: ApplicationId, lines: Iterable[dict[str, Any]]) -> None:
    """Write the job's history. The file appears whole or not at all. Blocking."""
    path = history_path(conf, application_id)
    files = get_filesystem(path, conf)
    _make_folder(files, path.rpartition("/")[0])
    # a former attempt of this job's manager may have written one: the last word counts
    writer = files.create(path, overwrite=True)
    try:
        writer.write("".join(json.dumps(line) + "\n" for line in lines).encode())
    except BaseException:
        writer.abort()
        raise
    writer.close()
    if _is_private(conf):
        files.set_mode(path, _PRIVATE_MODE)


def _make_folder(files: FileSystem, folder: str) -> None:
    if files.exists(folder):
        return
    files.mkdirs(folder, _FOLDER_MODE)
    with suppress(PathDenied):  # another user's job made it at the same time, and gives it this mode
        files.set_mode(folder, _FOLDER_MODE)  # the umask may have taken bits away


def _is_private(conf: Configuration) -> bool:
    """Whether nobody is named who may see the job. Whom its list names reads the file with rights of their own. So
    then, and where no list counts at all, it is left to the umask."""
    return conf.get_bool("yarn.acl.enable") and not (conf.get(VIEW_KEY) or "").strip()


def read_history(conf: Configuration, application_id: ApplicationId) -> JobHistory:
    """Read the job's history. Blocking. Raises NoHistory."""
    path = history_path(conf, application_id)
    files = get_filesystem(path, conf)
    try:
        text = _read(files, path).decode()
    except (StorageError, ValueError) as error:
        raise NoHistory(f"no history of {application_id} at {path} ({error})") from None
    history = JobHistory({})
    for line in _lines(text, path):
        kind = line.pop("type", None)
        if kind == "job":
            history.job.update(line)
        elif kind == "attempt":
            history.attempts.append(line)
        elif kind == "end":
            history.end.update(line)
    return history


def _read(files: FileSystem, path: str) -> bytes:
    length = files.status(path).length
    if length > _BYTES_MAX:
        raise ValueError(f"{length} bytes is more than is read")
    return b"".join(files.open_range(path, 0, length))


def _lines(text: str, path: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.splitlines(), 1):
        try:
            value = json.loads(line)
        except ValueError:
            raise NoHistory(f"{path}:{number} is not JSON: the history is damaged") from None
        if isinstance(value, dict):
            yield value
