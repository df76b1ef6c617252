"""The process that forks a slot's trials: it has one thread and runs nothing of the user's.

A slot speaks with its job manager in threads, and a process with threads must not fork. So it forks this one first, and
tells it by a socket which trials to begin, to let go on and to end. Each trial leads a process group of its own, which
can be stopped and ended as one. When the slot ends, this process ends with it, and so do all trials.
"""

import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from tez_adapter.tasks.forked import adopt_orphans, die_with, leave
from tez_adapter.tasks.shared_imports import SharedImports
from yaqd.model.child_processes import children_of

_MESSAGE_BYTES_MAX: Final = 128 << 10
_OUTCOME_BYTES_MAX: Final = 64 << 10
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

#: (number, lap) -> what failed, in words; "" where the program ended well
TrialWork = Callable[[int, int], str]


@dataclass(slots=True)
class ForkedTrial:
    number: int
    lap: int
    #: what it says at its end comes here
    pipe: int


class Nursery:
    """In the slot's process: the way to the process that forks."""

    def __init__(self, work: TrialWork, shared: SharedImports, tidy: Callable[[int, int], None]) -> None:
        """`tidy`: removes what a trial whose process is over has left; called in the process that forks."""
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sys.stdout.flush()
        sys.stderr.flush()
        slot = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            own.close()
            _run(work, shared, tidy, other, slot)
        other.close()
        self._socket = own

    def begin(self, number: int, lap: int) -> None:
        """Begin a trial. Raises OSError where the process has ended."""
        self._send("begin", number, lap)

    def signal(self, number: int, lap: int, which: signal.Signals) -> None:
        """Signal a trial's process group; one that has ended is let be."""
        self._send("signal", number, lap, signal=int(which))

    def _send(self, do: str, number: int, lap: int, **more: int) -> None:
        self._socket.send(json.dumps({"do": do, "number": number, "lap": lap, **more}).encode("ascii"))

    def receive(self) -> dict[str, Any] | None:
        """Return what became of a trial; None: the process has ended."""
        data = self._socket.recv(_MESSAGE_BYTES_MAX)
        return None if not data else dict(json.loads(data))

    def close(self) -> None:
        """End all trials, and the process."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self._socket.close()


def _run(
    work: TrialWork, shared: SharedImports, tidy: Callable[[int, int], None], slot_socket: socket.socket, slot: int
) -> NoReturn:
    try:
        die_with(slot)
        adopt_orphans()
        _Forker(work, shared, tidy, slot_socket).run()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


class _Forker:
    def __init__(
        self, work: TrialWork, shared: SharedImports, tidy: Callable[[int, int], None], slot_socket: socket.socket
    ) -> None:
        self._work, self._shared, self._tidy, self._socket = work, shared, tidy, slot_socket
        #: by process
        self._trials: dict[int, ForkedTrial] = {}
        self._wake, wake_writer = os.pipe()
        for end in (self._wake, wake_writer):
            os.set_blocking(end, False)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        self._wake_writer = wake_writer

    def run(self) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._wake in ready:
                os.read(self._wake, 1 << 12)
                self._reap()
            if self._socket.fileno() in ready and not self._obey():
                break
        for pid in self._trials:
            signal_group(pid, signal.SIGKILL)

    def _obey(self) -> bool:
        data = self._socket.recv(_MESSAGE_BYTES_MAX)
        if not data:
            return False
        order = json.loads(data)
        number, lap = int(order["number"]), int(order["lap"])
        if order["do"] == "begin":
            self._begin(number, lap)
        else:
            for pid, trial in self._trials.items():
                if (trial.number, trial.lap) == (number, lap):
                    signal_group(pid, signal.Signals(order["signal"]))
        return True

    def _begin(self, number: int, lap: int) -> None:
        self._shared.load()
        receiver, sender = os.pipe()
        forker = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.close(receiver)
            self._become(number, lap, sender, forker)
        os.close(sender)
        os.set_blocking(receiver, False)
        with suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, pid)  # whoever of the two is first
        self._trials[pid] = ForkedTrial(number, lap, receiver)

    def _become(self, number: int, lap: int, sender: int, forker: int) -> NoReturn:
        """In the trial's process."""
        code = 1
        try:
            os.setpgid(0, 0)
            die_with(forker)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._socket.close()
            os.close(self._wake)
            os.close(self._wake_writer)
            own = os.getpid()
            outcome = self._work(number, lap)
            if os.getpid() != own:
                os._exit(1)  # a copy that the program has forked, and that came back to here
            code = 1 if outcome else 0
            os.write(sender, self._shared.with_report(outcome.encode("utf-8", "replace")[: _OUTCOME_BYTES_MAX // 2]))
        except BaseException:
            traceback.print_exc()
        leave(code)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            trial = self._trials.get(pid)
            if trial is None:
                continue  # what a trial has left behind
            if os.WIFSTOPPED(status):
                self._tell("stopped", trial, memory_mb=group_memory_mb(pid))
            else:
                self._ended(pid, trial, os.waitstatus_to_exitcode(status))

    def _ended(self, pid: int, trial: ForkedTrial, code: int) -> None:
        signal_group(pid, signal.SIGKILL)
        del self._trials[pid]
        try:
            reported = os.read(trial.pipe, _OUTCOME_BYTES_MAX)
        except BlockingIOError:
            reported = b""
        finally:
            os.close(trial.pipe)
        error = self._shared.learn(reported).decode("utf-8", "replace") if reported else how_it_ended(code)
        self._tell("ended", trial, error=error, is_killed=not reported and code != 0)
        self._tidy(trial.number, trial.lap)

    def _tell(self, what: str, trial: ForkedTrial, **more: Any) -> None:
        message = {"is": what, "number": trial.number, "lap": trial.lap, **more}
        self._socket.send(json.dumps(message).encode("ascii"))


def how_it_ended(code: int) -> str:
    """Say how a process ended that said nothing."""
    if code < 0:
        return f"its process was killed by signal {-code}"
    return f"its process ended with exit status {code} before its program was done" if code else ""


def signal_group(pid: int, number: signal.Signals) -> None:
    """Signal a process group, if it is there."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def group_memory_mb(pid: int) -> int:
    """Return the resident memory of a process and those below it, MB, rounded up."""
    pages = 0
    below = [pid]
    while below:
        one = below.pop()
        with suppress(OSError, IndexError, ValueError):
            pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
        below += children_of(one)
    return -(-pages * _PAGE_BYTES >> 20)
