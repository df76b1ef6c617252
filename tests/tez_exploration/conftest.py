"""One cluster for the end-to-end tests of explorations."""

from collections.abc import Iterator

import pytest

from tests.tez_training.training_jobs import start_cluster
from yaqd.config import Configuration


@pytest.fixture(scope="session")
def exploring_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Configuration]:
    """A ResourceManager and two nodes."""
    settings = {"yarn.nodemanager.resource.memory-mb": "8192", "yarn.nodemanager.resource.cpu-vcores": "16"}
    with start_cluster(tmp_path_factory.mktemp("exploring") / "c", settings) as conf:
        yield conf.with_overrides({"yaq.ml.explore.slot.memory-mb": "512"})
