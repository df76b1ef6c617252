"""How far a job's end has come, noted in its staging folder: that its commit has begun, and how it ended.

A job manager may die at any moment, and a ResourceManager that is away does not hear it. Another attempt of the
application then finds the notes. Where the job ended, it repeats the end instead of running a job whose output stands;
where the commit had begun, every task was done, and it goes on with the commit. MapReduce's COMMIT_STARTED,
COMMIT_SUCCESS and COMMIT_FAIL do as much, but our commit can be repeated, so that a half-done one is no failure. The
folder goes once the ResourceManager knows.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from tez_adapter.core.states import JobState
from yaqd.config import Configuration
from yaqd.storage import PathNotFound, StorageError, get_filesystem

_FILE: Final = "job.end.json"
#: Says all by being there, as MapReduce's COMMIT_SUCCESS: HDFS closes an empty file at once, and one with a block only
#: after the DataNode's report, for which its clients wait half a second.
_SUCCESS_FILE: Final = "job.succeeded"
_COMMIT_FILE: Final = "job.commit.json"


class BadNote(Exception):
    """A note that cannot be read: whether the job has ended cannot be seen.

    To run the job again, where its output may stand, is not tried.
    """


@dataclass(frozen=True, slots=True)
class JobEnd:
    state: JobState
    diagnostics: str

    def as_history(self) -> dict[str, Any]:
        """Return what the last line of a history says of it."""
        return {
            "state": self.state.value,
            "diagnostics": self.diagnostics,
            "exit_code": 0 if self.state is JobState.SUCCEEDED else 1,
        }


_SUCCESS: Final = JobEnd(JobState.SUCCEEDED, "")


def note_end(staging: str, conf: Configuration, end: JobEnd) -> None:
    """Note the job's end. The note appears whole or not at all. Blocking. Raises StorageError."""
    if end == _SUCCESS:
        write_note(f"{staging}/{_SUCCESS_FILE}", conf, b"")
    else:
        note = {"state": end.state.value, "diagnostics": end.diagnostics}
        write_note(f"{staging}/{_FILE}", conf, json.dumps(note).encode())


def noted_end(staging: str, conf: Configuration) -> JobEnd | None:
    """Read the noted end; None where no attempt came to an end. Blocking. Raises BadNote."""
    succeeded = f"{staging}/{_SUCCESS_FILE}"
    try:
        get_filesystem(succeeded, conf).status(succeeded)
        return _SUCCESS
    except PathNotFound:
        pass
    except StorageError as error:
        raise BadNote(f"{succeeded} cannot be looked for: {error}") from None
    path = f"{staging}/{_FILE}"
    note = _read(path, conf)
    if note is None:
        return None
    try:
        return JobEnd(JobState(note["state"]), str(note["diagnostics"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from None


def note_commit(staging: str, conf: Configuration, history: Iterable[dict[str, Any]]) -> None:
    """Note that the commit begins: from here on this attempt or the next commits the output. Blocking.

    `history`: what this attempt would write of the job. The note appears whole or not at all. Raises StorageError.
    """
    write_note(f"{staging}/{_COMMIT_FILE}", conf, json.dumps({"history": list(history)}).encode())


def noted_commit(staging: str, conf: Configuration) -> list[dict[str, Any]] | None:
    """Read the history that the attempt left which began to commit, None where none did. Blocking.

    Raises BadNote.
    """
    path = f"{staging}/{_COMMIT_FILE}"
    note = _read(path, conf)
    if note is None:
        return None
    try:
        return [dict(line) for line in note["history"]]
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from None


def write_note(path: str, conf: Configuration, note: bytes, *, make_parents: bool = True) -> None:
    """Write a note, whole or not at all. Blocking. Raises StorageError."""
    writer = get_filesystem(path, conf).create(path, overwrite=True, make_parents=make_parents)
    try:
        writer.write(note)
    except BaseException:
        writer.abort()
        raise
    writer.close()


def _read(path: str, conf: Configuration) -> Any:
    try:
        data = b"".join(get_filesystem(path, conf).open_range(path, 0))
    except PathNotFound:
        return None
    except StorageError as error:
        raise BadNote(f"{path} cannot be read: {error}") from None
    try:
        return json.loads(data)
    except ValueError as error:
        raise _damaged(path, error) from None


def _damaged(path: str, error: Exception) -> BadNote:
    return BadNote(f"{path} is damaged: {error!r}")
