"""The process that starts containers by forking itself: bare for commands, with libraries loaded for Python tasks.

Two of them belong to each NodeManager. The bare one executes `launch_container.sh`; the prepared one has
imported numpy, pyarrow and the task runner, so that a Python task starts in milliseconds instead of a fresh
interpreter's second. Forking here rather than in the NodeManager keeps fork away from its threads, and gives an end
that outlives it: when the socket closes, because the NodeManager is gone, all containers started here are killed.

The forker is its containers' parent but reaps one only when asked: until then the kernel gives its number to nobody
else, and the NodeManager can kill what is left of the group without hitting a stranger. Containers of a forker that
dies become children of the NodeManager (a child subreaper), which reaps them itself: none is lost.

This file and what it imports need the standard library only: the bare one must start quickly and stay small. Wire:
frames of a four-byte big-endian length and a JSON object, over a Unix stream socket. One thread, always: a forked copy
of a lock held by another thread would stay locked for ever.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from nm.warm import groups
from nm.warm.marks import kill_marked, set_mark

MAX_FRAME_BYTES = 8 << 20
#: a forked child that does not come to its command in this time is killed
_SETUP_TIMEOUT_S = 20.0
_LENGTH = struct.Struct(">I")
#: what a child writes to its pipe once it leads its own session
_READY = b"+"
_MAX_REPORT_BYTES = 8192
#: only entries of the job manager's package may be called in the prepared process
ENTRY_PREFIX = "tez_adapter."


class BadFrame(ValueError):
    pass


def encode(message: dict[str, Any]) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(body) > MAX_FRAME_BYTES:
        raise BadFrame(f"frame of {len(body)} bytes, at most {MAX_FRAME_BYTES} fit")
    return _LENGTH.pack(len(body)) + body


def decode_length(head: bytes) -> int:
    length = int(_LENGTH.unpack(head)[0])
    if not 0 < length <= MAX_FRAME_BYTES:
        raise BadFrame(f"frame length {length}")
    return length


def thread_count() -> int:
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208


def _receive(connection: socket.socket) -> dict[str, Any] | None:
    head = _receive_exactly(connection, _LENGTH.size)
    if head is None:
        return None
    body = _receive_exactly(connection, decode_length(head))
    if body is None:
        return None
    message = json.loads(body)
    if not isinstance(message, dict):
        raise BadFrame("frame holds no object")
    return message


def _receive_exactly(connection: socket.socket, count: int) -> bytes | None:
    chunks = bytearray()
    while len(chunks) < count:
        chunk = connection.recv(min(count - len(chunks), 1 << 20))
        if not chunk:
            return None
        chunks += chunk
    return bytes(chunks)


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
        """Until the NodeManager closes the socket or dies; then no container of this process is left."""
        try:
            while self._step():
                pass
        except OSError:
            pass
        for pid in self._containers:
            _kill_group(pid)
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
            _kill_group(self._starting[pipe].pid)
            self._started(pipe, f"the container's process was not ready after {_SETUP_TIMEOUT_S:.0f} s")
        if self._connection not in readable:
            return True
        message = _receive(self._connection)
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
        self._connection.sendall(encode({"id": request, **fields}))

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
            raise _Child(lambda: _become(request, sender))
        os.close(sender)
        self._containers[pid] = (request["mark"], request["group"])
        self._starting[receiver] = _Starting(request["id"], pid)

    def _read_report(self, pipe: int) -> None:
        starting = self._starting[pipe]
        chunk = os.read(pipe, 65536)
        starting.report += chunk[: _MAX_REPORT_BYTES - len(starting.report)]
        if chunk:
            return
        if starting.report == _READY:
            self._started(pipe, None)
        else:
            text = starting.report.removeprefix(_READY).decode("utf-8", "replace")
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


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def spawn(request: dict[str, Any]) -> int:
    """Executes a command, without a copy of this process in between: a third of the processor time of a fork.

    Raises OSError, and ValueError for text that no system call takes. Files are opened here and never waited for: where
    another container has put a pipe in a file's place, that is an error rather than the end of every start.
    """
    with contextlib.ExitStack() as undo:
        files: list[Any] = []
        for path, flags in (
            (os.devnull, os.O_RDONLY),
            *((request[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND) for name in ("stdout", "stderr")),
        ):
            descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o640)
            undo.callback(os.close, descriptor)
            os.set_blocking(descriptor, True)
            files.append((os.POSIX_SPAWN_DUP2, descriptor, len(files)))
        pid_file = None
        if request["pid_file"]:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
            pid_file = os.open(request["pid_file"], flags, 0o640)
            undo.callback(os.close, pid_file)
        os.chdir(request["cwd"])
        undo.callback(os.chdir, "/")
        if request["batch"] and os.sched_getscheduler(0) == os.SCHED_OTHER:
            _enter_class(os.SCHED_BATCH)  # the new process inherits it
            undo.callback(_enter_class, os.SCHED_OTHER)
        if request["mark"]:
            undo.callback(set_mark, set_mark(request["mark"]))  # likewise
        if request["group"]:
            with contextlib.suppress(OSError):
                os.mkdir(request["group"])  # noqa: PTH102
        pid = os.posix_spawn(
            request["argv"][0],
            request["argv"],
            request["env"],
            file_actions=files,
            setsid=True,
            setsigmask=(),
            setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        )
        try:
            if pid_file is not None:
                os.write(pid_file, f"{pid}\n".encode("ascii"))
        except OSError:
            _kill_group(pid)
            os.waitpid(pid, 0)
            raise
        return pid


def _enter_class(policy: int) -> None:
    try:
        os.sched_setscheduler(0, policy, os.sched_param(0))
    except OSError:
        pass  # a sandbox may forbid it; the process runs all the same


def _become(request: dict[str, Any], sender: int) -> int:
    """In the forked child: calls the container's Python entry and returns its exit code."""
    try:
        os.setsid()
        os.write(sender, _READY)
        if request["group"]:
            groups.join(request["group"])
        if request["mark"]:
            set_mark(request["mark"])
        if request["pid_file"]:
            Path(request["pid_file"]).write_text(f"{os.getpid()}\n", encoding="ascii")
        _redirect(request["stdout"], request["stderr"])
        os.chdir(request["cwd"])
        if request["batch"]:
            _enter_class(os.SCHED_BATCH)
        sender = _only_descriptor(sender)
        environment = {k: v.replace("$$", str(os.getpid())) if k == "JVM_PID" else v for k, v in request["env"].items()}
        _reset_signals()
        os.environ.clear()
        os.environ.update(environment)
        function = _entry(request["entry"])
    except BaseException as error:
        os.write(sender, f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:4096])
        os._exit(1)
    os.close(sender)
    return _call(function, request["entry"], request["args"])


