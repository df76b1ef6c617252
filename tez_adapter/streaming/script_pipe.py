"""A user's executable as a filter: blocks of bytes in, blocks of bytes out, its stderr read on the side.

As Hadoop Streaming runs it: without a shell, the working folder first on the PATH, the job's configuration in the
environment. Three threads (ours, a feeder, the stderr reader), because each of the three pipes may be the one that
blocks. What goes wrong in one of them ends the run, whoever else still holds the script's pipes open.
"""

import errno
import os
import select
import socket
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO

from tez_adapter.streaming.script_command import executable, make_executable, split_command
from tez_adapter.streaming.script_stderr import StderrReader
from tez_adapter.tasks.attempt import TaskAttempt

_READ_BYTES = 1 << 20
_SHELL = "/bin/sh"
#: after its end, for what it left in its pipes
_EXIT_WAIT_S = 30.0
#: Hadoop Streaming writes to a script by so many bytes, and fails where one of these writes does but for the last
_BUFFER_BYTES = 128 * 1024
#: a mapper that has written so many lines may stop reading
_MAY_STOP_KEY = "stream.minRecWrittenToEnableSkip_"


class ScriptFailed(Exception):
    """The executable did not start, or ended with a status other than 0."""


class ScriptPipe:
    """One run of one executable. Iterate `output(blocks)` to its end; that also checks the exit status."""

    def __init__(self, role: str, command: str, environment: Mapping[str, str], attempt: TaskAttempt) -> None:
        #: mapper, combiner or reducer
        self._role = role
        self._command = command
        self._attempt = attempt
        self._stderr = StderrReader(role, attempt)
        #: None: it has to read all of its input
        self._may_stop_after = _may_stop_after(attempt) if role == "mapper" else None
        self._lines_written = 0
        #: it reads no more, and much of its input is left
        self._has_left_input = False
        #: of the feeder or the stderr reader
        self._error: BaseException | None = None
        #: readable once there is an error
        self._alarm, self._bell = socket.socketpair()
        self._process = self._start({**environment, "PATH": f"{os.getcwd()}:{environment.get('PATH', os.defpath)}"})  # noqa: PTH109

    def _start(self, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
        try:
            words = split_command(self._command)
            make_executable(words[0])
            program = executable(words[0], environment["PATH"])
            try:
                return _spawn(words, program, environment)
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
                # a script that does not say of what: the shell's, as for Java
                return _spawn([_SHELL, program or words[0], *words[1:]], _SHELL, environment)
        except (OSError, ValueError, IndexError) as error:
            raise ScriptFailed(
                f"cannot start the {self._role} {self._command!r}: {error}; is it sent along (-file) and executable?"
            ) from None

    def output(self, blocks: Iterable[bytes | memoryview]) -> Iterator[bytes]:
        """Yield pieces of what it writes, while the blocks are fed to it.

        Raises ScriptFailed, JobError for what it reports, and whatever the blocks raise.
        """
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None and stdout is not None and stderr is not None
        feeder = self._beside("feeder", lambda: self._feed(stdin, iter(blocks)))
        listener = self._beside("stderr", lambda: self._stderr.read(stderr))
        try:
            while piece := self._next_piece(stdout.fileno()):
                self._attempt.moved()
                if self._may_stop_after is not None:
                    self._lines_written += piece.count(b"\n")
                yield piece
            status = None if self._error else self._process.wait()
            for thread in (feeder, listener) if self._error is None else ():
                thread.join(_EXIT_WAIT_S)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._alarm.close()
            self._bell.close()
        if self._error is not None:
            raise self._error
        if status != 0 and self._attempt.conf.get_bool("stream.non.zero.exit.is.failure", True):
            raise ScriptFailed(self._story(status or 0))
        if self._has_left_input:
            raise ScriptFailed(self._stopped())

    def _next_piece(self, stdout: int) -> bytes:
        """Empty at the end of its output, or when one of the other threads has failed."""
        poller = select.poll()
        for descriptor in (stdout, self._alarm.fileno()):
            poller.register(descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poller.poll()]
        return b"" if self._alarm.fileno() in ready else os.read(stdout, _READ_BYTES)

    def _beside(self, name: str, work: Callable[[], None]) -> threading.Thread:
        """Run it in a thread whose failure ends the script."""

        def run() -> None:
            try:
                work()
            except BaseException as error:
                self._error = self._error or error
                self._process.kill()
                with suppress(OSError):  # the run is over
                    self._bell.send(b"!")

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def _feed(self, stdin: IO[bytes], blocks: Iterator[bytes | memoryview]) -> None:
        taken = size = 0
        try:
            for block in blocks:
                if taken == size:
                    taken += _written(stdin, memoryview(block))
                size += len(block)
                if taken < size and taken < (size - 1) // _BUFFER_BYTES * _BUFFER_BYTES and not self._may_stop():
                    self._has_left_input = True
                    return
                self._attempt.moved()
        finally:
            with suppress(OSError):
                stdin.close()

    def _may_stop(self) -> bool:
        return self._may_stop_after is not None and self._lines_written >= self._may_stop_after

    def _stopped(self) -> str:
        advice = "read it to the end, as cat > /dev/null does"
        if self._role == "mapper":
            advice += f", or set {_MAY_STOP_KEY}=0 where the rest may be left"
        return (
            f"the {self._role} {self._command!r} stopped reading and left much of its input "
            f"(a broken pipe, with which Hadoop Streaming fails too): {advice}"
        )

    def _story(self, status: int) -> str:
        how = f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"
        tail = self._stderr.tail()
        return f"the {self._role} {self._command!r} {how}" + (f"; its last lines on stderr:\n{tail}" if tail else "")


def _spawn(words: Sequence[str], program: str | None, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        bufsize=0,
        executable=program,
    )


def _written(stdin: IO[bytes], view: memoryview) -> int:
    """Writes the block; returns how many of its bytes went in, fewer where the script reads no more."""
    size = len(view)
    try:
        while view:
            view = view[stdin.write(view) :]
    except BrokenPipeError:
        return size - len(view)
    return size


def _may_stop_after(attempt: TaskAttempt) -> int | None:
    return attempt.conf.get_int(_MAY_STOP_KEY) if attempt.conf.get(_MAY_STOP_KEY) else None
