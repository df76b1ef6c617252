"""`yaq app logs`: what containers wrote, from their nodes while they have it, else from where nodes have uploaded it.

Which containers there were is known to the ResourceManager and, for a job of ours that has ended, to its history file;
where a node's web server is, to the ResourceManager. Logs move from the nodes to the file system while they are read:
what a node no longer has is looked for there once more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

import click

from yaqd.cli.applications.aggregated_logs import has_logs_of, owner_of, read_uploaded
from yaqd.cli.applications.known_containers import containers_of, on_nodes
from yaqd.cli.applications.node_logs import LogFile, LoggedContainer, LogsGone, find_files, gone, read_file
from yaqd.cli.exits import BAD_INPUT, FAILED, CommandError
from yaqd.cli.output import print_json, print_table, size
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.client.rm_client import ApplicationReport
    from yaqd.ipc import RemoteException
    from yaqd.model import ApplicationId

#: What the node itself writes beside the container's own output; shown only when asked for by name.
_LAUNCH_FILES: Final = ("directory.info", "launch_container.sh", "prelaunch.out", "prelaunch.err")
#: names of files in one line
_NAMES_SHOWN: Final = 8
#: LogAggregationStatus.LOG_SUCCEEDED: everything is uploaded, no node need be asked
_ALL_UPLOADED: Final = 4
#: LOG_DISABLED
_NOT_UPLOADED: Final = 1


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user wants to see; empty choices mean all, the launch files excepted."""

    containers: Sequence[str] = ()
    files: Sequence[str] = ()
    only_tasks: bool = False
    owner: str | None = None

    def takes_file(self, name: str) -> bool:
        return name in self.files if self.files else name not in _LAUNCH_FILES

    def takes(self, container: str, *, is_master: bool) -> bool:
        return (not self.containers or container in self.containers) and not (self.only_tasks and is_master)


@dataclass(slots=True)
class KnownApplication:
    """What the ResourceManager knows of an application; `report` is None when it has forgotten it."""

    id: "ApplicationId"
    report: "ApplicationReport | None"
    owner: str
    containers: list[LoggedContainer]
    #: the ResourceManager knows of no container of one of its attempts, which there was before its own start
    is_forgotten: bool = False

    @property
    def is_final(self) -> bool:
        return self.report is None or self.report.state.is_final

    @property
    def log_status(self) -> int | None:
        return self.report.log_aggregation if self.report is not None else None

    def is_master(self, container: str) -> bool:
        known = {c.id: c.is_master for c in self.containers}
        return known.get(container, container.endswith("_000001"))


class Show(Protocol):
    """What becomes of one file; `content` is None where only names are wanted."""

    def __call__(self, container: str, node: str, name: str, length: int, content: Iterator[bytes]) -> None: ...


def print_logs(
    conf: Configuration,
    application_id: "ApplicationId",
    choice: Choice = Choice(),
    *,
    only_list: bool = False,
    as_json: bool = False,
) -> int:
    """Prints the chosen files of the chosen containers; the exit code."""
    known = find_application(conf, application_id, choice)
    reading = _Reading(conf, known, choice, with_content=not only_list)
    if as_json:
        containers: dict[str, dict[str, object]] = {}
        reading.each(_collector(containers, with_text=not only_list))
        print_json(list(containers.values()))
        if not containers:
            _say_nothing(known, reading)
    elif only_list:
        rows: list[tuple[object, ...]] = []
        reading.each(lambda container, node, name, length, _: rows.append((container, node, name, size(length))))
        print_table(("container", "node", "file", "size"), rows, empty=_nothing(known, reading))
    else:
        reading.each(_print_file)
        if not reading.bytes:
            _say_nothing(known, reading)
        if reading.bytes and reading.missing:
            click.echo(f"yaq: {known.id} has no {' or '.join(reading.missing)}", err=True)
    if reading.problems or (not reading.shown and _is_out_of_reach(known)):
        return FAILED
    return BAD_INPUT if reading.missing else 0


def read_logs(
    conf: Configuration, application_id: "ApplicationId", choice: Choice = Choice()
) -> list[dict[str, object]]:
    """Returns what `print_logs` prints with `as_json`; what cannot be read is said on standard error."""
    containers: dict[str, dict[str, object]] = {}
    known = find_application(conf, application_id, choice)
    _Reading(conf, known, choice, with_content=True).each(_collector(containers, with_text=True))
    return list(containers.values())


