"""Curve files that users name: what is read of each format, what is left out, and what is refused in one line."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from yaqd.cli.app import yaq
from yaqd.cli.exits import BAD_INPUT
from yaqd.cli.simulation import curves as curve_options
from yaqd.sim.experiments import EXPERIMENTS
from yaqd.sim.experiments.slaq import on_curves
from yaqd.sim.experiments.training import ALGORITHMS, PredictionCase, curve_errors
from yaqd.sim.training import TrainingSystem, simulate_training
from yaqd.sim.workloads import WorkloadError, curves
from yaqd.sim.workloads.curves import SHIPPED, CurveSet, read_curve_set
from yaqd.sim.workloads.training import LossCurve, TrainingDrawn, TrainingJob, draw_training

_FALLING = [1.0 / (k + 1) for k in range(21)]


def _taskset(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps([{"hp": {"rate": 0.1}, "train": {"loss": row}} for row in rows]))
    return path


def _adaptdl(folder: Path, batch: int, metrics: list[float]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"validation-{batch}.csv"
    rows = (f"{epoch}.5,{epoch},{metric},1.0,2.0" for epoch, metric in enumerate(metrics, 1))
    path.write_text("\n".join(("progress,iteration,metric,grad_sqr,grad_var", *rows)) + "\n")
    return path


def _why(path: Path | str) -> str:
    """What is complained of, without the place."""
    with pytest.raises(WorkloadError) as found:
        read_curve_set([str(path)])
    said = str(found.value)
    assert said.startswith(str(path))
    assert "\n" not in said
    return said.removeprefix(f"{path}")


def test_a_configuration_of_a_task_set_is_a_job(tmp_path: Path) -> None:
    path = _taskset(tmp_path / "LSTM.json", _FALLING)
    found = read_curve_set([str(path)])
    assert found == CurveSet(str(path), (LossCurve("LSTM", 0, "#0", tuple(_FALLING), keeps_best=True),))
    assert found.curves[0].iterations == 20


def test_what_learns_nothing_is_left_out_and_counted(tmp_path: Path) -> None:
    little = [1.0, *(0.99 - 0.0001 * k for k in range(20))]
    rising = [float(k) for k in range(21)]
    rows = (_FALLING, little, rising, [1.0, math.nan, *_FALLING], [1.0, None, *_FALLING], [2.0, 1.0], [3.0] * 21)
    path = _taskset(tmp_path / "set.json", *rows)
    found = read_curve_set([str(path)])
    assert [curve.config for curve in found.curves] == ["#0"]
    assert found.notes == (
        "1 of 7 curves taken; left out: 2 not finite, 1 with fewer than 10 losses, "
        "1 falling by less than 5 % of the most of their kind, 2 never lower than at first",
    )
    assert [curve.config for curve in read_curve_set([str(path)], 0.0).curves] == ["#0", "#1"]
    assert (
        _why(_taskset(path, rising)) == ": no curve to take: 0 of 1 curves taken; left out: 1 never lower than at first"
    )


def test_a_metric_that_rises_is_turned_and_keeps_its_changes(tmp_path: Path) -> None:
    accuracy = [0.1 * k for k in range(10)] + [0.85]
    _adaptdl(tmp_path / "net", 32, accuracy)
    (tmp_path / "net/placements.csv").write_text("placement,local_bsz\n1,2\n")
    [curve] = read_curve_set([str(tmp_path)]).curves
    assert (curve.algorithm, curve.config) == ("net", "validation-32")
    assert curve.losses == pytest.approx([0.9 - 0.1 * k for k in range(10)] + [0.05])
    assert curve.quality[-1] == 0.0


def test_a_metric_that_falls_stays_though_one_run_got_worse(tmp_path: Path) -> None:
    errors = [100.0 - 5 * k for k in range(12)]
    diverged = [60.0, 50.0, *(70.0 + k for k in range(10))]
    for batch, metrics in ((8, errors), (16, errors), (32, diverged)):
        _adaptdl(tmp_path / "speech", batch, metrics)
    _adaptdl(tmp_path / "net", 8, [-error for error in errors])
    found = read_curve_set([str(tmp_path)]).curves
    assert [curve.algorithm for curve in found] == ["net", "speech", "speech", "speech"]
    assert found[0].losses == pytest.approx([55.0 - 5 * k for k in range(12)])
    assert tuple(errors) in {curve.losses for curve in found}
    assert tuple(diverged) in {curve.losses for curve in found}
    assert found[-1].whole_fall in (10.0, 55.0)


def test_sets_are_joined_and_named(tmp_path: Path) -> None:
    recorded = tmp_path / "mine.json"
    recorded.write_text(json.dumps({"curves": [{"algorithm": "mine", "losses": [float(9 - k) for k in range(10)]}]}))
    _adaptdl(tmp_path / "net", 8, _FALLING)
    found = read_curve_set(["held-out", "nine", "nine", str(recorded), str(tmp_path / "net")])
    assert found.name == f"held-out, nine, {recorded}, {tmp_path / 'net'}"
    assert len(found.curves) == 112
    assert [curve.keeps_best for curve in found.curves[-2:]] == [False, True]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no curves of loss"),
        ("[", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"curves": ' + "[" * 100_000, "no curves of loss"),
        ("[]", "no curve to take"),
        ("[1]", "entry 0 has no list train.loss"),
        ('[{"train": []}]', "entry 0 has no list train.loss"),
        ('[{"train": {"loss": "abc"}}]', "entry 0 has no list train.loss"),
        ('[{"train": {"loss": [1, "a\\nb"]}}]', "entry 0 has the loss"),
        ('[{"train": {"loss": [true]}}]', "entry 0 has the loss 'True'"),
        (f'[{{"train": {{"loss": [1{"0" * 400}]}}}}]', "no curve to take"),
        ('{"curves": {"a": 1}}', "no curves of loss"),
        ('{"curves": [{"algorithm": "a\\nb", "losses": []}]}', "no printable texts"),
        ('{"curves": [{"algorithm": "a", "losses": "123456789012"}]}', "no curves of loss"),
        (f'{{"curves": [{{"algorithm": "a", "losses": [1{"0" * 400}]}}]}}', "no curves of loss"),
        ('{"curves": [{"algorithm": "a", "losses": [3, 2]}]}', "a  has fewer than 10 losses"),
    ],
)
def test_what_is_no_curve_file_is_refused_in_one_line(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    assert why in _why(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", ":1: no column 'metric'"),
        ("a,b\n1,2\n", ":1: no column 'metric'"),
        ("a,metric\n1,2\n1\n", ":3: 1 columns, the heading has 2; 100000 rows at most"),
        ("a,metric\n1,x\n", ":2: metric is 'x', not a number"),
        ("metric\n" + "," * 1000, ":2: 101 columns, the heading has 1; 100000 rows at most"),
        ("metric\nnan\n", ": no curve to take: 0 of 1 curves taken; left out: 1 with fewer than 10 losses"),
    ],
)
def test_what_is_no_table_of_a_metric_is_refused_with_its_line(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "validation-8.csv"
    path.write_text(text)
    assert _why(path) == why


def test_folders_and_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _why(tmp_path) == ": no curve file in it (*.json, validation-*.csv)"
    assert _why(tmp_path / "none") == ": no such file or folder"
    assert _why("/dev/null") == ": not a file"
    binary = tmp_path / "b.json"
    binary.write_bytes(b"\xff\xfe")
    assert _why(binary) == ": no text"
    path = _taskset(tmp_path / "c.json", _FALLING, _FALLING)
    for name, most, why in (
        ("CURVES_MAX", 1, "with it there are 2 curves; 1 at most"),
        ("_BYTES_MAX", 9, "bytes is more than is read (9)"),
        ("LOSSES_MAX", 9, "entry 0 has no list train.loss of at most 9 losses"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(curves, name, most)
            assert why in _why(path)
    monkeypatch.setattr(curves, "_FILES_MAX", 1)
    assert "more than 1 curve files" in _why(tmp_path)


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=14) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=20,
)
_LOSSES = st.lists(st.floats() | st.integers() | st.none(), min_size=9, max_size=14) | _ANYTHING
_FILES = st.one_of(
    _ANYTHING,
    st.lists(st.fixed_dictionaries({"train": st.fixed_dictionaries({"loss": _LOSSES}) | _ANYTHING}), max_size=3),
    st.fixed_dictionaries(
        {"curves": st.lists(st.fixed_dictionaries({"algorithm": st.text(max_size=3), "losses": _LOSSES}), max_size=3)}
    ),
)


@pytest.mark.slow
@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=_FILES, table=st.text(max_size=60), least=st.floats(0, 1))
def test_whatever_a_file_says_it_is_refused_or_can_be_trained_along(
    found: Any, table: str, least: float, tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_text(json.dumps(found))
    (tmp_path / "validation-1.csv").write_bytes(f"metric\n{table}".encode(errors="replace"))
    for name in ("x.json", "validation-1.csv"):
        try:
            taken = read_curve_set([str(tmp_path / name)], least).curves
        except WorkloadError as error:
            assert str(error).startswith(str(tmp_path / name))
            assert "\n" not in str(error)
            continue
        assert taken
        jobs = tuple(TrainingJob(0.0, curve, 1.0, 0.1, 2) for curve in taken)
        result = simulate_training(jobs, 2, TrainingSystem())
        assert all(map(math.isfinite, (*result.t90, *result.t100, *result.loss_s)))


def test_a_job_with_fewer_steps_is_as_much_work() -> None:
    """20 iterations that take five times as long as those of 100, on 2 cores and with what no core shortens."""
    drawn = TrainingDrawn(jobs=1, cores=2, mean_core_s=100.0, sigma=0.01, cap=2, fixed_s=0.5)
    short = LossCurve("a", 0, "", tuple(_FALLING))
    whole = LossCurve("a", 0, "", tuple(1.0 / (k + 1) for k in range(101)))
    [first], [second] = (draw_training(drawn, (curve,), 1) for curve in (short, whole))
    assert first.fixed_s == pytest.approx(2.5)
    assert first.work_s == pytest.approx(5 * second.work_s)
    times = [simulate_training((job,), 2, TrainingSystem("fair")).t100[0] for job in (first, second)]
    assert times[0] == pytest.approx(times[1])


def test_long_and_short_jobs_run_side_by_side() -> None:
    short = LossCurve("a", 0, "", tuple(_FALLING))
    whole = LossCurve("b", 0, "", tuple(1.0 / (k + 1) for k in range(131)))
    jobs = tuple(TrainingJob(0.0, curve, 2.0, 0.0, 2) for curve in (short, whole))
    for policy in ("fair", "finish", "slaq-total"):
        result = simulate_training(jobs, 4, TrainingSystem(policy, "perfect"))
        assert result.t100.tolist() == pytest.approx([20.0, 100.0])


@pytest.mark.parametrize(("keeps_best", "fall", "loss_s"), [(True, 10.0, 1.0), (False, 2.0, 1.0 - 4.0)])
def test_quality_is_the_best_model_so_far_where_losses_rise_again(keeps_best: bool, fall: float, loss_s: float) -> None:
    """Of its last one a job would have a loss of -4 times its whole fall, for a second."""
    curve = LossCurve("a", 0, "", (10.0, 0.0, *(8.0,) * 10), keeps_best)
    assert curve.whole_fall == fall
    result = simulate_training((TrainingJob(0.0, curve, 1.0, 0.0, 1),), 1, TrainingSystem("fair"))
    assert result.t90[0] == pytest.approx(1.0)
    assert result.loss_s[0] == pytest.approx(loss_s)


def test_a_prediction_is_held_only_to_what_was_recorded() -> None:
    line = tuple(float(50 - k) for k in range(31))
    [errors] = curve_errors((LossCurve("a", 0, "", line),), PredictionCase("ours", "mixed"), 1)
    assert errors == pytest.approx((0.0, 0.0), abs=3.0)
    assert all(map(math.isfinite, errors))


def test_an_error_is_held_to_no_loss_of_zero() -> None:
    """As of a metric that was turned: its distance from the best comes to 0."""
    halves = (*(0.9**k for k in range(30)), *(0.0,) * 71)
    [(of_fall, of_loss)] = curve_errors((LossCurve("a", 0, "", halves),), PredictionCase("ours", "mixed"), 1)
    assert of_fall <= of_loss <= 1000 * of_fall


def test_the_shipped_sets_differ_in_every_curve() -> None:
    nine, held_out = SHIPPED["nine"](), SHIPPED["held-out"]()
    assert {curve.algorithm for curve in nine} == {curve.algorithm for curve in held_out}
    assert len(nine) == len(held_out)
    assert not {curve.losses for curve in nine} & {curve.losses for curve in held_out}
    assert not {curve.config for curve in nine} & {curve.config for curve in held_out}


def test_an_experiment_takes_other_curves_and_drops_rows_of_absent_algorithms() -> None:
    found = CurveSet("mine", (LossCurve("lda", 0, "", tuple(_FALLING)),), ("one was left out",))
    made = on_curves(EXPERIMENTS["slaq-prediction"], found)
    assert [row.id for row in made.rows if "-" in row.id and row.id.endswith(ALGORITHMS)] == [
        "prediction-lda",
        "relative-lda",
    ]
    assert made.notes == ("one was left out",)
    assert all(case.conditions.endswith("curves: mine") for case in made.cases if isinstance(case, PredictionCase))
    with pytest.raises(ValueError, match="yaq-ordering trains nothing"):
        on_curves(EXPERIMENTS["yaq-ordering"], found)


@pytest.mark.slow
def test_the_command_simulates_a_users_curves(tmp_path: Path) -> None:
    path = _taskset(tmp_path / "set.json", _FALLING, [2 * loss for loss in _FALLING], [1.0] * 20)
    words = ["sim", "run", "slaq-curves", "--quick", "--curves", str(path), "--json"]
    result = CliRunner().invoke(yaq, words)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert all(row["measured"] > 0 for row in said["rows"])
    assert said["notes"] == ["2 of 3 curves taken; left out: 1 never lower than at first"]
    assert f"curves: {path}" in " ".join(said["conditions"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("slaq-curves", "--curves", "/none.json"), "--curves /none.json: no such file or folder"),
        (("slaq-curves", "--least-fall", "0"), "--least-fall: there are no --curves"),
        (("yaq-ordering", "--curves", "nine"), "--curves nine: yaq-ordering trains nothing; slaq-curves does"),
        (("all", "--curves", "held-out"), "--curves held-out: yaq-utilization trains nothing; slaq-curves does"),
    ],
)
def test_curves_that_change_nothing_are_refused(words: tuple[str, ...], why: str) -> None:
    result = CliRunner().invoke(yaq, ["sim", "run", *words])
    assert result.exit_code == BAD_INPUT
    assert why in result.stderr


def test_the_help_says_what_is_left_out() -> None:
    assert curve_options.LEAST_FALL == curves.LEAST_FALL
