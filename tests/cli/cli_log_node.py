"""A node that shows logs to commands, and uploaded logs beside it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, unquote, urlsplit

from tests.cli.cli_web import AnsweringServer
from yaqd.cli.applications.node_logs import LoggedContainer
from yaqd.config import Configuration
from yaqd.model import ApplicationId
from yaqd.storage.tfile import AggregatedLogWriter, LogContent

APP = ApplicationId(1700000000000, 7)
ONE, TWO = (f"container_1700000000000_0007_01_{number:06d}" for number in (1, 2))


class Node:
    """A NodeManager's REST interface for logs, with the framing of Hadoop's."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        #: called before each answer
        self.before: Callable[[str], None] = lambda path: None
        #: in place of everything else
        self.raw: tuple[int, bytes] | None = None
        self._server = AnsweringServer(self.answer)
        self.web = self._server.address

    def stop(self) -> None:
        self._server.stop()

    def container(self, name: str = ONE, *, is_over: bool = False) -> LoggedContainer:
        return LoggedContainer(name, "h:1", self.web, name.endswith("_000001"), is_over)

    def answer(self, path: str) -> tuple[int, bytes]:
        if self.raw is not None:
            return self.raw
        self.before(path)
        parts = urlsplit(path)
        container, _, name = parts.path.removeprefix("/ws/v1/node/containers/").partition("/logs")
        files = self.files.get(container)
        name = unquote(name.lstrip("/"))
        if files is None or (name and name not in files):
            return 404, b""
        if not name:
            entries = [{"fileName": n, "fileSize": str(len(data))} for n, data in files.items()]
            local = {"containerLogInfo": entries, "logAggregationType": "LOCAL"}
            gone = {"containerLogInfo": [{"fileName": "old", "fileSize": "5"}], "logAggregationType": "AGGREGATED"}
            return 200, json.dumps({"containerLogsInfo": [local, gone]}).encode()
        data = files[name]
        size = int(parse_qs(parts.query).get("size", [str(len(data))])[0])
        part = data[:size] if size >= 0 else data[max(0, len(data) + size) :]
        head = f"Container: x on y\nLogType:{name}\nLogLength:{len(data)}\nLogContents:\n".encode() if part else b""
        return 200, head + part + f"End of LogType:{name}.\n****\n\n".encode()


def conf_of(tmp_path: Path) -> Configuration:
    return Configuration.load(
        environ={}, overrides={"fs.defaultFS": "file:///", "yarn.nodemanager.remote-app-log-dir": str(tmp_path)}
    )


def upload(folder: Path, node: str, files: dict[str, dict[str, bytes]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / node).open("wb") as out:
        writer = AggregatedLogWriter(cast(Callable[[bytes], None], out.write), owner="alice", acls={})
        for container, contents in files.items():
            logs = [LogContent(name, len(data), [data]) for name, data in contents.items()]
            writer.add_container(container, logs)
        writer.close()


RUNNING, SUCCEEDED, DISABLED = 3, 4, 1


Printed = Callable[[], str]
