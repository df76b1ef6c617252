"""Explorations on a real cluster."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tez_exploration.exploration_jobs import (
    CURVE,
    alive,
    finished,
    kinds,
    pids,
    reached,
    records_of,
    reports_of,
    seen,
    terms_with,
    trials_of,
)
from tests.tez_training.training_jobs import until
from tez_adapter.client.exploration import resume_exploration, stop_exploration, submit_exploration
from tez_adapter.client.staging import SubmitError
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
@pytest.mark.parametrize(
    "when, has_checkpoint",
    (("epoch:1:3", True), pytest.param("epoch:1:3", False, marks=pytest.mark.full), ("suspend:1:1", True)),
)
def test_with_one_slot_a_kill_changes_nothing(
    exploring_cluster: Configuration, write: Write, tmp_path: Path, who: str, when: str, has_checkpoint: bool
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
    for name, kill in (("calm", "-"), ("shaken", f"{who}:{when}")):
        (tmp_path / name).mkdir()
        job = submit_exploration(exploring_cluster, script, terms_with(tmp_path / name, kill=kill, **more))
        result = finished(job)
        assert result.succeeded, result
        found.append(reports_of(records_of(exploring_cluster, job)))
        assert not alive(pids(tmp_path / name))
    assert (tmp_path / "shaken" / f"{who}:{when}".replace(":", "-")).exists()
    assert found[0] == found[1] and len(found[0]) > 10


@pytest.mark.slow
@pytest.mark.parametrize("how, has_checkpoint", (("stop", True), ("checkpoint", False)))
def test_trials_stop_in_place_and_go_on_in_the_same_process(
    exploring_cluster: Configuration, write: Write, tmp_path: Path, how: str, has_checkpoint: bool
) -> None:
    conf = exploring_cluster.with_overrides({"yaq.ml.explore.suspend": how, "yaq.ml.explore.stopped-memory-mb": "2000"})
    # which of two reports comes first says who stops at a rung and who goes on: with so many trials enough do stop
    terms = terms_with(tmp_path, slots=2, trials=18, epochs=9, policy="asha-promote", checkpoint=has_checkpoint)
    job = submit_exploration(conf, write("curve.py", CURVE), terms)
    assert finished(job).succeeded
    records = records_of(conf, job)
    found = kinds(records)
    assert found["frozen"] > 9 and found["thaw"] > 1 and found["checkpoint"] == 0, found
    by_trial: dict[int, set[int]] = {}
    for line in (tmp_path / "epochs").read_text().splitlines():
        number, _, pid = map(int, line.split())
        by_trial.setdefault(number, set()).add(pid)
    # a process each, but for those that went on in a container of the other node
    assert sum(len(own) for own in by_trial.values()) == found["begin"]
    assert not alive(pids(tmp_path))


@pytest.mark.slow
def test_stopped_trials_make_room_with_checkpoints(
    exploring_cluster: Configuration, write: Write, tmp_path: Path
) -> None:
    conf = exploring_cluster.with_overrides(
        {"yaq.ml.explore.suspend": "stop", "yaq.ml.explore.stopped-memory-mb": "120"}
    )
    terms = terms_with(tmp_path, slots=1, trials=9, epochs=9, policy="asha-promote")
    job = submit_exploration(conf, write("curve.py", CURVE), terms)
    assert finished(job).succeeded
    found = kinds(records_of(conf, job))
    assert found["frozen"] > 1 and found["checkpoint"] > 1, found
    assert not alive(pids(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("key", ("yaq.ml.explore.checkpoint.bytes-max=0", "yaq.ml.state.bytes-max=1"))
def test_checkpoints_that_do_not_fit_leave_trials_stopped(
    exploring_cluster: Configuration, write: Write, tmp_path: Path, key: str
) -> None:
    name, _, value = key.partition("=")
    conf = exploring_cluster.with_overrides({name: value, "yaq.ml.explore.stopped-memory-mb": "2000"})
    terms = terms_with(tmp_path, slots=1, trials=5, epochs=12, policy="asha-promote")
    script = write("curve.py", CURVE.replace("return str(epoch)", "return ('%02d' % epoch)"))
    job = submit_exploration(conf, script, terms)
    assert finished(job).succeeded
    found = kinds(records_of(conf, job))
    assert found["checkpoint"] == 0 and found["frozen"] >= 4 and found["begin"] == 5, found
    assert not alive(pids(tmp_path))


@pytest.mark.slow
def test_a_stop_makes_checkpoints_and_a_resumed_exploration_goes_on(
    exploring_cluster: Configuration, write: Write, tmp_path: Path
) -> None:
    terms = terms_with(tmp_path, slots=2, trials=4, epochs=12, pause=0.2, policy="default")
    job = submit_exploration(exploring_cluster, write("curve.py", CURVE), terms)
    until(lambda: any(len(trial.values) >= 3 for trial in trials_of(job)))
    assert stop_exploration(job)
    result = finished(job)
    assert result.succeeded and "stopped by" in result.diagnostics
    before = {trial.number: trial for trial in seen(job).trials}
    assert all(0 < len(trial.values) < 12 for trial in before.values())
    again = resume_exploration(exploring_cluster, job.report().user, job.application_id)
    assert finished(again).succeeded
    after = {trial.number: trial for trial in seen(again).trials}
    assert {number: len(trial.values) for number, trial in after.items()} == dict.fromkeys(range(4), 12)
    for number, trial in before.items():
        assert after[number].values[: len(trial.values)] == trial.values
        assert after[number].params == trial.params
    epochs = [tuple(map(int, line.split()[:2])) for line in (tmp_path / "epochs").read_text().splitlines()]
    assert len(set(epochs)) == len(epochs), "what a checkpoint had was computed again"
    with pytest.raises(SubmitError, match="another space"):
        resume_exploration(exploring_cluster, job.report().user, job.application_id, changes={"space": "x = [1, 2]"})


@pytest.mark.slow
def test_programs_that_fail_say_why(exploring_cluster: Configuration, write: Write, tmp_path: Path) -> None:
    script = write("bad.py", "from yaqd.ml.trial import trial\nprint(trial.params['depth'])\n")
    job = submit_exploration(exploring_cluster, script, terms_with(tmp_path))
    result = finished(job)
    assert not result.succeeded
    assert "5 trials failed and none reported anything" in result.diagnostics
    assert "no hyperparameter 'depth': the space has level, speed" in result.diagnostics


ODD = """
import math, os
from yaqd.ml import report
from yaqd.ml.trial import trial

