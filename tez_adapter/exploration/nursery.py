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

from tez_adapter.exploration.criu import Image
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
    pid: int
    #: what it says at its end comes here
    pipe: int
    #: where its memory goes to, is, or comes from
    image: Image | None = None
    #: how its process ended while an image was made of it, or it was made from one; None: it has not ended
    code: int | None = None


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

    def dump(self, number: int, lap: int, criu: str, folder: Path) -> None:
        """Make an image of a trial that stands stopped; what lets the trial go on makes it from that again."""
        self._send("dump", number, lap, criu=criu, folder=str(folder))

    def _send(self, do: str, number: int, lap: int, **more: int | str) -> None:
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
        #: those that are images alone; their processes' numbers may be somebody else's
        self._images: list[ForkedTrial] = []
        #: by the process that makes an image, or a process from one
        self._dumps: dict[int, ForkedTrial] = {}
        self._restores: dict[int, ForkedTrial] = {}
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
        for pid in (*self._dumps, *self._restores):
            os.kill(pid, signal.SIGKILL)
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
            return True
        every = (*self._trials.values(), *self._images, *self._restores.values())
        for trial in [one for one in every if (one.number, one.lap) == (number, lap)]:
            if order["do"] == "dump":
                self._dump(trial, order["criu"], Path(order["folder"]))
            else:
                self._signal(trial, signal.Signals(order["signal"]))
        return True

    def _signal(self, trial: ForkedTrial, which: signal.Signals) -> None:
        if trial in self._images:
            self._images.remove(trial)
            if which is signal.SIGCONT:
                self._restore(trial)
            else:
                self._over(trial, how_it_ended(-which), is_killed=True)
            return
        for pid, one in (*self._dumps.items(), *self._restores.items()):
            if one is trial and which is signal.SIGKILL:
                os.kill(pid, which)  # it is not reaped yet, so the number is its own
        if self._trials.get(trial.pid) is trial:
            signal_group(trial.pid, which)

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
        self._trials[pid] = ForkedTrial(number, lap, pid, receiver)

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
            if os.WIFSTOPPED(status):
                if (trial := self._trials.get(pid)) is not None and trial.image is None:
                    self._stopped(trial)
                continue
            code = os.waitstatus_to_exitcode(status)
            if (trial := self._dumps.pop(pid, None)) is not None:
                self._dumped(trial, code)
            elif (trial := self._restores.pop(pid, None)) is not None:
                self._restored(trial, code)
            elif (trial := self._trials.get(pid)) is not None and trial.image is None:
                self._ended(trial, code)
            else:  # else it is what a trial has left behind
                for trial in (*self._dumps.values(), *self._restores.values()):
                    trial.code = code if trial.pid == pid else trial.code

    # ---- images

    def _dump(self, trial: ForkedTrial, criu: str, folder: Path) -> None:
        if trial.image is not None:
            return
        strays = [pid for pid in children_of(os.getpid()) - {trial.pid} if group_of(pid) == trial.pid]
        try:
            if strays:
                raise OSError(f"processes that it has left behind are there: {strays}")
            trial.image = Image(criu, folder, trial.pid, trial.pipe)
            self._dumps[trial.image.dump()] = trial
        except OSError as error:
            trial.image = None
            self._stopped(trial, f"{error}")

    def _dumped(self, trial: ForkedTrial, code: int) -> None:
        image, trial.image = trial.image, None
        assert image is not None
        if code != 0 and trial.code is None:
            problem = image.problem() if code > 0 else how_it_ended(code)
            image.remove()
            self._stopped(trial, problem)
            return
        if trial.code is None:
            trial.code = os.waitstatus_to_exitcode(os.waitpid(trial.pid, 0)[1])
        if code != 0 or trial.code != -signal.SIGKILL:
            image.remove()
            self._ended(trial, trial.code)
            return
        del self._trials[trial.pid]
        trial.image, trial.code = image, None
        self._images.append(trial)
        self._tell("stopped", trial, memory_mb=0, image_mb=image.mb, error="")

    def _restore(self, trial: ForkedTrial) -> None:
        assert trial.image is not None
        receiver, sender = os.pipe()
        try:
            self._restores[trial.image.restore(sender)] = trial
        except OSError as error:
            os.close(receiver)
            self._over(trial, f"{error}", is_killed=True)
            return
        finally:
            os.close(sender)
        os.set_blocking(receiver, False)
        os.close(trial.pipe)
        trial.pipe = receiver

    def _restored(self, trial: ForkedTrial, code: int) -> None:
        image = trial.image
        assert image is not None
        known = self._trials.keys() | self._dumps.keys() | self._restores.keys()
        is_own = trial.pid in children_of(os.getpid()) - known
        if code != 0 or not (is_own or trial.code is not None):
            if is_own:
                signal_group(trial.pid, signal.SIGKILL)
                os.kill(trial.pid, signal.SIGKILL)
            problem = image.problem() if code >= 0 else how_it_ended(code)
            self._over(trial, problem, is_killed=True)
            return
        trial.image = None
        image.remove()
        self._trials[trial.pid] = trial
        if trial.code is not None:
            self._ended(trial, trial.code)
        else:
            signal_group(trial.pid, signal.SIGCONT)

    # ---- what became of trials

    def _stopped(self, trial: ForkedTrial, error: str = "") -> None:
        self._tell("stopped", trial, memory_mb=group_memory_mb(trial.pid), image_mb=0, error=error)

    def _ended(self, trial: ForkedTrial, code: int) -> None:
        signal_group(trial.pid, signal.SIGKILL)
        del self._trials[trial.pid]
        try:
            reported = os.read(trial.pipe, _OUTCOME_BYTES_MAX)
        except BlockingIOError:
            reported = b""
        error = self._shared.learn(reported).decode("utf-8", "replace") if reported else how_it_ended(code)
        self._over(trial, error, is_killed=not reported and code != 0)

    def _over(self, trial: ForkedTrial, error: str, *, is_killed: bool) -> None:
        os.close(trial.pipe)
        if trial.image is not None:
            trial.image.remove()
        self._tell("ended", trial, error=error, is_killed=is_killed)
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


def group_of(pid: int) -> int:
    """Return a process's group; 0 where it is gone."""
    with suppress(ProcessLookupError):
        return os.getpgid(pid)
    return 0


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