def _is_out_of_reach(known: KnownApplication) -> bool:
    """Whether its logs may be on nodes without anybody's knowing which."""
    return known.is_final and known.log_status == _NOT_UPLOADED and known.is_forgotten and not known.containers


def _say_nothing(known: KnownApplication, reading: "_Reading") -> None:
    """Unless it has been said why nothing is shown."""
    if reading.others or not reading.problems:
        click.echo(f"yaq: {_nothing(known, reading)}", err=True)


def _nothing(known: KnownApplication, reading: "_Reading") -> str:
    if reading.others:
        names = sorted(reading.others)
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        wanted = " or ".join(reading.choice.files)
        return f"{known.id} has no {wanted}, or it is empty; it has {', '.join(names[:_NAMES_SHOWN])}{more}"
    if known.is_final and known.log_status not in (None, _NOT_UPLOADED, _ALL_UPLOADED):
        return f"{known.id} has no logs yet: its nodes are still uploading them, or failed to"
    if reading.problems:
        return f"{known.id} has no logs that can be read"
    if _is_out_of_reach(known):
        return (
            f"{known.id} ran before the ResourceManager's last start, and nobody knows where; its nodes keep its logs "
            f"in {known.id} below their yarn.nodemanager.log-dirs for yarn.nodemanager.log.retain-seconds"
        )
    if known.is_final and known.log_status == _NOT_UPLOADED and reading.conf.get_bool("yarn.acl.enable"):
        return (
            f"{known.id} has ended: with yarn.acl.enable its nodes show what logs they still have to administrators "
            "alone, and yarn.log-aggregation-enable, which would upload them, is off"
        )
    return f"{known.id} has no logs (any more), or they are empty"


@dataclass(slots=True)
class _Reading:
    """One pass over all logs of an application, each file once."""

    conf: Configuration
    known: KnownApplication
    choice: Choice
    with_content: bool
    problems: list[str] = field(default_factory=list)
    #: container and file name of what was shown
    shown: set[tuple[str, str]] = field(default_factory=set)
    bytes: int = 0
    #: containers and nodes of uploaded files
    uploaded: set[str] = field(default_factory=set)
    #: files with something in them that were passed over for their names, where names were chosen
    others: set[str] = field(default_factory=set)

    @property
    def missing(self) -> list[str]:
        """Files that were asked for and that no container has, where there is anything at all."""
        names = {name for _, name in self.shown}
        return [name for name in self.choice.files if name not in names] if names | self.others else []

    def each(self, show: Show) -> None:
        """Uploaded files come first. CommandError when a chosen container was never there."""
        live = {} if self.known.log_status == _ALL_UPLOADED else self._live()
        kept = {(container.id, file.name) for container, files in live.values() for file in files}
        self._uploaded(show, but=kept)
        moved = [container for container, files in live.values() if not self._read_live(show, container, files)]
        if moved or (self.known.is_final and not self.shown):
            self._uploaded(show, but=self.shown.copy())
        for container, _ in live.values():
            if container.lost and not self.uploaded & {container.id, container.lost}:
                self._complain(gone(container.lost))
        self._check_chosen()

    def _live(self) -> dict[str, tuple[LoggedContainer, list[LogFile]]]:
        live = {}
        for container in self.known.containers:
            if self.choice.takes(container.id, is_master=container.is_master):
                try:
                    found, files = find_files(container)
                except CommandError as error:
                    self._complain(str(error))
                    continue
                live[container.id] = (found, [file for file in files if self._takes(file.name, file.bytes)])
        return live

    def _read_live(self, show: Show, container: LoggedContainer, files: list[LogFile]) -> bool:
        """Whether the node had all of it."""
        for file in files:
            if (container.id, file.name) in self.shown:
                continue
            try:
                content = read_file(container, file) if self.with_content else iter(())
            except LogsGone:
                return False
            except CommandError as error:
                self._complain(str(error))
                continue
            self._note(container.id, file.name, file.bytes)
            show(container.id, container.node, file.name, file.bytes, content)
        return bool(files) or not container.is_over

    def _uploaded(self, show: Show, *, but: set[tuple[str, str]]) -> None:
        if self.known.log_status == _NOT_UPLOADED or not self.known.owner:
            return
        from yaqd.storage import StorageError

        try:
            self._each_uploaded(show, but)
        except StorageError as error:
            self._complain(str(error))

    def _each_uploaded(self, show: Show, but: set[tuple[str, str]]) -> None:
        for file, content in read_uploaded(self.conf, self.known.owner, self.known.id, self._complain):
            self.uploaded |= {file.container, file.node}
            is_master = self.known.is_master(file.container)
            if (file.container, file.name) in but or not self.choice.takes(file.container, is_master=is_master):
                continue
            if self._takes(file.name, file.bytes):
                self._note(file.container, file.name, file.bytes)
                show(file.container, file.node, file.name, file.bytes, content)

    def _takes(self, name: str, length: int) -> bool:
        is_taken = self.choice.takes_file(name)
        if not is_taken and length and self.choice.files and name not in _LAUNCH_FILES:
            self.others.add(name)
        return is_taken

    def _note(self, container: str, name: str, length: int) -> None:
        self.shown.add((container, name))
        self.bytes += length

    def _check_chosen(self) -> None:
        names = {container.id for container in self.known.containers} | {container for container, _ in self.shown}
        missing = next((name for name in self.choice.containers if name not in names), None)
        if missing is not None:
            raise CommandError(f"{self.known.id} has no container {missing}; `yaq app logs {self.known.id} --list`")

    def _complain(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)
            click.echo(f"yaq: {problem}", err=True)


