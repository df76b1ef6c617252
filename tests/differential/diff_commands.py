"""Commands of ours, at the price of a fork each."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from yaqd.model import fixed_addresses


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it printed."""

    exit_code: int
    out: str
    err: str


class Commands:
    """Runs `yaq` commands; any thread may ask."""

    def __init__(self, folder: Path, hash_seed: str | None) -> None:
        self._socket = folder / "commands"
        environment = {**os.environ}
        if hash_seed is not None:
            environment["PYTHONHASHSEED"] = hash_seed
        server = Path(__file__).with_name("diff_server.py")
        # as `yaq mr local` would start itself again
        with fixed_addresses.fixed_for_children():
            self._server = subprocess.Popen(
                [sys.executable, str(server), str(self._socket)], stdout=subprocess.PIPE, env=environment, text=True
            )
        assert self._server.stdout is not None
        if self._server.stdout.readline() != "ready\n":
            raise RuntimeError("the server of commands did not start")

    def yaq(self, said: Path, *argv: str, conf: Path | None = None, timeout_s: float = 180.0) -> Said:
        """`said`: where its output lies afterwards, without suffix. Exit code -9: it did not end in time."""
        request = {
            "argv": argv,
            "cwd": str(said.parent),
            "environment": {"HADOOP_CONF_DIR": str(conf) if conf else ""},
            "said": str(said),
            "timeout_s": timeout_s,
        }
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._socket))
            connection.sendall(json.dumps(request).encode() + b"\n")
            code = int(connection.makefile().readline())
        out, err = (said.with_suffix(suffix).read_text(errors="replace") for suffix in (".out", ".err"))
        return Said(code, out, err)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.kill()
        self._server.wait()
