"""`yaq app logs --follow`: each byte once, to the end."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.cli_log_node import APP, DISABLED, ONE, RUNNING, SUCCEEDED, TWO, Node, Printed, conf_of, upload
from yaqd.cli.applications import follow_logs as following
from yaqd.cli.applications import logs as reading
from yaqd.cli.applications.logs import Choice, KnownApplication
from yaqd.cli.applications.node_logs import LoggedContainer
from yaqd.cli.exits import CommandError
from yaqd.config import Configuration
from yaqd.model import ApplicationId, YarnApplicationState


@pytest.fixture
def node() -> Iterator[Node]:
    node = Node()
    yield node
    node.stop()


@pytest.fixture
def known(node: Node, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Says what the ResourceManager knows; several states come one after the other."""

    def tell(*rounds: tuple[bool, int, list[LoggedContainer]]) -> None:
        told = iter(rounds)
        last: list[KnownApplication] = []

        def find(conf: Configuration, application: ApplicationId, choice: Choice) -> KnownApplication:
            state = next(told, None)
            if state is not None:
                is_final, log_status, containers = state
                state_name = YarnApplicationState.FINISHED if is_final else YarnApplicationState.RUNNING
                report = SimpleNamespace(state=state_name, log_aggregation=log_status, user="alice")
                last[:] = [KnownApplication(application, report, "alice", containers)]  # type: ignore[arg-type]
            return last[0]

        monkeypatch.setattr(reading, "find_application", find)
        monkeypatch.setattr(following, "find_application", find)

    return tell


@pytest.fixture
def printed(capfd: pytest.CaptureFixture[str]) -> Printed:
    return lambda: capfd.readouterr().out


def test_follow_shows_each_byte_once_to_the_end(
    node: Node, known: Callable[..., None], tmp_path: Path, printed: Printed
) -> None:
    one, two = node.container(), node.container(TWO)
    node.files = {ONE: {"stdout": b"a\n"}}

    def grow() -> None:
        node.files[ONE]["stdout"] += b"b"
        node.files[TWO] = {"stderr": b"oops\n"}

    def uploads() -> None:
        node.files[ONE]["stdout"] += b"c\n"
        node.files[TWO]["stderr"] += b"late\n"
        upload(tmp_path / "alice" / "logs" / str(APP), "h_1", node.files.copy())
        node.files.clear()

    known((False, RUNNING, [one]), (False, RUNNING, [one, two]), (True, SUCCEEDED, [one, two]))
    rounds = iter([grow, uploads])
    code = following.follow_logs(conf_of(tmp_path), APP, Choice(), as_json=False, sleep=lambda _: next(rounds)())
    assert code == 0
    assert printed() == (
        f"==> {ONE} on h:1: stdout <==\na\nb\n==> {TWO} on h:1: stderr <==\noops\n"
        f"==> {ONE} on h:1: stdout <==\nc\n==> {TWO} on h:1: stderr <==\nlate\n"
    )


def test_follow_ends_without_uploads_when_nothing_grows_any_more(
    node: Node, known: Callable[..., None], tmp_path: Path, printed: Printed
) -> None:
    node.files = {ONE: {"stdout": b"a\n"}}
    rounds = iter([b"b\n", b"", b"", b""])

    def grow(_: float) -> None:
        node.files[ONE]["stdout"] += next(rounds)

    known((True, DISABLED, [node.container()]))
    assert following.follow_logs(conf_of(tmp_path), APP, Choice(), as_json=True, sleep=grow) == 0
    pieces = [json.loads(line) for line in printed().splitlines()]
    assert [(piece["offset"], piece["text"]) for piece in pieces] == [(0, "a\n"), (2, "b\n")]


def test_follow_of_a_container_that_never_was(node: Node, known: Callable[..., None], tmp_path: Path) -> None:
    node.files = {ONE: {"stdout": b""}}
    known((True, SUCCEEDED, [node.container()]))
    assert following.follow_logs(conf_of(tmp_path), APP, Choice(files=("stdout",)), as_json=False) == 0
    assert following.follow_logs(conf_of(tmp_path), APP, Choice(files=("nope",)), as_json=False) == 2
    with pytest.raises(CommandError, match="has no container container_x"):
        following.follow_logs(conf_of(tmp_path), APP, Choice(containers=("container_x",)), as_json=False)
