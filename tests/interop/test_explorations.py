"""Explorations on a stock cluster: a stock ResourceManager, stock nodes, and records and checkpoints on a real HDFS."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.stock import conf as stock_conf
from benchmarks.stock.daemons import StockHdfs, StockYarn
from tests.tez_exploration.exploration_jobs import CURVE, alive, finished, kinds, pids, reports_of, seen, terms_with
from tez_adapter.client.exploration import resume_exploration, submit_exploration
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.training import folder_of
from tez_adapter.exploration.store import read_records
from yaqd.config import Configuration

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

Write = Callable[[str, str], str]


@pytest.fixture(scope="module")
def stock(stock_yarn: StockYarn, hdfs: StockHdfs, tmp_path_factory: pytest.TempPathFactory) -> Configuration:
    """The cluster as a user sees it, with his jobs' folder on HDFS."""
    folder = tmp_path_factory.mktemp("explorations") / "conf"
    shutil.copytree(stock_yarn.conf_dir, folder)
    staging = {"yarn.app.mapreduce.am.staging-dir": f"{hdfs.uri}/tmp/exploration-staging"}
    stock_conf.write_site(folder / "mapred-site.xml", staging)
    return Configuration.load(folder, environ={})


def records_on(conf: Configuration, job: SubmittedJob) -> list[dict[str, Any]]:
    return read_records(conf, folder_of(conf, job.report().user, job.application_id))


def test_a_killed_job_manager_and_a_killed_trial_change_no_rung(
    stock: Configuration, write: Write, tmp_path: Path
) -> None:
    script = write("curve.py", CURVE)
    more: dict[str, Any] = {"slots": 1, "trials": 5, "epochs": 9, "policy": "asha-promote", "seed": 5}
    found = {}
    for name, kill in (("calm", "-"), ("manager", "manager:suspend:1:1"), ("trial", "trial:epoch:1:3")):
        (tmp_path / name).mkdir()
        job = submit_exploration(stock, script, terms_with(tmp_path / name, kill=kill, **more))
        result = finished(job, timeout_s=120)
        assert result.succeeded, result
        records = records_on(stock, job)
        assert kinds(records)["checkpoint"] > 4
        found[name] = reports_of(records)
        assert not alive(pids(tmp_path / name))
    assert found["calm"] == found["manager"] == found["trial"]


def test_programs_without_checkpoints_stop_in_place_and_a_resumed_one_goes_on(
    stock: Configuration, write: Write, tmp_path: Path
) -> None:
    terms = terms_with(tmp_path, slots=1, trials=6, epochs=9, policy="asha-promote", checkpoint=False)
    job = submit_exploration(stock, write("curve.py", CURVE), terms)
    result = finished(job, timeout_s=120)
    assert result.succeeded, result
    found = kinds(records_on(stock, job))
    assert found["frozen"] > 3 and found["thaw"] > 0, found
    again = resume_exploration(stock, job.report().user, job.application_id, changes={"target": 0.0})
    assert finished(again, timeout_s=120).succeeded
    before, after = seen(job), seen(again)
    assert [trial.values for trial in after.trials][:3] == [trial.values for trial in before.trials][:3]
    assert not alive(pids(tmp_path))
