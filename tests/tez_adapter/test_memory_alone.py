"""Jobs whose tasks ask for cores on a cluster that counts memory alone, as Hadoop does where nobody says otherwise."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.tez_adapter.tez_jobs import WORDCOUNT, Write, finish, parts, run
from tez_adapter.client.submit import submit_command
from yaqd.config import Configuration

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SETTINGS = {
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
    "yarn.nodemanager.resource.cpu-vcores": "4",
    "yarn.scheduler.maximum-allocation-vcores": "4",
}


@pytest.fixture(scope="module")
def memory_alone(
    running: Callable[..., AbstractContextManager[Configuration]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Configuration]:
    words = (word for key, value in SETTINGS.items() for word in ("-D", f"{key}={value}"))
    with running(tmp_path_factory.mktemp("cluster") / "c", 1, *words) as conf:
        yield conf


def test_commands_with_two_cores_run(memory_alone: Configuration) -> None:
    result = finish(submit_command(memory_alone, ["true"], tasks=3, vcores=2))
    assert (result.state, result.exit_code) == ("SUCCEEDED", 0), result.diagnostics


def test_maps_and_reduces_with_two_cores_run(memory_alone: Configuration, write: Write, tmp_path: Path) -> None:
    cores = {"mapreduce.map.cpu.vcores": "2", "mapreduce.reduce.cpu.vcores": "3"}
    script, source = write("wc.py", WORDCOUNT), write("in.txt", "a b\nb\n")
    result = run(memory_alone.with_overrides(cores), script, source, tmp_path / "out", reduces=2)
    assert result.state == "SUCCEEDED", result.diagnostics
    assert sorted("".join(parts(tmp_path / "out")).splitlines()) == ["a\t1", "b\t2"]
