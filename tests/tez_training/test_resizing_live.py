"""Workers come and go between iterations, as the ResourceManager orders cores; the model is the same."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tez_training.training_jobs import DESCENT, finish, folder_of, model_sum, start_cluster, until, workers
from tez_adapter.client.training import submit_training
from tez_adapter.jobspec import Training
from tez_adapter.training.keeper import read_curve
from yaqd.config import Configuration


@pytest.fixture
def four_cores(tmp_path: Path) -> Iterator[Configuration]:
    settings = {
        "yaq.quality.cores": "4",
        "yaq.quality.policy": "fair",
        "yarn.nodemanager.resource.memory-mb": "8192",
        "yarn.nodemanager.resource.cpu-vcores": "16",
    }
    with start_cluster(tmp_path / "c", settings) as conf:
        yield conf


@pytest.mark.slow
def test_a_job_gives_workers_back_and_gets_them_again(
    four_cores: Configuration, write: Callable[[str, str], str], tmp_path: Path
) -> None:
    conf = four_cores.with_overrides({"pause": "0.1", "yaq.ml.worker.gather-wait": "0"})
    script = write("descent.py", DESCENT)
    long = submit_training(conf, script, Training(max_cores=4, seed=7, iterations=150))
    until(lambda: workers(long) == 4)
    short = submit_training(conf, script, Training(max_cores=4, seed=8, iterations=30))
    until(lambda: workers(long) == 2)
    assert finish(short).succeeded
    until(lambda: workers(long) == 4)
    result = finish(long)
    assert result.succeeded, result
    cores = [point.cores for point in read_curve(four_cores, folder_of(four_cores, long.job_id)).points]
    assert {2.0, 4.0} <= set(cores)
    alone = submit_training(four_cores, script, Training(max_cores=1, seed=7, iterations=150))
    assert finish(alone).succeeded
    assert model_sum(four_cores, alone) == model_sum(four_cores, long)
