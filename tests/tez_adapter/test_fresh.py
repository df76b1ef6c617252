"""Each task finds its program as freshly loaded, with the hash seed that all have; whatever becomes of its process."""

import faulthandler
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tez_adapter.client.local import run_local
from tez_adapter.client.submit import Attachments, submit_mapreduce, submit_streaming
from tez_adapter.master.launch import python_context
from tez_adapter.tasks.forked import run_in_child
from yaqd.config import Configuration
from yaqd.mapreduce import Job, JobError
from yaqd.model import fixed_addresses
from yaqd.model.hash_seed import hash_seed

CONF = Configuration.load(environ={})
FRESH_JOB = str(Path(__file__).with_name("fresh_job.py"))
TASKS, LINES = 8, 10
APART = {"yaq.input.combine-small-files": "false"}

#: what `fresh_job` finds in a process that has just begun
FRESH = {
    "class": "(0, 0)",
    "globals": "0",
    "cache": "0",
    "cwd": "False",
    "left in the folder": "False",
    "missing in it": "False",
    "environment": "None",
    "umask": "False",
    "handler": "False",
    "threads": "[]",
    "files": "[]",
    "position": "True",
    "pid": "True",
    "path": "False",
    "library": "None",
    "total": str(TASKS * LINES),
    "token": str(TASKS),
    "random": str(TASKS),
}


# ---- a process for each piece of work


def test_a_child_hands_back_what_its_work_returns_and_leaves_nothing_here() -> None:
    left: list[int] = []
    ended = [run_in_child(lambda: left.append(1) or bytes(300_000)) for _ in range(2)]
    assert [(e.code, e.outcome, e.is_told) for e in ended] == [(0, bytes(300_000), False)] * 2
    assert left == []
    assert len({run_in_child(lambda: str(random.random()).encode()).outcome for _ in range(3)}) == 3


def _end_by_signal() -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def _raise() -> bytes:
    raise ValueError("of the work")


def _interrupt() -> bytes:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("work", "code"),
    [(lambda: os._exit(0), 0), (lambda: os._exit(7), 7), (_end_by_signal, -9), (_raise, 1), (_interrupt, 130)],
    ids=["exit", "status", "signal", "error", "interrupt"],
)
def test_a_child_that_ends_before_its_work_has_no_outcome(work: Callable[[], bytes], code: int) -> None:
    ended = run_in_child(work)
    assert (ended.code, ended.outcome) == (code, None)


def test_what_a_child_leaves_running_holds_nobody_up() -> None:
    def work() -> bytes:
        if os.fork() == 0:
            threading.Event().wait(60)
            os._exit(0)
        return b"done"

    started = time.monotonic()
    assert run_in_child(work).outcome == b"done"
    assert time.monotonic() - started < 30


def test_a_child_is_told_to_end_and_threads_are_waited_for(tmp_path: Path) -> None:
    mark, told = tmp_path / "mark", threading.Event()

    def work() -> bytes:
        signal.signal(signal.SIGTERM, lambda *_: told.set())
        os.kill(os.getppid(), signal.SIGTERM)
        assert told.wait(30)
        thread = threading.Thread(target=lambda: (threading.Event().wait(0.1), mark.write_text("thread")))
        thread.start()
        return b""

    before = signal.getsignal(signal.SIGTERM)
    assert run_in_child(work).is_told
    assert mark.read_text() == "thread"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_child_dies_with_its_parent() -> None:
    receiver, sender = os.pipe()

    def grandchild() -> bytes:
        os.write(sender, b"%d\n" % os.getpid())
        threading.Event().wait(60)
        return b""

    parent = os.fork()
    if parent == 0:
        run_in_child(grandchild)
        os._exit(0)
    pidfd = os.pidfd_open(int(os.read(receiver, 20)))
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    assert select.select([pidfd], [], [], 30)[0]
    for descriptor in (receiver, sender, pidfd):
        os.close(descriptor)


# ---- jobs


def write_inputs(folder: Path, files: int) -> str:
    folder.mkdir()
    for number in range(files):
        (folder / f"f{number}").write_text("".join(f"{line}\n" for line in range(LINES)))
    return str(folder)


def table(output: Path) -> dict[str, str]:
    lines = "".join(part.read_text() for part in sorted(output.glob("part-*"))).splitlines()
    return dict(line.split("\t") for line in lines)


