"""How a job ended, noted in its staging folder before the ResourceManager is told.

A ResourceManager that is away then, or starts anew, does not know it and begins another attempt of the application.
That attempt finds the note and repeats it, instead of running a job whose output stands; the history is the first's.
The folder goes once the ResourceManager knows, as with COMMIT_SUCCESS and COMMIT_FAIL of MapReduce.
"""

import json
from dataclasses import dataclass
from typing import Final

from tez_adapter.core.states import JobState
from yaqd.config import Configuration
from yaqd.storage import PathNotFound, StorageError, get_filesystem

_FILE: Final = "job.end.json"


class BadNote(Exception):
    """Whether the job has ended cannot be seen: to run it again, where its output may stand, is not tried."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    state: JobState
    diagnostics: str


def note_end(staging: str, conf: Configuration, end: JobEnd) -> None:
    """Blocking. The note appears whole or not at all. Raises StorageError."""
    path = f"{staging}/{_FILE}"
    writer = get_filesystem(path, conf).create(path, overwrite=True)
    try:
        writer.write(json.dumps({"state": end.state.value, "diagnostics": end.diagnostics}).encode())
    except BaseException:
        writer.abort()
        raise
    writer.close()


def noted_end(staging: str, conf: Configuration) -> JobEnd | None:
    """Blocking. None where no attempt came to an end. Raises BadNote."""
    path = f"{staging}/{_FILE}"
    try:
        data = b"".join(get_filesystem(path, conf).open_range(path, 0))
    except PathNotFound:
        return None
    except StorageError as error:
        raise BadNote(f"{path} cannot be read: {error}") from None
    try:
        note = json.loads(data)
        return JobEnd(JobState(note["state"]), str(note["diagnostics"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadNote(f"{path} is damaged: {error!r}") from None
