"""An exploration whose slots are lost with their node: no trial is, none runs twice at once, nothing stays stopped."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_cluster import kill_daemon, started, until
from tests.tez_exploration.exploration_jobs import (
    CURVE,
    alive,
    finished,
    pids,
    reached,
    records_of,
    reports_of,
    seen,
    terms_with,
    trials_of,
)
from tez_adapter.client.exploration import submit_exploration
from yaqd.config import Configuration

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SETTINGS = (
    "yarn.nodemanager.resource.memory-mb=3072",
    "yarn.nodemanager.resource.cpu-vcores=16",
    "yarn.scheduler.minimum-allocation-mb=256",
    "yarn.nm.liveness-monitor.expiry-interval-ms=3000",
)


@pytest.mark.parametrize("has_checkpoint", (True, pytest.param(False, marks=pytest.mark.full)))
def test_a_killed_node_loses_no_trial(write: Callable[[str, str], str], tmp_path: Path, has_checkpoint: bool) -> None:
    with started(tmp_path / "c", *SETTINGS, nodes=2) as cluster:
        conf = Configuration.load(cluster / "conf").with_overrides({"yaq.ml.explore.slot.memory-mb": "768"})
        more = {"slots": 4, "trials": 12, "epochs": 8, "policy": "asha-promote"}
        terms = terms_with(tmp_path, pause=0.3, checkpoint=has_checkpoint, **more)  # type: ignore[arg-type]
        job = submit_exploration(conf, write("curve.py", CURVE), terms)
        until(lambda: sum(len(trial.values) for trial in trials_of(job)) >= 4)
        kill_daemon(cluster, "nodemanager-2")
        result = finished(job, timeout_s=200)
        assert result.succeeded, result
        records = records_of(conf, job)
        reports = reports_of(records)
        assert max(Counter((number, epoch) for number, epoch, _ in reports).values()) == 1
        for trial in seen(job).trials:
            assert list(trial.values) == [reached(trial.params, epoch) for epoch in range(1, len(trial.values) + 1)]
        assert len({number for number, _, _ in reports}) == 12
        until(lambda: not alive(pids(tmp_path)))


#: one trial's checkpoint does not end
HELD = CURVE.replace(
    """    return str(epoch)""",
    """    if kill == "held" and (trial.number, epoch) == (1, 1) and first("held"):
        with open(f"{marks}/holder", "w") as holder:
            print(os.getpid(), file=holder)
        signal.pause()
    return str(epoch)""",
)


def test_with_one_slot_a_node_that_is_killed_in_a_suspend_changes_nothing(
    write: Callable[[str, str], str], tmp_path: Path
) -> None:
    found = []
    with started(tmp_path / "c", *SETTINGS, nodes=2) as cluster:
        conf = Configuration.load(cluster / "conf").with_overrides({"yaq.ml.explore.slot.memory-mb": "768"})
        more: dict[str, Any] = {"slots": 1, "trials": 5, "epochs": 9, "policy": "asha-promote", "seed": 5}
        for kill in ("-", "held"):
            (marks := tmp_path / f"marks{kill}").mkdir()
            terms = terms_with(marks, kill=kill, **more)
            job = submit_exploration(conf, write("held.py", HELD), terms)
            if kill == "held":
                until(lambda: (marks / "holder").exists() and (marks / "holder").read_text().endswith("\n"))
                folder = Path(f"/proc/{int((marks / 'holder').read_text())}/cwd").readlink()
                kill_daemon(cluster, folder.relative_to(cluster / "nodes").parts[0].replace("nm-", "nodemanager-"))
            result = finished(job, timeout_s=200)
            assert result.succeeded, result
            found.append(reports_of(records_of(conf, job)))
            until(lambda: not alive(pids(marks)))
    assert found[0] == found[1] and len(found[0]) > 10
