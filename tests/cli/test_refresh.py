"""`yaq rm refresh`: a ResourceManager whose files change, administrators and others."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.cli_live import Done, Yaq, assert_one_line, yaq
from yaqd.cli.app import yaq as command
from yaqd.cli.local.site import free_ports

QUEUE = "yarn.scheduler.capacity.root"
DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["nonsense"], "nonsense"),
        ([], "Missing argument"),
        (["queues", "--drain", "30m"], "--drain and --now go with `nodes`"),
        (["nodes", "--drain", "30m", "--now"], "use one of them"),
        (["nodes", "--drain", "soon"], "--drain soon: not a duration"),
        (["nodes", "--drain", "0"], "at least one second"),
    ],
)
def test_words_that_cannot_be(words: list[str], text: str) -> None:
    result = CliRunner().invoke(command, ["rm", "refresh", *words])
    assert result.exit_code == 2 and text in result.output


def test_a_resource_manager_that_is_not_there_is_named_with_its_key() -> None:
    (port,) = free_ports([0])
    address = f"yarn.resourcemanager.admin.address=127.0.0.1:{port}"
    result = CliRunner().invoke(command, ["rm", "refresh", "queues", "-D", address])
    assert result.exit_code == 3 and f"no ResourceManager at 127.0.0.1:{port} (yarn.resource" in result.output


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("refreshed") / "c"
    (directory.parent / "exclude").touch()
    exclude = f"yarn.resourcemanager.nodes.exclude-path={directory.parent}/exclude"
    done = yaq("cluster", "start", "--dir", directory, "--nodes", 1, "-D", exclude, "-D", "yarn.admin.acl=ada")
    assert done.returncode == 0, done.stderr
    yield directory / "conf"
    assert yaq("cluster", "stop", "--dir", directory).returncode == 0


@pytest.fixture
def on(conf: Path, monkeypatch: pytest.MonkeyPatch) -> Yaq:
    def call(*words: object, user: str = "ada") -> Done:
        monkeypatch.setenv("HADOOP_USER_NAME", user)
        return yaq(*words, conf=conf)

    return call


def write_queues(conf: Path, **capacities: int) -> None:
    pairs = {f"{QUEUE}.queues": ",".join(capacities), **{f"{QUEUE}.{n}.capacity": v for n, v in capacities.items()}}
    pairs["yarn.scheduler.capacity.resource-calculator"] = DOMINANT
    body = "\n".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in pairs.items())
    (conf / "capacity-scheduler.xml").write_text(f"<configuration>\n{body}\n</configuration>")


@pytest.mark.slow
def test_queues_are_read_again_or_stay_as_they_are(conf: Path, on: Yaq) -> None:
    write_queues(conf, default=60, night=40)
    done = on("rm", "refresh", "queues", "groups", "--json")
    assert done.returncode == 0, done.stderr
    assert [entry["refreshed"] for entry in json.loads(done.stdout)] == ["queues", "groups"]
    assert "night" in on("queue", "list").stdout
    write_queues(conf, default=60, night=70)
    place = f"{conf}/capacity-scheduler.xml:"
    assert_one_line(on("rm", "refresh", "queues"), 2, "queues not refreshed: the queues stay as they are", place)
    assert "40%" in on("queue", "list").stdout
    write_queues(conf, default=100)
    read = "read: capacity-scheduler.xml, what is preempted, and the queues at nodes (yaq.queue.*)\n"
    assert on("rm", "refresh", "queues").stdout == read
    write_queues(conf, default=70, night=30)
    silent = (conf / "capacity-scheduler.xml").read_text().replace(DOMINANT, "")
    (conf / "capacity-scheduler.xml").write_text(silent)
    assert "sound" in yaq("conf", "check", "--conf", conf).stdout
    assert on("rm", "refresh", "queues").stdout == read, "a file that names no calculator changes none"
    assert "70%" in on("queue", "list").stdout
    other = silent.replace("<value></value>", f"<value>{DOMINANT.replace('Dominant', 'Default')}</value>")
    (conf / "capacity-scheduler.xml").write_text(other)
    assert_one_line(on("rm", "refresh", "queues"), 2, "resource-calculator", "only another start changes that")
    write_queues(conf, default=100)


@pytest.mark.slow
def test_administrators_alone_and_every_kind(on: Yaq) -> None:
    refused = "User eve doesn't have permission to call 'refreshQueues'; yarn.admin.acl says who may"
    assert_one_line(on("rm", "refresh", "queues", user="eve"), 2, refused)
    kinds = ("queues", "nodes", "node-sizes", "admin-acl", "proxy-users", "groups", "max-priority")
    done = on("rm", "refresh", *kinds)
    assert (done.returncode, done.stdout.count("read: ")) == (0, len(kinds)), done.stderr
    off = "Service Authorization (hadoop.security.authorization) not enabled."
    assert_one_line(on("rm", "refresh", "service-acls"), 2, off)


@pytest.mark.slow
def test_a_node_is_drained_by_name_and_let_back_in(on: Yaq) -> None:
    (node,) = [node["id"] for node in json.loads(on("node", "list", "--json").stdout)]
    unknown = f"nothing is drained: there is no node elsewhere; there are {node}"
    assert_one_line(on("node", "drain", "elsewhere"), 2, unknown)
    assert on("node", "drain", "127.0.0.1").stdout == f"1 node is draining: {node}\n"
    assert_one_line(on("node", "undrain", "127.0.0.1", user="eve"), 2, "yarn.admin.acl says who may")
    assert on("node", "undrain", "127.0.0.1").stdout == "no node is draining\n"
    assert on("node", "drain", node).stdout == f"1 node is draining: {node}\n"
    assert on("node", "undrain", "127.0.0.1").stdout == "no node is draining\n"
    assert on("run", "-n", "1", "--", "true").returncode == 0


def states(on: Yaq) -> list[str]:
    return [node["state"] for node in json.loads(on("node", "list", "--all", "--json").stdout)]


@pytest.mark.slow
def test_a_node_that_is_drained_by_name_leaves_at_once_and_comes_back(on: Yaq) -> None:
    running = on("run", "-n", "1", "--no-wait", "--json", "--", "sleep", "1000")
    application = json.loads(running.stdout)["application_id"]
    (node,) = [node["id"] for node in json.loads(on("node", "list", "--json").stdout)]
    assert on("node", "drain", node).stdout == f"1 node is draining: {node}\n"
    left = f"1 node was draining and left at once: {node}; no node is draining\n"
    assert on("rm", "refresh", "nodes", "--now").stdout == left
    for _ in range(4):
        assert states(on) == ["DECOMMISSIONED"]
        time.sleep(1)
    assert on("app", "kill", application).returncode == 0
    assert on("node", "undrain", "127.0.0.1").stdout == "no node is draining\n"
    deadline = time.monotonic() + 20
    while states(on) != ["RUNNING"] and time.monotonic() < deadline:
        time.sleep(0.2)
    assert on("run", "-n", "1", "--", "true").returncode == 0


@pytest.mark.slow
def test_a_node_is_drained_sent_away_at_once_and_taken_back(conf: Path, on: Yaq) -> None:
    running = on("run", "-n", "1", "--no-wait", "--json", "--", "sleep", "1000")
    application = json.loads(running.stdout)["application_id"]
    (conf.parents[1] / "exclude").write_text("127.0.0.1\n")
    drained = on("rm", "refresh", "nodes", "--drain", "1h")
    assert drained.returncode == 0 and "1 node is draining: 127.0.0.1:" in drained.stdout
    assert states(on) == ["DECOMMISSIONING"]
    (node,) = [node["id"] for node in json.loads(on("node", "list", "--json").stdout)]
    left = f"1 node was draining and left at once: {node}; no node is draining\n"
    assert on("rm", "refresh", "nodes", "--now").stdout == left
    assert on("rm", "refresh", "nodes", "--now").stdout == "no node was draining; no node is draining\n"
    assert states(on) == ["DECOMMISSIONED"]
    assert on("app", "kill", application).returncode == 0
    (conf.parents[1] / "exclude").write_text("")
    assert on("rm", "refresh", "nodes").returncode == 0
