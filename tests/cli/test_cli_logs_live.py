"""`yaq app logs` on a cluster whose nodes upload their logs, while an application runs and after its end."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_cli_cluster_live import Yaq, yaq

from yaqd.cli.local.processes import processes_working_under

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("logs") / "c"
    remote = f"yarn.nodemanager.remote-app-log-dir={directory}/remote"
    done = yaq(
        *("cluster", "start", "--dir", directory, "--nodes", 2, "-D", "yarn.log-aggregation-enable=true", "-D", remote)
    )
    assert done.returncode == 0, done.stderr
    yield directory
    assert yaq("cluster", "stop", "--dir", directory).returncode == 0
    assert processes_working_under(directory) == []


@pytest.fixture
def on(directory: Path, tmp_path: Path) -> Yaq:
    return lambda *words: yaq(*words, conf=directory / "conf", cwd=tmp_path)


def test_what_a_command_wrote_is_there_while_and_after_it_moves(on: Yaq, directory: Path) -> None:
    done = on("run", "-n", "3", "--logs", "--", "sh", "-c", "echo hello; echo oops >&2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": stdout <==\nhello\n") == 3
    (application,) = json.loads(on("app", "list", "--all", "--json").stdout)
    # until the nodes have reported; each answer on the way is whole
    for _ in range(100):
        listed = json.loads(on("app", "logs", application["id"], "--file", "stderr", "--json").stdout)
        texts = [file["text"] for container in listed for file in container["files"]]
        assert texts.count("oops\n") == 3
        if not list((directory / "nodes").glob("*/logs/application_*")):
            break
    else:
        pytest.fail("the nodes keep their copies")
    assert len(list((directory / "remote").glob(f"*/bucket-logs-tfile/0001/{application['id']}/127.0.0.1_*"))) >= 1
    assert on("app", "logs", application["id"], "--list").stdout.count("stderr") == 4


def test_follow_from_the_first_line_to_the_last(on: Yaq) -> None:
    job = json.loads(
        on(
            "run", "-n", "1", "--no-wait", "--json", "--", "sh", "-c", "for i in 1 2 3 4; do echo $i; sleep .5; done"
        ).stdout
    )
    done = on("app", "logs", job["application_id"], "--follow", "--file", "stdout", "--json")
    assert done.returncode == 0, done.stderr
    pieces = [json.loads(line) for line in done.stdout.splitlines()]
    assert "".join(piece["text"] for piece in pieces) == "1\n2\n3\n4\n"
    assert [piece["offset"] for piece in pieces] == sorted({piece["offset"] for piece in pieces})
    assert len(pieces) > 1
