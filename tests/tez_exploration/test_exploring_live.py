"""Explorations on a real cluster."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
)
from tez_adapter.client.exploration import submit_exploration
from yaqd.config import Configuration

Write = Callable[[str, str], str]


@pytest.mark.slow
def test_an_exploration_ends_when_a_trial_reaches_the_target(
    exploring_cluster: Configuration, write: Write, tmp_path: Path
) -> None:
    job = submit_exploration(exploring_cluster, write("curve.py", CURVE), terms_with(tmp_path, target=0.6, seed=3))
    result = finished(job)
    assert result.succeeded, result
    view = seen(job)
    winner = next(trial for trial in view.trials if trial.number == view.winner)
    assert winner.values[-1] >= 0.6 > max(winner.values[:-1])
    assert "reached the target; best is trial" in result.diagnostics
    for trial in view.trials:
        assert list(trial.values) == [reached(trial.params, epoch) for epoch in range(1, len(trial.values) + 1)]
    reports = reports_of(records_of(exploring_cluster, job))
    assert len(set(reports)) == len(reports) and reports[-1][0] == view.winner
    assert not alive(pids(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("who", ("trial", "nursery", "slot", "manager"))
@pytest.mark.parametrize("has_checkpoint", (True, False))
def test_with_one_slot_a_kill_changes_nothing(
    exploring_cluster: Configuration, write: Write, tmp_path: Path, who: str, has_checkpoint: bool
) -> None:
    script = write("curve.py", CURVE)
    more: dict[str, Any] = {
        "slots": 1,
        "trials": 5,
        "epochs": 9,
        "policy": "asha-promote",
        "seed": 5,
        "checkpoint": has_checkpoint,
    }
    found = []
    for name, kill in (("calm", "-"), ("shaken", f"{who}:1:3")):
        (tmp_path / name).mkdir()
        job = submit_exploration(exploring_cluster, script, terms_with(tmp_path / name, kill=kill, **more))
        result = finished(job)
        assert result.succeeded, result
        found.append(reports_of(records_of(exploring_cluster, job)))
        assert not alive(pids(tmp_path / name))
    assert (tmp_path / f"shaken/{who}-1-3").exists()
    assert found[0] == found[1] and len(found[0]) > 10
