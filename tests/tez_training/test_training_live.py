"""Training jobs on a real cluster."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tez_training.training_jobs import BY_RUN, DESCENT, finish, folder_of, model_sum
from tez_adapter.client.training import submit_training
from tez_adapter.jobspec import Training
from tez_adapter.training.keeper import read_curve
from yaqd.config import Configuration

Write = Callable[[str, str], str]


SCRIPT = """
import sys
from yaqd.ml import report
for i in range(1, 31):
    said = report(iteration=i, loss=1.0 / i, accuracy=0.5)
    assert said.cores in (1.0, 2.0), said  # one until the first order comes
    if said.stop:
        break
print("ended after", i, sys.argv[1:])
"""


@pytest.mark.slow
def test_a_script_reports(training_cluster: Configuration, write: Write) -> None:
    terms = Training(max_cores=2, iterations=20, arguments=("a", "b c"))
    job = submit_training(training_cluster, write("train.py", SCRIPT), terms)
    result = finish(job)
    assert result.succeeded, result
    curve = read_curve(training_cluster, folder_of(training_cluster, job.job_id))
    assert [(p.iteration, p.loss) for p in curve.points] == [(i, 1.0 / i) for i in range(1, 21)]
    assert curve.points[0].metrics == {"accuracy": 0.5}


@pytest.mark.slow
def test_a_model_does_not_depend_on_the_workers(training_cluster: Configuration, write: Write) -> None:
    script = write("descent.py", DESCENT)
    models = []
    for workers in (1, 2, 8):
        job = submit_training(training_cluster, script, Training(max_cores=workers, seed=7))
        result = finish(job)
        assert result.succeeded, result
        models.append(model_sum(training_cluster, job))
        folder = folder_of(training_cluster, job.job_id)
        losses = [point.loss or 0.0 for point in read_curve(training_cluster, folder).points]
        assert len(losses) == 12 and losses == sorted(losses, reverse=True)
    assert len(set(models)) == 1


@pytest.fixture(scope="module")
def undisturbed(training_cluster: Configuration, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The model of each script, from a run that nothing disturbs."""
    sums = {}
    for name, text in {"descent": DESCENT, "by_run": BY_RUN}.items():
        script = tmp_path_factory.mktemp("undisturbed") / f"{name}.py"
        script.write_text(text)
        job = submit_training(training_cluster, str(script), Training(max_cores=2, seed=7))
        assert finish(job).succeeded
        sums[name] = model_sum(training_cluster, job)
    return sums


@pytest.mark.slow
@pytest.mark.parametrize("name", ["descent", "by_run"])
@pytest.mark.parametrize("who", ["worker", "driver", "manager"])
def test_a_kill_changes_no_bit(
    training_cluster: Configuration, write: Write, tmp_path: Path, undisturbed: dict[str, str], who: str, name: str
) -> None:
    script = write(f"{name}.py", {"descent": DESCENT, "by_run": BY_RUN}[name])
    settings = {"marks": str(tmp_path), "kill": f"{who}:7", "pause": "0.15", "yaq.ml.checkpoint.interval": "0"}
    job = submit_training(training_cluster.with_overrides(settings), script, Training(max_cores=2, seed=7))
    result = finish(job)
    assert result.succeeded, result
    assert (tmp_path / f"{who}:7").exists()
    assert model_sum(training_cluster, job) == undisturbed[name]
    combined = [int(line) for line in (tmp_path / "combined").read_text().split()]
    if who == "manager":
        attempt = job.report().attempt
        assert attempt is not None and attempt.attempt == 2
        if name == "descent":  # by_run computes nothing anew either, but its own loop runs again
            assert combined.count(0) == 1 and combined[-1] == 11


@pytest.mark.slow
def test_a_step_that_raises_is_one_line(training_cluster: Configuration, write: Write) -> None:
    conf = training_cluster.with_overrides({"fail": "step:5"})
    result = finish(submit_training(conf, write("descent.py", DESCENT), Training(max_cores=2)))
    assert result.state == "FAILED"
    line = next(line for line in result.diagnostics.splitlines() if "ZeroDivisionError" in line)
    assert "Descent.step() on partition 3 in iteration 6 failed: ZeroDivisionError: no such luck" in line


@pytest.mark.slow
def test_a_program_may_use_more_cores_than_a_container_counts(training_cluster: Configuration, write: Write) -> None:
    conf = training_cluster.with_overrides({"yarn.scheduler.maximum-allocation-vcores": "1"})
    job = submit_training(conf, write("train.py", SCRIPT), Training(max_cores=2, iterations=3))
    assert finish(job).succeeded


LAUNCHER = """
import subprocess, sys
child = "from yaqd.ml import report\\nfor i in range(5): said = report(i, 1.0 / (i + 1))\\nassert said.cores == 1.0"
subprocess.run([sys.executable, "-c", child], check=True)
"""


@pytest.mark.slow
def test_a_process_that_a_script_starts_reports_too(training_cluster: Configuration, write: Write) -> None:
    job = submit_training(training_cluster, write("launcher.py", LAUNCHER))
    result = finish(job)
    assert result.succeeded, result
    curve = read_curve(training_cluster, folder_of(training_cluster, job.job_id))
    assert [point.loss for point in curve.points] == [1.0 / (i + 1) for i in range(5)]


@pytest.mark.slow
def test_a_script_that_fails_says_where(training_cluster: Configuration, write: Write) -> None:
    script = write("bad.py", "from yaqd.ml import report\nreport(1, 0.5)\nraise ValueError('of no use')\n")
    conf = training_cluster.with_overrides({"yaq.ml.max-attempts": "1"})
    result = finish(submit_training(conf, script))
    assert result.state == "FAILED"
    assert "ValueError: of no use" in result.diagnostics and "bad.py" in result.diagnostics
    ended = finish(submit_training(conf, write("ends.py", "import sys; sys.exit(3)")))
    assert ended.state == "FAILED" and "ended with 3" in ended.diagnostics


@pytest.mark.slow
def test_data_that_cannot_be_loaded_once_is_loaded_again(
    training_cluster: Configuration, write: Write, tmp_path: Path, undisturbed: dict[str, str]
) -> None:
    conf = training_cluster.with_overrides({"fail": "load", "marks": str(tmp_path)})
    job = submit_training(conf, write("descent.py", DESCENT), Training(max_cores=2, seed=7))
    result = finish(job)
    assert result.succeeded, result
    assert (tmp_path / "load").exists()
    assert model_sum(training_cluster, job) == undisturbed["descent"]