def yaq(*words: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "yaqd.cli", *words],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    return done.stderr if done.returncode else ""


with fixed_addresses.fixed_for_children():
    #: what hashes by its address, where that is settled
    ADDRESSED = "int, ..., frozenset([len])" if fixed_addresses.are_fixed() else ""
SCATTERS = f"""
PARTS = frozenset([("a", None)]), {ADDRESSED}
"""
SCATTERS += """
import os
from yaqd.mapreduce import Job
class ByHash(Job):
    reduces = 3
    def map(self, key, value):
        if value == "3" and self.task.index == self.task.attempt == 0 and "CONTAINER_ID" in os.environ:
            os.kill(os.getpid(), 9)
        yield ("word" + value, None), {hash(value + "x")}.pop()
    def partition(self, key, partitions):
        return hash((key, PARTS)) % partitions
    def reduce(self, key, values):
        values = list(values)
        yield key, [len(values), values[0] if len(set(values)) == 1 else "scattered"]
"""


def bytes_of(output: Path) -> list[bytes]:
    return [part.read_bytes() for part in sorted(output.glob("part-*"))]


@pytest.mark.slow
def test_tasks_of_a_local_job_are_fresh_and_have_one_hash_seed(tmp_path: Path) -> None:
    source = write_inputs(tmp_path / "in", TASKS)
    (tmp_path / "scatters.py").write_text(SCATTERS)
    few = write_inputs(tmp_path / "few", 2)
    apart = [word for key, value in APART.items() for word in ("-D", f"{key}={value}")]
    assert yaq("mr", "local", FRESH_JOB, "--input", source, *apart, "--output", f"{tmp_path}/out") == ""
    found = table(tmp_path / "out")
    assert found.pop("container") == "1"
    assert found == FRESH
    job = ("mr", "local", f"{tmp_path}/scatters.py", "--input", few, *apart, "--output")
    for name, seed in (("a", "random"), ("b", "")):
        assert yaq(*job, f"{tmp_path}/{name}", PYTHONHASHSEED=seed) == ""
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")
    rows = table(tmp_path / "a")
    assert len(rows) == LINES and "scattered" not in "".join(rows.values())


def _crash() -> None:
    faulthandler.disable()  # pytest's
    os.kill(os.getpid(), 11)


