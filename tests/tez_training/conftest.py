"""One cluster for the end-to-end tests of training jobs."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tez_training.training_jobs import start_cluster
from yaqd.config import Configuration


@pytest.fixture(scope="session")
def training_folder_of_conf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Its configuration folder."""
    folder = tmp_path_factory.mktemp("training") / "c"
    settings = {"yarn.nodemanager.resource.memory-mb": "8192", "yarn.nodemanager.resource.cpu-vcores": "16"}
    with start_cluster(folder, settings):
        yield folder / "conf"


@pytest.fixture(scope="session")
def training_cluster(training_folder_of_conf: Path) -> Configuration:
    return Configuration.load(training_folder_of_conf)


@pytest.fixture
def yaq(training_folder_of_conf: Path) -> Callable[..., str]:
    """Run a command on the cluster; what it printed."""

    def run(*words: str, code: int = 0) -> str:
        environ = {**os.environ, "HADOOP_CONF_DIR": str(training_folder_of_conf)}
        done = subprocess.run(
            [sys.executable, "-m", "yaqd.cli", *words], env=environ, timeout=55, capture_output=True, text=True
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run
