"""Jobs that go wrong on a real cluster, and folders that cannot hold one: what the user reads, what stays behind."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from yaqd.cli.local.processes import processes_working_under

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
YAQ = [sys.executable, "-m", "yaqd.cli"]
Done = subprocess.CompletedProcess[str]
Yaq = Callable[..., Done]
SETTINGS = {
    "mapreduce.map.maxattempts": "1",
    "mapreduce.task.timeout": "3000",
    "mapreduce.map.memory.mb": "256",
    "yarn.nodemanager.resource-monitor.interval-ms": "200",
}


def yaq(*words: object, conf: Path | None = None, temporary: Path | None = None, cwd: Path | None = None) -> Done:
    environment = {key: value for key, value in os.environ.items() if key != "HADOOP_CONF_DIR"}
    if conf is not None:
        environment["HADOOP_CONF_DIR"] = str(conf)
    if temporary is not None:
        environment["TMPDIR"] = str(temporary)
    return subprocess.run(
        [*YAQ, *map(str, words)], capture_output=True, text=True, timeout=120, env=environment, cwd=cwd, check=False
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("clusters") / "c"
    settings = [word for key, value in SETTINGS.items() for word in ("-D", f"{key}={value}")]
    started = yaq("cluster", "start", "--dir", directory, "--nodes", 1, *settings)
    assert started.returncode == 0, started.stderr
    yield directory
    assert yaq("cluster", "stop", "--dir", directory).returncode == 0
    assert processes_working_under(directory) == []


@pytest.fixture
def submit(cluster: Path, tmp_path: Path) -> Iterator[Yaq]:
    """Submits a job script whose map is the given body; afterwards nothing of it may be left anywhere."""
    temporary, home = tmp_path / "tmp", tmp_path / "home"
    for folder in (temporary, home):
        folder.mkdir()
    (home / "in.txt").write_text("a b a\n")

    def run(body: str, *words: object, reduces: int = 0) -> Done:
        head = "import os, resource, sys, time\nfrom yaqd.mapreduce import Job\n\n\nclass J(Job):\n"
        text = f"    reduces = {reduces}\n\n    def map(self, key, value):\n{textwrap.indent(body, ' ' * 8)}\n"
        (home / "job.py").write_text(head + text)
        options = ("mr", "submit", "job.py", "--input", "in.txt", "--output", "out")
        return yaq(*options, *words, conf=cluster / "conf", temporary=temporary, cwd=home)

    yield run
    assert list(temporary.iterdir()) == []
    assert {path.name for path in home.iterdir()} <= {"in.txt", "job.py", "out"}
    staging, containers = cluster / "staging", cluster / "nodes/nm-1/local/usercache"

    def is_clean() -> bool:
        return (
            not list(staging.glob("*/.staging/*"))
            and not list(containers.glob("*/appcache/*"))
            and not processes_working_under(containers)
        )

    deadline = time.monotonic() + 20
    while not is_clean():
        left = (list(staging.glob("*/.staging/*")), list(containers.glob("*/appcache/*")))
        assert time.monotonic() < deadline, (left, processes_working_under(containers))
        time.sleep(0.05)


HOG = """\
held = []
for _ in range(400):
    held.append(bytearray(os.urandom(4096)) * 512)
    time.sleep(0.01)
yield None, len(held)"""
TOO_LONG = """\
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
with open("big", "wb") as file:
    file.write(bytes(2 << 20))
yield None, value"""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ValueError('boom ' + value)\nyield", ("ValueError: boom a b a", "job.py", "reading file:")),
        ("os._exit(9)\nyield", ("exit status 9",)),
        ("os.kill(os.getpid(), 9)\nyield", ("killed by signal 9 (SIGKILL)",)),
        ("time.sleep(1000)\nyield", ("no progress for 3 s (mapreduce.task.timeout)",)),
        ("yield object(), 1", ("cannot serialize",)),
        ("return 7", ("must yield pairs",)),
        (HOG, ("over its memory (give it more: mapreduce.map.memory.mb", "'PHYSICAL' memory limit")),
        (TOO_LONG, ("OSError: [Errno 27] File too large",)),
    ],
    ids=["raises", "exits", "killed", "hangs", "key", "no-pairs", "memory", "file"],
)
def test_a_mapper_that_goes_wrong(submit: Yaq, tmp_path: Path, body: str, words: tuple[str, ...]) -> None:
    done = submit(body, reduces=1)
    assert done.returncode == 1, done.stderr
    said = done.stdout + done.stderr
    for word in words:
        assert said.count(word) == 1, said
    assert "FAILED after" in said and "logs: yaq app logs application_" in said
    assert "yaqd/" not in said  # the author's frames, not ours
    assert not (tmp_path / "home/out").exists()


def test_garbage_on_stdout_is_nobodys_output(submit: Yaq, tmp_path: Path) -> None:
    noise = "os.write(1, bytes(range(256)) * 4000)\nos.write(2, b'\\xff\\x00\\x1b[2J' * 1000)\nyield None, value"
    done = submit(noise)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "home/out/part-m-00000").read_text() == "a b a\n"
    assert "\x1b" not in done.stdout + done.stderr


def test_a_hundred_thousand_reduces_are_refused_before_anything_starts(submit: Yaq, cluster: Path) -> None:
    def applications() -> int:
        return len(json.loads(yaq("app", "list", "--all", "--json", conf=cluster / "conf").stdout))

    before = applications()
    done = submit("yield value, 1", "--reduces", 100_000)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "reduces" in done.stderr and "10000" in done.stderr
    assert applications() == before


# Full and read-only disks ---------------------------------------------------------------------------------------------


def on_small_disk(folder: Path, options: str, script: str) -> str:
    """Run a bash script in a mount namespace of its own, with a small file system at `disk` in the working folder."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare (util-linux) is needed to make a small disk")
    (folder / "disk").mkdir()
    setup = f'mount -t tmpfs -o {options} none disk || exit 77\nyaq() {{ {" ".join(YAQ)} "$@"; }}\n'
    environment = {key: value for key, value in os.environ.items() if key != "HADOOP_CONF_DIR"}
    command = ["unshare", "--map-root-user", "--mount", "bash", "-c", setup + script]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode == 77 or "unshare failed" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("options", "reason"),
    [("size=100k", "No space left on device"), ("ro", "Read-only file system")],
    ids=["full", "read-only"],
)
def test_a_folder_that_takes_no_files_holds_no_cluster(tmp_path: Path, options: str, reason: str) -> None:
    script = "yaq cluster start --dir disk/c 2>&1; echo code $?; find disk"
    folder = tmp_path / "disk/c"
    line = f"yaq: {folder}: cannot hold a cluster: {reason}; name a folder that can be written"
    assert on_small_disk(tmp_path, options, script).splitlines() == [line, "code 2", "disk"]
    assert processes_working_under(tmp_path) == []


