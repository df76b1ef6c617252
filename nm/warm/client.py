"""The NodeManager's end of a forker: starts it, sends requests, starts another when it dies.

Requests are answered in order, so one pending queue matches replies. A forker that dies loses no container (see
`nm.warm.forker`), only requests under way: of those nobody knows whether they ran, so their containers count as lost.
"""

import asyncio
import json
import logging
import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nm.warm import forker, frames
from yaqd.ipc.tasks import TaskSet
from yaqd.model import fixed_addresses, hash_seed

#: how an OSError says its number
_ERRNO: Final = re.compile(r"\[Errno (\d{1,4})\]")

log = logging.getLogger(__name__)

_START_TIMEOUT_S = 30.0
_PRELOAD_TIMEOUT_S = 120.0
#: a forker that dies this soon after it started is not started again at once
_RESTART_DELAY_S = 1.0
#: libraries must not start threads of their own in a process that forks; and all tasks have one hash seed
_PREPARED = {
    hash_seed.VARIABLE: hash_seed.DEFAULT,
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
#: never with the current folder on the path: that is a container's
_PROGRAM = f"""import sys
sys.path[:] = [{str(Path(__file__).parents[2])!r}, *filter(None, sys.path)]
from {forker.__name__} import main
main()"""


class ForkerUnavailable(Exception):
    """There is no forker to ask, and nothing was sent."""


@dataclass(frozen=True, slots=True)
class StartRequest:
    #: `module:function` to call; None executes `arguments`
    entry: str | None
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    work_dir: Path
    stdout: Path
    stderr: Path
    pid_file: Path
    #: which all its processes carry; 0: none
    mark: int = 0
    #: folder of the control group that is made for it; "": none
    group: str = ""
    #: runs in the kernel's scheduling class for batch work
    is_batch: bool = False

    def message(self) -> dict[str, Any]:
        what = {"argv": self.arguments} if self.entry is None else {"entry": self.entry, "args": self.arguments}
        return what | {
            "op": "start",
            "env": dict(self.environment),
            "cwd": str(self.work_dir),
            "stdout": str(self.stdout),
            "stderr": str(self.stderr),
            "pid_file": str(self.pid_file),
            "mark": self.mark,
            "group": self.group,
            "batch": self.is_batch,
        }


@dataclass(frozen=True, slots=True)
class Reaped:
    """How a process ended, and what it and the children that it had waited for used."""

    #: 128 + signal for a killed one
    exit_code: int
    cpu_s: float
    #: of the one that had most
    peak_bytes: int

    @classmethod
    def of(cls, status: int, cpu_s: float, peak_bytes: int) -> "Reaped":
        code = os.waitstatus_to_exitcode(status)
        return cls(code if code >= 0 else 128 - code, cpu_s, peak_bytes)


class _Connection:
    """One forker process: the socket to it and the requests that wait for its answer, oldest first."""

    def __init__(self, process: "subprocess.Popen[bytes]", writer: asyncio.StreamWriter) -> None:
        self.process = process
        self.writer = writer
        self.pending: dict[int, asyncio.Future[dict[str, Any]]] = {}


class ForkerClient:
    """`preload` names modules to import before the first fork; with none the interpreter starts bare."""

    def __init__(self, name: str, *, preload: Sequence[str] = ()) -> None:
        self.name = name
        self._preload = tuple(preload)
        self._connection: _Connection | None = None
        self._tasks = TaskSet()
        self._up = asyncio.Event()
        self._sequence = 0

    @property
    def is_ready(self) -> bool:
        return self._up.is_set()

    @property
    def pid(self) -> int | None:
        """The forker's own process, None while there is none."""
        return self._connection.process.pid if self._connection else None

    def start(self) -> None:
        """Returns at once; the forker comes up, and comes up again when it dies, in the background."""
        self._tasks.start(self._keep_alive())

    async def stop(self) -> None:
        """Ends the forker and with it every container it started that still runs."""
        await self._tasks.end()

    @property
    def is_loading(self) -> bool:
        """Whether it is on its way: waiting for it costs less than doing without."""
        return self._connection is not None and not self._up.is_set()

    async def ready(self, timeout_s: float = _START_TIMEOUT_S) -> None:
        """Returns when requests can be made; ForkerUnavailable when that takes too long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._up.wait()
        except TimeoutError:
            raise ForkerUnavailable(f"the {self.name} forker does not start, see the node manager's log") from None

    async def start_process(self, request: StartRequest) -> int:
        """Starts a process and returns its pid.

        Raises OSError when it could not be started or was lost with its forker.
        """
        if not self._up.is_set():
            await self.ready()
        try:
            reply = await self._ask(request.message(), _START_TIMEOUT_S)
        except frames.BadFrame as error:
            raise OSError(f"environment and arguments are too long: {error}") from None
        if "error" in reply:
            raise _reported(reply["error"])
        return int(reply["pid"])

    async def reap(self, pid: int) -> Reaped | None:
        """Reaps a process that has ended; None when the forker is gone or is not its parent."""
        try:
            reply = await self._ask({"op": "reap", "pid": pid}, _START_TIMEOUT_S)
        except (ForkerUnavailable, OSError):
            return None
        return Reaped.of(reply["status"], reply["cpu_s"], reply["peak_bytes"]) if "status" in reply else None

    async def _ask(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        connection = self._connection
        if connection is None or connection.writer.is_closing():
            raise ForkerUnavailable(f"the {self.name} forker is not running")
        self._sequence += 1
        frame = frames.encode({"id": self._sequence, **message})
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        connection.pending[self._sequence] = answer
        connection.writer.write(frame)
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            raise OSError(f"the {self.name} forker gave no answer in {timeout_s:.0f} s") from None

    async def _keep_alive(self) -> None:
        is_usable = True
        while is_usable:
            try:
                is_usable = await self._run_once()
            except (OSError, ValueError) as error:
                log.warning("%s forker: %s", self.name, error)
            await asyncio.sleep(_RESTART_DELAY_S if not self._preload else 2 * _RESTART_DELAY_S)

    async def _run_once(self) -> bool:
        """From the start of one forker to its end; False when another would be of no use either."""
        ours, theirs = socket.socketpair()
        process = self._spawn(theirs)
        theirs.close()
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=1 << 20)
        connection = self._connection = _Connection(process, writer)
        replies = self._tasks.start(self._read_replies(connection, reader))
        try:
            if not await self._prepare():
                return False
            self._up.set()
            log.info("%s forker runs as process %d", self.name, process.pid)
            await replies
            log.warning("%s forker (process %d) ended", self.name, process.pid)
            return True
        finally:
            self._up.clear()
            self._connection = None
            replies.cancel()
            writer.close()
            await asyncio.shield(_reap(process))
            for answer in connection.pending.values():
                if not answer.done():
                    answer.set_exception(OSError(f"the {self.name} forker died while it started the container"))

    def _spawn(self, theirs: socket.socket) -> "subprocess.Popen[bytes]":
        bare = () if self._preload else ("-I", "-S")
        # for hashes, as the seed; commands, which the bare one starts, are none of ours
        with fixed_addresses.fixed_for_children() if self._preload else nullcontext():
            return subprocess.Popen(
                [sys.executable, *bare, "-c", _PROGRAM, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **_PREPARED} if self._preload else os.environ,
                cwd="/",
                start_new_session=True,
            )

    async def _prepare(self) -> bool:
        """Loads the libraries; False when the process must not be used because it has threads."""
        if not self._preload:
            return True
        message = {"op": "preload", "path": sys.path, "modules": self._preload}
        reply = await self._ask(message, _PRELOAD_TIMEOUT_S)
        for module, reason in reply["failed"].items():
            log.info("%s forker could not import %s: %s", self.name, module, reason)
        if reply["threads"] != 1:
            log.error("%s forker has %d threads and is not used: a library started them", self.name, reply["threads"])
        return bool(reply["threads"] == 1)

    async def _read_replies(self, connection: _Connection, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                length = frames.decode_length(await reader.readexactly(4))
                reply = json.loads(await reader.readexactly(length))
                answer = connection.pending.pop(reply["id"], None)
                if answer is not None and not answer.done():
                    answer.set_result(reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            return


async def _reap(process: "subprocess.Popen[bytes]") -> None:
    """Waits for a forker whose socket is closed; it ends by itself unless it hangs."""
    for _ in range(100):
        if process.poll() is not None:
            return
        await asyncio.sleep(0.02)
    process.kill()
    await asyncio.to_thread(process.wait)


def _reported(text: str) -> OSError:
    """What the other process has said, with the number of the system's error where it names one."""
    error, found = OSError(text), _ERRNO.search(text)
    if found is not None:
        error.errno = int(found[1])
    return error
