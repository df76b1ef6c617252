"""Which rack a host stands in: a table or a program that the site provides, as Hadoop's TableMapping and
ScriptBasedMapping.

Both know hosts by address: the program is given the address as Hadoop's is, the table may have either. The program is
run once for each host, when a node of that host registers for the first time. It has a deadline and little to say;
where it fails the host is taken to be in the default rack, as Hadoop does, and one line is logged.
"""

import asyncio
import logging
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

from rm.nodes.hosts import address_of
from yaqd.config import Configuration
from yaqd.model import DEFAULT_RACK

log = logging.getLogger(__name__)

_SCRIPT_TIMEOUT_S: Final = 10.0
_OUTPUT_MAX: Final = 4096
_TABLE_BYTES_MAX: Final = 64 * 1024 * 1024
_RACK_CHARS_MAX: Final = 255
_IMPL: Final = "net.topology.node.switch.mapping.impl"
_TABLE: Final = "net.topology.table.file.name"
_SCRIPT: Final = "net.topology.script.file.name"
_TABLE_MAPPING: Final = "org.apache.hadoop.net.TableMapping"
_SCRIPT_MAPPING: Final = "org.apache.hadoop.net.ScriptBasedMapping"


class Topology:
    def __init__(self, table: dict[str, str], script: str = "", *, timeout_s: float = _SCRIPT_TIMEOUT_S) -> None:
        #: by host or address, as the table has it; and by host what the program said
        self._racks = dict(table)
        self._script = script
        self._timeout_s = timeout_s
        self._asking: dict[str, asyncio.Task[None]] = {}

    @classmethod
    def read(cls, conf: Configuration) -> "Topology":
        """Read the settings and the table. Blocking. Raises ConfigError when the table cannot be read."""
        mapping = (conf.get(_IMPL) or "").strip()
        if mapping not in ("", _TABLE_MAPPING, _SCRIPT_MAPPING):
            raise conf.error(
                _IMPL, "not supported", f"set it to {_TABLE_MAPPING} or {_SCRIPT_MAPPING}, or leave it out"
            )
        table = _read_table(conf) if mapping != _SCRIPT_MAPPING else {}
        script = (conf.get(_SCRIPT) or "").strip() if mapping != _TABLE_MAPPING else ""
        return cls(table, script)

    def rack_of(self, host: str) -> str:
        return self._racks.get(host, DEFAULT_RACK)

    async def resolve(self, host: str) -> None:
        """Find out about a host that is not known yet; who asks meanwhile waits for the same answer."""
        if host in self._racks or not (self._racks or self._script):
            return
        task = self._asking.get(host)
        if task is None:
            task = self._asking[host] = asyncio.create_task(self._ask(host))
            task.add_done_callback(lambda _: self._asking.pop(host, None))
        await asyncio.shield(task)

    async def _ask(self, host: str) -> None:
        address = await asyncio.to_thread(address_of, host) or host
        rack = self._racks.get(address)
        if rack is None and self._script:
            rack = await self._run(address)
        self._racks[host] = rack or DEFAULT_RACK

    async def _run(self, address: str) -> str | None:
        """What the program says, None where it fails."""
        try:
            process = await asyncio.create_subprocess_exec(
                self._script,
                address,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self._failed(address, str(error))
            return None
        try:
            async with asyncio.timeout(self._timeout_s):
                output = await _read_some(process)
                status = await process.wait() if len(output) <= _OUTPUT_MAX else None
        except TimeoutError:
            self._failed(address, f"no answer within {self._timeout_s:g} s")
            return None
        finally:
            # Whatever it started goes with it, and is waited for.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await _reap(process, self._timeout_s)
        words = output[:_OUTPUT_MAX].decode("utf-8", "replace").split()
        if status == 0 and len(words) == 1 and len(words[0]) <= _RACK_CHARS_MAX:
            return _rack(words[0])
        self._failed(address, f"exit {status}, {len(words)} words instead of one")
        return None

    def _failed(self, address: str, why: str) -> None:
        log.warning("%s: no rack for %s (%s): it is in %s", self._script, address, why, DEFAULT_RACK)


async def _read_some(process: asyncio.subprocess.Process) -> bytes:
    """All that it prints, or the beginning and a little more."""
    assert process.stdout is not None
    output = b""
    while len(output) <= _OUTPUT_MAX:
        piece = await process.stdout.read(_OUTPUT_MAX)
        if not piece:
            break
        output += piece
    return output


async def _reap(process: asyncio.subprocess.Process, timeout_s: float) -> None:
    """Wait for a killed process. asyncio ends that wait only when the pipe has been read to its end, so the rest is
    read too; whoever left the process group and still holds the pipe is not waited for."""
    assert process.stdout is not None
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            while await process.stdout.read(_OUTPUT_MAX):
                pass
            await process.wait()


def _read_table(conf: Configuration) -> dict[str, str]:
    path = (conf.get(_TABLE) or "").strip()
    if not path:
        return {}
    try:
        with Path(path).open("rb") as file:
            content = file.read(_TABLE_BYTES_MAX).decode("utf-8", "replace")
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise conf.error(_TABLE, reason, "name a readable file") from None
    pairs = (line.split() for line in content.splitlines() if not line.lstrip().startswith("#"))
    return {words[0]: _rack(words[1]) for words in pairs if len(words) == 2}


def _rack(name: str) -> str:
    return name if name.startswith("/") else f"/{name}"
