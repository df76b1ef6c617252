"""Work in a child of the test's process: to its end, or until SIGKILL at one of its own steps on files, so that no test
has to be quick enough to hit it."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")

#: what changes something on a disk, in Python's audit events
_EVENTS = ("open", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.chmod")


def kill_at_step(number: int, below: Path) -> None:
    """At the step of this number, from 1, that touches a path below a folder; before it happens."""
    left = number

    def look(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in _EVENTS and str(arguments[0]).startswith(str(below)):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)


def survives(work: Callable[[], object], number: int, below: Path) -> bool:
    """Run it in a child that is killed at that step; whether it came to its end before."""
    child = os.fork()
    if not child:
        try:
            kill_at_step(number, below)
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        assert os.waitstatus_to_exitcode(status) == 0
        return True
    return False


def in_child(work: Callable[[], Result]) -> Result:
    """What it returns there, as JSON has it."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    os.waitpid(child, 0)
    return json.loads(text)


_HOOK = """
import os, signal, sys
if {attempt!r} in os.environ.get("CONTAINER_ID", "") and "tez_adapter.master.appmaster" in " ".join(sys.orig_argv):
    def look(event, arguments):
        if event == {event!r} and {part!r} in str(arguments[:2]):
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(look)
"""


def crashing_python(folder: Path, event: str, part: str, attempt: str = "") -> str:
    """An interpreter for `yaq.job.python` in which a job manager is killed at an audit event whose arguments have this
    part; `attempt`: in such a container alone, as `_01_`."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_HOOK.format(event=event, part=part, attempt=attempt))
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder}:$PYTHONPATH exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return str(python)
