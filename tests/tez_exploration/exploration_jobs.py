"""Explorations for the tests: a program whose curves are known, and what came of a job."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

from tez_adapter.client.exploration import ExplorationWatch
from tez_adapter.client.follow import JobResult, SubmittedJob
from tez_adapter.exploration.store import read_records
from tez_adapter.exploration.view import ExplorationView, TrialView
from tez_adapter.jobspec import Exploration
from tez_adapter.training.settings import training_folder
from yaqd.config import Configuration

SPACE = """
level = { type = "float", low = 0.1, high = 0.9 }
speed = { type = "float", low = 0.05, high = 1.0, log = true }
"""

#: accuracy = level * (1 - exp(-speed * epoch)); KILL names what is killed once: WHO:WHEN:NUMBER:EPOCH
CURVE = '''
import math, os, signal, sys, time
from yaqd.ml import last_checkpoint, report
from yaqd.ml.trial import trial

marks, pause, kill, has_checkpoint = sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4] == "yes"

def first(mark):
    try:
        os.close(os.open(f"{marks}/{mark}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True

def peers():
    """The process at the other end of this process's connections: the job manager."""
    import psutil
    ports = {c.raddr.port for c in psutil.Process().net_connections("tcp") if c.raddr}
    return {c.pid for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port in ports}

def maybe_kill(when, epoch):
    if not kill.endswith(f":{when}:{trial.number}:{epoch}") or not first(kill.replace(":", "-")):
        return
    import psutil
    own = psutil.Process()
    who = {"trial": [own.pid], "nursery": [own.ppid()], "slot": [own.parent().ppid()], "manager": peers()}
    for pid in who[kill.split(":")[0]]:
        os.kill(pid, signal.SIGKILL)
    time.sleep(60)

def made(epoch):
    maybe_kill("suspend", epoch)
    return str(epoch).encode()

saved = last_checkpoint()
done = int(saved) if saved else 0
assert done == trial.epoch, (done, trial.epoch)
for epoch in range(done + 1, 10_000):
    time.sleep(pause)
    with open(f"{marks}/epochs", "a") as lines:
        print(trial.number, epoch, os.getpid(), file=lines)
    maybe_kill("epoch", epoch)
    accuracy = trial.params["level"] * (1 - math.exp(-trial.params["speed"] * epoch))
    make = (lambda: made(epoch)) if has_checkpoint else None
    if report(iteration=epoch, accuracy=accuracy, checkpoint=make).stop:
        break
'''


def terms_with(
    marks: Path, *, pause: float = 0.0, kill: str = "-", checkpoint: bool = True, **more: Any
) -> Exploration:
    """Return terms for the program CURVE."""
    arguments = (str(marks), str(pause), kill, "yes" if checkpoint else "no")
    terms = Exploration("accuracy", space=SPACE, epochs=20, slots=2, trials=12, arguments=arguments)
    return replace(terms, **more)


def reached(params: Mapping[str, Any], epoch: int) -> float:
    """Return what CURVE reports."""
    return float(params["level"]) * (1 - exp(-float(params["speed"]) * epoch))


def trials_of(job: SubmittedJob) -> tuple[TrialView, ...]:
    """Return the trials of an exploration; none where nothing is known of it yet."""
    watch = ExplorationWatch(job.conf, job.report())
    try:
        found = watch.look()
        return () if found is None else found.trials
    finally:
        watch.close()


def seen(job: SubmittedJob) -> ExplorationView:
    """Return an exploration as it stands."""
    watch = ExplorationWatch(job.conf, job.report())
    try:
        found = watch.look()
        assert found is not None
        return found
    finally:
        watch.close()


def finished(job: SubmittedJob, timeout_s: float = 50) -> JobResult:
    try:
        return job.wait(timeout_s=timeout_s)
    finally:
        job.close()


def folder_of_job(conf: Configuration, job_id: str) -> str:
    root = Path(conf.require("yarn.app.mapreduce.am.staging-dir"))
    (staging,) = root.glob("*/.training")
    return training_folder(f"{staging.parent}/.staging/{job_id}", job_id)


def records_of(conf: Configuration, job: SubmittedJob) -> list[dict[str, Any]]:
    return read_records(conf, folder_of_job(conf, job.job_id))


def reports_of(records: list[dict[str, Any]]) -> list[tuple[int, int, float]]:
    """Return trial, iteration and metric of each report, in order."""
    return [(r["number"], r["iteration"], r["value"]) for r in records if r["do"] == "report"]


def kinds(records: list[dict[str, Any]]) -> Counter[str]:
    """Count the records by what they say."""
    return Counter(str(record["do"]) for record in records)


def pids(marks: Path) -> list[int]:
    """Return the processes that trials had."""
    return [int(line.split()[2]) for line in (marks / "epochs").read_text().splitlines()]


def alive(numbers: list[int]) -> list[int]:
    """Return which processes are there and are no zombies."""
    found = []
    for pid in numbers:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            found.append(pid)
    return found
