"""What a NodeManager needs to upload an application's logs after it was killed: a small file for each, beside the logs.

Written when the application's first container starts, removed when its logs are uploaded. Where one is found at start,
the logs of a former life are uploaded as far as they are still there.
"""

import base64
import json
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yaqd.model import ApplicationId, BadIdentifier, ContainerId
from yaqd.proto import yarn_common_pb2 as common

log = logging.getLogger(__name__)

_FOLDER: Final = ".aggregation"
_RECORD_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LogRecord:
    application: ApplicationId
    user: str
    #: the node's name in that life: readers look for its file by it
    node: str
    acls: dict[str, str]
    context: common.LogAggregationContext | None

    def encode(self) -> bytes:
        context = self.context.SerializeToString() if self.context is not None else None
        fields = {
            "user": self.user,
            "node": self.node,
            "acls": self.acls,
            "context": base64.b64encode(context).decode() if context is not None else None,
        }
        return json.dumps(fields).encode()

    @classmethod
    def decode(cls, application: ApplicationId, data: bytes) -> "LogRecord":
        """Reads a record. Raises ValueError for something else."""
        try:
            fields = json.loads(data)
            context = None
            if fields["context"] is not None:
                context = common.LogAggregationContext.FromString(base64.b64decode(fields["context"]))
            acls = {str(kind): str(text) for kind, text in fields["acls"].items()}
            return cls(application, str(fields["user"]), str(fields["node"]), acls, context)
        except Exception as error:
            raise ValueError(f"no record of logs: {error}") from None


class LogRecords:
    """Blocking."""

    def __init__(self, log_dirs: Sequence[Path]) -> None:
        self._log_dirs = log_dirs

    def save(self, record: LogRecord) -> None:
        """Writes a record to the first disk that takes it; where none does, a restart forgets the application."""
        problem: OSError | None = None
        for root in self._log_dirs:
            path = root / _FOLDER / f"{record.application}.json"
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                unfinished = path.with_suffix(".tmp")
                with open(unfinished, "wb", opener=_private) as file:
                    file.write(record.encode())
                unfinished.rename(path)
                return
            except OSError as error:
                problem = error
        log.warning("%s: its logs would not survive a restart of this node: %s", record.application, problem)

    def forget(self, application: ApplicationId) -> None:
        for root in self._log_dirs:
            try:
                (root / _FOLDER / f"{application}.json").unlink(missing_ok=True)
            except OSError as error:
                log.warning("%s: %s", application, error)

    def load(self) -> list[LogRecord]:
        """Reads the records of a former life; those that cannot be read are removed."""
        found = []
        for root in self._log_dirs:
            for path in sorted((root / _FOLDER).glob("application_*.json")):
                try:
                    application = ApplicationId.parse(path.stem)
                    if path.stat().st_size > _RECORD_BYTES_MAX:
                        raise ValueError("it is too large")
                    found.append(LogRecord.decode(application, path.read_bytes()))
                except (BadIdentifier, ValueError) as error:
                    log.warning("%s is removed: %s", path, error)
                    path.unlink(missing_ok=True)
                except OSError as error:
                    log.warning("%s: %s", path, error.strerror)
        return found

    def containers(self, application: ApplicationId) -> list[ContainerId]:
        """Lists the application's containers that have log folders here."""
        found = set()
        for root in self._log_dirs:
            for path in (root / str(application)).glob("container_*"):
                try:
                    container = ContainerId.parse(path.name)
                except BadIdentifier:
                    continue
                if container.application_id == application:
                    found.add(container)
        return sorted(found)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
