"""Which rack a host stands in: a program or a table that the site provides, as Hadoop's ScriptBasedMapping and
TableMapping.

The program is run once per host, when a node of that host registers for the first time; it has a deadline, and where
it fails the host is taken to be in the default rack, as Hadoop does.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

from yaqd.config import Configuration
from yaqd.model import DEFAULT_RACK

log = logging.getLogger(__name__)

_SCRIPT_TIMEOUT_S: Final = 10.0
_OUTPUT_MAX: Final = 4096


class Topology:
    def __init__(self, table: dict[str, str], script: str = "") -> None:
        self._racks = dict(table)
        self._script = script

    @classmethod
    def read(cls, conf: Configuration) -> "Topology":
        """Blocking. Raises ConfigError when the table cannot be read."""
        path = (conf.get("net.topology.table.file.name") or "").strip()
        table: dict[str, str] = {}
        if path:
            try:
                lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError as error:
                reason = f"cannot be read: {error.strerror or error}"
                raise conf.error("net.topology.table.file.name", reason, "name a readable file") from None
            pairs = (line.split() for line in lines if not line.lstrip().startswith("#"))
            table = {words[0]: _rack(words[1]) for words in pairs if len(words) == 2}
        return cls(table, (conf.get("net.topology.script.file.name") or "").strip())

    def rack_of(self, host: str) -> str:
        return self._racks.get(host, DEFAULT_RACK)

    async def resolve(self, host: str) -> None:
        """Ask the program about a host that is not known yet."""
        if not self._script or host in self._racks:
            return
        self._racks[host] = DEFAULT_RACK
        try:
            async with asyncio.timeout(_SCRIPT_TIMEOUT_S):
                process = await asyncio.create_subprocess_exec(
                    self._script, host, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
                )
                try:
                    output, _ = await process.communicate()
                finally:
                    if process.returncode is None:
                        process.kill()
        except (OSError, TimeoutError) as error:
            log.warning("%s: no rack for %s: %s; it is in %s", self._script, host, error or "timeout", DEFAULT_RACK)
            return
        words = output[:_OUTPUT_MAX].decode("utf-8", "replace").split()
        if process.returncode == 0 and len(words) == 1:
            self._racks[host] = _rack(words[0])
        else:
            log.warning("%s: exit %s, no single rack for %s", self._script, process.returncode, host)


def _rack(name: str) -> str:
    return name if name.startswith("/") else f"/{name}"
