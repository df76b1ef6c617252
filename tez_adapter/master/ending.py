"""How a job ends towards the file system and the ResourceManager, and whether this attempt of its manager ends it.

Output first, then the history, then the ResourceManager hears of it: who asks later finds all of it. The staging folder
goes last: until then another attempt may need it. The end of a job that failed or was killed does not wait for a file
system that does not answer: the ResourceManager is told, and the files go later.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from tez_adapter.background import in_background
from tez_adapter.core import events as ev
from tez_adapter.core.states import JobState
from tez_adapter.master.ended import JobEnd
from tez_adapter.master.nm_links import NodeLinks
from tez_adapter.master.output import JobOutput
from tez_adapter.master.rm_link import ResourceManagerLink
from yaqd.ipc.errors import RemoteException, RpcError
from yaqd.ipc.tasks import TaskSet
from yaqd.model import FinalApplicationStatus
from yaqd.model.endings import without_middle

log = logging.getLogger(__name__)

_DRAIN_S = 2.0
#: how long the end of a job that did not succeed waits for its files, and how long they are waited for after that
_CLEANED_BY_S = 2.0
_CLEANED_LATER_S = 300.0
_DIAGNOSTICS_CHARS_MAX = 20_000
_FINAL = {
    JobState.SUCCEEDED: FinalApplicationStatus.SUCCEEDED,
    JobState.FAILED: FinalApplicationStatus.FAILED,
    JobState.KILLED: FinalApplicationStatus.KILLED,
}


class Extra(Protocol):
    """What a kind of job leaves beside its output and its history."""

    async def end(self) -> None:
        """Begin no more, as the job is over, and wait for what goes on."""

    def leave(self) -> None:
        """Write it. Blocking; what cannot be written is logged."""

    def said(self, end: JobEnd) -> str:
        """Return the diagnostics of the job's end, once all is written."""


