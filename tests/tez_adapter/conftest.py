"""A real cluster for the end-to-end tests: one ResourceManager and two NodeManagers in processes of their own."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from yaqd.config import Configuration


def _yaq(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "yaqd.cli", *words], check=True, timeout=60, stdout=subprocess.DEVNULL)


@contextmanager
def _running(folder: Path, nodes: int, *settings: str) -> Iterator[Configuration]:
    _yaq("cluster", "start", "--dir", str(folder), "--nodes", str(nodes), *settings)
    try:
        yield Configuration.load(folder / "conf")
    finally:
        _yaq("cluster", "stop", "--dir", str(folder))


@pytest.fixture(scope="session")
def running() -> Callable[..., AbstractContextManager[Configuration]]:
    """Starts a cluster in a folder: so many nodes, further words of the command."""
    return _running


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Configuration]:
    with _running(tmp_path_factory.mktemp("cluster") / "c", 2) as conf:
        yield conf


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Configuration]:
    """For a test that damages it: three nodes with room for two tasks each."""
    settings = ("yarn.nodemanager.resource.memory-mb=1024", "yarn.nodemanager.resource.cpu-vcores=2")
    with _running(tmp_path / "c", 3, *(word for s in settings for word in ("-D", s))) as conf:
        yield conf
