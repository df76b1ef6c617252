"""Loaded by every Python process of the fuzzer's cluster (by PYTHONPATH): keeps what peers say to its servers.

One file per connection under $YAQ_FUZZ_RECORD, named after the server; recording ends when a file `stop` appears there.
The tokens that our own clients use are kept too, in one line of JSON each: the fuzzer has to get past the door of the
ports that ask for one. Only the fuzzer sets the variable; its cluster lives on loopback and dies with it.
"""

import faulthandler
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

_CONNECTIONS_MAX = 60
_BYTES_MAX = 256 << 10


class _Recorder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._counts: dict[str, int] = {}

    def open(self, server: str) -> "_Tape | None":
        """The file of a new connection; None when enough is recorded."""
        count = self._counts.get(server, 0)
        if count >= _CONNECTIONS_MAX or (self._folder / "stop").exists():
            return None
        self._counts[server] = count + 1
        name = server.lower().replace(" ", "-")
        return _Tape(self._folder / f"{name}.{os.getpid()}.{count:03d}")

    def token(self, user: str, token: Any) -> None:
        line = {
            "user": user,
            "kind": token.kind,
            "service": token.service,
            "identifier": token.identifier.hex(),
            "password": token.password.hex(),
        }
        with open(self._folder / f"tokens.{os.getpid()}", "a", encoding="ascii") as file:
            file.write(json.dumps(line) + "\n")


class _Tape:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = _BYTES_MAX

    def write(self, data: Any) -> None:
        if self._left > 0:
            with open(self._path, "ab") as file:
                file.write(data)
            self._left -= len(data)


def _record_rpc(recorder: _Recorder) -> None:
    from yaqd.ipc.client_connection import ClientConnection
    from yaqd.ipc.server_protocol import ServerProtocol

    made, updated, created = ServerProtocol.connection_made, ServerProtocol.buffer_updated, ClientConnection.__init__

    def connection_made(self: Any, transport: Any) -> None:
        made(self, transport)
        self.fuzz_tape = recorder.open(self._server.name)

    def buffer_updated(self: Any, nbytes: int) -> None:
        if self.fuzz_tape is not None:
            self.fuzz_tape.write(self._server.read_buffer[:nbytes])
        updated(self, nbytes)

    def init(self: Any, **options: Any) -> None:
        created(self, **options)
        if options.get("token") is not None:
            recorder.token(options["user"], options["token"])

    ServerProtocol.connection_made = connection_made  # type: ignore[method-assign]
    ServerProtocol.buffer_updated = buffer_updated  # type: ignore[method-assign]
    ClientConnection.__init__ = init  # type: ignore[method-assign]


def _record_http(recorder: _Recorder, daemon: str) -> None:
    from aiohttp.web_protocol import RequestHandler

    received = RequestHandler.data_received

    def data_received(self: Any, data: bytes) -> None:
        tape = recorder.open(f"{daemon} web")
        if tape is not None:
            tape.write(data)
        received(self, data)

    RequestHandler.data_received = data_received  # type: ignore[method-assign]


def _record_shuffle(recorder: _Recorder) -> None:
    from nm.shuffle.connection import Connection

    served = Connection._next_request

    def next_request(self: Any) -> None:
        tape = recorder.open("shuffle")
        if tape is not None:
            tape.write(self._received)
        served(self)

    Connection._next_request = next_request  # type: ignore[method-assign]


def _install(folder: str) -> None:
    recorder = _Recorder(Path(folder))
    faulthandler.register(signal.SIGUSR1)  # what a daemon does that does not hang up, in its .out file
    _record_rpc(recorder)
    for daemon in ("rm", "nm"):
        if daemon in sys.orig_argv:
            _record_http(recorder, daemon)
    if "nm" in sys.orig_argv:
        _record_shuffle(recorder)


if "YAQ_FUZZ_RECORD" in os.environ:
    _install(os.environ["YAQ_FUZZ_RECORD"])
