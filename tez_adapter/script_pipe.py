"""A user's executable as a filter: blocks of bytes in, blocks of bytes out, its stderr read on the side.

As Hadoop Streaming runs it: words split as a shell would but without a shell, the working folder first on the PATH, the
job's configuration in the environment. On stderr, `reporter:counter:GROUP,NAME,AMOUNT` and `reporter:status:TEXT` are
messages to the job; everything else goes to the container's stderr. Three threads (ours, a feeder, the stderr reader),
because each of the three pipes may be the one that blocks.
"""

import os
import shlex
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import IO

from tez_adapter.attempt import Attempt

_READ_BYTES = 1 << 20
_TAIL_LINES = 20
_LINE_CHARS_MAX = 2000
_COUNTER = "reporter:counter:"
_STATUS = "reporter:status:"
#: after its end, for what it left in its pipes
_EXIT_WAIT_S = 30.0


class ScriptFailed(Exception):
    """The executable did not start, or ended with a status other than 0."""


class ScriptPipe:
    """One run of one executable. Iterate `output(blocks)` to its end; that also checks the exit status."""

    def __init__(self, role: str, command: str, environment: Mapping[str, str], attempt: Attempt) -> None:
        #: mapper, combiner or reducer
        self._role = role
        self._command = command
        self._attempt = attempt
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._feed_error: BaseException | None = None
        self._process = self._start({**environment, "PATH": f"{os.getcwd()}:{environment.get('PATH', os.defpath)}"})  # noqa: PTH109

    def _start(self, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
        try:
            words = shlex.split(self._command)
            return subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                bufsize=0,
                executable=_executable(words[0], environment["PATH"]),
            )
        except (OSError, ValueError, IndexError) as error:
            raise ScriptFailed(
                f"cannot start the {self._role} {self._command!r}: {error}; is it sent along (-file) and executable?"
            ) from None

    def output(self, blocks: Iterable[bytes | memoryview]) -> Iterator[bytes]:
        """Pieces of what it writes, while the blocks are fed to it. Raises ScriptFailed."""
        feeder = threading.Thread(target=self._feed, args=(iter(blocks),), name="feeder", daemon=True)
        listener = threading.Thread(target=self._listen, name="stderr", daemon=True)
        feeder.start()
        listener.start()
        stdout = self._process.stdout
        assert stdout is not None
        try:
            while piece := stdout.read(_READ_BYTES):
                self._attempt.moved()
                yield piece
            status = self._process.wait()
            feeder.join(_EXIT_WAIT_S)
            listener.join(_EXIT_WAIT_S)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
        if self._feed_error is not None:
            raise self._feed_error
        if status != 0 and self._attempt.conf.get_bool("stream.non.zero.exit.is.failure", True):
            raise ScriptFailed(self._story(status))

    def _story(self, status: int) -> str:
        how = f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"
        tail = "\n".join(self._tail)
        return f"the {self._role} {self._command!r} {how}" + (f"; its last lines on stderr:\n{tail}" if tail else "")

    def _feed(self, blocks: Iterator[bytes | memoryview]) -> None:
        stdin: IO[bytes] | None = self._process.stdin
        assert stdin is not None
        try:
            for block in blocks:
                view = memoryview(block)
                while view:
                    view = view[stdin.write(view) :]
                self._attempt.moved()
        except BrokenPipeError:
            pass  # it has read enough; its exit status says whether that was right
        except BaseException as error:
            self._feed_error = error
            self._process.kill()
        finally:
            with suppress(OSError):
                stdin.close()

    def _listen(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        rest = b""
        while piece := stderr.read(_READ_BYTES):
            *lines, rest = (rest + piece).split(b"\n")
            rest = rest[:_LINE_CHARS_MAX]
            for line in lines:
                self._hear(line.decode("utf-8", "replace"))
        if rest:
            self._hear(rest.decode("utf-8", "replace"))

    def _hear(self, line: str) -> None:
        if line.startswith(_COUNTER):
            parts = line.removeprefix(_COUNTER).rsplit(",", 2)
            if len(parts) == 3 and parts[2].strip().lstrip("-").isdecimal():
                self._attempt.counters.increment(parts[0], parts[1], int(parts[2]))
                self._attempt.moved()
                return
        elif line.startswith(_STATUS):
            self._attempt.status = line.removeprefix(_STATUS)[:_LINE_CHARS_MAX]
            self._attempt.moved()
            return
        self._tail.append(line[:_LINE_CHARS_MAX])
        print(line, file=sys.stderr, flush=True)


def _executable(program: str, path: str) -> str | None:
    """Where the program lies by the child's PATH (Popen would look along ours)."""
    if "/" in program:
        return None
    for folder in path.split(":"):
        candidate = os.path.join(folder, program)  # noqa: PTH118
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):  # noqa: PTH113
            return candidate
    return None
