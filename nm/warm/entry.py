"""What a forked child becomes: the process of a container's Python entry. The standard library only."""

import gc
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from nm.warm import groups
from nm.warm.command import enter_class
from nm.warm.marks import set_mark

#: what a child writes to its pipe once it leads its own session
READY = b"+"
#: only entries of the job manager's package may be called in the prepared process
ENTRY_PREFIX = "tez_adapter."


def become(request: dict[str, Any], sender: int) -> int:
    """Calls the container's Python entry, in the forked child, and returns its exit code."""
    try:
        os.setsid()
        os.write(sender, READY)
        if request["group"]:
            groups.join(request["group"])
        if request["mark"]:
            set_mark(request["mark"])
        if request["pid_file"]:
            Path(request["pid_file"]).write_text(f"{os.getpid()}\n", encoding="ascii")
        _redirect(request["stdout"], request["stderr"])
        os.chdir(request["cwd"])
        if request["batch"]:
            enter_class(os.SCHED_BATCH)
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


def leave(code: int) -> NoReturn:
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