def test_a_disk_that_stays_full_is_named_and_not_blamed_on_the_task(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a b a\n")
    (tmp_path / "fill.py").write_text(
        "import os\nfrom yaqd.mapreduce import Job\n\n\nclass Fill(Job):\n    reduces = 0\n\n"
        "    def map(self, key, value):\n"
        f"        with open({str(tmp_path / 'disk/big')!r}, 'ab', buffering=0) as file:\n"
        "            for size in (1 << 20, 1):\n"
        "                try:\n                    while True:\n                        file.write(bytes(size))\n"
        "                except OSError:\n                    pass\n"
        "        os._exit(9)\n"
    )
    script = """
    export HADOOP_CONF_DIR=$PWD/disk/c/conf
    yaq cluster start --dir disk/c -D yarn.app.mapreduce.am.staging-dir=$PWD/staging \
        -D yaq.job.history-dir=$PWD/history >/dev/null || exit 1
    yaq mr submit fill.py --input in.txt --output out 2>&1; echo code $?
    cat history/*
    rm disk/big
    yaq cluster stop --dir disk/c
    """
    said = on_small_disk(tmp_path, "size=40m", script)
    line = next(line for line in said.splitlines() if line.startswith("no node has room on its disks"))
    assert "map task 0" in line and "No space left on device" in line and "free space there" in line, said
    assert "code 1" in said, said
    attempts = [json.loads(text) for text in said.splitlines() if text.startswith('{"type": "attempt"')]
    assert [a["state"] for a in attempts] == ["FAILED", "KILLED", "KILLED", "KILLED"], said
    assert said.count("exit status 9 before its task was done") == 1, said
    assert {a["exit_status"] for a in attempts[1:]} == {-101}, said


def test_a_mapper_that_fills_the_disk_fails_and_the_next_job_runs(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a b a\n")
    (tmp_path / "fill.py").write_text(
        "from yaqd.mapreduce import Job\n\n\nclass Fill(Job):\n    reduces = 0\n\n    def map(self, key, value):\n"
        "        with open('big', 'wb') as file:\n            while True:\n                file.write(bytes(1 << 20))\n"
    )
    shutil.copy(EXAMPLES / "wordcount.py", tmp_path)
    script = """
    export HADOOP_CONF_DIR=$PWD/disk/c/conf
    start="yaq cluster start --dir disk/c -D mapreduce.map.maxattempts=1"
    $start -D yarn.nodemanager.disk-health-checker.interval-ms=500 >/dev/null || exit 1
    yaq mr submit fill.py --input in.txt --output out1 2>&1; echo code $?
    yaq mr submit wordcount.py --input in.txt --output out2 >/dev/null 2>&1; echo code $?
    yaq node list
    yaq cluster stop --dir disk/c
    find disk/c/nodes -path '*/usercache/*/*/*' -printf 'kept %p\\n'
    echo left $(ps -eo args | grep -c "[d]isk/c/conf.*$PWD")
    """
    said = on_small_disk(tmp_path, "size=40m", script)
    assert "No space left on device" in said and "code 1" in said and "code 0" in said, said
    assert "RUNNING" in said and "stopped resourcemanager, nodemanager-1" in said and "left 0" in said, said
    assert "kept" not in said
    assert not (tmp_path / "out1").exists()
    assert (tmp_path / "out2/part-r-00000").read_text() == "a\t2\nb\t1\n"
    assert processes_working_under(tmp_path) == []
