"""Jobs of our own in a queue that decides by stages, on a real cluster."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.cli_cluster import kill_resource_manager, started, until, yaq
from tests.tez_adapter.tez_jobs import WORDCOUNT, parts
from tests.tez_adapter.tez_jobs import run as run_mapreduce
from tests.tez_flow.conftest import ROOM, SMALL_TASKS
from tests.tez_flow.flow_jobs import ALL_KINDS, GATED, FlowRun, ran
from yaqd.config import Configuration

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


@pytest.fixture(scope="module")
def clotho_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    policy = "yarn.scheduler.capacity.root.default.ordering-policy=clotho"
    with started(tmp_path_factory.mktemp("clotho") / "c", *ROOM, policy, nodes=2) as folder:
        yield folder


@pytest.fixture(scope="module")
def clotho_cluster(clotho_folder: Path) -> Configuration:
    return Configuration.load(clotho_folder / "conf").with_overrides(SMALL_TASKS)


def test_a_flow_gives_what_it_means(clotho_cluster: Configuration, tmp_path: Path) -> None:
    run = FlowRun(tmp_path / "flow", ALL_KINDS)
    run.submit(clotho_cluster)
    result = run.finished()
    assert result.succeeded, result
    run.check_outputs()


@pytest.mark.parametrize("slow_start", ["0.05", "1.0"])
def test_a_mapreduce_job_maps_and_then_reduces(
    clotho_cluster: Configuration, write: Callable[[str, str], str], tmp_path: Path, slow_start: str
) -> None:
    lines = "".join(f"w{number % 7} w{number % 3}\n" for number in range(20))
    conf = clotho_cluster.with_overrides({"mapreduce.job.reduce.slowstart.completedmaps": slow_start})
    source = write("in.txt", lines)
    result = run_mapreduce(conf, write("job.py", WORDCOUNT), source, tmp_path / "out", reduces=3)
    assert result.succeeded, result
    found = dict(line.split("\t") for part in parts(tmp_path / "out") for line in part.splitlines())
    words = lines.split()
    assert found == {word: str(words.count(word)) for word in set(words)}


def test_a_resource_manager_that_starts_again_in_mid_graph_goes_on_to_decide(
    clotho_folder: Path, clotho_cluster: Configuration, tmp_path: Path
) -> None:
    run, trace = FlowRun(tmp_path / "flow", GATED), tmp_path / "trace"
    trace.mkdir()
    run.submit(clotho_cluster, TRACE=str(trace))
    until(lambda: Counter(ran(trace))[("reduce", "Third", 0)] == 1)
    before = ran(trace)
    kill_resource_manager(clotho_folder)
    assert yaq("cluster", "start", "--dir", clotho_folder).returncode == 0
    (trace / "go").touch()
    result = run.finished()
    assert result.succeeded, result
    run.check_outputs()
    again = Counter(ran(trace)) - Counter(before)
    assert set(again) <= {("reduce", "Third", 0), ("reduce", "Third", 1)}, "finished stages are not done again"