def _redirect(stdout: str, stderr: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    for target, path in ((1, stdout), (2, stderr)):
        descriptor = os.open(path, flags, 0o640)
        os.dup2(descriptor, target)
        os.close(descriptor)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def _only_descriptor(keep: int) -> int:
    """Closes everything above the standard streams except one, which moves to 3 and closes on exec."""
    if keep != 3:
        os.dup2(keep, 3)
    os.set_inheritable(3, False)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    return 3


def _reset_signals() -> None:
    """To what a fresh interpreter has."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # errors of the call, as in any Python
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _entry(entry: str) -> Callable[[list[str]], int | None]:
    module, _, name = entry.partition(":")
    if not entry.startswith(ENTRY_PREFIX) or not name.isidentifier():
        raise ValueError(f"entry {entry!r} is not allowed: it must be {ENTRY_PREFIX}MODULE:FUNCTION")
    function = getattr(importlib.import_module(module), name)
    if not callable(function):
        raise ValueError(f"entry {entry!r} cannot be called")
    return function  # type: ignore[no-any-return]


def _call(function: Callable[[list[str]], int | None], entry: str, arguments: list[str]) -> int:
    """Runs the entry as `python -m` would: same path, same meaning of results and exceptions."""
    sys.path.insert(0, str(Path.cwd()))
    sys.argv = [str(getattr(sys.modules[entry.partition(":")[0]], "__file__", entry)), *arguments]
    _reseed()
    gc.enable()
    try:
        code: object = function(arguments)
    except SystemExit as exit_request:
        code = exit_request.code
    except BaseException as error:
        traceback.print_exception(type(error), error, error.__traceback__.tb_next if error.__traceback__ else None)
        return 1
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _reseed() -> None:
    """Gives the child its own random sequence; os.urandom and generators made from it need nothing."""
    if "random" in sys.modules:
        sys.modules["random"].seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def _leave(code: int) -> NoReturn:
    """Ends like an interpreter does (threads joined, atexit run, streams flushed), without taking libraries down."""
    import atexit
    import threading

    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        code = code or 120  # what the interpreter exits with when it cannot flush
    os._exit(code)


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
    _leave(run())
