"""Where the proxy keeps what must outlive it: one file for each master, one for its keys.

A file is replaced whole, by renaming, so that whatever is found after a crash is some state that was. One thread
writes, in the order of the calls. Nothing is flushed to the disk: a machine that goes takes its masters with it.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVarTuple

from google.protobuf.message import DecodeError

from yaqd.model import ApplicationAttemptId
from yaqd.proto import yarn_server_pb2 as server

Arguments = TypeVarTuple("Arguments")

log = logging.getLogger(__name__)

_KEYS: Final = "keys"
_FILE_BYTES_MAX: Final = 256 << 20


class ProxyStore:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="proxy-store")

    def load(self) -> tuple[list[server.ProxiedMaster], server.ProxyKeys | None]:
        """Reads what was saved; a file that cannot be read is logged and left out. Blocking.

        Raises OSError when there can be no such folder.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        masters, keys = [], None
        for path in sorted(self._folder.iterdir()):
            try:
                if path.suffix or path.stat().st_size > _FILE_BYTES_MAX:
                    path.unlink()
                elif path.name == _KEYS:
                    keys = server.ProxyKeys.FromString(path.read_bytes())
                else:
                    masters.append(server.ProxiedMaster.FromString(path.read_bytes()))
            except (OSError, DecodeError) as error:
                log.warning("%s is of no use: %s", path, error)
        return masters, keys

    async def save(self, attempt_id: ApplicationAttemptId, state: bytes) -> None:
        """Writes a master's file; `state` is a ProxiedMaster on the wire. Raises OSError."""
        await self._run(self._write, str(attempt_id), state)

    async def save_keys(self, keys: server.ProxyKeys) -> None:
        """Raises OSError."""
        await self._run(self._write, _KEYS, keys.SerializeToString())

    async def forget(self, attempt_id: ApplicationAttemptId) -> None:
        """Raises OSError."""
        await self._run(self._remove, str(attempt_id))

    def close(self) -> None:
        """Waits for what is being written."""
        self._writer.shutdown(wait=True)

    async def _run(self, work: Callable[[*Arguments], None], *arguments: *Arguments) -> None:
        await asyncio.get_running_loop().run_in_executor(self._writer, work, *arguments)

    def _write(self, name: str, data: bytes) -> None:
        path = self._folder / f"{name}.new"
        with path.open("wb") as file:
            file.write(data)
        path.chmod(0o600)
        path.rename(self._folder / name)

    def _remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)
