"""Uploads, each in the right place: on the local file system in the caller's thread, else in a process of its user.

Processes are kept for the next upload of the same user, so that starting them costs little where many applications
end. One that does not answer in time is killed: whatever its file system does, it holds up nobody else.
"""

import json
import logging
import os
import select
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from nm.logs.aggregation.child import perform
from nm.logs.aggregation.upload import Upload
from yaqd.config import Configuration
from yaqd.storage import StorageError, StorageUnavailable

log = logging.getLogger(__name__)

_CHILD: Final = (sys.executable, "-m", "nm.logs.aggregation.child")
_ERROR_CHARS_MAX: Final = 2000
_READ_BYTES: Final = 1 << 16
_END_TIMEOUT_S: Final = 1.0


class _Gone(Exception):
    """The process ended without an answer."""


class _UserProcess:
    def __init__(self, conf: Configuration, user: str, command: Sequence[str]) -> None:
        """Raises OSError."""
        environment = {name: value for name, value in os.environ.items() if name != "CONTAINER_ID"}
        self.was_used = False
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**environment, "HADOOP_USER_NAME": user},
            start_new_session=True,
        )
        self._first = json.dumps(dict(conf.items())).encode() + b"\n"

    def ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Raises _Gone, or TimeoutError."""
        assert self._process.stdin is not None
        try:
            _write(self._process.stdin.fileno(), self._first + json.dumps(request).encode() + b"\n", timeout_s)
        except BrokenPipeError:
            raise _Gone from None
        self._first = b""
        answer: dict[str, Any] = json.loads(self._line(time.monotonic() + timeout_s))
        self.was_used = True
        return answer

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        data = b""
        while not data.endswith(b"\n"):
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError
            piece = os.read(descriptor, _READ_BYTES)
            if not piece:
                raise _Gone
            data += piece
        return data

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """At once. Nothing is left of it but, for a process in the kernel's hands, what the kernel holds."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            log.warning("upload process %d does not end", self._process.pid)


class Uploaders:
    """Called from several threads at once."""

    def __init__(
        self,
        conf: Configuration,
        *,
        is_local: bool,
        daemon_user: str,
        timeout_s: float,
        command: Sequence[str] = _CHILD,
    ) -> None:
        """`timeout_s` bounds one upload. `command` starts a child; tests put others in its place."""
        self._conf = conf
        self._is_local = is_local
        self._daemon_user = daemon_user
        self._timeout_s = timeout_s
        self._command = command
        self._lock = threading.Lock()
        self._idle: defaultdict[str, list[_UserProcess]] = defaultdict(list)
        self._busy: set[_UserProcess] = set()
        self._is_closed = False

    def upload(self, work: Upload) -> None:
        """Uploads the logs. Blocking. Raises StorageError; the file then is not there, or it is whole."""
        self._ask(work.user, {"upload": work.to_json()})

    def make_root(self, group: str) -> str | None:
        """Makes the root folder; returns a warning where it is not as it should be. Blocking. Raises StorageError."""
        warning: str | None = self._ask(self._daemon_user, {"make_root": group})
        return warning

    def close(self) -> None:
        """Ends every process, busy ones too."""
        with self._lock:
            self._is_closed = True
            children = [*self._busy, *(child for idle in self._idle.values() for child in idle)]
            self._idle.clear()
        for child in children:
            child.end()

    def _ask(self, user: str, request: dict[str, Any]) -> Any:
        if self._is_local:
            return perform(request, self._conf)
        while True:
            child = self._take(user)
            was_used = child.was_used
            try:
                answer = child.ask(request, self._timeout_s)
            except TimeoutError:
                self._drop(child)
                problem = f"the file system did not answer user {user} within {self._timeout_s:g} s"
                raise StorageUnavailable(problem) from None
            except (_Gone, OSError, ValueError):
                self._drop(child)
                if was_used and not self._is_closed:
                    continue  # it had been idle for long and was just about to end
                raise StorageError(f"the process for uploads of user {user} ended without an answer") from None
            self._give_back(user, child)
            if "error" in answer:
                raise StorageError(str(answer["error"])[:_ERROR_CHARS_MAX])
            return answer.get("result")

    def _take(self, user: str) -> _UserProcess:
        with self._lock:
            if self._is_closed:
                raise StorageUnavailable("the NodeManager stops")
            idle = self._idle[user]
            child = None
            while child is None and idle:
                child = idle.pop()
                if not child.is_alive():
                    child.end()
                    child = None
            if not idle:
                del self._idle[user]
            if child is None:
                try:
                    child = _UserProcess(self._conf, user, self._command)
                except OSError as error:
                    raise StorageError(f"no process for uploads of user {user}: {error}") from None
            self._busy.add(child)
            return child

    def _give_back(self, user: str, child: _UserProcess) -> None:
        with self._lock:
            self._busy.discard(child)
            if not self._is_closed:
                self._idle[user].append(child)
                return
        child.end()

    def _drop(self, child: _UserProcess) -> None:
        with self._lock:
            self._busy.discard(child)
        child.end()


def _write(descriptor: int, data: bytes, timeout_s: float) -> None:
    """All of it. Raises TimeoutError when nobody reads, BrokenPipeError when nobody can."""
    os.set_blocking(descriptor, False)
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    deadline = time.monotonic() + timeout_s
    view = memoryview(data)
    while view:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError
        view = view[os.write(descriptor, view) :]
