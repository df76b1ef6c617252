"""`yaq app logs --follow`: each byte once, to the end."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_log_node import APP, DISABLED, ONE, RUNNING, SUCCEEDED, TWO, Node, Printed, conf_of, upload
from yaqd.cli.applications import follow_logs as following
from yaqd.cli.applications.logs import Choice
from yaqd.cli.exits import CommandError


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
