"""Jobs with workers on a cluster that is full: a newcomer gets its part, and who does not give workers back loses
them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tez_training.training_jobs import DESCENT, finish, model_sum, start_cluster, until, workers
from tez_adapter.client.training import submit_training
from tez_adapter.jobspec import Training

#: eight containers of 512 MB: two masters, two drivers, four workers
_SETTINGS = {
    "yaq.quality.policy": "fair",
    "yaq.quality.hand-back": "2s",
    "yarn.nodemanager.resource.memory-mb": "2048",
    "yarn.nodemanager.resource.cpu-vcores": "16",
    "yarn.scheduler.minimum-allocation-mb": "512",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    "yaq.ml.driver.memory-mb": "512",
    "yaq.ml.worker.memory-mb": "512",
    "yaq.ml.worker.gather-wait": "0",
}
#: a step of the upper half takes three seconds while others wait
_SLOW = DESCENT.replace(
    "off = x @", "time.sleep(3.0 * (index > 3) * os.path.exists(f'{self.marks}/slow'))\n        off = x @"
)


@pytest.mark.slow
def test_a_full_cluster_is_shared_and_workers_not_handed_back_are_taken(
    write: Callable[[str, str], str], tmp_path: Path
) -> None:
    with start_cluster(tmp_path / "c", _SETTINGS) as cluster:
        conf = cluster.with_overrides({"pause": "0.1", "marks": str(tmp_path)})
        script = write("descent.py", _SLOW)
        long = submit_training(conf, script, Training(max_cores=8, seed=7, iterations=120))
        until(lambda: workers(long) == 6)
        (tmp_path / "slow").touch()
        short = submit_training(conf, script, Training(max_cores=8, seed=8, iterations=4))
        until(lambda: workers(long) <= 4 and workers(short) >= 1)
        (tmp_path / "slow").unlink()
        assert finish(short).succeeded
        until(lambda: workers(long) == 6)
        result = finish(long)
        assert result.succeeded, result
        log = "".join(path.read_text() for path in (tmp_path / "c/logs").glob("resourcemanager*.log"))
        assert "did not hand it back in" in log
        alone = submit_training(cluster, script, Training(max_cores=1, seed=7, iterations=120))
        assert finish(alone).succeeded
        assert model_sum(cluster, alone) == model_sum(cluster, long)
