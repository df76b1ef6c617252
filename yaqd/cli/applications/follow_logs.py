"""`yaq app logs --follow`: what containers write while they write it, until the application has ended and all is shown.

Nodes are asked again and again for what has grown. At the end the rest may be on its way to the file system already: it
is waited for there, for a while.
"""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import click

from yaqd.cli.applications.aggregated_logs import read_uploaded
from yaqd.cli.applications.logs import Choice, KnownApplication, find_application
from yaqd.cli.applications.node_logs import LogFile, LoggedContainer, LogsGone, find_files, gone, read_file
from yaqd.cli.exits import BAD_INPUT, FAILED, CommandError
from yaqd.config import Configuration

if TYPE_CHECKING:
    from yaqd.model import ApplicationId

_INTERVAL_S: Final = 1.0
#: rounds without news after an application's end, when nothing is uploaded, and while something is
_QUIET_ROUNDS: Final = 2
_WAITING_ROUNDS: Final = 30
_DISABLED: Final = 1
#: LogAggregationStatus: SUCCEEDED, FAILED, TIME_OUT
_UPLOAD_OVER: Final = (4, 5, 6)


def follow_logs(
    conf: Configuration,
    application_id: "ApplicationId",
    choice: Choice,
    *,
    as_json: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Follow the logs and return the exit code.

    With `as_json` each piece is a line: container, node, file, offset, text.
    """
    following = _Following(choice, _json_lines() if as_json else _Tail())
    from tez_adapter.client.patience import Patience

    quiet_rounds = 0
    known = find_application(conf, application_id, choice)
    patience = Patience(conf, application_id, lambda line: click.echo(f"yaq: {line}", err=True))
    while True:
        has_grown = following.ask_nodes(known)
        quiet_rounds = 0 if has_grown or not known.is_final else quiet_rounds + 1
        if known.is_final and _is_all(known, quiet_rounds):
            break
        sleep(_INTERVAL_S)
        known = patience.ask(lambda: find_application(conf, application_id, choice))
    if known.log_status != _DISABLED:
        following.read_uploaded(conf, known)
    following.check_chosen(known)
    if following.problems:
        return FAILED
    return BAD_INPUT if following.is_missing_any(known) else 0


def _is_all(known: KnownApplication, quiet_rounds: int) -> bool:
    if known.log_status is None or known.log_status in _UPLOAD_OVER:
        return True
    return quiet_rounds >= (_QUIET_ROUNDS if known.log_status == _DISABLED else _WAITING_ROUNDS)


class _Following:
    def __init__(self, choice: Choice, write: Callable[[LoggedContainer, str, int, bytes], None]) -> None:
        self._choice = choice
        self._write = write
        #: bytes shown, by container and file
        self._offsets: dict[tuple[str, str], int] = {}
        #: containers that had ended before all that they have was shown
        self._closed: set[str] = set()
        self.problems: set[str] = set()
        #: names of files that were there, empty or not
        self._names: set[str] = set()

    def ask_nodes(self, known: KnownApplication) -> bool:
        """One round; whether there was anything new."""
        has_grown = False
        for container in known.containers:
            if container.id in self._closed or not self._choice.takes(container.id, is_master=container.is_master):
                continue
            try:
                has_grown |= self._ask_node(container, is_uploaded=known.log_status != _DISABLED)
            except CommandError as error:
                self._complain(str(error))
        return has_grown

    def _ask_node(self, container: LoggedContainer, *, is_uploaded: bool) -> bool:
        """`is_uploaded`: what the node does not have may be among uploaded files."""
        has_grown = False
        container, files = find_files(container)
        if container.lost and not is_uploaded:
            self._complain(gone(container.lost))
        self._names.update(file.name for file in files)
        for file in files:
            if self._choice.takes_file(file.name):
                has_grown |= self._read(container, file)
        if container.is_over and not has_grown:
            self._closed.add(container.id)
        return has_grown

    def _read(self, container: LoggedContainer, file: LogFile) -> bool:
        key = (container.id, file.name)
        offset = self._offsets.get(key, 0)
        if file.bytes < offset:
            offset = self._offsets[key] = 0  # somebody has begun it anew
        if file.bytes == offset:
            return False
        try:
            content = read_file(container, file, offset)
            return self._show(container, file.name, content)
        except LogsGone:
            return False

    def _show(self, container: LoggedContainer, name: str, content: Iterator[bytes]) -> bool:
        key = (container.id, name)
        before = self._offsets.get(key, 0)
        for data in content:
            offset = self._offsets.get(key, 0)
            self._write(container, name, offset, data)
            self._offsets[key] = offset + len(data)
        return self._offsets.get(key, 0) > before

    def read_uploaded(self, conf: Configuration, known: KnownApplication) -> None:
        """What was never shown of the files that nodes have uploaded."""
        from yaqd.storage import StorageError

        try:
            for file, content in read_uploaded(conf, known.owner, known.id, self._complain):
                is_master = known.is_master(file.container)
                self._names.add(file.name)
                if self._choice.takes_file(file.name) and self._choice.takes(file.container, is_master=is_master):
                    container = LoggedContainer(file.container, file.node, "", is_master, is_over=True)
                    self._show(container, file.name, _behind(content, self._offsets.get((container.id, file.name), 0)))
        except StorageError as error:
            self._complain(str(error))

    def is_missing_any(self, known: KnownApplication) -> bool:
        """Whether files were asked for that no container has had, where there was anything at all; says so."""
        missing = [name for name in self._choice.files if name not in self._names] if self._names else []
        if missing:
            click.echo(f"yaq: {known.id} has no {' or '.join(missing)}", err=True)
        return bool(missing)

    def check_chosen(self, known: KnownApplication) -> None:
        """CommandError when a chosen container was never there."""
        names = {container.id for container in known.containers} | {container for container, _ in self._offsets}
        missing = next((name for name in self._choice.containers if name not in names), None)
        if missing is not None:
            raise CommandError(f"{known.id} has no container {missing}; `yaq app logs {known.id} --list`")

    def _complain(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.add(problem)
            click.echo(f"yaq: {problem}", err=True)


def _behind(content: Iterator[bytes], offset: int) -> Iterator[bytes]:
    for data in content:
        if offset < len(data):
            yield data[offset:]
        offset = max(0, offset - len(data))


class _Tail:
    """As `tail -f` shows several files: a heading whenever another one goes on."""

    def __init__(self) -> None:
        self._last: tuple[str, str] | None = None
        self._ends_line = True

    def __call__(self, container: LoggedContainer, name: str, offset: int, data: bytes) -> None:
        if (container.id, name) != self._last:
            if not self._ends_line:
                click.echo()
            click.echo(f"==> {container.id} on {container.node}: {name} <==")
            self._last = (container.id, name)
        click.echo(data, nl=False)
        self._ends_line = data.endswith(b"\n")


def _json_lines() -> Callable[[LoggedContainer, str, int, bytes], None]:
    import json

    def write(container: LoggedContainer, name: str, offset: int, data: bytes) -> None:
        fields = {"container": container.id, "node": container.node, "file": name, "offset": offset}
        click.echo(json.dumps({**fields, "text": data.decode(errors="replace")}))

    return write
