"""The nine algorithms on a cluster: the model of each is the one that this process makes, to the bit."""

import hashlib
import os
from importlib import import_module
from pathlib import Path

import pytest

from tests.tez_training.training_jobs import finish, folder_of
from tez_adapter.client.training import submit_training
from tez_adapter.jobspec import Training
from tez_adapter.training.keeper import read_curve, read_job, read_model_sum
from yaqd.cli.ml.here import CurveKeeper, train_class
from yaqd.config import Configuration
from yaqd.mapreduce import parse_params
from yaqd.ml import kernels
from yaqd.ml.loading import load_iterative

_ONE_OF_A_KIND = ("kmeans", "mlp")
_OTHERS = ("logistic", "svm", "polynomial_svm", "lda", "linear")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*_ONE_OF_A_KIND, *(pytest.param(n, marks=pytest.mark.full) for n in _OTHERS)])
def test_a_cluster_makes_the_model_that_this_process_makes(
    training_cluster: Configuration, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    script = str(import_module(f"yaqd.ml.examples.{name}").__file__)
    job_class = load_iterative(script)
    here = CurveKeeper()
    model = train_class(job_class(parse_params(job_class, {}), seed=3, iterations=8), here)
    # a choice that changes nothing here, and that a container has not of itself
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    job = submit_training(training_cluster, script, Training(max_cores=2, seed=3, iterations=8))
    result = finish(job)
    assert result.succeeded, result
    folder = folder_of(training_cluster, job.job_id)
    chosen = kernels.chosen(os.environ)
    assert chosen.items() <= read_job(training_cluster, folder).environment.items() and len(chosen) >= 1
    assert read_model_sum(training_cluster, folder) == hashlib.sha256(model).hexdigest()
    points = read_curve(training_cluster, folder).points
    assert [(p.iteration, p.loss) for p in points] == [(p.iteration, p.loss) for p in here.points]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["boosted_classes", pytest.param("boosted_regression", marks=pytest.mark.full)])
def test_boosted_trees_report_from_a_program(training_cluster: Configuration, name: str) -> None:
    script = Path(str(import_module(f"yaqd.ml.examples.{name}").__file__))
    job = submit_training(training_cluster, str(script), Training(iterations=5))
    result = finish(job)
    assert result.succeeded, result
    losses = [p.loss or 0.0 for p in read_curve(training_cluster, folder_of(training_cluster, job.job_id)).points]
    assert len(losses) >= 5 and losses == sorted(losses, reverse=True)
