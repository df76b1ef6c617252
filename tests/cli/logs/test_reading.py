"""Reading containers' logs: from a node that speaks as a stock one does, and from uploaded files."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.cli_log_node import APP, DISABLED, ONE, RUNNING, SUCCEEDED, TWO, Node, Printed, conf_of, upload
from tez_adapter.client.rm_client import NodeReport
from yaqd.cli.applications import follow_logs as following
from yaqd.cli.applications import logs as reading
from yaqd.cli.applications.aggregated_logs import owner_of, read_uploaded
from yaqd.cli.applications.known_containers import _logged, _nodes_of
from yaqd.cli.applications.logs import Choice
from yaqd.cli.applications.node_logs import LogFile, LoggedContainer, LogsGone, list_files, read_file
from yaqd.cli.exits import CommandError
from yaqd.config import Configuration
from yaqd.model import ApplicationId, NodeId, NodeState, Resource

# From a node ----------------------------------------------------------------------------------------------------------


def test_a_listing_leaves_out_what_is_uploaded(node: Node) -> None:
    node.files = {ONE: {"stdout": b"abc", "a b/ü": b""}}
    assert list_files(node.container()) == [LogFile("a b/ü", 0), LogFile("stdout", 3)]
    assert list_files(node.container(TWO)) == []


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=300_000), st.integers(0, 300_000), st.binary(max_size=200_000))
def test_from_an_offset_on_whatever_the_file_has_become(data: bytes, offset: int, more: bytes) -> None:
    node = Node()
    try:
        offset = min(offset, len(data))
        node.files = {ONE: {"x": data + more}}  # it has grown since it was listed
        got = b"".join(read_file(node.container(), LogFile("x", len(data)), offset))
        assert (data + more)[offset:] == got
    finally:
        node.stop()


def test_a_log_that_looks_like_a_heading_is_not_taken_for_one(node: Node) -> None:
    text = b"\nLogLength:3\nLogContents:\nEnd of LogType:x.\n"
    node.files = {ONE: {"x": text}}
    assert b"".join(read_file(node.container(), LogFile("x", len(text)))) == text


def test_a_file_that_is_gone_or_empty(node: Node) -> None:
    node.files = {ONE: {"x": b""}}
    assert b"".join(read_file(node.container(), LogFile("x", 0))) == b""
    with pytest.raises(LogsGone):
        read_file(node.container(), LogFile("y", 0))


@pytest.mark.parametrize(
    "raw",
    [b"", b"nonsense", b"x" * 200_000, b"\nLogLength:\nLogContents:\n", b"\nLogLength:-1\nLogContents:\nabc"],
)
def test_what_no_node_says_is_one_clear_line(node: Node, raw: bytes) -> None:
    node.raw = (200, raw)
    with pytest.raises(CommandError, match="h:1"):
        b"".join(read_file(node.container(), LogFile("x", 3)))
    with pytest.raises(CommandError, match="no list of logs"):
        list_files(node.container())


def test_a_node_that_is_away_is_one_clear_line(node: Node) -> None:
    node.stop()
    with pytest.raises(CommandError, match="does not answer"):
        list_files(node.container())


def _texts(conf: Configuration, complaints: list[str]) -> list[tuple[str, str, str, bytes]]:
    uploaded = read_uploaded(conf, "alice", APP, complaints.append)
    return [(file.container, file.node, file.name, b"".join(content)) for file, content in uploaded]


@pytest.mark.parametrize(
    "folder",
    ["bucket-logs-tfile/0007", "logs", "bucket-other-tfile/0007", "elsewhere"],
)
def test_uploaded_files_are_found_in_every_layout(tmp_path: Path, folder: str) -> None:
    place = tmp_path / "alice" / folder / str(APP)
    upload(place, "h_1", {ONE: {"stdout": b"hello"}})
    upload(place, "h_2_1700000000001", {TWO: {"stdout": b"world"}})
    (place / "h_3.tmp").write_bytes(b"half")
    (place / ".h_1.crc").write_bytes(b"checksums")
    complaints: list[str] = []
    assert _texts(conf_of(tmp_path), complaints) == [
        (ONE, "h:1", "stdout", b"hello"),
        (TWO, "h:2", "stdout", b"world"),
    ]
    assert not complaints
    assert owner_of(conf_of(tmp_path), APP) == "alice"


def test_a_file_that_is_broken_costs_only_itself(tmp_path: Path) -> None:
    place = tmp_path / "alice" / "logs" / str(APP)
    upload(place, "h_1", {ONE: {"stdout": b"hello"}})
    (place / "a_1").write_bytes(b"no TFile at all, but long enough to have a trailer")
    complaints: list[str] = []
    assert [row[3] for row in _texts(conf_of(tmp_path), complaints)] == [b"hello"]
    assert len(complaints) == 1
    assert "a_1" in complaints[0]
    assert "another format" in complaints[0]


# The command ----------------------------------------------------------------------------------------------------------


def test_logs_move_while_they_are_read(
    node: Node, known: Callable[..., None], tmp_path: Path, printed: Printed
) -> None:
    """The node lists two files, hands out one, and has uploaded everything when the other one is asked for."""
    node.files = {ONE: {"stderr": b"first\n", "stdout": b"second\n"}}

    def move(path: str) -> None:
        if path.endswith("stdout") and ONE in node.files:
            upload(tmp_path / "alice" / "logs" / str(APP), "h_1", {ONE: node.files.pop(ONE)})

    node.before = move
    known((True, RUNNING, [node.container(is_over=True)]))
    assert reading.print_logs(conf_of(tmp_path), APP) == 0
    assert printed() == f"==> {ONE} on h:1: stderr <==\nfirst\n==> {ONE} on h:1: stdout <==\nsecond\n"


def test_uploaded_and_live_files_of_one_application(
    node: Node, known: Callable[..., None], tmp_path: Path, printed: Printed
) -> None:
    upload(tmp_path / "alice" / "logs" / str(APP), "h_1_1700000000001", {ONE: {"log.1": b"old\n", "log": b"ne"}})
    node.files = {ONE: {"log": b"new", "prelaunch.out": b"noise"}}
    known((False, RUNNING, [node.container()]))
    assert reading.print_logs(conf_of(tmp_path), APP) == 0
    assert printed() == f"==> {ONE} on h:1: log.1 <==\nold\n==> {ONE} on h:1: log <==\nnew\n"


def test_choices_json_and_a_container_that_never_was(
    node: Node, known: Callable[..., None], tmp_path: Path, printed: Printed
) -> None:
    upload(tmp_path / "alice" / "logs" / str(APP), "h_1", {c: {"stdout": c.encode(), "x": b"x"} for c in (ONE, TWO)})
    known((True, SUCCEEDED, []))
    choice = Choice(files=("stdout",), only_tasks=True)
    reading.print_logs(conf_of(tmp_path), APP, choice, as_json=True)
    assert json.loads(printed()) == [
        {"container": TWO, "node": "h:1", "files": [{"name": "stdout", "bytes": len(TWO), "text": TWO}]}
    ]
    with pytest.raises(CommandError, match="has no container container_x"):
        reading.print_logs(conf_of(tmp_path), APP, Choice(containers=("container_x",)))


@pytest.mark.parametrize("is_uploaded", [False, True])
def test_where_the_chosen_file_is_not_there_those_that_are_get_named(
    node: Node, known: Callable[..., None], tmp_path: Path, capfd: pytest.CaptureFixture[str], is_uploaded: bool
) -> None:
    files = {ONE: {"AppMaster.stderr": b"oops", "empty": b"", "prelaunch.out": b"noise"}}
    if is_uploaded:
        upload(tmp_path / "alice" / "logs" / str(APP), "h_1", files)
        known((True, SUCCEEDED, []))
    else:
        node.files = files
        known((False, RUNNING, [node.container()]))
    line = f"{APP} has no stdout, or it is empty; it has AppMaster.stderr\n"
    assert reading.print_logs(conf_of(tmp_path), APP, Choice(files=("stdout",))) == 2
    assert capfd.readouterr() == ("", f"yaq: {line}")
    assert reading.print_logs(conf_of(tmp_path), APP, Choice(files=("stdout",)), as_json=True) == 2
    assert capfd.readouterr() == ("[]\n", f"yaq: {line}")
    assert reading.print_logs(conf_of(tmp_path), APP, Choice(files=("stdout",)), only_list=True) == 2
    capfd.readouterr()
    # one that is there and empty is no mistake; nor does one that is there make up for one that is not
    assert reading.print_logs(conf_of(tmp_path), APP, Choice(files=("empty",))) == 0
    capfd.readouterr()
    assert reading.print_logs(conf_of(tmp_path), APP, Choice(files=("AppMaster.stderr", "nope"))) == 2
    out, err = capfd.readouterr()
    assert out.endswith(": AppMaster.stderr <==\noops\n")
    assert err == f"yaq: {APP} has no nope\n"


def test_nodes_that_show_logs_of_what_has_ended_to_administrators_alone_are_told_of(
    node: Node, known: Callable[..., None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    known((True, DISABLED, [node.container(is_over=True)]))
    conf = conf_of(tmp_path)
    assert reading.print_logs(conf, APP) == 0
    assert capfd.readouterr().err == f"yaq: {APP} has no logs (any more), or they are empty\n"
    reading.print_logs(conf.with_overrides({"yarn.acl.enable": "true"}), APP, as_json=True)
    assert "to administrators alone" in capfd.readouterr().err


def test_the_node_that_has_them_now_is_found_among_those_of_its_host(
    node: Node, known: Callable[..., None], tmp_path: Path, printed: Printed
) -> None:
    other = Node()
    try:
        other.files = {ONE: {"stdout": b"hello\n"}}
        moved = dataclasses.replace(node.container(is_over=True), elsewhere=(("h:2", other.web),))
        known((True, DISABLED, [moved]))
        assert reading.print_logs(conf_of(tmp_path), APP) == 0
        assert printed() == f"==> {ONE} on h:2: stdout <==\nhello\n"
    finally:
        other.stop()


def _report(node: str, state: NodeState) -> NodeReport:
    nothing = Resource(0, 0)
    found = NodeId.parse(node)
    return NodeReport(found, state, f"{found.host}:80{found.port}", "/r", nothing, nothing, 0, "", 0)


def test_nodes_of_a_host_are_those_that_a_container_may_have_left_its_logs_at() -> None:
    up = [_report("a:2", NodeState.RUNNING), _report("a:3", NodeState.UNHEALTHY), _report("b:1", NodeState.RUNNING)]
    nodes = [*up, _report("a:1", NodeState.LOST), _report("c:1", NodeState.LOST)]
    assert _nodes_of("a:2", nodes) == [("a:2", "a:802")]
    assert _nodes_of("a:1", nodes) == [("a:2", "a:802"), ("a:3", "a:803")]
    assert _nodes_of("c:1", nodes) == [("c:1", "c:801")]
    assert _nodes_of("d:1", nodes) == []
    assert [name for name, _ in _nodes_of("", nodes)] == ["a:2", "a:3", "b:1"]


@pytest.mark.parametrize("follow", [False, True])
def test_logs_of_a_lost_node_are_said_to_be_lost_where_other_nodes_of_its_host_have_none_of_them(
    node: Node, known: Callable[..., None], tmp_path: Path, capfd: pytest.CaptureFixture[str], follow: bool
) -> None:
    node.files = {ONE: {"stdout": b"hello\n"}}
    there = NodeReport(NodeId("h", 1), NodeState.RUNNING, node.web, "/r", Resource(0, 0), Resource(0, 0), 0, "", 0)
    nodes = [there, dataclasses.replace(there, id=NodeId("h", 3)), _report("h:2", NodeState.LOST)]
    containers = _logged({ONE: "h:1", TWO: "h:2"}, nodes, set(), is_final=True)

    def show(conf: Configuration, app: ApplicationId, choice: Choice) -> int:
        if follow:
            return following.follow_logs(conf, app, choice, as_json=False, sleep=lambda _: None)
        return reading.print_logs(conf, app, choice)

    line = "yaq: node h:2 is not there any more, and what its containers wrote is on its disks alone\n"
    known((True, DISABLED, containers))
    assert show(conf_of(tmp_path), APP, Choice()) == 1
    out, err = capfd.readouterr()
    assert (out, err) == (f"==> {ONE} on h:1: stdout <==\nhello\n", line)
    assert show(conf_of(tmp_path), APP, Choice(containers=(TWO,))) == 1
    assert capfd.readouterr().err == line, "one line, not also that there are none"
    node.files[TWO] = {"stdout": b"moved\n"}
    assert show(conf_of(tmp_path), APP, Choice(containers=(TWO,), files=("stdout",))) == 0
    assert "moved" in capfd.readouterr().out


def test_what_a_lost_node_had_uploaded_is_not_said_to_be_lost(
    node: Node, known: Callable[..., None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    uploading = 6
    lost = dataclasses.replace(node.container(is_over=True), node="h:2", lost="h:1")
    known((True, uploading, [lost]))
    assert reading.print_logs(conf_of(tmp_path), APP) == 1
    assert "node h:1 is not there any more" in capfd.readouterr().err
    upload(tmp_path / "alice" / "logs" / str(APP), "h_1", {ONE: {"stdout": b"hello\n"}})
    assert reading.print_logs(conf_of(tmp_path), APP, Choice(files=("stdout",))) == 0
    assert capfd.readouterr().err == ""


def test_logs_that_nobody_can_reach_are_said_to_be_somewhere(
    known: Callable[..., None], tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known((True, DISABLED, [LoggedContainer(name, "h:1", "", name == ONE, True, lost="h:1") for name in (ONE, TWO)]))
    assert reading.print_logs(conf_of(tmp_path), APP) == 1
    assert capfd.readouterr().err.startswith("yaq: node h:1 is not there any more, and what its containers wrote is on")
    known((True, DISABLED, []))
    found = reading.find_application(conf_of(tmp_path), APP, Choice())
    monkeypatch.setattr(reading, "find_application", lambda *_: dataclasses.replace(found, is_forgotten=True))
    assert reading.print_logs(conf_of(tmp_path), APP) == 1
    out, err = capfd.readouterr()
    assert (out, "retain-seconds" in err, "yarn.nodemanager.log-dirs" in err) == ("", True, True)


def test_a_node_that_is_away_does_not_hide_the_others(
    node: Node, known: Callable[..., None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    away = LoggedContainer(TWO, "h:2", "127.0.0.1:1", is_master=False)
    node.files = {ONE: {"stdout": b"hello\n"}}
    known((False, DISABLED, [node.container(), away]))
    assert reading.print_logs(conf_of(tmp_path), APP) == 1
    out, err = capfd.readouterr()
    assert "hello\n" in out
    assert err.count("\n") == 1
    assert "127.0.0.1:1 does not answer" in err
