"""Explorations as tables, pages, pictures and files, from a view that is made here."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tez_adapter.exploration.past import past_of
from tez_adapter.exploration.view import ExplorationView, TrialView
from yaqd.cli.exits import CommandError
from yaqd.cli.ml.explore import table
from yaqd.cli.ml.explore.export import make_room, write_lines, write_optuna, write_tensorboard
from yaqd.cli.ml.explore.plot import draw_exploration
from yaqd.cli.ml.explore.watch import band, page
from yaqd.policies.explore.facts import Action, TrialState, Why
from yaqd.policies.explore.metric import Metric
from yaqd.policies.explore.promise import reach_of
from yaqd.policies.explore.wording import worded


def curve(last: float, epochs: int) -> tuple[float, ...]:
    return tuple(last * (1 - 0.8**epoch) for epoch in range(1, epochs + 1))


def view(**changes: object) -> ExplorationView:
    trials = (
        TrialView(
            0, {"rate": 0.1, "act": "relu"}, TrialState.RUNNING, curve(0.9, 9), 9.0, Why.WORTH_MOST, 0.1, 0.01, 0
        ),
        TrialView(1, {"rate": 0.2, "act": "tanh"}, TrialState.PARKED, curve(0.4, 5), 5.0, Why.WORTH_LESS, 0.001, 0.1),
        TrialView(2, {"rate": 0.3, "act": "relu"}, TrialState.ENDED, (0.1, math.nan), 2.0, Why.DONE, 2, 2),
        TrialView(3, {"rate": 0.4, "act": "relu"}, TrialState.ENDED, (), 1.0, Why.FAILED, 0, 20, failure="no data"),
        TrialView(4, {"rate": 0.5, "act": "relu"}, TrialState.RUNNING, (), 0.0, Why.NEXT, math.nan, math.nan, 1),
        TrialView(5, {}, TrialState.FRESH),
    )
    made = ExplorationView(
        name="digits",
        metric_name="accuracy",
        metric=Metric(),
        target=0.85,
        kill=0.12,
        epochs=20,
        slots=2,
        max_time_s=0.0,
        policy="index",
        generator="random",
        level="",
        boundary=10,
        now_s=20.0,
        is_over=False,
        trials=tuple(replace(trial, begun=1) if trial.params else trial for trial in trials),
        application="application_1_0001",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_rows_come_with_chances_and_the_most_interesting_first() -> None:
    rows = table.rows(view())
    assert [row.trial.number for row in rows] == [0, 4, 1, 2, 3]
    first = rows[0]
    assert first.chance is not None and first.chance > 0.5 and first.is_promising
    assert first.expected_s is not None and 0 < first.expected_s < 20
    assert first.why == "its slot is worth most here: 360/h, elsewhere 36/h"
    assert rows[2].chance is not None and rows[2].chance < first.chance
    assert rows[3].chance is None and rows[4].why == "no data"


def test_one_that_breaks_a_limit_at_the_target_promises_nothing() -> None:
    breaks = TrialView(0, {"rate": 0.1}, TrialState.PARKED, (*curve(0.5, 9), 0.9, 0.9), 9.0, begun=1, broken=(10, 11))
    keeps = TrialView(1, {"rate": 0.2}, TrialState.PARKED, curve(0.9, 5), 5.0, begun=1)
    rows = table.rows(view(trials=(breaks, keeps)))
    assert [row.trial.number for row in rows] == [1, 0]
    assert rows[1].chance is not None and rows[1].chance < 0.1


def test_one_that_ended_early_is_shown_with_all_its_epochs_afterwards() -> None:
    report = {"do": "report", "number": 0, "value": 0.2, "now": 1.0, "took_s": 1.0, "metrics": {}, "reached": False}
    records = [
        {"do": "header", "started": 0.0, "terms": {"limits": [], "epochs": 20}},
        {**report, "verdict": [int(Action.CONTINUE), int(Why.EARLY), 1, 3, 0.0]},
        {"do": "ended", "number": 0, "why": int(Why.LEFT), "error": ""},
    ]
    ((found,), _) = past_of(records)
    assert worded(Why.LEFT, found.value, found.bound) == "its program ended by itself after 1 of 20 epochs"


def test_json_has_no_number_that_json_has_not() -> None:
    made = json.loads(json.dumps(table.everything(view()), allow_nan=False))
    assert [trial["trial"] for trial in made["trials"]] == [0, 4, 1, 2, 3]
    assert made["trials"][3]["values"] == [0.1, None]
    assert (made["best_trial"], made["started"], made["epochs"]) == (0, 5, 16)


def test_a_table_says_it_all(capsys: pytest.CaptureFixture[str]) -> None:
    made = view()
    table.print_rows(made, table.rows(made), 3, "--all shows them")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:4] == ["0", "RUNNING*", "0", "9"]
    assert lines[-1] == "... and 2 more: --all shows them"
    table.print_rows(made, table.rows(made), None, "")
    assert "FAILED" in capsys.readouterr().out


def test_a_page_tells_promising_from_opportunistic_slots() -> None:
    text = page(view())
    assert "slots 2: 1 promising, 1 opportunistic, 0 unused; 1 wait, 2 ended, 5 begun" in text
    assert "trial 0:" in text and "•" in text and "epoch 20: " in text
    ended = page(view(is_over=True, ending="trial 0 reached the target", winner=0))
    assert ended.endswith("20.0s so far; ended: trial 0 reached the target") and "REACHED" in ended
    assert page(view(trials=()))  # nothing has begun


def test_a_band_is_in_the_users_orientation_and_bounds() -> None:
    bounded = view(metric=Metric("min", 0.0, 4.0), target=0.5, kill=3.9)
    values = [4 - 3.6 * (1 - 0.8**epoch) for epoch in range(1, 10)]
    ((_, low, high),) = band(bounded, values, reach_of(""), [20])
    assert 0.0 <= low < high <= 4.0 and high < values[-1] + 0.5


def test_a_picture_has_each_curve(tmp_path: Path) -> None:
    assert draw_exploration(view(), tmp_path / "a.svg") == 3
    assert draw_exploration(view(is_over=True, winner=0, target=None), tmp_path / "b.png") == 3
    assert (tmp_path / "b.png").stat().st_size > 5000
    with pytest.raises(CommandError, match="no trial has reported accuracy yet"):
        draw_exploration(view(trials=()), tmp_path / "c.svg")


@pytest.mark.slow
def test_files_for_other_tools(tmp_path: Path) -> None:
    assert write_lines(view(), tmp_path / "a.jsonl") == 5
    assert [json.loads(line)["trial"] for line in (tmp_path / "a.jsonl").read_text().splitlines()] == [0, 1, 2, 3, 4]
    assert write_tensorboard(view(), tmp_path / "runs") == 3
    optuna = pytest.importorskip("optuna")
    assert write_optuna(view(), tmp_path / "s.db") == 3
    study = optuna.load_study(study_name="digits", storage=f"sqlite:///{tmp_path / 's.db'}")
    assert [trial.state.name for trial in study.trials] == ["PRUNED", "PRUNED", "COMPLETE"]
    assert study.trials[0].params == {"rate": 0.1, "act": "relu"}
    assert study.trials[0].intermediate_values[8] == pytest.approx(curve(0.9, 9)[-1])
    assert study.direction.name == "MAXIMIZE"


def test_the_best_is_the_winner_or_keeps_the_limits() -> None:
    made = view(limits=("memory <= 5",))
    trials = (replace(made.trials[0], broken=tuple(range(1, 10))), *made.trials[1:])
    kept = replace(made, trials=trials)
    assert (table.summary(kept)["best_trial"], table.summary(kept)["limits"]) == (1, ["memory <= 5"])
    assert table.headline(kept).startswith("accuracy: best 0.268928 (trial 1), target 0.85; 5 begun, 16 epochs")
    won = replace(kept, winner=2, is_over=True)
    assert table.summary(won)["best_trial"] == 2 and "trial 2:" in page(won)
    assert table.everything(kept)["trials"][0]["breaks_limit"] == list(range(1, 10))
    none = replace(kept, trials=trials[:1])
    assert table.best_fields(none) == {"best": "no report keeps memory <= 5"}
    assert table.best_fields(view(trials=())) == {}


def test_tables_and_json_have_the_same_words_for_states() -> None:
    made = view(winner=0, is_over=True)
    rows = table.rows(made)
    states = {row.trial.number: table.as_json(made, row)["state"] for row in rows}
    assert states == {0: "REACHED", 1: "WAITING", 2: "ENDED", 3: "FAILED", 4: "RUNNING"}
    assert [table.state_text(made, row).rstrip("*") for row in rows] == [states[row.trial.number] for row in rows]


def test_among_trials_without_a_chance_the_best_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    trials = tuple(
        TrialView(number, {"rate": 0.1}, TrialState.PARKED, (0.1, 0.1 + 0.01 * number) * 5, 9.0, begun=1)
        for number in range(3)
    )
    made = view(trials=trials, target=1.0, epochs=11)
    rows = table.rows(made)
    assert [row.chance for row in rows] == [0.0] * 3
    assert [row.trial.number for row in rows] == [2, 1, 0]
    table.print_rows(made, rows, None, "")
    assert capsys.readouterr().out.splitlines()[1].split()[5:7] == ["0.000", "-"]


def test_what_an_export_left_is_refused_or_replaced(tmp_path: Path) -> None:
    lines, runs = tmp_path / "a.jsonl", tmp_path / "runs"
    both = ((lines, "jsonl"), (runs, "tensorboard"))
    for path, form in both:
        make_room(path, form, overwrite=False)
    write_lines(view(), lines)
    write_tensorboard(view(), runs)
    (runs / "mine").touch()
    for path, form in both:
        with pytest.raises(CommandError, match="there already; --overwrite writes over it"):
            make_room(path, form, overwrite=False)
    for path, form in both:
        make_room(path, form, overwrite=True)
    assert not lines.exists() and [path.name for path in runs.iterdir()] == ["mine"]


@pytest.mark.parametrize("form", ("jsonl", "optuna", "tensorboard"))
def test_an_export_never_removes_what_no_export_wrote(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "mine"
    kept = [folder / "trial-0001" / "model.pt", folder / "trial-2-notes" / "notes"]
    for path in kept:
        path.parent.mkdir(parents=True)
        path.touch()
    with pytest.raises(CommandError, match=r"a folder; the format|trial-0001 has model\.pt, which no export wrote"):
        make_room(folder, form, overwrite=True)
    assert all(path.exists() for path in kept)
    if form == "tensorboard":
        run = kept[0].rename(kept[0].with_name("events.out.tfevents.1")).parent
        make_room(folder, form, overwrite=True)
        assert not run.exists() and kept[1].exists()


def test_an_export_says_which_folder_is_missing(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"--output .*a\.jsonl: there is no folder .*none"):
        make_room(tmp_path / "none" / "a.jsonl", "jsonl", overwrite=False)
    with pytest.raises(CommandError, match="a folder; the format jsonl needs a file"):
        make_room(Path("/"), "jsonl", overwrite=False)


@pytest.mark.slow
def test_a_study_has_the_spaces_own_ranges(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    space = 'rate = { type = "float", low = 1e-3, high = 1.0, log = true }\nact = ["relu", "tanh", "selu"]\n'
    made = view(space=space, started=1000.0)
    trials = (replace(made.trials[0], begun_s=1.5, reported_s=9.5), *made.trials[1:])
    write_optuna(replace(made, trials=trials), tmp_path / "what?timeout=1")
    (tmp_path / "what?timeout=1").rename(tmp_path / "s.db")
    study = optuna.load_study(study_name="digits", storage=f"sqlite:///{tmp_path / 's.db'}")
    first = study.trials[0]
    assert (first.datetime_start.timestamp(), first.datetime_complete.timestamp()) == (1001.5, 1009.5)
    assert first.distributions == {
        "rate": optuna.distributions.FloatDistribution(1e-3, 1.0, log=True),
        "act": optuna.distributions.CategoricalDistribution(["relu", "tanh", "selu"]),
    }
