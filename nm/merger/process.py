"""The merger's process as this node keeps it: started, told of jobs, watched, and started again when it ends.

Nothing depends on it: while there is none, or when it fails, reducers read the originals. Its death costs the merges
that ran or waited, and who asked for them hears so. A merger that hangs, by giving no answer or by a merge that moves
nothing, is killed like any other. It ends by itself when this process is gone, since its standard input ends then.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import riffle_merger
from nm.merger.settings import MergerProcessSettings
from riffle_merger.merger.disk import DiskFacts
from riffle_merger.service.launch import MergerLaunch
from riffle_merger.service.protocol import RiffleMergerProtocol
from riffle_merger.service.server import NODE, node_token
from yaqd.ipc import NO_RETRY, RemoteException, RpcClient, RpcError
from yaqd.ipc.tasks import TaskSet
from yaqd.proto import riffle_pb2 as pb

log = logging.getLogger(__name__)

_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 3.0
#: after an end, doubled with each end that follows soon
_BACKOFF_MIN_S, _BACKOFF_MAX_S = 0.5, 60.0
#: a merger that lived this long is no failure to start
_LIVED_S = 60.0
#: it is asked for its state so many times in the time it may stall
_PINGS_PER_STALL = 4


class MergerUnavailable(Exception):
    """There is no merger at present; the originals are as good as ever."""


@dataclass(frozen=True, slots=True)
class _ServedJob:
    password: bytes
    folders: tuple[Path, ...]
    user: str


class MergerProcess:
    """All calls from the node's event loop."""

    def __init__(self, settings: MergerProcessSettings, *, folder: Path | None = None) -> None:
        """`folder`: one that the disk is tried in whose map outputs are merged."""
        self._settings = settings
        self._folder = folder
        self._jobs: dict[str, _ServedJob] = {}
        self._client: RpcClient | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._up = asyncio.Event()
        self._tasks = TaskSet()
        self._ended_soon = 0
        #: where it listens, None while it does not
        self.port: int | None = None
        #: how often it had to be started again
        self.restarts = 0
        #: what the disk does, None until it was tried
        self.disk: DiskFacts | None = None
        #: called when a merged file has appeared, whoever asked for it
        self.on_merged: Callable[[], None] = lambda: None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def is_starting(self) -> bool:
        """Whether it runs and does not listen yet; else it is up, or ended and waits for its next start."""
        return self.pid is not None and self.port is None

    def start(self) -> None:
        """Returns at once; the merger comes up, and comes up again when it ends, in the background."""
        self._tasks.start(self._keep_alive())

    async def stop(self) -> None:
        await self._tasks.end()

    async def ready(self) -> None:
        """Returns when there is one that knows all jobs."""
        await self._up.wait()

    def add_job(self, job_id: str, password: bytes, folders: Sequence[Path], user: str = "") -> None:
        """Notes that the first container of a job has come here. Repeating it is harmless."""
        job = _ServedJob(password, tuple(folders), user)
        if self._jobs.get(job_id) != job:
            self._jobs[job_id] = job
            self._tell(self._add(job_id, job))

    def forget_job(self, job_id: str) -> None:
        """Notes that the job's application is over: its merges are cancelled, waiting or running."""
        if self._jobs.pop(job_id, None) is not None:
            self._tell(self._forget(job_id))

    async def merge(self, job_id: str, merge_id: str, map_ids: Sequence[str], *, timeout_s: float) -> pb.MergeResponse:
        """Returns when the merged file is published. Raises MergerUnavailable, RemoteException, RpcError."""
        if job_id not in self._jobs:
            raise MergerUnavailable(f"job {job_id} has no container here")
        client = self._usable()
        await self._add(job_id, self._jobs[job_id])  # it may be on its way still
        request = pb.MergeRequest(job_id=job_id, merge_id=merge_id, map_ids=map_ids)
        return await client.call(RiffleMergerProtocol.merge, request, timeout_s=timeout_s)

    async def cancel(self, job_id: str, merge_ids: Sequence[str] = ()) -> int:
        """Cancels these merges, or all of the job when none is named. Raises as `merge` does."""
        request = pb.CancelRequest(job_id=job_id, merge_ids=merge_ids)
        return (await self._usable().call(RiffleMergerProtocol.cancel, request)).cancelled

    async def status(self) -> pb.StatusResponse:
        """Asks the merger for its status. Raises as `merge` does."""
        return await self._usable().call(
            RiffleMergerProtocol.status, pb.StatusRequest(), timeout_s=self._settings.stall_s
        )

    def _usable(self) -> RpcClient:
        if self._client is None:
            raise MergerUnavailable("no merger runs at present")
        return self._client

    # What it is told --------------------------------------------------------------------------------------------------

    async def _add(self, job_id: str, job: _ServedJob) -> None:
        if self._client is not None:
            folders = [str(folder) for folder in job.folders]
            request = pb.AddJobRequest(job_id=job_id, password=job.password, folders=folders, user=job.user)
            await self._client.call(RiffleMergerProtocol.addJob, request)

    async def _forget(self, job_id: str) -> None:
        if self._client is not None:
            await self._client.call(RiffleMergerProtocol.forgetJob, pb.ForgetJobRequest(job_id=job_id))

    def _tell(self, call: Awaitable[object]) -> None:
        async def tell() -> None:
            try:
                await call
            except (RpcError, RemoteException) as error:
                log.warning("merger: %s", error)

        self._tasks.start(tell())

    # Its life ---------------------------------------------------------------------------------------------------------

    async def _keep_alive(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self._run_once()
            except (OSError, ValueError, RpcError, RemoteException) as error:
                log.warning("merger: %s", error)
            self._ended_soon = 0 if loop.time() - started > _LIVED_S else self._ended_soon + 1
            self.restarts += 1
            await asyncio.sleep(min(_BACKOFF_MAX_S, _BACKOFF_MIN_S * 2 ** min(self._ended_soon, 16)))

    async def _run_once(self) -> None:
        """From the start of one merger to its end."""
        secret = secrets.token_bytes(32)
        process = self._process = self._spawn(secret)
        assert process.stdout is not None
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), process.stdout
        )
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                port = int(await reader.readline() or b"-1")
            if port < 0:
                raise ValueError("it ended before it listened")
            host = "127.0.0.1" if self._settings.bind_host in ("", "0.0.0.0", "::") else self._settings.bind_host
            client = RpcClient(host, port, user=NODE, token=node_token(secret), connect_retries=NO_RETRY)
            try:
                await self._serve(client, port, reader)
            finally:
                self._up.clear()
                self.port = self._client = None
                await client.close()
        except TimeoutError:
            raise ValueError(f"it did not listen within {_START_TIMEOUT_S:.0f} s") from None
        finally:
            transport.close()
            self._process = None
            await asyncio.shield(_end(process))

    async def _serve(self, client: RpcClient, port: int, reader: asyncio.StreamReader) -> None:
        self._client = client
        for job_id, job in list(self._jobs.items()):
            await self._add(job_id, job)
        self.port = port
        self._up.set()
        log.info("merger runs as process %s, port %d", self.pid, port)
        async with TaskSet() as tasks:
            watch, ended = tasks.start(self._watch()), tasks.start(self._listen(reader))
            await asyncio.wait((watch, ended), return_when=asyncio.FIRST_COMPLETED)
            log.warning("merger (process %s) %s", self.pid, "hangs and is killed" if watch.done() else "ended")
            if watch.done() and self._process is not None:
                self._process.kill()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Returns when it has ended."""
        while line := await reader.readline():
            if line == b"\n":
                self.on_merged()
            else:
                self.disk = DiskFacts.unpack(bytes.fromhex(line.decode("ascii"))) or self.disk

    async def _watch(self) -> None:
        """Returns when it hangs."""
        stall_s = self._settings.stall_s
        while True:
            await asyncio.sleep(stall_s / _PINGS_PER_STALL)
            try:
                status = await self.status()
            except (RpcError, RemoteException, MergerUnavailable) as error:
                log.warning("merger gives no answer: %s", error)
                return
            if status.stalled_ms > stall_s * 1000:
                log.warning("a merge has not moved for %d ms", status.stalled_ms)
                return

    def _spawn(self, secret: bytes) -> "subprocess.Popen[bytes]":
        settings = self._settings
        launch = MergerLaunch(
            host=settings.bind_host,
            port=settings.port,
            secret=secret.hex(),
            budget_bytes=settings.budget_bytes,
            running_max=settings.running_max,
            waiting_max=settings.waiting_max,
            niceness=settings.niceness,
            is_idle_io=settings.is_idle_io,
            disk_max_percent=settings.disk_max_percent,
            folder=str(self._folder or ""),
            storage=settings.storage,
        )
        assert riffle_merger.__file__ is not None
        home = str(Path(riffle_merger.__file__).parent.parent)
        path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-m", "riffle_merger.service"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            cwd="/",
            start_new_session=True,
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(launch.to_json().encode("ascii") + b"\n")
            process.stdin.flush()
        return process


async def _end(process: "subprocess.Popen[bytes]") -> None:
    """Closing its input ends it, unless it hangs."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        await asyncio.to_thread(process.wait, _STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        await asyncio.to_thread(process.wait)
