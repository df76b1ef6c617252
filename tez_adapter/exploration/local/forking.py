"""The process that forks the trials of a local exploration.

It is run as `python -m tez_adapter.exploration.local.forking FD SCRIPT`. It imports once what the program
imports at its top from libraries (`SharedImports`), so that a trial begins in milliseconds. It has one thread and runs
nothing of the user's. When the exploration ends, however it ends, this process is killed with it, and so is each trial.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from tez_adapter.exploration.local.child import run_child
from tez_adapter.exploration.nursery import signal_group
from tez_adapter.tasks.forked import adopt_orphans, die_with, leave, run_in_child
from tez_adapter.tasks.shared_imports import SharedImports

_MODULE: Final = "tez_adapter.exploration.local.forking"
_MESSAGE_MAX: Final = 4096
_POOLS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class TrialForker:
    """In the exploration's process: the way to the process that forks."""

    def __init__(self, script: str, threads: int) -> None:
        """`script`: whose imports are shared; "": none. `threads`: of BLAS and OpenMP in each trial."""
        self._threads = threads
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                (sys.executable, "-m", _MODULE, str(other.fileno()), script),
                stdin=subprocess.DEVNULL,
                pass_fds=(other.fileno(),),
                # pools of threads would begin with the imports, and a process that forks must have one thread
                env={**os.environ, **dict.fromkeys(_POOLS, "1"), "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
        self._socket = own

    def begin(self, end: socket.socket, log: Path) -> int:
        """Fork a trial that speaks through the socket and prints into a file; return its process. Raises OSError."""
        with log.open("ab") as output:
            message = json.dumps({"do": "begin", "threads": self._threads}).encode()
            socket.send_fds(self._socket, [message], [end.fileno(), output.fileno()])
            return int(self._answer()["pid"])

    def end(self, pid: int) -> int:
        """Kill a trial's group; return the exit status that its process had, as `subprocess` has it."""
        try:
            self._socket.send(json.dumps({"do": "end", "pid": pid}).encode())
            while (answer := self._answer()).get("ended") != pid:
                pass  # what an interrupt has left unread
            return int(answer["status"])
        except OSError:  # all trials have ended with the process that forked them
            return -signal.SIGKILL

    def close(self) -> None:
        """End the process, and with it all trials."""
        self._socket.close()
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        data = self._socket.recv(_MESSAGE_MAX)
        if not data:
            raise ConnectionError("the process that forks trials has ended")
        return dict(json.loads(data))


def main(fd: int, script: str) -> None:
    """Obey until the other end is closed."""
    exploration = socket.socket(fileno=fd)
    die_with(os.getppid())
    adopt_orphans()
    shared = SharedImports(is_on=bool(script), is_strict=False)
    if script:
        tried = run_in_child(lambda: _tried(shared, script)).outcome
        if tried:
            shared.learn(tried)
        shared.load()
    trials: set[int] = set()
    with suppress(ConnectionError):  # the exploration is over
        while _obey(exploration, trials):
            pass
    for pid in trials:
        _end(pid)


def _obey(exploration: socket.socket, trials: set[int]) -> bool:
    """Do what is asked next; return False where nothing is any more. Raises ConnectionError likewise."""
    data, descriptors, _, _ = socket.recv_fds(exploration, _MESSAGE_MAX, 2)
    if not data:
        return False
    asked = json.loads(data)
    if asked["do"] == "begin":
        pid = _fork(exploration, descriptors[0], descriptors[1], int(asked["threads"]))
        trials.add(pid)
        answer = {"pid": pid}
    else:
        trials.discard(asked["pid"])
        answer = {"ended": asked["pid"], "status": _end(asked["pid"])}
    exploration.send(json.dumps(answer).encode())
    return True


def _tried(shared: SharedImports, script: str) -> bytes:
    """Find out in a child which imports can be shared."""
    sys.path.insert(0, str(Path(script).resolve().parent))
    shared.try_out(Path(script))
    return shared.with_report(b"")


def _end(pid: int) -> int:
    # until it is waited for, nobody else has its number
    signal_group(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _fork(exploration: socket.socket, end: int, output: int, threads: int) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(exploration, end, output, threads, parent)
    os.close(end)
    os.close(output)
    with suppress(ProcessLookupError, PermissionError):
        os.setpgid(pid, pid)  # whoever of the two is first
    return pid


def _become(exploration: socket.socket, end: int, output: int, threads: int, parent: int) -> NoReturn:
    """In the trial's process."""
    try:
        with suppress(PermissionError):
            os.setpgid(0, 0)
        die_with(parent)
        exploration.close()
        for standard in (1, 2):
            os.dup2(output, standard)
        os.close(output)
        os.environ.update(dict.fromkeys(_POOLS, str(threads)))
        if threads > 1:
            from yaqd.ml.threads import size_pools

            size_pools(threads)
        run_child(end)
    except ConnectionError:
        os._exit(1)  # the exploration is over
    except BaseException:
        traceback.print_exc()
        leave(1)
    leave(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