def _print_file(container: str, node: str, name: str, length: int, content: Iterator[bytes]) -> None:
    """An empty file is not mentioned."""
    ends_line = True
    is_first = True
    for chunk in content:
        if is_first:
            click.echo(f"==> {container} on {node}: {name} <==")
            is_first = False
        click.echo(chunk, nl=False)
        ends_line = chunk.endswith(b"\n")
    if not ends_line:
        click.echo()


def _collector(containers: dict[str, dict[str, object]], *, with_text: bool) -> Show:
    def collect(container: str, node: str, name: str, length: int, content: Iterator[bytes]) -> None:
        entry: dict[str, object] = {"name": name, "bytes": length}
        if with_text:
            entry["text"] = b"".join(content).decode(errors="replace")
        found = containers.setdefault(container, {"container": container, "node": node, "files": []})
        files = found["files"]
        assert isinstance(files, list)
        files.append(entry)

    return collect


def find_application(conf: Configuration, application_id: "ApplicationId", choice: Choice) -> KnownApplication:
    """Finds the application.

    Raises CommandError where neither the ResourceManager nor the file system has heard of it.
    """
    from yaqd.cli.client import rm_client
    from yaqd.ipc import RemoteException

    with rm_client(conf) as rm:
        try:
            report = rm.report(application_id)
        except RemoteException as error:
            containers = on_nodes(rm, application_id)
            owner = _forgotten_ones_owner(conf, application_id, choice, error, is_on_nodes=bool(containers))
            return KnownApplication(application_id, None, owner, containers)
        if report.is_hidden:
            raise CommandError(
                f"{rm.user} may not view {application_id}, which is {report.user}'s, nor its logs: ask its owner or an "
                "administrator"
            )
        containers, is_forgotten = containers_of(conf, rm, report)
    return KnownApplication(application_id, report, choice.owner or report.user, containers, is_forgotten)


def _forgotten_ones_owner(
    conf: Configuration,
    application_id: "ApplicationId",
    choice: Choice,
    refusal: "RemoteException",
    *,
    is_on_nodes: bool,
) -> str:
    """Whose the uploaded logs are of an application that the ResourceManager does not know; "" where nodes have some
    and none is uploaded. CommandError: there are none."""
    from yaqd.storage import StorageError

    if choice.owner and not is_on_nodes:
        if has_logs_of(conf, choice.owner, application_id):
            return choice.owner
        raise CommandError(f"{refusal.message.rstrip('.')}; nor are there logs of it that are {choice.owner}'s")
    try:
        owner = owner_of(conf, application_id)
    except StorageError:
        owner = None
    if owner is None and not is_on_nodes:
        raise CommandError(f"{refusal.message.rstrip('.')}; nor are there logs of it")
    return owner or ""