class Ends(Job):
    how: Callable[[], Any] = staticmethod(lambda: None)

    def map(self, key: int, value: str) -> Iterator[tuple[str, int]]:
        self.how()
        yield value, 1


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            lambda: os._exit(0),
            "ended with exit status 0 before its task was done: the job's code has called os._exit()",
        ),
        (lambda: os.kill(os.getpid(), 9), r"was killed by signal 9 \(SIGKILL\), often because the machine had no"),
        (
            lambda: (faulthandler.disable(), os.kill(os.getpid(), 11)),
            r"was killed by signal 11 \(SIGSEGV\), as a library does that crashes",
        ),
    ],
    ids=["exit", "killed", "crashed"],
)
def test_a_task_that_just_ends_is_told_what_happened(how: Callable[[], Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n")
    job = type("EndsSo", (Ends,), {"how": staticmethod(how)})
    with pytest.raises(JobError, match=f"^the task's process {said}") as caught:
        run_local(job, [f"{tmp_path}/in"], f"{tmp_path}/out", CONF)
    assert "in:0+2" in caught.value.detail
    assert not (tmp_path / "out").exists()


def test_what_threads_still_do_is_part_of_the_task(tmp_path: Path) -> None:
    class StartsThreads(Job):
        reduces = 0

        def cleanup(self) -> Any:
            def work() -> None:
                threading.Event().wait(0.2)
                assert not (tmp_path / "out/part-m-00000").exists()
                (tmp_path / "mark").write_text("done")

            threading.Thread(target=work).start()

    (tmp_path / "in").write_text("a\n")
    run_local(StartsThreads, [f"{tmp_path}/in"], f"{tmp_path}/out", CONF)
    assert (tmp_path / "mark").read_text() == "done"


#: leaves a folder and a file behind, and removes what it was sent along with
UNTIDY = """
mkdir work || exit 1
cat >> all.txt
echo "$(grep -c . words.txt) $(wc -l < all.txt)"
rm words.txt
"""


def check_scripts(conf: Configuration, source: str, folder: Path) -> None:
    """Each run of a script finds a folder with what was shipped, and nothing else."""
    (folder / "untidy.sh").write_text(UNTIDY)
    (folder / "words.txt").write_text("one\ntwo\n")
    files = Attachments(files=[f"{folder}/untidy.sh", f"{folder}/words.txt"])
    job = submit_streaming(
        conf, inputs=[source], output=f"{folder}/untidy", mapper="sh untidy.sh", reduces=0, attachments=files
    )
    result = job.wait(timeout_s=90)
    job.close()
    assert result.state == "SUCCEEDED", result.diagnostics
    lines = [line.strip() for part in bytes_of(folder / "untidy") for line in part.decode().splitlines()]
    assert lines == [f"2 {LINES}"] * TASKS
    assert (folder / "words.txt").read_text() == "one\ntwo\n"


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_tasks_on_a_cluster_are_fresh_and_have_one_hash_seed(
    running: Callable[..., AbstractContextManager[Configuration]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Warm and cold, in containers that run one task after the other, with an attempt that is killed."""
    many, few = write_inputs(tmp_path / "many", TASKS), write_inputs(tmp_path / "few", 2)
    (tmp_path / "scatters.py").write_text(SCATTERS)
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    with running(tmp_path / "c", 1, "-D", "yarn.nodemanager.admin-env=PYTHONHASHSEED=random") as site:
        conf = site.with_overrides(APART)

        def run(script: str, source: str, name: str, **settings: str) -> None:
            changed = conf.with_overrides(settings)
            job = submit_mapreduce(changed, script, inputs=[source], output=f"{tmp_path}/{name}")
            result = job.wait(timeout_s=90)
            job.close()
            assert result.state == "SUCCEEDED", result.diagnostics

        run(FRESH_JOB, many, "out")
        found = table(tmp_path / "out")
        assert int(found.pop("container")) < TASKS
        assert found == FRESH
        check_scripts(conf, many, tmp_path)
        script = f"{tmp_path}/scatters.py"
        run(script, few, "warm")
        run(script, few, "cold", **{"mapreduce.map.env": "LD_BIND_NOW=1"})
        run(script, few, "own", **{"mapreduce.map.env": "PYTHONHASHSEED=5"})
    job = ("mr", "local", script, "--input", few, "-D", "yaq.input.combine-small-files=false", "--output")
    assert yaq(*job, f"{tmp_path}/local") == ""
    assert bytes_of(tmp_path / "warm") == bytes_of(tmp_path / "cold") == bytes_of(tmp_path / "local")
    rows = table(tmp_path / "own")
    assert len(rows) == LINES and "scattered" not in "".join(rows.values())
    assert bytes_of(tmp_path / "own") != bytes_of(tmp_path / "warm")


@pytest.mark.parametrize(
    ("text", "seed"), [("", "0"), ("random", "0"), ("007", "7"), ("4294967295", "4294967295"), ("4294967296", "0")]
)
def test_a_seed_that_differs_by_process_is_none(text: str, seed: str) -> None:
    assert hash_seed({"PYTHONHASHSEED": text}) == seed
    context = python_context("tez_adapter.tasks.task:main", ["h:1"], (), {"PYTHONHASHSEED": text})
    assert f" PYTHONHASHSEED={seed} " in context.command[0]
    # prepared processes have the default: whoever names it starts warm
    assert ("PYTHONHASHSEED" in {entry.key for entry in context.environment}) == (seed != "0")


def test_a_tasks_end_is_not_that_of_who_runs_the_job(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n")
    with tempfile.TemporaryDirectory() as own:
        run_local(Job, [f"{tmp_path}/in"], f"{tmp_path}/out", CONF)
        assert Path(own).is_dir()


@pytest.mark.slow
def test_what_a_local_task_prints_stays_out_of_an_answer_for_programs(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n")
    (tmp_path / "prints.py").write_text(
        "from yaqd.mapreduce import Job\nclass Prints(Job):\n    def setup(self):\n        print('noise')\n"
    )
    words = [
        "mr",
        "local",
        f"{tmp_path}/prints.py",
        "--input",
        f"{tmp_path}/in",
        "--output",
        f"{tmp_path}/out",
        "--json",
    ]
    done = subprocess.run([sys.executable, "-m", "yaqd.cli", *words], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["state"] == "SUCCEEDED"
    assert "noise" in done.stderr
