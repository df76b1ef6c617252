"""Training jobs on a real cluster."""

from collections.abc import Callable
from pathlib import Path

from tez_adapter.client.follow import JobResult, SubmittedJob
from tez_adapter.client.training import submit_training
from tez_adapter.jobspec import Training
from tez_adapter.training.keeper import read_curve, read_model
from tez_adapter.training.settings import training_folder
from yaqd.config import Configuration

Write = Callable[[str, str], str]


def finish(job: SubmittedJob) -> JobResult:
    try:
        return job.wait(timeout_s=50)
    finally:
        job.close()


def folder_of(conf: Configuration, job_id: str) -> str:
    root = Path(conf.require("yarn.app.mapreduce.am.staging-dir"))
    (staging,) = root.glob("*/.training")
    return training_folder(f"{staging.parent}/.staging/{job_id}", job_id)


SCRIPT = """
import sys
from yaqd.ml import report
for i in range(1, 31):
    said = report(iteration=i, loss=1.0 / i, accuracy=0.5)
    assert said.cores == 2.0, said
    if said.stop:
        break
print("ended after", i, sys.argv[1:])
"""


def test_a_script_reports(training_cluster: Configuration, write: Write) -> None:
    terms = Training(max_cores=2, iterations=20, arguments=("a", "b c"))
    job = submit_training(training_cluster, write("train.py", SCRIPT), terms)
    result = finish(job)
    assert result.succeeded, result
    curve = read_curve(training_cluster, folder_of(training_cluster, job.job_id))
    assert [(p.iteration, p.loss) for p in curve.points] == [(i, 1.0 / i) for i in range(1, 21)]
    assert curve.points[0].metrics == {"accuracy": 0.5}


MEANS = """
import numpy as np
from yaqd.ml import IterativeJob, Param

class Descent(IterativeJob):
    partitions = 8
    iterations = 12
    rate = Param(float, default=0.1)

    def load(self, partition):
        rng = np.random.default_rng(partition.seed)
        x = rng.normal(size=(200, 20))
        return x, x @ np.arange(20.0) + rng.normal(size=200)

    def initial(self):
        return np.zeros(20)

    def step(self, state, data):
        x, y = data
        off = x @ state - y
        return {"gradient": x.T @ off / len(y), "loss": float(off @ off) / len(y)}

    def combine(self, state, partials):
        gradient = sum(p["gradient"] for p in partials) / len(partials)
        return state - self.rate * gradient, sum(p["loss"] for p in partials) / len(partials)
"""


def test_a_model_does_not_depend_on_the_workers(training_cluster: Configuration, write: Write) -> None:
    script = write("descent.py", MEANS)
    models = []
    for workers in (1, 2, 8):
        job = submit_training(training_cluster, script, Training(max_cores=workers, seed=7))
        result = finish(job)
        assert result.succeeded, result
        folder = folder_of(training_cluster, job.job_id)
        models.append(bytes(read_model(training_cluster, folder).pieces[0]))
        losses = [point.loss or 0.0 for point in read_curve(training_cluster, folder).points]
        assert len(losses) == 12 and losses == sorted(losses, reverse=True)
    assert len(set(models)) == 1
