"""One cluster for the end-to-end tests of explorations, and job managers without one."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.tez_exploration.exploration_manager import TERMS, World
from tests.tez_training.training_jobs import start_cluster
from tez_adapter.jobspec import Exploration
from yaqd.config import Configuration


@pytest.fixture(scope="session")
def exploring_folder_of_conf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The configuration folder of a ResourceManager and two nodes."""
    folder = tmp_path_factory.mktemp("exploring") / "c"
    settings = {"yarn.nodemanager.resource.memory-mb": "8192", "yarn.nodemanager.resource.cpu-vcores": "16"}
    with start_cluster(folder, settings):
        yield folder / "conf"


@pytest.fixture(scope="session")
def exploring_cluster(exploring_folder_of_conf: Path) -> Configuration:
    return Configuration.load(exploring_folder_of_conf).with_overrides({"yaq.ml.explore.slot.memory-mb": "512"})


@pytest.fixture
def yaq(exploring_folder_of_conf: Path) -> Callable[..., str]:
    """Run a command on the cluster; what it printed."""

    def run(*words: object, code: int = 0) -> str:
        environ = {**os.environ, "HADOOP_CONF_DIR": str(exploring_folder_of_conf)}
        command = [sys.executable, "-m", "yaqd.cli", *map(str, words)]
        done = subprocess.run(command, env=environ, timeout=100, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    return run


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Callable[..., World]]:
    """Make worlds in one folder; end them."""
    worlds: list[World] = []

    def make(terms: Exploration = TERMS, job: int = 1, **conf: str) -> World:
        worlds.append(World(tmp_path, terms, job, **conf))
        return worlds[-1]

    yield make
    for world in worlds:
        await world.service.end()
