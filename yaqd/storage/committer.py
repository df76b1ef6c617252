"""Job output that appears task by task, each file in one rename, and is whole when `_SUCCESS` stands.

As Hadoop's FileOutputCommitter, version 2 of its algorithm: an attempt writes below
`OUTPUT/_temporary/JOB/ATTEMPT/`, its commit renames each file to its final name, and the job's commit removes
`_temporary` before it writes `_SUCCESS`. Who may commit a task is the job manager's decision; committing twice, or
again by a later attempt, leaves the same files.
"""

from collections.abc import Iterator
from typing import Final

from yaqd.storage.errors import NotAFile, PathExists, PathNotFound
from yaqd.storage.filesystem import FileSystem
from yaqd.storage.paths import join, name_of, parent_of

TEMPORARY: Final = "_temporary"
SUCCESS: Final = "_SUCCESS"


def check_output_absent(filesystem: FileSystem, output: str) -> None:
    """Raise PathExists if the output stands already: nothing may start then."""
    if filesystem.exists(output):
        raise PathExists(
            f"output {output} exists already: delete it (it may hold an earlier result) or name another", path=output
        )


def check_output_possible(filesystem: FileSystem, output: str) -> None:
    """Raise NotAFile or PathDenied where the output (an absolute path) cannot be made: nothing may start then
    either."""
    folder = parent_of(output)
    while True:
        try:
            found = filesystem.status(folder)
            break
        except PathNotFound:
            if folder == "/":
                raise
            folder = parent_of(folder)
    if not found.is_dir:
        raise NotAFile(f"{found.path} is a file: no folder can be made below it", path=folder)
    filesystem.check_may_create_in(folder)


def part_name(phase: str, index: int, suffix: str = "") -> str:
    """Return part-m-00000 for a map task's output, part-r-00000 for a reduce task's."""
    return f"part-{phase[0]}-{index:05d}{suffix}"


def streaming_part_name(index: int, suffix: str = "") -> str:
    """Return part-00000: MapReduce's older API, which Hadoop Streaming is written with, does not name the phase."""
    return f"part-{index:05d}{suffix}"


class OutputCommitter:
    """The output folder of one job. Job manager and tasks each make one for themselves."""

    def __init__(self, filesystem: FileSystem, output: str, job_id: str, *, marks_success: bool = True) -> None:
        self._fs = filesystem
        self.output = output.rstrip("/") or "/"
        self._job_folder = join(self.output, TEMPORARY, job_id)
        self._marks_success = marks_success

    def setup_job(self, *, is_first: bool = True) -> None:
        """Make the output folder. PathExists if it stands, unless an earlier attempt of this same job made it: then the
        job's folder is in it, or, where that attempt died as it made or removed them, nothing."""
        if self._fs.exists(self._job_folder):
            return
        if is_first or not self._is_bare():
            check_output_absent(self._fs, self.output)
        self._fs.mkdirs(self._job_folder)

    def stands(self) -> bool:
        """Return whether an earlier attempt of this same job has made the output folder, and its own in it."""
        return self._fs.exists(self._job_folder)

    def go_on(self) -> None:
        """Keep what tasks have committed; remove what others have left half written."""
        for entry in self._fs.list(self._job_folder):
            self._fs.delete(entry.path, recursive=True)

    def _is_bare(self) -> bool:
        """The output folder is there, and in it at most an empty `_temporary`."""
        try:
            names = [name_of(entry.path) for entry in self._fs.list(self.output)]
        except PathNotFound:
            return False
        return not names or (names == [TEMPORARY] and not self._fs.list(join(self.output, TEMPORARY)))

    def task_folder(self, attempt: str) -> str:
        """Return where an attempt writes; what stands there when it commits becomes output, subfolders too."""
        return join(self._job_folder, attempt)

    def task_path(self, attempt: str, name: str) -> str:
        """Return where an attempt writes its file `name`."""
        return join(self.task_folder(attempt), name)

    def commit_task(self, attempt: str) -> list[str]:
        """Move the attempt's files to their final names; the names. Files of an earlier attempt are replaced."""
        folder = self.task_folder(attempt)
        committed = []
        for path in list(self._files_below(folder)):
            final = join(self.output, path[len(folder) + 1 :])
            if parent_of(final) != self.output:
                self._fs.mkdirs(parent_of(final))
            self._fs.rename(path, final, overwrite=True)
            committed.append(final)
        self._fs.delete(folder, recursive=True)
        return committed

    def abort_task(self, attempt: str) -> None:
        """Remove what the attempt has not committed."""
        self._fs.delete(self.task_folder(attempt), recursive=True)

    def commit_job(self, *, is_first: bool = True) -> None:
        """Remove `_temporary`, then write `_SUCCESS`: whoever sees that file sees the whole output. Where another
        process died in here (not `is_first`) it is finished."""
        self.settle_job(is_first=is_first)
        self.mark_job()

    def settle_job(self, *, is_first: bool = True) -> None:
        """Remove `_temporary`, the first half of a commit."""
        self._fs.delete(join(self.output, TEMPORARY), recursive=True)
        for entry in () if is_first else self._fs.list(self.output):
            if name_of(entry.path).startswith(f".{SUCCESS}."):
                self._fs.delete(entry.path)

    def withdraw_job(self) -> None:
        """Remove the output of a commit that could not come to its end."""
        self._fs.delete(self.output, recursive=True)

    def mark_job(self) -> None:
        """Write `_SUCCESS`, the second half."""
        if self._marks_success:
            self._fs.create(join(self.output, SUCCESS), overwrite=True).close()

    def abort_job(self) -> None:
        """Remove the output folder with all that was committed, if this job made it and did not finish."""
        if not self._fs.exists(self._job_folder):
            return
        for entry in self._fs.list(self.output):
            if name_of(entry.path) != TEMPORARY:  # by which a later attempt knows the rest for its job's: last
                self._fs.delete(entry.path, recursive=True)
        self._fs.delete(self.output, recursive=True)

    def _files_below(self, folder: str) -> Iterator[str]:
        try:
            entries = self._fs.list(folder)
        except (PathNotFound, NotAFile):
            return  # nothing was written, or it was committed before
        for entry in entries:
            path = join(folder, name_of(entry.path))
            if entry.is_dir:
                yield from self._files_below(path)
            elif not name_of(path).startswith("."):  # a writer's unfinished file
                yield path
