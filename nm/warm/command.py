"""Starting a container's command from a forker. The standard library only."""

import contextlib
import os
import signal
from typing import Any

from nm.warm.marks import set_mark


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
            enter_class(os.SCHED_BATCH)  # the new process inherits it
            undo.callback(enter_class, os.SCHED_OTHER)
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
            kill_group(pid)
            os.waitpid(pid, 0)
            raise
        return pid


def enter_class(policy: int) -> None:
    try:
        os.sched_setscheduler(0, policy, os.sched_param(0))
    except OSError:
        pass  # a sandbox may forbid it; the process runs all the same
