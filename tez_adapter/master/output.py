"""The job's own files: its output folder before the first task and after the last, and its staging folder.

Everything here blocks and runs in a thread of the job manager.
"""

import logging
from collections.abc import Iterable
from typing import Any

from tez_adapter.core.states import JobState
from tez_adapter.history import write_history
from tez_adapter.jobspec import JOB_FILE, JobSpec
from tez_adapter.master.ended import JobEnd, note_commit, note_end, noted_commit, noted_end
from tez_adapter.merging.shared_outputs import prepare, shared_folder
from yaqd.config import Configuration
from yaqd.storage import OutputCommitter, PathNotFound, get_filesystem
from yaqd.storage.paths import name_of

log = logging.getLogger(__name__)


def committer(spec: JobSpec, conf: Configuration) -> OutputCommitter:
    return committer_of(spec.output, spec, conf)


def committer_of(output: str, spec: JobSpec, conf: Configuration) -> OutputCommitter:
    """Return the committer of one of a job's outputs."""
    marks_success = conf.get_bool("mapreduce.fileoutputcommitter.marksuccessfuljobs", True)
    return OutputCommitter(get_filesystem(output, conf), output, spec.job_id, marks_success=marks_success)


def _not_committed(error: Exception) -> JobEnd:
    return JobEnd(JobState.FAILED, f"cannot commit the output: {error}")


class JobOutput:
    def __init__(self, spec: JobSpec, conf: Configuration, manager: int = 1) -> None:
        """`manager`: number of the job manager among the job's."""
        self._spec = spec
        self._conf = conf
        self._manager = manager
        self._has_output = bool(spec.outputs)
        #: of the map outputs, where these are on HDFS
        self.shared_folder = shared_folder(spec, conf, manager)

    @property
    def job_id(self) -> str:
        return self._spec.job_id

    def stands(self) -> bool:
        """Return whether a former job manager has set all outputs up."""
        return all(found.stands() for found in self._committers())

    def setup(self, *, goes_on: bool = False) -> None:
        """Set the output up; what a former attempt of the job manager left half done is removed. `goes_on`: what its
        tasks have committed stays."""
        if self._has_output:
            prepare(self._spec, self._conf, self._manager)
            for found in self._committers():
                if goes_on:
                    found.go_on()
                    continue
                found.abort_job()
                found.setup_job(is_first=self._manager == 1)

    def commit(self, *, is_first: bool = True) -> None:
        """Commit the outputs: all are whole before the first gets its _SUCCESS. None is left where one cannot be."""
        committers = self._committers()
        try:
            for found in committers:
                found.settle_job(is_first=is_first)
            for found in committers:
                found.mark_job()
        except Exception:
            for found in committers if len(committers) > 1 else ():
                found.withdraw_job()
            raise

    def abort(self) -> None:
        for found in self._committers():
            found.abort_job()

    def _committers(self) -> list[OutputCommitter]:
        return [committer_of(path, self._spec, self._conf) for path in self._spec.outputs]

    def commit_noted(self, history: Iterable[dict[str, Any]]) -> None:
        """Commit as `commit` does; whenever this process dies, the next attempt finishes it, and writes `history` then.

        A failure is noted before anything else happens. No attempt then tries again what is being removed.
        """
        if not self._has_output:
            return
        note_commit(self._spec.staging, self._conf, history)
        try:
            self.commit()
        except Exception as error:
            note_end(self._spec.staging, self._conf, _not_committed(error))
            raise

    def former_end(self) -> JobEnd | None:
        """Return the job's end, where a former attempt of its manager brought it to one. Raises BadNote.

        If that attempt began to commit, this one finishes it.
        """
        if self._manager == 1:
            return None
        end = noted_end(self._spec.staging, self._conf)
        if end is None and (history := noted_commit(self._spec.staging, self._conf)) is not None:
            end = self._commit_again()
            if history:
                history[-1] |= end.as_history()
            self.leave(history, end)
        return end

    def _commit_again(self) -> JobEnd:
        """What a former attempt began."""
        log.info("a former attempt began to commit the output: going on with it")
        try:
            for path in self._spec.outputs:
                if not get_filesystem(path, self._conf).exists(path):
                    raise PathNotFound(f"{path} is gone: somebody removed it while it was committed")
            self.commit(is_first=False)
        except Exception as error:
            log.exception("the output is not committed")
            return _not_committed(error)
        return JobEnd(JobState.SUCCEEDED, "")

    def leave(self, history: Iterable[dict[str, Any]], end: JobEnd) -> None:
        """Write the job's history and note its end, for an attempt that would come after.

        It is the last step before the ResourceManager is told.
        """
        try:
            write_history(self._conf, self._spec.application_id, history)
        except Exception:
            log.exception("no history was written")
        try:
            note_end(self._spec.staging, self._conf, end)
        except Exception as error:
            log.warning("another attempt would not know of the job's end: %s", error)

    def remove_staging(self) -> None:
        """Remove the staging folder: the last step of all.

        By the job file a client knows the folder for ours, and may remove it too.
        """
        try:
            files = get_filesystem(self._spec.staging, self._conf)
            for entry in files.list(self._spec.staging):
                if name_of(entry.path) != JOB_FILE:
                    files.delete(entry.path, recursive=True)
            files.delete(self._spec.staging, recursive=True)
        except PathNotFound:
            pass
        except Exception as error:
            log.warning("staging folder %s is left behind: %s", self._spec.staging, error)
