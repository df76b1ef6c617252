"""CRIU as a slot finds it, and as it writes trials to disk where it works; programs of its name that do not."""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tez_exploration.exploration_jobs import (
    CURVE,
    alive,
    finished,
    kinds,
    pids,
    records_of,
    reports_of,
    seen,
    terms_with,
    trials_of,
)
from tests.tez_training.training_jobs import start_cluster, until
from tez_adapter.client.exploration import submit_exploration
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.exploration.criu import Criu
from tez_adapter.exploration.nursery import Nursery
from tez_adapter.tasks.shared_imports import SharedImports
from yaqd.config import Configuration
from yaqd.model.child_processes import children_of

FOUND = Criu.find()
needs_criu = pytest.mark.skipif(not FOUND.path, reason=FOUND.problem or "no criu is installed")
VDSO = "Error (criu/vdso.c:381): vdso: Unexpected rt vDSO area bounds"
FAILS = f"#!/bin/sh\necho 'Error (criu/util.c:642): exited, status=1' >&2\necho '{VDSO}' >&2\nexit 1\n"

Write = Callable[[str, str], str]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Put a program of that name first on the path."""

    def put(text: str) -> Path:
        program = tmp_path / "bin" / "criu"
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        return program

    return put


@pytest.mark.parametrize(
    "text, problem",
    (
        (FAILS, f"check ends with 1: {VDSO}"),
        ("#!/bin/sh\nexit 3\n", "check ends with 3: it says nothing"),
        ("#!/bin/sh\nprintf 'a\\033[2J\\377b\\n'; exit 1\n", "check ends with 1: a?[2J\N{REPLACEMENT CHARACTER}b"),
        ("#!/bin/sh\nprintf '%0300d' 7; exit 1\n", f"check ends with 1: {200 * '0'}"),
        ("#!/nowhere/to/be/found\n", "No such file or directory"),
    ),
)
def test_one_that_fails_is_told_in_a_line(fake: Callable[[str], Path], text: str, problem: str) -> None:
    program = fake(text)
    found = Criu.find()
    assert found.path == "" and found.problem.startswith(f"{program}") and found.problem.endswith(problem)
    assert found.problem.isprintable()


@pytest.mark.parametrize(
    "text, within_s",
    (("sleep 600", 1), ("sleep 600 & exec sleep 600", 1), ("exec >&-; exec 2>&-; sleep 600", 1), ("exec yes", 60)),
)
def test_one_that_hangs_or_floods_is_ended(
    fake: Callable[[str], Path], text: str, within_s: float, tmp_path: Path
) -> None:
    program = fake(f"#!/bin/sh\necho $$ > {tmp_path}/pid\n{text}\n")
    began = time.monotonic()
    assert Criu.find(within_s).problem.startswith(f"{program} check does not end: ")
    assert time.monotonic() - began < 10
    group = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _is_there(group):
        time.sleep(0.01)
    assert not _is_there(group)


def _is_there(group: int) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", "-g", str(group)], capture_output=True, text=True, check=False)
    return any(not state.startswith("Z") for state in found.stdout.split())


def test_one_that_passes_is_used_and_a_missing_one_is_no_problem(
    fake: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = fake("#!/bin/sh\necho 'Looks good.'\n")
    assert Criu.find() == Criu(str(program))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Criu.find() == Criu()


# ---- the process that forks


def _stops(number: int, lap: int) -> str:
    """Hold memory, a child and an open file, stop, and say whether all is as it was."""
    if number == 9 and os.fork() == 0:
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    kept = os.urandom(20 << 20)
    total = sum(kept)
    child = subprocess.Popen(["sleep", "600"])
    with open("/proc/self/stat", encoding="ascii") as file:
        own = os.getpid()
        os.killpg(0, signal.SIGSTOP)
        is_same = sum(kept) == total and child.poll() is None and own == os.getpid()
        is_same = is_same and file.read().startswith(f"{own} ")
    child.kill()
    return f"trial {number} is as it was: {is_same}"


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    def tidy(number: int, lap: int) -> None:
        (tmp_path / f"tidied.{number}.{lap}").touch()

    made = Nursery(_stops, SharedImports(is_on=False), tidy)
    yield made
    made.close()


def heard(nursery: Nursery) -> dict[str, Any]:
    message = nursery.receive()
    assert message is not None
    return message


@needs_criu
def test_trials_go_on_from_their_images(nursery: Nursery, tmp_path: Path) -> None:
    folders = [tmp_path / f"image-{number}" for number in range(2)]
    for number, folder in enumerate(folders):
        nursery.begin(number, 1)
        stopped = heard(nursery)
        nursery.dump(number, 1, FOUND.path, folder)
        dumped = heard(nursery)
        assert stopped["memory_mb"] > 20 and dumped["memory_mb"] == 0 and dumped["image_mb"] > 20, dumped
    assert not list(tmp_path.glob("tidied.*"))
    for number, folder in enumerate(folders):
        nursery.signal(number, 1, signal.SIGCONT)
        ended = heard(nursery)
        assert ended["error"] == f"trial {number} is as it was: True" and not ended["is_killed"]
        assert not folder.exists()


@needs_criu
def test_a_damaged_image_and_one_that_nobody_wants(nursery: Nursery, tmp_path: Path) -> None:
    for number in range(2):
        nursery.begin(number, 1)
        assert heard(nursery)["is"] == "stopped"
        nursery.dump(number, 1, FOUND.path, tmp_path / f"image-{number}")
        assert heard(nursery)["image_mb"] > 0
    (tmp_path / "image-0" / "pstree.img").write_bytes(b"nothing of the kind")
    nursery.signal(0, 1, signal.SIGCONT)
    ended = heard(nursery)
    assert ended["is"] == "ended" and ended["is_killed"] and "Error (" in ended["error"]
    nursery.signal(1, 1, signal.SIGKILL)
    ended = heard(nursery)
    assert ended["is"] == "ended" and ended["is_killed"] and ended["number"] == 1
    nursery.begin(0, 2)
    assert heard(nursery)["is"] == "stopped", "the process that forks goes on"
    nursery.signal(0, 2, signal.SIGCONT)
    assert heard(nursery)["error"] == "trial 0 is as it was: True"
    nursery.close()  # it removes what a trial has left once it has told its end
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tidied.0.1", "tidied.0.2", "tidied.1.1"]


@pytest.mark.parametrize(
    "text, problem",
    (
        (f'#!/bin/sh\necho "(00.1) Error (x.c:1): rlimit: Can\'t setup\n(00.2) {VDSO}" > $3/criu.log\nexit 1\n', VDSO),
        ("#!/bin/sh\nexit 1\n", "No such file or directory"),
        ("#!/bin/sh\nkill -9 $$\n", "its process was killed by signal 9"),
        ("#!/nowhere/to/be/found\n", "No such file or directory"),
    ),
)
def test_a_trial_of_which_no_image_can_be_made_stays_stopped(
    nursery: Nursery, fake: Callable[[str], Path], tmp_path: Path, text: str, problem: str
) -> None:
    nursery.begin(0, 1)
    assert heard(nursery)["is"] == "stopped"
    nursery.dump(0, 1, str(fake(text)), tmp_path / "image")
    message = heard(nursery)
    assert message["is"] == "stopped" and message["image_mb"] == 0 and message["memory_mb"] > 20
    assert problem in message["error"] and not (tmp_path / "image" / "criu.log").exists()
    nursery.signal(0, 1, signal.SIGCONT)
    assert heard(nursery)["error"] == "trial 0 is as it was: True"


def test_no_image_is_made_of_a_trial_that_has_left_a_process_behind(nursery: Nursery, tmp_path: Path) -> None:
    nursery.begin(9, 1)
    assert heard(nursery)["is"] == "stopped"
    until(lambda: len(children_of(nursery.pid)) == 2)
    (tmp_path / "image").mkdir()
    nursery.dump(9, 1, "/bin/false", tmp_path / "image")
    assert "processes that it has left behind are there: [" in heard(nursery)["error"]
    nursery.signal(9, 1, signal.SIGKILL)
    assert heard(nursery)["is_killed"]


def test_a_dump_that_hangs_ends_with_its_trial(nursery: Nursery, fake: Callable[[str], Path], tmp_path: Path) -> None:
    nursery.begin(0, 1)
    assert heard(nursery)["is"] == "stopped"
    nursery.dump(0, 1, str(fake("#!/bin/sh\nexec sleep 600\n")), tmp_path / "image")
    nursery.signal(0, 1, signal.SIGKILL)
    messages = [heard(nursery)]
    if messages[-1]["is"] == "stopped":
        messages.append(heard(nursery))
    assert messages[-1]["is"] == "ended" and messages[-1]["is_killed"]
    assert not alive([*children_of(nursery.pid)])


# ---- on a cluster

#: a curve that is in the process's memory alone: a walk of a generator of its own, with threads of BLAS
WALK = """
import os, sys
import numpy as np
from yaqd.ml import report, trial

