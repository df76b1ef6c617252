"""Starting a container's command from a forker. The standard library only."""

import contextlib
import os
import signal
from typing import Any

from nm.warm.marks import set_mark

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def kill_group(pid: int) -> None:
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
        files = [
            _stream(undo, os.devnull, os.O_RDONLY, 0),
            _stream(undo, request["stdout"], _APPEND, 1),
            _stream(undo, request["stderr"], _APPEND, 2),
        ]
        pid_file = None
        if request["pid_file"]:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
            pid_file = os.open(request["pid_file"], flags, 0o640)
            undo.callback(os.close, pid_file)
        os.chdir(request["cwd"])
        undo.callback(os.chdir, "/")
        if request["batch"] and os.sched_getscheduler(0) == os.SCHED_OTHER:
            enter_class(os.SCHED_BATCH)  # the new process inherits it
            undo.callback(enter_class, os.SCHED_OTHER)
        if request["mark"]:
            undo.callback(set_mark, set_mark(request["mark"]))  # likewise
        if request["group"]:
            for folder in (os.path.dirname(request["group"]), request["group"]):  # noqa: PTH120
                with contextlib.suppress(OSError):
                    os.mkdir(folder)  # noqa: PTH102
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
            kill_group(pid)
            os.waitpid(pid, 0)
            raise
        return pid


def _stream(undo: contextlib.ExitStack, path: str, flags: int, number: int) -> tuple[Any, ...]:
    """The file that the command has as this descriptor."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o640)
    undo.callback(os.close, descriptor)
    os.set_blocking(descriptor, True)
    return (os.POSIX_SPAWN_DUP2, descriptor, number)


def enter_class(policy: int) -> None:
    try:
        os.sched_setscheduler(0, policy, os.sched_param(0))
    except OSError:
        pass  # a sandbox may forbid it; the process runs all the same
