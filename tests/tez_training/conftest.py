"""One cluster for the end-to-end tests of training jobs."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from yaqd.config import Configuration


def _yaq(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "yaqd.cli", *words], check=True, timeout=60, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def training_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Configuration]:
    folder = tmp_path_factory.mktemp("training") / "c"
    settings = ("yarn.nodemanager.resource.memory-mb=8192", "yarn.nodemanager.resource.cpu-vcores=16")
    _yaq("cluster", "start", "--dir", str(folder), "--nodes", "2", *(w for s in settings for w in ("-D", s)))
    try:
        yield Configuration.load(folder / "conf")
    finally:
        _yaq("cluster", "stop", "--dir", str(folder))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], str]:
    """Write a file of the test's folder; its path."""

    def write_file(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write_file
