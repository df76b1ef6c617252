"""What a node tells the merger at its start, on its standard input: settings and a secret are no command line."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from yaqd.config import Configuration

#: beside the budget of the buffers: interpreter, libraries, the queue
PROCESS_BYTES: Final = 384 << 20
#: keys that clients of file systems read
_STORAGE: Final = ("fs.", "dfs.", "ipc.client.", "yaq.storage.")


def storage_settings(conf: Configuration) -> dict[str, str]:
    """Return what a configuration says of the file systems that mergers share."""
    return {key: conf.get(key) or "" for key in conf.changed_keys() if key.startswith(_STORAGE) and conf.get(key)}


@dataclass(frozen=True, slots=True)
class MergerLaunch:
    #: interface that it listens on
    host: str
    #: 0 takes a free one
    port: int
    #: hexadecimal
    secret: str
    budget_bytes: int
    running_max: int
    waiting_max: int
    niceness: int
    #: the disk serves it when nobody else wants anything
    is_idle_io: bool
    #: no merge makes its disk fuller
    disk_max_percent: float
    #: configuration of the file systems that mergers of several nodes share
    storage: dict[str, str]
    #: whose disk is tried; empty: none is
    folder: str = ""

    @property
    def memory_bytes(self) -> int:
        """The memory that the process may have, bytes."""
        return self.budget_bytes + PROCESS_BYTES

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        values: Mapping[str, Any] = json.loads(text)
        return cls(**values)
