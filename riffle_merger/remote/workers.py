"""The merger's side of its workers: a process for each user that has merges on a shared file system. It is started when
one comes and ended when none has come for a while."""

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from riffle_merger.merger.errors import MergeError, NotMergeable
from riffle_merger.remote.merge import RemoteMerged, RemoteOrder
from riffle_merger.remote.worker import ERRORS
from yaqd.ipc.tasks import TaskSet

log = logging.getLogger(__name__)

#: users served at the same time
_WORKERS_MAX: Final = 16
_IDLE_S: Final = 60.0
#: a merge that is cancelled ends within this
_END_S: Final = 10.0
_LINE_BYTES_MAX: Final = 1 << 20


@dataclass(slots=True)
class _Running:
    order: RemoteOrder
    answer: "asyncio.Future[RemoteMerged]"
    on_requests: Callable[[int], None]


@dataclass(slots=True)
class _Worker:
    user: str
    process: asyncio.subprocess.Process
    running: dict[int, _Running] = field(default_factory=dict)
    reader: "asyncio.Task[None] | None" = None
    idle: asyncio.TimerHandle | None = None
    #: merges told to end, and when the process is ended if they do not
    ending: dict[int, asyncio.TimerHandle] = field(default_factory=dict)


class Workers:
    """All calls from one event loop."""

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        """`settings`: configuration of the file systems; `threads`: merges of a user at one time."""
        self._settings = dict(settings)
        self._threads = threads
        self._workers: dict[str, asyncio.Task[_Worker]] = {}
        self._readers = TaskSet()
        self._number = 0

    async def merge(self, user: str, order: RemoteOrder, on_requests: Callable[[int], None]) -> RemoteMerged:
        """Returns when the merged file stands. Raises MergeError and its kinds; cancelled, it cancels the merge."""
        worker = await self._worker(user)
        self._number += 1
        number = self._number
        running = _Running(order, asyncio.get_running_loop().create_future(), on_requests)
        worker.running[number] = running
        if worker.idle is not None:
            worker.idle.cancel()
        try:
            self._tell(worker, {"id": number, "order": asdict(order)})
            return await running.answer
        except asyncio.CancelledError:
            self._tell(worker, {"cancel": number})
            worker.ending[number] = asyncio.get_running_loop().call_later(_END_S, self._kill, worker)
            raise
        finally:
            worker.running.pop(number, None)
            if not worker.running:
                worker.idle = asyncio.get_running_loop().call_later(_IDLE_S, self._dismiss, worker)

    async def close(self) -> None:
        """Ends them all, whatever they do."""
        tasks, self._workers = list(self._workers.values()), {}
        for worker in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(worker, _Worker):
                with contextlib.suppress(ProcessLookupError):
                    worker.process.kill()
                await worker.process.wait()
                if worker.reader is not None:
                    await worker.reader
        await self._readers.end()  # of those that were dismissed and still end

    async def _worker(self, user: str) -> _Worker:
        task = self._workers.get(user)
        if task is None:
            if len(self._workers) >= _WORKERS_MAX:
                raise NotMergeable(f"merges of {_WORKERS_MAX} users run already")
            task = self._workers[user] = asyncio.create_task(self._start(user))
            task.add_done_callback(lambda done: self._workers.pop(user, None) if done.exception() else None)
        try:
            return await asyncio.shield(task)
        except OSError as error:
            raise MergeError(f"no process for the merges of {user}: {error.strerror}") from None

    async def _start(self, user: str) -> _Worker:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "riffle_merger.remote.worker",
            str(self._threads),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "HADOOP_USER_NAME": user},
            limit=_LINE_BYTES_MAX,
        )
        worker = _Worker(user, process)
        self._tell(worker, {"settings": self._settings})
        worker.reader = self._readers.start(self._read(worker))
        return worker

    def _tell(self, worker: _Worker, message: Mapping[str, Any]) -> None:
        assert worker.process.stdin is not None
        worker.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self, worker: _Worker) -> None:
        """Until it ends: then what it was doing has failed, and the next merge starts another."""
        assert worker.process.stdout is not None
        with contextlib.suppress(ConnectionError, ValueError):
            async for line in worker.process.stdout:
                self._hear(worker, json.loads(line))
        with contextlib.suppress(ProcessLookupError):
            worker.process.kill()
        status = await worker.process.wait()
        self._forget(worker)
        for timer in worker.ending.values():
            timer.cancel()
        for running in list(worker.running.values()):
            if not running.answer.done():
                running.answer.set_exception(MergeError(f"the process for the merges of {worker.user} ended: {status}"))

    def _hear(self, worker: _Worker, message: Mapping[str, Any]) -> None:
        if "requests" not in message and message["id"] in worker.ending:
            worker.ending.pop(message["id"]).cancel()
        running = worker.running.get(message["id"])
        if running is None or running.answer.done():
            return  # cancelled
        if "requests" in message:
            running.on_requests(message["requests"])
        elif "error" in message:
            running.answer.set_exception(ERRORS[message["error"]](message["text"]))
        else:
            name = running.order.name
            counts = (message[field] for field in ("bytes", "partitions", "reads", "writes"))
            running.answer.set_result(RemoteMerged(name, *counts))

    def _kill(self, worker: _Worker) -> None:
        """A merge of it hangs in the file system: whatever else it does fails, and its next merge starts another."""
        log.warning("the process for the merges of %s hangs and is killed", worker.user)
        with contextlib.suppress(ProcessLookupError):
            worker.process.kill()

    def _dismiss(self, worker: _Worker) -> None:
        """Its input ends, and so does it."""
        if not worker.running:
            self._forget(worker)
            assert worker.process.stdin is not None
            worker.process.stdin.close()

    def _forget(self, worker: _Worker) -> None:
        task = self._workers.get(worker.user)
        if task is not None and task.done() and not task.exception() and task.result() is worker:
            del self._workers[worker.user]
