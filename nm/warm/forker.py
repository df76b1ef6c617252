"""The process that starts containers by forking itself: bare for commands, with libraries loaded for Python tasks.

Two of them belong to each NodeManager. The bare one executes `launch_container.sh`; the prepared one has
imported numpy, pyarrow and the task runner, so that a Python task starts in milliseconds instead of a fresh
interpreter's second. Forking here rather than in the NodeManager keeps fork away from its threads, and gives an end
that outlives it: when the socket closes, because the NodeManager is gone, all containers started here are killed.

The forker is its containers' parent but reaps one only when asked: until then the kernel gives its number to nobody
else, and the NodeManager can kill what is left of the group without hitting a stranger. Containers of a forker that
dies become children of the NodeManager (a child subreaper), which reaps them itself: none is lost.

This file and what it imports need the standard library only: the bare one must start quickly and stay small. Requests
come over a Unix stream socket (`frames`). One thread, always: a forked copy of a lock held by another thread would stay
locked for ever.
"""

import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from nm.warm import entry, frames, groups
from nm.warm.command import kill_group, spawn
from nm.warm.marks import kill_marked

#: a forked child that does not come to its command in this time is killed
_SETUP_TIMEOUT_S = 20.0
_MAX_REPORT_BYTES = 8192


def thread_count() -> int:
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208


class _Child(Exception):
    """Unwinds the request loop inside a forked child and carries what it must run."""

    def __init__(self, run: Callable[[], int]) -> None:
        self.run = run


class _Starting:
    """A forked child on its way to its command: what it has reported, and until when it may take."""

    def __init__(self, request: int, pid: int) -> None:
        self.request = request
        self.pid = pid
        self.report = b""
        self.deadline = time.monotonic() + _SETUP_TIMEOUT_S


class Forker:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        #: mark and control group of every container started and not reaped, by its process
        self._containers: dict[int, tuple[int, str]] = {}
        #: by the pipe that a child holds until its command or entry begins
        self._starting: dict[int, _Starting] = {}

    def serve(self) -> None:
        """Serves until the NodeManager closes the socket or dies; then no container of this process is left."""
        try:
            while self._step():
                pass
        except OSError:
            pass
        for pid in self._containers:
            kill_group(pid)
        for _, group in self._containers.values():
            if group:
                groups.kill(group)
        kill_marked({mark for mark, _ in self._containers.values() if mark})

    def _step(self) -> bool:
        """Waits for a request or a child's report and handles what came; False when the NodeManager is gone."""
        timeout_s = None
        if self._starting:
            timeout_s = max(0.0, min(s.deadline for s in self._starting.values()) - time.monotonic())
        sources: list[Any] = [self._connection, *self._starting]
        readable = select.select(sources, [], [], timeout_s)[0]
        for pipe in readable:
            if pipe is not self._connection:
                self._read_report(pipe)
        for pipe in [p for p, s in self._starting.items() if s.deadline <= time.monotonic()]:
            kill_group(self._starting[pipe].pid)
            self._started(pipe, f"the container's process was not ready after {_SETUP_TIMEOUT_S:.0f} s")
        if self._connection not in readable:
            return True
        message = frames.receive(self._connection)
        if message is not None:
            self._handle(message)
        return message is not None

    def _handle(self, message: dict[str, Any]) -> None:
        match message["op"]:
            case "preload":
                self._reply(message["id"], **preload(message["path"], message["modules"]))
            case "start":
                try:
                    self._start(message)
                except (OSError, ValueError) as error:
                    self._reply(message["id"], error=str(error))
            case "reap":
                self._reply(message["id"], **self._reap(message["pid"]))

    def _reply(self, request: int, **fields: Any) -> None:
        self._connection.sendall(frames.encode({"id": request, **fields}))

    def _start(self, request: dict[str, Any]) -> None:
        """A command runs at once; an entry forks, and the reply follows when the child's pipe ends."""
        if "argv" in request:
            pid = spawn(request)
            self._containers[pid] = (request["mark"], request["group"])
            self._reply(request["id"], pid=pid)
            return
        receiver, sender = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(receiver)
            os.close(sender)
            raise
        if pid == 0:
            raise _Child(lambda: entry.become(request, sender))
        os.close(sender)
        self._containers[pid] = (request["mark"], request["group"])
        self._starting[receiver] = _Starting(request["id"], pid)

    def _read_report(self, pipe: int) -> None:
        starting = self._starting[pipe]
        chunk = os.read(pipe, 65536)
        starting.report += chunk[: _MAX_REPORT_BYTES - len(starting.report)]
        if chunk:
            return
        if starting.report == entry.READY:
            self._started(pipe, None)
        else:
            text = starting.report.removeprefix(entry.READY).decode("utf-8", "replace")
            self._started(pipe, text or "the container's process died while being set up")

    def _started(self, pipe: int, error: str | None) -> None:
        starting = self._starting.pop(pipe)
        os.close(pipe)
        if error is None:
            self._reply(starting.request, pid=starting.pid)
        else:
            self._reap(starting.pid)
            self._reply(starting.request, error=error)

    def _reap(self, pid: int) -> dict[str, Any]:
        """What there is to say of a process that has ended; empty when it is not ours."""
        if self._containers.pop(pid, None) is None:
            return {}
        _, status, used = os.wait4(pid, 0)
        return {"status": status, "cpu_s": used.ru_utime + used.ru_stime, "peak_bytes": used.ru_maxrss << 10}


def preload(path: list[str], modules: list[str]) -> dict[str, Any]:
    """Imports what it can; a module that is missing is named, not fatal."""
    sys.path[:] = [entry for entry in path if entry] + [entry for entry in sys.path if entry not in path]
    failed = {}
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:  # an optional package may fail to import in any way
            failed[name] = f"{type(error).__name__}: {error}"
    gc.collect()
    gc.freeze()
    return {"threads": thread_count(), "failed": failed}


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # ends with the NodeManager's socket, not with its terminal
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)  # no container may speak in our name
    try:
        Forker(connection).serve()
    except _Child as child:
        run = child.run
    else:
        return
    entry.leave(run())