what = ("nan", "back", "text", "missing", "flood", "fork", "stop")[trial.number]
for epoch in range(1, 9):
    if what == "nan":
        report(epoch, accuracy=(math.nan, math.inf, -math.inf)[epoch % 3])
    elif what == "back":
        report(epoch, accuracy=0.1 * epoch)
        report(epoch - 1, accuracy=99.0)
        report(epoch, accuracy=99.0)
    elif what == "text":
        report(epoch, accuracy="high")
    elif what == "missing" and epoch < 8:
        report(epoch, precision=0.5)
    elif what == "flood":
        report(epoch, accuracy=0.2)
        for _ in range(100_000):
            report(epoch, accuracy=0.2)
    elif what == "fork":
        if (copy := os.fork()) == 0:
            report(epoch, accuracy=99.0)
            os._exit(0)
        report(epoch, accuracy=0.1)
        os.waitpid(copy, 0)
while True:  # nobody is to be told twice
    report(epoch, accuracy=0.3)
    epoch += 1
"""


@pytest.mark.slow
def test_odd_programs_are_borne(exploring_cluster: Configuration, write: Write, tmp_path: Path) -> None:
    conf = exploring_cluster.with_overrides({"yaq.ml.explore.stop-wait": "1s"})
    terms = terms_with(tmp_path, trials=7, epochs=8, policy="default")
    job = submit_exploration(conf, write("odd.py", ODD), terms)
    result = finished(job)
    assert result.succeeded, result
    nan_one, back, text, missing, flood, fork, stop = seen(job).trials
    assert len(nan_one.values) == 8 and not any(map(math.isfinite, nan_one.values))
    assert back.values == tuple(0.1 * epoch for epoch in range(1, 9))
    assert "accuracy must be a number" in text.failure and not text.values
    assert missing.values == (0.3,) * 8
    assert flood.values == (0.2,) * 8
    assert fork.values == (0.1,) * 8 and fork.begun == 1
    assert stop.values == (0.3,) * 8
