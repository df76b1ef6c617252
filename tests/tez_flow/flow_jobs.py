"""Flows on a cluster, as tests submit them and look at what they leave."""

import os
import re
from pathlib import Path

import psutil

from tests.tez_adapter.tez_jobs import manager_pid
from tests.tez_flow.flow_reference import evaluated, lines_below
from tests.tez_flow.flow_scripts import STEPS
from tez_adapter.client.flow import submit_flow
from tez_adapter.client.follow import JobResult, SubmittedJob
from tez_adapter.flow.program import load_flow
from tez_adapter.history import JobHistory, read_history
from yaqd.config import Configuration

INPUTS = {"one": ["a bb a", "ccc bb", "", "dddd a a"], "two": ["bb x", "a yy", "q a bb"]}

#: every kind of edge, several outputs, several readers
ALL_KINDS = (
    STEPS
    + """
one, two = flow.read("one").then(Words), flow.read("two").then(Words)
matched = flow.join(one, two).then(Match, reduces=3)
matched.write("matched")
summed = matched.then(Combined, reduces=2)
summed.then(Known, sides={"one": one, "both": flow.union(one, two)}).write("known")
summed.then(Flip, apart=True).then(Spread, reduces=2).then(Gather).write("last")
flow.union(summed, one).write("united")
"""
)

#: the last stages wait for a file; each task of the first ones leaves a line where it ran
GATED = (
    STEPS
    + """
import os, time

class Traced(Job):
    def setup(self):
        with open(os.environ["TRACE"] + "/ran", "a") as file:
            print(self.task.phase, type(self).__name__, self.task.index, os.environ.get("LOCAL_DIRS"), file=file)

class First(Traced):
    def reduce(self, key, values):
        yield key, sum(values)

class Second(Traced):
    def map(self, key, value):
        yield str(key), value
    def reduce(self, key, values):
        yield key, sum(values)

class Third(Traced):
    def setup(self):
        super().setup()
        while self.task.phase == "reduce" and not os.path.exists(os.environ["TRACE"] + "/go"):
            time.sleep(0.05)
    def reduce(self, key, values):
        yield key, sum(values)

first = flow.read("one").then(Words).then(First, reduces=3)
first.write("first")
second = first.then(Second, reduces=3)
second.then(Third, reduces=2).write("third")
"""
)


class FlowRun:
    """A flow's script with its inputs in a folder, and the job once it is submitted."""

    job: SubmittedJob

    def __init__(self, folder: Path, script: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "flow.py"
        self.path.write_text(script)
        for name, lines in INPUTS.items():
            (folder / name).write_text("".join(f"{line}\n" for line in lines))
        self.program = load_flow(str(self.path), {})

    def submit(self, conf: Configuration, **more: str) -> SubmittedJob:
        """Submit the flow; `more`: environment of its tasks."""
        paths = {node.path: str(self.folder / node.path) for node in self.program.flow.nodes if node.path}
        words = ",".join(f"{name}={value}" for name, value in more.items())
        conf = conf.with_overrides({"mapreduce.map.env": words, "mapreduce.reduce.env": words} if words else {})
        self.job = submit_flow(conf, str(self.path), paths=paths)
        return self.job

    def finished(self, timeout_s: float = 100.0) -> JobResult:
        result = self.job.wait(timeout_s=timeout_s)
        self.job.close()
        return result

    def check_outputs(self, given: dict[str, list[str]] = INPUTS) -> None:
        """Hold that each output is what the flow means."""
        (self.folder / "go").touch()
        os.environ["TRACE"] = str(self.folder)  # what its steps look for, as they run here once more
        inputs = {node.path: given[node.path] for node in self.program.flow.nodes if node.path in given}
        for name, lines in evaluated(self.program, inputs).items():
            assert lines_below(self.folder / name) == lines, name
            assert (self.folder / name / "_SUCCESS").exists()

    def history(self, conf: Configuration) -> JobHistory:
        return read_history(conf, self.job.application_id)


def ran(trace: Path) -> list[tuple[str, str, int]]:
    """Return the tasks that ran: phase, step and number."""
    lines = (trace / "ran").read_text().splitlines() if (trace / "ran").exists() else []
    return [(words[0], words[1], int(words[2])) for words in map(str.split, lines)]


def nodes_of(trace: Path) -> set[str]:
    """Return the nodes on which tasks ran."""
    return set(re.findall(r"nm-\d+", (trace / "ran").read_text()))


def node_of_manager(job: SubmittedJob) -> str:
    """Return the node on which the job manager runs."""
    return re.findall(r"nm-\d+", psutil.Process(manager_pid(job)).cwd())[0]
