"""`yaq` commands from a process that has imported what they need: each is a fork of it, so that it starts at once.

`python diff_server.py SOCKET` answers one request a connection, a line of JSON: {"argv", "cwd", "environment", "said",
"timeout_s"}; standard output and error go to the files SAID.out and SAID.err, the exit status comes back.
"""

import gc
import importlib
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

_POLL_S = 0.005
_NEEDED = (
    "numpy",
    "pyarrow.compute",
    "tez_adapter.client.local",
    "tez_adapter.tasks.map_task",
    "tez_adapter.tasks.reduce_task",
    "tez_adapter.client.submit",
    "yaqd.cli.applications.following",
    "yaqd.cli.jobs.mr",
    "yaqd.cli.jobs.streaming_options",
)


def main() -> None:
    for name in _NEEDED:
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who answers is nobody's to wait for
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen(64)
        print("ready", flush=True)
        while os.getppid() != 1:
            listening.settimeout(1.0)
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            if os.fork() == 0:
                listening.close()
                connection.settimeout(None)
                _answer(connection)
            connection.close()


def _answer(connection: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request = json.loads(connection.makefile().readline())
    pid = os.fork()
    if pid == 0:
        connection.close()
        os.setsid()
        _run(request)
    deadline = time.monotonic() + request["timeout_s"]
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            deadline = float("inf")
        time.sleep(_POLL_S)
    connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _run(request: dict[str, object]) -> None:
    """The command, as the `yaq` script runs it."""
    from yaqd.cli import main as yaq

    said = Path(str(request["said"]))
    for number, suffix in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(said.with_suffix(suffix), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(str(request["cwd"]))
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    sys.argv = ["yaq", *request["argv"]]  # type: ignore[misc]
    code = 99
    try:
        yaq()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