class Ending:
    def __init__(
        self,
        output: JobOutput,
        rm: ResourceManagerLink,
        nodes: NodeLinks,
        *,
        commit_window_s: float,
        is_over: Callable[[], Awaitable[bool]],
        dispatch: Callable[[ev.Event], object],
        history: Callable[[JobEnd], list[dict[str, Any]]],
        extra: Extra | None = None,
        goes_on: bool = False,
    ) -> None:
        """`goes_on`: with what a former job manager has finished. `history`: its lines as of now.
        `is_over` asks the ResourceManager whether the application is.
        `commit_window_s`: the output is committed only if the ResourceManager has answered within that."""
        self._output, self._rm, self._nodes = output, rm, nodes
        self._commit_window_s = commit_window_s
        self._is_over = is_over
        self._dispatch = dispatch
        self._history = history
        self._extra = extra
        self._goes_on = goes_on
        #: the machine's, unless committing failed after it
        self.end = JobEnd(JobState.RUNNING, "")
        self._setup: asyncio.Future[None] | None = None
        self._tasks = TaskSet()
        self._dismissal: asyncio.Task[None] | None = None
        #: another attempt of this application will run the job
        self._is_replaced = False
        #: there will be none: the ResourceManager knows how the application ended
        self._is_closed = False

    # ---- before the end

    async def former(self) -> JobEnd | None:
        """Return the job's end, where a former attempt of its manager brought it to one. Raises BadNote."""
        return await asyncio.wrap_future(in_background(self._output.former_end))

    async def repeat(self, end: JobEnd) -> None:
        """Tell of an end that a former attempt came to."""
        await self._tell(end)
        await self._remove_staging()
        self.end = end

    async def prepare(self) -> None:
        """Prepare the output's folder."""
        goes_on = self._goes_on
        self._setup = asyncio.wrap_future(in_background(lambda: self._output.setup(goes_on=goes_on)))
        await self._note_failure(self._setup, "cannot prepare the output")

    def fail(self, diagnostics: str) -> None:
        if self.end.state is JobState.RUNNING:
            self._dispatch(ev.AbortRequested(diagnostics))
        elif self.end.state is JobState.SUCCEEDED:
            # every task is done, and yet there is no output
            self.end = JobEnd(JobState.FAILED, diagnostics)

    def broke(self, error: BaseException) -> None:
        """Fail a job for an error that ended a part of its manager: the rest would wait for that part without end."""
        log.error("a part of the job manager failed", exc_info=error)
        if self.end.state is JobState.RUNNING:
            self.fail(f"a part of the job manager failed: {error!r}")

    def dismiss(self, reason: str) -> None:
        """End this attempt: the application is over, or another attempt takes its place."""
        log.warning("told to end: %s", reason)
        if self._dismissal is None:
            self._dismissal = self._tasks.start(self._end_early(reason))

    async def _end_early(self, reason: str) -> None:
        if await self._is_over():
            self._is_closed = True
        else:
            # the next attempt needs the staging folder, and says how the job ended
            self._is_replaced = True
        self._dispatch(ev.KillRequested(f"killed ({reason})"))

    async def _note_failure(self, work: Awaitable[None], what: str) -> None:
        try:
            await work
        except Exception as error:
            log.exception("%s", what)
            self.fail(f"{what}: {error}")

    # ---- the end

    async def conclude(self, heartbeats: "asyncio.Task[None]") -> None:
        """Conclude the job when the machine has finished."""
        if self.end.state is JobState.SUCCEEDED and not self._is_replaced:
            await self._until_surely_wanted(heartbeats)
        if self._is_replaced:
            await self._nodes.drain(_DRAIN_S)
            return
        if self.end.state is JobState.SUCCEEDED:
            commit = asyncio.to_thread(self._output.commit_noted, self._history(self.end))
            await self._note_failure(commit, "cannot commit the output")
        async with TaskSet() as tasks:
            files = tasks.start(self._note_failure(self._finish_files(), "cannot end the job's files"))
            has_succeeded = self.end.state is JobState.SUCCEEDED
            await asyncio.wait((files,), timeout=None if has_succeeded else _CLEANED_BY_S)
            is_late = not files.done()
            if is_late:
                log.warning(
                    "the file system does not answer: the ResourceManager is told before the job's files are gone"
                )
            await self._tell(self.end)
            heartbeats.cancel()  # the ResourceManager knows no master of this job any more
            removal = tasks.start(self._remove_staging(files))
            await asyncio.wait((removal,), timeout=_CLEANED_LATER_S)
            if is_late:
                log.info("the job's files are %s", "gone" if removal.done() else "left behind")

    async def close(self) -> None:
        """Ends the answer to a late dismissal, which nobody needs any more."""
        await self._tasks.end()

    async def _until_surely_wanted(self, heartbeats: "asyncio.Task[None]") -> None:
        """A ResourceManager that has not answered for long may have begun another attempt, whose output it would be."""
        async with TaskSet() as tasks:
            heard = tasks.start(self._rm.hear(self._commit_window_s))
            await asyncio.wait((heard, heartbeats), return_when=asyncio.FIRST_COMPLETED)
        if self._dismissal is not None:
            await self._dismissal
        if self._is_closed:
            self.end = JobEnd(JobState.KILLED, "killed before its output was committed")

    async def _finish_files(self) -> None:
        """Remove output that was not committed, write the history, note the end."""
        if self.end.state is not JobState.SUCCEEDED:
            if self._setup is not None:
                await asyncio.wait((self._setup,))  # killed early: what it makes is to be removed after it
            abort = asyncio.wrap_future(in_background(self._output.abort))
            await self._note_failure(abort, "cannot remove the output")
        await self._nodes.drain(_DRAIN_S)
        if self._extra is not None:
            await self._extra.end()
            await asyncio.wrap_future(in_background(self._extra.leave))
            self.end = JobEnd(self.end.state, self._extra.said(self.end))
        end, lines = self.end, self._history(self.end)
        await asyncio.wrap_future(in_background(lambda: self._output.leave(lines, end)))

    async def _tell(self, end: JobEnd) -> None:
        try:
            await self._rm.finish(_FINAL[end.state], without_middle(end.diagnostics, _DIAGNOSTICS_CHARS_MAX), "")
            self._is_closed = True
        except (RemoteException, RpcError, TimeoutError) as error:
            log.error("could not unregister: %s", error)
            self._is_closed = self._is_closed or await self._is_over()
        log.info("%s %s", self._output.job_id, end.state)

    async def _remove_staging(self, *after: "asyncio.Task[None]") -> None:
        """Unless another attempt may come, which needs it."""
        await asyncio.gather(*after)
        if self._is_closed:
            await asyncio.wrap_future(in_background(self._output.remove_staging))
