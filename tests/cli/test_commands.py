"""Every command's help, exit codes and messages for bad input; no cluster is needed here."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from yaqd.cli.app import yaq
from yaqd.cli.exits import BAD_INPUT, FAILED, INTERRUPTED, UNREACHABLE, CommandError, explain
from yaqd.cli.local.site import free_ports

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str, env: dict[str, str | None] | None = None) -> Result:
    return CliRunner().invoke(yaq, list(words), env={"HADOOP_CONF_DIR": None, **(env or {})})


def all_commands() -> Iterator[tuple[str, ...]]:
    context = click.Context(yaq)
    for name in yaq.list_commands(context):
        command = yaq.get_command(context, name)
        yield (name,)
        if isinstance(command, click.Group):
            yield from ((name, below) for below in command.list_commands(click.Context(command)))


@pytest.mark.parametrize("words", list(all_commands()), ids=" ".join)
def test_every_command_has_help_and_every_leaf_an_example(words: tuple[str, ...]) -> None:
    result = run(*words, "--help")
    assert result.exit_code == 0, result.output
    is_group = len(words) == 1 and words[0] not in ("demo", "run", "completion")
    assert is_group or "Example" in result.output
    assert is_group or words[0] in ("completion", "rm", "nm") or "--json" in result.output


def test_help_imports_no_library_and_no_daemon() -> None:
    """Counted in modules, because time depends on the machine: the help stays below 150 ms if these stay out."""
    code = (
        "import sys\nfrom yaqd.cli.app import yaq\n"
        "try: yaq(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'pyarrow', 'asyncio', 'google.protobuf', 'rich', 'rm', 'nm', 'tez_adapter', 'aiohttp'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("words", [[], ["mr"], ["app"]])
def test_a_group_alone_prints_its_help(words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == BAD_INPUT
    assert result.output.startswith("Usage: yaq")
    assert "(see" not in result.output


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (["cnf"], BAD_INPUT, "yaq: No such command 'cnf'. Did you mean 'conf'? (see `yaq --help`)"),
        (["app", "lst"], BAD_INPUT, "yaq: No such command 'lst'. Did you mean 'list'? (see `yaq app --help`)"),
        (["conf", "check"], BAD_INPUT, "yaq: no configuration folder: give --conf DIR or set HADOOP_CONF_DIR"),
        (["conf", "show", "no.such"], BAD_INPUT, "yaq: no.such: nothing sets it and it has no default"),
        (["conf", "show", "--conf", "/no/where"], BAD_INPUT, "yaq: no configuration folder /no/where"),
        (["conf", "show", "-D", "novalue"], BAD_INPUT, "yaq: -D novalue: write it as -D key=value"),
        (["cluster", "start"], BAD_INPUT, "Missing option '--dir'"),
        (["cluster", "start", "--dir", "/no/where", "--nodes", "0"], BAD_INPUT, "yaq: --nodes 0: give a number from 1"),
        (
            ["cluster", "start", "--dir", "/no/where", "--hdfs", "nonsense"],
            BAD_INPUT,
            "yaq: --hdfs nonsense: not the ad",
        ),
        (
            ["conf", "show", "yarn.nodemanager.resource.memroy-mb"],
            BAD_INPUT,
            "; did you mean yarn.nodemanager.resource.me",
        ),
        (
            ["cluster", "start", "--dir", "/no/where", "--timeout", "nan"],
            BAD_INPUT,
            "'--timeout': nan is no finite num",
        ),
        (["top", "--interval", "inf"], BAD_INPUT, "'--interval': inf is no finite number"),
        (["cluster", "stop", "--dir", "/no/where"], BAD_INPUT, "yaq: /no/where holds no cluster, give the folder of"),
        (["app", "list", "--limit", "-4"], BAD_INPUT, "Invalid value for '--limit': -4"),
        (["app", "status", "application_1"], BAD_INPUT, 'yaq: "application_1" is no application id'),
        (["mr", "streaming", "-inptu", "x"], BAD_INPUT, 'unknown option "-inptu"; did you mean -input?'),
        (["mr", "streaming", "-input", "x"], BAD_INPUT, "yaq mr streaming: -output is missing"),
        (["rm", "start", "-D", "hadoop.security.authentication=kerberos"], BAD_INPUT, "not one of simple"),
        (["mr", "submit", "x.py"], BAD_INPUT, "Missing option '--input'"),
        (["run", "--env", "novalue", "--", "true"], BAD_INPUT, "--env novalue: write it as --env NAME=VALUE"),
        (
            ["conf", "show", "-D", "yarn.nodemanager.resource.memroy-mb=1"],
            BAD_INPUT,
            "did you mean yarn.nodemanager.resource.memory-mb?",
        ),
    ],
)
def test_bad_input_is_one_line_and_code_2(words: list[str], code: int, line: str) -> None:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert line in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [["app", "list"], ["node", "list"], ["app", "kill", "application_1700000000000_0001"]],
    ids=" ".join,
)
def test_a_cluster_that_does_not_answer_is_code_3(words: list[str]) -> None:
    (port,) = free_ports([0])
    result = run(*words, "-D", f"yarn.resourcemanager.address=127.0.0.1:{port}")
    assert result.exit_code == UNREACHABLE
    assert f"yaq: no ResourceManager at 127.0.0.1:{port}" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("words", [["app", "list"], ["top", "--once"], ["rm", "refresh", "queues"]], ids=" ".join)
def test_a_folder_without_files_names_no_cluster_and_nobody_is_asked(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "yarn-site.xml").write_text("<configuration/>")
    result = run(*words, env={"HADOOP_CONF_DIR": str(tmp_path)})
    assert (result.exit_code, result.stderr.count("\n")) == (BAD_INPUT, 1)
    assert f"no configuration file in {tmp_path}; did you mean {tmp_path}/conf?" in result.stderr
    (port,) = free_ports([0])
    services = "address", "admin.address", "webapp.address"
    settings = [word for name in services for word in ("-D", f"yarn.resourcemanager.{name}=127.0.0.1:{port}")]
    for folder in (tmp_path, tmp_path / "conf"):
        assert run(*words, *settings, env={"HADOOP_CONF_DIR": str(folder)}).exit_code == UNREACHABLE


def test_conf_show_tells_values_and_origins(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text(
        '<configuration>\n<property name="fs.defaultFS" value="hdfs://h:1"/></configuration>'
    )
    result = run("conf", "show", "--conf", str(tmp_path), "-D", "a.b=${fs.defaultFS}/x", "--json")
    assert json.loads(result.stdout) == [
        {"key": "a.b", "value": "hdfs://h:1/x", "origin": "-D"},
        {"key": "fs.defaultFS", "value": "hdfs://h:1", "origin": f"{tmp_path}/core-site.xml:2"},
    ]
    assert "io." not in run("conf", "show", "--conf", str(tmp_path)).stdout
    everything = run("conf", "show", "--all", "--conf", str(tmp_path))
    assert "yarn.scheduler.minimum-allocation-mb" in everything.stdout


def test_conf_show_reads_the_file_of_queues_too(tmp_path: Path) -> None:
    prefix = "yarn.scheduler.capacity"
    lines = f'<property name="{prefix}.root.queues" value="a,b"/>\n<property name="yarn.acl.enable" value="true"/>'
    file = tmp_path / "capacity-scheduler.xml"
    file.write_text(f"<configuration>\n{lines}\n</configuration>")
    (tmp_path / "yarn-site.xml").write_text("<configuration/>")
    expected = [{"key": f"{prefix}.root.queues", "value": "a,b", "origin": f"{file}:2"}]
    here = ("--conf", str(tmp_path), "--json")
    assert json.loads(run("conf", "show", f"{prefix}.root.queues", *here).stdout) == expected
    assert json.loads(run("conf", "show", *here).stdout) == expected
    shown = {entry["key"]: entry for entry in json.loads(run("conf", "show", "--all", *here).stdout)}
    assert shown[f"{prefix}.root.queues"] == expected[0]
    assert shown["yarn.acl.enable"]["value"] == "false", "nobody reads it there"
    overridden = json.loads(run("conf", "show", *here, "-D", f"{prefix}.root.queues=c").stdout)
    assert overridden == [{"key": f"{prefix}.root.queues", "value": "c", "origin": "-D"}]
    result = run("conf", "show", f"{prefix}.maximum-am-resource-percent", *here[:2])
    assert result.exit_code == BAD_INPUT and "nothing sets it" in result.stderr and "did you mean" not in result.stderr
    file.write_text("<configuration>")
    assert run("conf", "show", "yarn.acl.enable", *here).exit_code == 0, "it is in another file"


def test_conf_check_prints_each_finding_and_fails(tmp_path: Path) -> None:
    site = tmp_path / "yarn-site.xml"
    site.write_text('<configuration>\n<property name="yarn.acl.enabel" value="true"/></configuration>')
    result = run("conf", "check", env={"HADOOP_CONF_DIR": str(tmp_path)})
    assert result.exit_code == BAD_INPUT
    assert f"{site}:2: error: yarn.acl.enabel: unknown key; did you mean yarn.acl.enable?" in result.stdout
    (finding,) = json.loads(run("conf", "check", "--conf", str(tmp_path), "--json").stdout)
    assert (finding["line"], finding["severity"]) == (2, "error")
    site.write_text("<configuration/>")
    assert run("conf", "check", "--conf", str(tmp_path)).stdout == f"{tmp_path}: sound\n"


def test_conf_check_takes_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "yarn-site.xml").write_text("<configuration/>")
    monkeypatch.chdir(tmp_path)
    result = run("conf", "check", "--conf", ".")
    assert (result.exit_code, result.stdout) == (0, ".: sound\n")


def test_a_malformed_site_file_is_one_line_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration>\n<property>\n</configuration>")
    result = run("node", "list", "--conf", str(tmp_path))
    assert result.exit_code == BAD_INPUT
    assert result.stderr.startswith(f"yaq: {tmp_path}/core-site.xml:3: malformed XML: mismatched tag")
    assert result.stderr.count("\n") == 1


def test_conf_docs_is_the_reference() -> None:
    from yaqd.config.reference import reference_markdown

    assert run("conf", "docs").stdout == reference_markdown()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_YAQ_COMPLETE" in result.stdout


def completed(line: str, **more: str) -> list[str]:
    """What bash is offered for the last word; nothing else may be printed."""
    words = {"_YAQ_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    command = [sys.executable, "-c", "from yaqd.cli import main; main()"]
    done = subprocess.run(command, env=os.environ | words | more, capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    return [offer.removeprefix("plain,") for offer in done.stdout.splitlines() if offer]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("yaq clu", {"cluster"}),
        ("yaq sim run yaq-ord", {"yaq-ordering"}),
        ("yaq sim run al", {"all"}),
        ("yaq conf show yaq.riffle.ena", {"yaq.riffle.enabled"}),
        ("yaq conf show yaq.riffle.enabled yarn.resourcemanager.addr", {"yarn.resourcemanager.address"}),
        ("yaq mr submit -D yaq.riffle.ena", {"yaq.riffle.enabled="}),
        ("yaq cluster start -D yaq.riffle.enabled=", set()),
    ],
)
def test_completion_completes(line: str, offers: set[str]) -> None:
    assert set(completed(line)) == offers


@pytest.mark.slow
@pytest.mark.parametrize("conf", ["/no/where", ""])
def test_completion_is_silent_where_no_cluster_answers(conf: str, tmp_path: Path) -> None:
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.resourcemanager.address</name>"
        f"<value>127.0.0.1:{free_ports([0])[0]}</value></property></configuration>"
    )
    assert completed("yaq app status application_", HADOOP_CONF_DIR=conf or str(tmp_path)) == []


@pytest.mark.slow
def test_completion_does_not_wait_for_a_cluster_that_hangs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"yarn.resourcemanager.address=127.0.0.1:{silent.getsockname()[1]}"
        assert completed(f"yaq app kill -D {address} application_") == []
        assert silent.accept()  # it was asked


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CommandError("x", UNREACHABLE), ("x", UNREACHABLE)),
        (FileNotFoundError(2, "No such file or directory", "/x"), ("/x: No such file or directory", BAD_INPUT)),
        (OSError(28, "No space left on device"), ("No space left on device", BAD_INPUT)),
        (TimeoutError("too slow"), ("too slow", FAILED)),
        (ZeroDivisionError(), None),
    ],
)
def test_errors_become_a_line_and_a_code(error: Exception, expected: tuple[str, int] | None) -> None:
    assert explain(error) == expected


def test_remote_refusals_that_are_the_callers_fault_are_bad_input() -> None:
    from yaqd.ipc.errors import ApplicationNotFound, RemoteException, RpcConnectionError

    assert explain(ApplicationNotFound("no application_1_1")) == ("no application_1_1", BAD_INPUT)
    assert explain(RemoteException("java.lang.NullPointerException", "")) == ("NullPointerException", FAILED)
    denied = "java.security.AccessControlException: User bob cannot perform operation MODIFY_APP on application_1_1"
    assert explain(RemoteException("org.apache.hadoop.yarn.exceptions.YarnException", denied)) == (
        "User bob cannot perform operation MODIFY_APP on application_1_1",
        BAD_INPUT,
    )
    assert explain(RemoteException("x.Y", "org.apache.hadoop.A: a.b.C$D: why: not")) == ("why: not", FAILED)
    assert explain(RpcConnectionError("gone")) == ("gone", UNREACHABLE)


def test_a_fault_of_ours_shows_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yaqd.config.reference.reference_markdown", lambda: 1 / 0)
    result = run("conf", "docs")
    assert isinstance(result.exception, ZeroDivisionError)


def test_ctrl_c_is_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("yaqd.config.reference.reference_markdown", interrupted)
    result = run("conf", "docs")
    assert (result.exit_code, result.stderr.strip()) == (INTERRUPTED, "yaq: interrupted")


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m yaqd.cli conf show --all | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.startswith("key")
    assert done.stderr == ""


def test_logs_go_to_a_file_that_rotates_by_size(tmp_path: Path) -> None:
    code = (
        "import logging\nfrom yaqd.cli.daemons import set_up_logging\nfrom yaqd.config import Configuration\n"
        f"conf = Configuration.load(overrides={{'yaq.log.dir': {str(tmp_path / 'logs')!r},"
        " 'yaq.log.file.max-bytes': '4k', 'yaq.log.file.backups': '2'})\n"
        "set_up_logging(conf, 'd')\n"
        "for n in range(500): logging.getLogger('x').info('event %s', n)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    files = sorted((tmp_path / "logs").iterdir())
    assert [file.name for file in files] == ["d.log", "d.log.1", "d.log.2"]
    assert all(file.stat().st_size <= 4096 for file in files)
    assert files[0].read_text().endswith("INFO x: event 499\n")


@pytest.mark.slow
def test_the_help_is_fast() -> None:
    """Told by what it does not import; these are what makes a start slow."""
    code = (
        "import sys; from yaqd.cli import main\n"
        "try: main()\n"
        "finally: print(sorted({'aiohttp', 'asyncio', 'google', 'numpy', 'pyarrow', 'rich'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code, "--help"], check=True, capture_output=True, text=True).stdout
    assert shown.splitlines()[-1] == "[]"
