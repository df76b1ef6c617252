"""Training jobs for the tests, which end their own processes at a named iteration, and what came of them."""

import hashlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tez_adapter.client.follow import JobResult, SubmittedJob
from tez_adapter.protocol import JobClientProtocol
from tez_adapter.training.keeper import read_model
from tez_adapter.training.settings import training_folder
from yaqd.config import Configuration
from yaqd.model.training import CoresOrder
from yaqd.proto import job_training_pb2 as training_pb
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.training import cores_order_pb

#: gradient descent on eight partitions; `kill` is WHO:ITERATION: that process is killed there, once
DESCENT = '''
import os, signal, time
import numpy as np
from yaqd.ml import IterativeJob, Param

class Descent(IterativeJob):
    partitions = 8
    iterations = 12
    rate = Param(float, default=0.1)
    marks = Param(str, default="")
    kill = Param(str, default="")
    pause = Param(float, default=0.0)
    fail = Param(str, default="")

    def load(self, partition):
        if self.fail == "load" and partition.index == 3 and self.is_first("load"):
            raise OSError("the file server does not answer")
        rng = np.random.default_rng(partition.seed)
        x = rng.normal(size=(200, 20))
        return partition.index, x, x @ np.arange(20.0) + rng.normal(size=200)

    def initial(self):
        return {"at": 0, "weights": np.zeros(20)}

    def step(self, state, data):
        index, x, y = data
        if index == 3:
            self.maybe_kill("worker", state["at"])
            if self.fail == f"step:{state['at']}":
                raise ZeroDivisionError("no such luck")
        off = x @ state["weights"] - y
        return {"gradient": x.T @ off / len(y), "loss": float(off @ off) / len(y)}

    def combine(self, state, partials):
        time.sleep(self.pause)
        if self.marks:
            with open(f"{self.marks}/combined", "a") as lines:
                print(state["at"], file=lines)
        self.maybe_kill("driver", state["at"])
        self.maybe_kill("manager", state["at"])
        gradient = sum(p["gradient"] for p in partials) / len(partials)
        loss = sum(p["loss"] for p in partials) / len(partials)
        return {"at": state["at"] + 1, "weights": state["weights"] - self.rate * gradient}, loss

    def maybe_kill(self, who, iteration):
        if self.kill == f"{who}:{iteration}" and self.is_first(self.kill):
            os.kill(manager() if who == "manager" else os.getpid(), signal.SIGKILL)
            time.sleep(60)

    def is_first(self, mark):
        try:
            os.close(os.open(f"{self.marks}/{mark}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

def manager():
    """The process at the other end of this process's connections."""
    import psutil
    ports = {c.raddr.port for c in psutil.Process().net_connections("tcp") if c.raddr}
    found = {c.pid for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port in ports}
    return found.pop()
'''

#: its own loop calls the evaluations, as scipy's optimizers do
BY_RUN = DESCENT.replace("class Descent", "class ByRun").replace(
    "    def initial",
    """
    def run(self, evaluate):
        from yaqd.ml import report
        calls = 0
        def objective(weights):
            nonlocal calls
            partials = evaluate({"at": calls, "weights": weights})
            calls += 1
            time.sleep(self.pause)
            if self.marks:
                with open(f"{self.marks}/combined", "a") as lines:
                    print(calls - 1, file=lines)
            self.maybe_kill("driver", calls)
            self.maybe_kill("manager", calls)
            loss = sum(p["loss"] for p in partials) / len(partials)
            report(calls, loss)
            return loss, 2 * sum(p["gradient"] for p in partials) / len(partials)
        weights = np.zeros(20)
        for _ in range(self.limit):
            loss, gradient = objective(weights)
            weights = weights - self.rate * gradient
        return weights

    def initial""",
)


@contextmanager
def start_cluster(folder: Path, settings: Mapping[str, str]) -> Iterator[Configuration]:
    """A ResourceManager and two nodes, stopped at the end."""
    yaq = (sys.executable, "-m", "yaqd.cli", "cluster")
    words = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
    quiet = {"check": True, "timeout": 60, "stdout": subprocess.DEVNULL}
    subprocess.run([*yaq, "start", "--dir", str(folder), "--nodes", "2", *words], **quiet)  # type: ignore[call-overload]
    try:
        yield Configuration.load(folder / "conf")
    finally:
        subprocess.run([*yaq, "stop", "--dir", str(folder)], **quiet)  # type: ignore[call-overload]


def order(sequence: int, milli: int | None) -> pb.AllocateResponse:
    """A ResourceManager's answer with so many thousandths of a core; None: as many as it can."""
    return pb.AllocateResponse(yaq_orders=pb.YaqOrders(cores=cores_order_pb(CoresOrder(sequence, milli))))


def until(condition: Callable[[], object], seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def workers(job: SubmittedJob) -> int:
    """Return how many workers have asked for work."""
    status = job.ask(JobClientProtocol.getTrainingStatus, training_pb.TrainingStatusRequest())
    return 0 if status is None else status.workers


def finish(job: SubmittedJob) -> JobResult:
    try:
        return job.wait(timeout_s=50)
    finally:
        job.close()


def folder_of(conf: Configuration, job_id: str) -> str:
    root = Path(conf.require("yarn.app.mapreduce.am.staging-dir"))
    (staging,) = root.glob("*/.training")
    return training_folder(f"{staging.parent}/.staging/{job_id}", job_id)


def model_sum(conf: Configuration, job: SubmittedJob) -> str:
    """SHA-256 of the state that a job ended with."""
    return hashlib.sha256(read_model(conf, folder_of(conf, job.job_id)).pieces[0]).hexdigest()
