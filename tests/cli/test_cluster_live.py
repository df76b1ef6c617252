"""`yaq` against a real cluster of its own: real daemons, real jobs, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cli.cli_cluster import until
from tests.cli.cli_live import WORDCOUNT, Yaq, assert_one_line, yaq
from yaqd.cli.jobs.demo_text import count_words, read_counts
from yaqd.cli.local.processes import ProcessIdentity, processes_working_under, wait_for_end

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("clusters") / "c"
    started = yaq("cluster", "start", "--dir", directory, "--nodes", 2, "-D", "yarn.nodemanager.resource.cpu-vcores=3")
    assert started.returncode == 0, started.stderr
    assert f"export HADOOP_CONF_DIR={directory}/conf" in started.stdout
    yield directory
    assert yaq("cluster", "stop", "--dir", directory).returncode == 0
    assert processes_working_under(directory) == []


@pytest.fixture
def on(cluster: Path, tmp_path: Path) -> Yaq:
    return lambda *words: yaq(*words, conf=cluster / "conf", cwd=tmp_path)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "text.txt"
    file.write_text("the quick brown fox\njumps over the lazy dog\r\nThe end: Ümlaut, naïve" * 50, encoding="utf-8")
    return file


def test_the_cluster_knows_itself(cluster: Path, on: Yaq) -> None:
    status = json.loads(yaq("cluster", "status", "--dir", cluster, "--json").stdout)
    assert status["running"] and status["nodes_running"] == 2
    assert [daemon["name"] for daemon in status["daemons"]] == ["resourcemanager", "nodemanager-1", "nodemanager-2"]
    nodes = json.loads(on("node", "list", "--json").stdout)
    assert [(node["state"], node["vcores"]) for node in nodes] == [("RUNNING", 3)] * 2
    assert [queue["path"] for queue in json.loads(on("queue", "list", "--json").stdout)] == ["root", "root.default"]
    assert_one_line(on("queue", "list", "nosuch"), 2, 'no queue "nosuch"')
    for daemon in status["daemons"]:
        said = Path(daemon["log"]).with_suffix(".out").read_text()
        assert "listens on 127.0.0.1, ports " in said and ": reachable from this machine alone. " in said


def test_starting_it_twice_is_one_clear_line(cluster: Path) -> None:
    assert_one_line(yaq("cluster", "start", "--dir", cluster), 2, "already running", "yaq cluster stop --dir")


def test_a_command_in_containers_and_its_logs(on: Yaq) -> None:
    done = on("run", "-n", "3", "--env", "WHO=world", "--logs", "--", "sh", "-c", "echo hello $WHO")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("hello world\n") == 3
    assert "SUCCEEDED" in done.stderr


def test_a_failing_command_is_code_1_and_tells_why(on: Yaq) -> None:
    done = on("run", "--json", "--", "sh", "-c", "echo oops >&2; exit 7")
    result = json.loads(done.stdout)
    assert (done.returncode, result["state"], result["exit_code"]) == (1, "FAILED", 7)
    assert "oops" in result["diagnostics"]
    listed = json.loads(on("app", "logs", result["application_id"], "--file", "stderr", "--json").stdout)
    assert any(file["text"] == "oops\n" for container in listed for file in container["files"])


def test_word_count_on_the_cluster_locally_and_plainly_agree(on: Yaq, tmp_path: Path, text: Path) -> None:
    done = on("mr", "submit", WORDCOUNT, "--input", text, "--output", tmp_path / "a", "--reduces", 2, "--name", "wc")
    assert done.returncode == 0, done.stderr
    assert "MAP_INPUT_RECORDS" in done.stderr
    assert on("mr", "local", WORDCOUNT, "--input", text, "--output", tmp_path / "b", "--reduces", 2).returncode == 0
    parts = [sorted(file.name for file in (tmp_path / name).iterdir()) for name in "ab"]
    assert parts == [["_SUCCESS", "part-r-00000", "part-r-00001"]] * 2
    for name in parts[0]:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert read_counts(tmp_path / "a") == count_words([text])
    (report,) = (app for app in json.loads(on("app", "list", "--all", "--json").stdout) if app["name"] == "wc")
    status = on("app", "status", report["id"])
    assert status.returncode == 0
    assert "where the time went" in status.stdout and "REDUCE_OUTPUT_RECORDS" in status.stdout


def test_streaming_with_hadoops_options(on: Yaq, tmp_path: Path, text: Path) -> None:
    (tmp_path / "map.sh").write_text("#!/bin/sh\ntr -cs '[:alpha:]' '\\n' | grep . | sed 's/$/\\t1/'\n")
    (tmp_path / "map.sh").chmod(0o755)
    done = on(
        *("mr", "streaming", "-D", "mapreduce.job.name=s", "-input", text, "-output", tmp_path / "out"),
        *("-file", tmp_path / "map.sh", "-mapper", "./map.sh", "-reducer", "uniq -c", "-numReduceTasks", 1),
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out/part-00000").read_text()
    assert Counter({line.split()[1]: int(line.split()[0]) for line in lines.splitlines()})["lazy"] == 50


def test_logs_are_a_field_of_the_json(on: Yaq) -> None:
    done = on("run", "-n", "2", "--logs", "--json", "--", "sh", "-c", "echo hello; echo oops >&2")
    found = json.loads(done.stdout)
    assert (done.returncode, found["state"]) == (0, "SUCCEEDED")
    texts = [{file["name"]: file["text"] for file in one["files"]} for one in found["logs"]]
    assert texts == [{"stdout": "hello\n", "stderr": "oops\n"}] * 2
    assert "logs" not in json.loads(on("run", "--json", "--", "true").stdout)
    refused = on("run", "--logs", "--no-wait", "--", "true")
    assert refused.returncode == 2 and "--no-wait" in refused.stderr and refused.stdout == ""


def offered(cluster: Path, line: str) -> list[str]:
    """What bash is offered for the last word."""
    words = {"_YAQ_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    environment = os.environ | words | {"HADOOP_CONF_DIR": f"{cluster}/conf"}
    done = subprocess.run(
        [sys.executable, "-c", "from yaqd.cli import main; main()"], env=environment, capture_output=True, text=True
    )
    return [offer.removeprefix("plain,") for offer in done.stdout.split()]


def test_no_wait_then_kill(on: Yaq, cluster: Path) -> None:
    submitted = on("run", "--no-wait", "--", "sleep", "100")
    application = submitted.stdout.strip()
    assert application in on("app", "list").stdout
    assert offered(cluster, "yaq app kill appl")[0] == application
    assert offered(cluster, f"yaq app kill {application} application_") == []
    killed = on("app", "kill", application.rpartition("_")[2], "--json")
    assert json.loads(killed.stdout) == [{"application_id": application, "outcome": "KILLED"}]
    for state, is_listed in (("killed", True), ("finished", True), ("succeeded", False), ("failed", False)):
        assert (application in on("app", "list", "--state", state).stdout) is is_listed, state
    none = on("app", "list", "--state", "killed", "--user", "nobody-here")
    assert none.stdout == "no application matches --state KILLED --user nobody-here\n"
    again = on("app", "kill", application)
    assert (again.returncode, "had ended before" in again.stdout) == (0, True)
    assert application not in on("app", "list").stdout
    assert offered(cluster, "yaq app kill appl") == []
    assert application in offered(cluster, "yaq explain application_")


def test_an_application_by_the_end_of_its_id_waited_for_and_quiet(on: Yaq, tmp_path: Path, text: Path) -> None:
    application = on("run", "--no-wait", "--", "sh", "-c", "echo said; sleep 1").stdout.strip()
    end = application.rpartition("_")[2]
    waited = on("app", "wait", end)
    assert waited.returncode == 0 and f"{application} SUCCEEDED" in waited.stderr and "submitted" not in waited.stderr
    assert on("app", "logs", end, "--file", "stdout").stdout.endswith("said\n")
    assert json.loads(on("app", "wait", application, "--json").stdout)["state"] == "SUCCEEDED"
    assert_one_line(on("app", "logs", "99999"), 2, "no application ends in 99999", "yaq app list --all")
    done = on("run", "--quiet", "--", "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    failed = on("run", "--quiet", "--", "false")
    assert failed.returncode == 1 and "FAILED" in failed.stderr
    words = ("mr", "submit", WORDCOUNT, "--input", text, "--output", tmp_path / "again", "--quiet")
    assert on(*words).stderr == ""
    assert_one_line(on(*words), 2, "exists already")
    assert on(*words, "--overwrite").returncode == 0
    assert read_counts(tmp_path / "again") == count_words([text])
    (tmp_path / "fails.py").write_text(
        "from yaqd.mapreduce import Job\n"
        "class Fails(Job):\n"
        "    def map(self, key, value):\n"
        "        raise ValueError(value)\n"
    )
    fails = ("mr", "submit", tmp_path / "fails.py", "--input", text, "--output", tmp_path / "none", "--quiet")
    failed = on(*fails, "-D", "mapreduce.map.maxattempts=1")
    assert failed.returncode == 1 and "ValueError" in failed.stderr and "Counter" not in failed.stderr


def test_a_folder_that_a_job_writes_to_is_not_replaced(on: Yaq, tmp_path: Path, text: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\n"
        "from yaqd.mapreduce import Job\n"
        "class Slow(Job):\n"
        "    def map(self, key, value):\n"
        "        time.sleep(100)\n"
        "        yield key, value\n"
    )
    words = ("--input", text, "--output", tmp_path / "out")
    application = on("mr", "submit", tmp_path / "slow.py", *words, "--no-wait").stdout.strip()
    until(lambda: list(tmp_path.glob("out/_temporary/job_*")))
    refused = on("mr", "submit", WORDCOUNT, *words, "--overwrite")
    assert_one_line(refused, 2, f"{application} is writing there", f"yaq app kill {application}")
    assert list(tmp_path.glob("out/_temporary/job_*"))
    assert on("app", "kill", application).returncode == 0
    assert on("mr", "submit", WORDCOUNT, *words, "--overwrite").returncode == 0
    assert read_counts(tmp_path / "out") == count_words([text])


def test_a_node_that_is_unhealthy_is_said_to_be_so(tmp_path: Path) -> None:
    words = ("--nodes", 1, "--timeout", 15, "-D", "yarn.nodemanager.local-dirs=/proc/none")
    started = yaq("cluster", "start", "--dir", tmp_path / "c", *words)
    assert_one_line(started, 1, "is unhealthy: ", "/proc/none")


def test_terms_of_an_application(on: Yaq) -> None:
    submitted = on(
        "run", "--no-wait", "--json", "--tags", "nightly,x", "--priority", 3, "--timeout", 20, "--", "sleep", 60
    )
    application = json.loads(submitted.stdout)["application_id"]
    said = f"{application} has priority 0: 3 was cut to yarn.cluster.max-application-priority\n"
    assert submitted.stderr == said
    (listed,) = json.loads(on("app", "list", "--tags", "nightly", "--queue", "root.default", "--json").stdout)
    assert (listed["id"], listed["tags"], listed["queue"]) == (application, ["nightly", "x"], "root.default")
    assert 0 < listed["remaining_s"] <= 20
    assert json.loads(on("app", "list", "--tags", "daily", "--json").stdout) == []
    # the cluster's highest priority is 0
    assert json.loads(on("app", "priority", application, 7, "--json").stdout)["priority"] == 0
    cut = on("app", "priority", application, 5).stdout
    assert cut == f"{application} has priority 0: 5 was cut to yarn.cluster.max-application-priority\n"
    end = application.rpartition("_")[2]
    assert on("app", "priority", end, 0).stdout == f"{application} has priority 0\n"
    moved = on("app", "move", end, "default")
    assert moved.stdout == f"{application} is in root.default\n"
    assert_one_line(on("app", "move", application, "nowhere"), 2, "The specified Queue: nowhere doesn't exist")
    assert_one_line(on("run", "--priority", "soon", "--", "true"), 2, "--priority", "VERY_HIGH")
    assert_one_line(on("run", "--timeout", "soon", "--", "true"), 2, "--timeout", "not a duration")
    assert on("app", "kill", application).returncode == 0
    assert_one_line(on("app", "priority", application, 5), 2, "has ended (KILLED) and keeps its priority 0")


def test_logs_of_an_application_that_nobody_knows(on: Yaq) -> None:
    unknown = "application_1700000000000_0001"
    doesnt_exist = f"Application with id '{unknown}' doesn't exist in RM"
    assert_one_line(on("app", "logs", unknown), 2, doesnt_exist, "nor are there logs of it\n")
    for more in ((), ("--list",), ("--follow",), ("--json",)):
        done = on("app", "logs", unknown, "--owner", "nobody", *more)
        assert_one_line(done, 2, doesnt_exist, "nor are there logs of it that are nobody's")


def test_a_command_that_takes_too_long_is_ended_and_told_why(on: Yaq) -> None:
    ended = on("run", "--timeout", 1, "--", "sleep", 60)
    assert (ended.returncode, "exceeded the lifetime period" in ended.stderr) == (1, True), ended.stderr


BAD_SCRIPTS = {
    "import nosuchmodule": (2, "does not import: ModuleNotFoundError"),
    "x = 1": (2, "has no job class"),
    "from yaqd.mapreduce import Job\nclass A(Job): pass\nclass B(Job): pass": (2, "has 2 job classes (A, B)"),
    "from yaqd.mapreduce import Job\nclass A(Job):\n    def map(self, key, value):\n        raise ValueError('bad')": (
        1,
        "ValueError: bad",
    ),
}


@pytest.mark.parametrize("script", BAD_SCRIPTS, ids=["import", "none", "two", "raises"])
@pytest.mark.parametrize("where", ["submit", "local"])
def test_bad_scripts_say_what_is_wrong(on: Yaq, tmp_path: Path, text: Path, script: str, where: str) -> None:
    (tmp_path / "job.py").write_text(script)
    code, words = BAD_SCRIPTS[script]
    done = on("mr", where, "job.py", "--input", text, "--output", tmp_path / "out")
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    assert "yaqd/" not in done.stderr  # the author's frames, not ours
    assert not (tmp_path / "out").exists()


def test_missing_input_existing_output_too_many_reduces(on: Yaq, tmp_path: Path, text: Path) -> None:
    job = ("mr", "submit", WORDCOUNT, "--input")
    assert_one_line(on(*job, tmp_path / "no", "--output", tmp_path / "o"), 2, "does not exist")
    assert_one_line(on(*job, text, "--output", tmp_path), 2, "exists already: remove it or name another")
    assert_one_line(on(*job, text, "--output", tmp_path / "o", "--reduces", 100_000), 2, "more than 10000")
    assert_one_line(on(*job, text, "--output", tmp_path / "o", "--queue", "nosuch"), 2, "nosuch")
    assert_one_line(on("app", "status", "application_1_0001"), 2, "application_1_0001")


def test_stopping_twice_stale_pids_and_a_new_start(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    assert yaq("cluster", "start", "--dir", directory, "-D", "yaq.log.level=DEBUG").returncode == 0
    status = json.loads(yaq("cluster", "status", "--dir", directory, "--json").stdout)
    daemons = [ProcessIdentity.of(daemon["pid"]) for daemon in status["daemons"]]
    for daemon in daemons:
        assert daemon is not None
        daemon.signal_group(signal.SIGKILL)
    assert wait_for_end([d for d in daemons if d], 5.0) == []
    dead = yaq("cluster", "status", "--dir", directory)
    assert (dead.returncode, dead.stdout.count("dead")) == (3, 2)
    restarted = yaq("cluster", "start", "--dir", directory)
    assert restarted.returncode == 0
    assert "the last run did not end cleanly; cleaning up after resourcemanager, nodemanager-1" in restarted.stderr
    assert "DEBUG" in (directory / "conf/yarn-site.xml").read_text()  # -D of the first start stands
    stopped = yaq("cluster", "stop", "--dir", directory)
    assert (stopped.returncode, stopped.stdout) == (0, "stopped resourcemanager, nodemanager-1\n")
    again = yaq("cluster", "stop", "--dir", directory)
    assert (again.returncode, again.stdout) == (0, f"no cluster is running in {directory}\n")
    assert processes_working_under(directory) == []


@pytest.mark.parametrize("victim", ["resourcemanager", "nodemanager-2"])
def test_what_died_is_started_again_beside_what_runs(tmp_path: Path, victim: str) -> None:
    directory = tmp_path / "c"

    def pids() -> dict[str, int]:
        found = json.loads(yaq("cluster", "status", "--dir", directory, "--json").stdout)
        return {daemon["name"]: daemon["pid"] for daemon in found["daemons"] if daemon["running"]}

    soon_missed = "yarn.nm.liveness-monitor.expiry-interval-ms=3000"
    assert yaq("cluster", "start", "--dir", directory, "--nodes", 2, "-D", soon_missed).returncode == 0
    written = (directory / "conf/yarn-site.xml").read_text()
    before = pids()
    dead = ProcessIdentity.of(before[victim])
    assert dead is not None
    os.kill(dead.pid, signal.SIGKILL)
    assert wait_for_end([dead], 5.0) == []
    others = [name for name in before if name != victim]
    refused = yaq("cluster", "start", "--dir", directory, "--nodes", 3)
    assert_one_line(refused, 2, f"already running in {directory} ({', '.join(others)}); {victim} died")
    again = yaq("cluster", "start", "--dir", directory)
    assert again.returncode == 0, again.stderr
    assert again.stderr == f"yaq: {', '.join(others)} still running; starting {victim}\n"
    assert "2 nodes" in again.stdout
    after = pids()
    assert {name for name in after if after[name] != before[name]} == {victim} and len(after) == 3
    assert (directory / "conf/yarn-site.xml").read_text() == written
    done = yaq("run", "-n", 2, "--", "true", conf=directory / "conf", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert_one_line(yaq("cluster", "start", "--dir", directory), 2, "already running", "stop it first")
    stopped = yaq("cluster", "stop", "--dir", directory)
    assert stopped.stdout == "stopped resourcemanager, nodemanager-1, nodemanager-2\n"
    assert processes_working_under(directory) == []


def test_a_daemon_that_cannot_start_tells_why_and_nothing_stays(tmp_path: Path) -> None:
    done = yaq("cluster", "start", "--dir", tmp_path / "c", "-D", "yarn.resourcemanager.address=127.0.0.1:nine")
    assert_one_line(done, 2, "yarn.resourcemanager.address", "not an address")
    assert processes_working_under(tmp_path) == []


def test_the_demo_is_right_and_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "yaqd.cli", "demo", "--size", "1", "--nodes", "1", "--json"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    story = json.loads(done.stdout)
    assert (done.returncode, story["check"]["right"]) == (0, True), done.stderr
    assert story["input"]["bytes"] <= 1 << 20
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "yaq: interrupted"), (signal.SIGTERM, 143, "yaq: ended by SIGTERM")],
)
def test_an_interrupted_demo_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals, code: int, said: str
) -> None:
    command = [sys.executable, "-m", "yaqd.cli", "demo", "--size", "8", "--nodes", "1"]
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    # a shell that starts the tests in its background has them and their children ignore interrupts
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    demo = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heard
    )
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith("job: "):
            break
    demo.send_signal(number)
    _, errors = demo.communicate(timeout=60)
    assert (demo.returncode, errors.strip().splitlines()[-1]) == (code, said)
    assert list(tmp_path.iterdir()) == []
    assert processes_working_under(tmp_path) == []