draw = np.random.default_rng(trial.number)
state = draw.random((300, 300))
for epoch in range(1, 10_000):
    state = np.tanh(state @ draw.random((300, 300)) / 300 + draw.random())
    with open(f"{sys.argv[1]}/epochs", "a") as lines:
        print(trial.number, epoch, os.getpid(), file=lines)
    print("trial", trial.number, "epoch", epoch, flush=True)
    if report(iteration=epoch, accuracy=trial.params["level"] * float(state.mean())).stop:
        break
"""


def _begun(conf: Configuration, script: str, marks: Path, pause: float = 0.0) -> SubmittedJob:
    marks.mkdir()
    more: dict[str, Any] = {"slots": 1, "trials": 6, "epochs": 9, "policy": "asha-promote", "seed": 5}
    return submit_exploration(conf, script, terms_with(marks, checkpoint=False, pause=pause, **more))


def _done(conf: Configuration, job: SubmittedJob, marks: Path) -> tuple[list[tuple[int, int, float]], Counter[str]]:
    result = finished(job, timeout_s=100)
    assert result.succeeded, result
    records = records_of(conf, job)
    assert not alive(pids(marks))
    return reports_of(records), kinds(records)


@pytest.fixture
def cluster(tmp_path: Path) -> Callable[[], Any]:
    settings = {"yarn.nodemanager.resource.memory-mb": "4096", "yarn.nodemanager.resource.cpu-vcores": "8"}
    return lambda: start_cluster(tmp_path / "c", settings)


@needs_criu
@pytest.mark.slow
def test_images_change_no_report(cluster: Callable[[], Any], write: Write, tmp_path: Path) -> None:
    script = write("walk.py", WALK)
    with cluster() as conf:
        calm = conf.with_overrides({"yaq.ml.explore.stopped-memory-mb": "3000"})
        dumped = conf.with_overrides({"yaq.ml.explore.stopped-memory-mb": "0"})
        calm_reports, calm_kinds = _done(calm, _begun(calm, script, tmp_path / "calm"), tmp_path / "calm")
        reports, found = _done(dumped, _begun(dumped, script, tmp_path / "dumped"), tmp_path / "dumped")
    assert reports == calm_reports and len(reports) > 10
    assert calm_kinds["dumped"] == 0 and found["dumped"] > 4 and found["thaw"] > 1 and found["frozen"] == 0
    assert found["begin"] == calm_kinds["begin"] == 6
    epochs = [tuple(map(int, line.split())) for line in (tmp_path / "dumped" / "epochs").read_text().splitlines()]
    assert len({pair[:2] for pair in epochs}) == len(epochs), "what an image had was computed again"
    assert len({(number, pid) for number, _, pid in epochs}) == 6


@pytest.mark.slow
def test_without_a_working_one_trials_begin_anew_and_a_line_says_why(
    cluster: Callable[[], Any], write: Write, tmp_path: Path, fake: Callable[[str], Path]
) -> None:
    program = fake(FAILS)
    with cluster() as conf:
        small = conf.with_overrides({"yaq.ml.explore.stopped-memory-mb": "0"})
        job = _begun(small, write("curve.py", CURVE), tmp_path / "small", pause=0.1)
        told = f"{program} check ends with 1: {VDSO}: trials without checkpoints are stopped in memory only"
        until(lambda: trials_of(job) and any(told in line for line in seen(job).notices))
        assert sum("CRIU" in line for line in seen(job).notices) == 1
        reports, found = _done(small, job, tmp_path / "small")
    assert found["dumped"] == found["frozen"] == 0 and found["begin"] > 6
    assert len(set(reports)) == len(reports) > 10
