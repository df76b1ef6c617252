"""Flows on a stock cluster: a stock ResourceManager, stock nodes and their shuffle handlers."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.stock.daemons import StockYarn
from tests.cli.cli_cluster import until
from tests.tez_adapter.tez_jobs import kill_job_manager
from tests.tez_flow.conftest import SMALL_TASKS
from tests.tez_flow.flow_jobs import ALL_KINDS, GATED, FlowRun, ran
from yaqd.config import Configuration

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def stock(stock_yarn: StockYarn) -> Configuration:
    return Configuration.load(stock_yarn.conf_dir, environ={}).with_overrides(SMALL_TASKS)


def test_the_same_flow_gives_the_same_on_a_stock_cluster(stock: Configuration, tmp_path: Path) -> None:
    run = FlowRun(tmp_path / "flow", ALL_KINDS)
    run.submit(stock)
    result = run.finished(200.0)
    assert result.succeeded, result
    run.check_outputs()


def test_a_killed_job_manager_is_followed_by_one_that_goes_on(stock: Configuration, tmp_path: Path) -> None:
    run, trace = FlowRun(tmp_path / "flow", GATED), tmp_path / "trace"
    trace.mkdir()
    run.submit(stock, TRACE=str(trace))
    until(lambda: Counter(ran(trace))[("reduce", "Third", 0)] == 1, 100.0)
    until(lambda: [v.done for v in run.job.status().vertices][-2:-1] == [3])
    before = ran(trace)
    kill_job_manager(run.job)
    until(lambda: Counter(ran(trace))[("reduce", "Third", 0)] == 2, 100.0)
    (trace / "go").touch()
    result = run.finished(200.0)
    assert result.succeeded, result
    run.check_outputs()
    again = Counter(ran(trace)) - Counter(before)
    assert {step for _, step, _ in again} == {"Third"}
