"""Stopped trials in image folders on their container's disk, by CRIU: their memory is free, and they can go on later.

An image goes on in its own container alone. There are the folders that its program has in mind, the descriptors that it
shares with its slot, and its job manager. The process keeps its number. Its connections are closed, and calls make new
ones.
"""

import os
import select
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yaqd.model.printable import printable

_PROGRAM: Final = "criu"
_DESCRIPTORS: Final = Path("/proc/self/fd")
_CHECK_WITHIN_S: Final = 10.0
_ANSWER_BYTES_MAX: Final = 64 << 10
_PROBLEM_CHARS_MAX: Final = 200
_LOG: Final = "criu.log"
_LOG_BYTES_MAX: Final = 1 << 20
_ERROR: Final = "Error ("
#: errors that say no reason: a limit that cannot be raised is borne, and the rest follow from another
_NO_REASONS: Final = ("exited, status=", "rlimit: Can't setup", "FAILED")


@dataclass(frozen=True, slots=True)
class Criu:
    """The program as one container finds it."""

    #: "": there is none that works
    path: str = ""
    #: why one that is there does not work, in a line
    problem: str = ""

    @classmethod
    def find(cls, within_s: float = _CHECK_WITHIN_S) -> "Criu":
        """Ask the one on the path, if any, whether it works here."""
        path = shutil.which(_PROGRAM)
        if path is None:
            return cls()
        try:
            code, said = _answer([path, "check"], within_s)
        except OSError as error:
            return cls(problem=f"{path}: {error.strerror}")
        if code == 0:
            return cls(path)
        what = f"{path} check does not end" if code is None else f"{path} check ends with {code}"
        return cls(problem=f"{what}: {_first_error(said)}")


def _answer(command: list[str], within_s: float) -> tuple[int | None, str]:
    """Return a program's exit status, and what it printed, no more of it than is of use. None: it did not end."""
    deadline = time.monotonic() + within_s
    said = b""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        try:
            while len(said) < _ANSWER_BYTES_MAX and (left_s := deadline - time.monotonic()) > 0:
                if poll.poll(1000 * left_s):
                    piece = process.stdout.read(_ANSWER_BYTES_MAX)
                    if not piece:
                        return process.wait(max(0.0, deadline - time.monotonic())), said.decode("utf-8", "replace")
                    said += piece
        except subprocess.TimeoutExpired:
            pass
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return None, said.decode("utf-8", "replace")


def _first_error(said: str) -> str:
    """Return the first error with a reason in what CRIU printed, else its first line. Only what a line can show."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR in line]
    reasons = [line for line in errors if not any(words in line for words in _NO_REASONS)]
    line = (reasons or errors or lines or ["it says nothing"])[0]
    line = line[line.index(_ERROR) :] if _ERROR in line else line
    return printable(line[:_PROBLEM_CHARS_MAX])


class Image:
    """A trial's processes in a folder, or on their way to it or from it."""

    def __init__(self, criu: str, folder: Path, pid: int, pipe: int) -> None:
        """`pipe`: this process's end of the pipe whose other end the trial writes into."""
        self._criu, self._folder, self._pid = criu, folder, pid
        self._pipe_name = str((_DESCRIPTORS / str(pipe)).readlink())

    def dump(self) -> int:
        """Start to write the image; return the process that does it. A success ends the trial's. Raises OSError."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700)
        return self._start("dump", "--tree", str(self._pid))

    def restore(self, pipe: int) -> int:
        """Start to make the trial's processes again, stopped, as a child of this one. Raises OSError.

        What it shared with this process it shares again. It writes into `pipe`.
        """
        descriptors = {number: name for number, name in _shareable().items() if number != pipe}
        kept = [f"--inherit-fd=fd[{number}]:{name}" for number, name in descriptors.items()]
        own = f"--inherit-fd=fd[{pipe}]:{self._pipe_name}"
        return self._start("restore", "--restore-detached", "--restore-sibling", own, *kept, keep=(pipe, *descriptors))

    def _start(self, action: str, *options: str, keep: tuple[int, ...] = ()) -> int:
        command = [self._criu, action, "--images-dir", str(self._folder), "--log-file", _LOG]
        command += ["--shell-job", "--tcp-close", *options]
        # no Popen: whoever waits for all children waits for this one
        kept = [(os.POSIX_SPAWN_DUP2, number, number) for number in keep]
        return os.posix_spawn(self._criu, command, os.environ, file_actions=kept)

    @property
    def mb(self) -> int:
        """Its size on disk, MB, rounded up."""
        with os.scandir(self._folder) as entries:
            return -(-sum(entry.stat().st_blocks * 512 for entry in entries) >> 20)

    def problem(self) -> str:
        """Return what CRIU says of its last try, in a line."""
        try:
            with open(self._folder / _LOG, encoding="utf-8", errors="replace") as file:
                return _first_error(file.read(_LOG_BYTES_MAX))
        except OSError as error:
            return f"{error.strerror}: {error.filename}"

    def remove(self) -> None:
        """Remove the folder; what cannot be removed goes with the container."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _shareable() -> dict[int, str]:
    """Files and pipes that this process has open, by the names that CRIU gives them; a trial may have them, too."""
    found: dict[int, str] = {}
    for descriptor in _DESCRIPTORS.iterdir():
        with suppress(OSError):
            target = descriptor.readlink()
            if str(target).startswith("pipe:") or (target.is_absolute() and target.is_file()):
                found[int(descriptor.name)] = str(target).removeprefix("/")
    return found
