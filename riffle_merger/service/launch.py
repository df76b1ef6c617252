"""What a node tells the merger at its start, on its standard input: settings and a secret are no command line."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

#: beside the budget of the buffers: interpreter, libraries, the queue
_BASE_BYTES = 384 << 20


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
        """That the process may have."""
        return self.budget_bytes + _BASE_BYTES

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        values: Mapping[str, Any] = json.loads(text)
        return cls(**values)
