"""`yaq ml local`, `record` and `plot`: results, files, exit codes, and the one line that each mistake gets."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from yaqd.cli.app import yaq
from yaqd.cli.exits import BAD_INPUT, FAILED
from yaqd.cli.ml import here
from yaqd.ml.arrays import from_bytes

_PROGRAM = """
import sys
from yaqd.ml import report
loss = 8.0
for i in range(int(sys.argv[1]) if sys.argv[1:] else 6):
    print("training")
    if report(iteration=i, loss=loss, accuracy=i / 10).stop:
        break
    loss /= 2
"""
_CLASS = """
from yaqd.ml import IterativeJob, Param
class Train(IterativeJob):
    rate = Param(float, default=0.5, help="step size")
    partitions, iterations = 3, 6
    def load(self, partition): return partition
    def initial(self): return {"w": 8.0}
    def step(self, state, partition): return [partition.index, *partition.data]
    def combine(self, state, partials): return {"w": state["w"] * self.rate, "got": partials}, state["w"]
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(_PROGRAM)
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(yaq, ["ml", *map(str, words)], env={"HADOOP_CONF_DIR": None})


def failed(code: int, *words: object) -> str:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    return result.stderr.removeprefix("yaq: ").rstrip("\n")


def test_a_program_is_run_and_its_curve_written(script: Path, tmp_path: Path) -> None:
    result = run("local", script, "--curve", tmp_path / "c.jsonl", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found.pop("seconds") >= 0
    assert found == {"state": "SUCCEEDED", "reports": 6, "iteration": 5, "first_loss": 8.0, "last_loss": 0.25}
    lines = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert [line["loss"] for line in lines] == [8, 4, 2, 1, 0.5, 0.25]
    assert lines[3]["metrics"] == {"accuracy": 0.3}


def test_a_program_gets_its_arguments_and_is_told_to_stop(script: Path) -> None:
    def iteration(*words: object) -> int:
        return int(json.loads(run("local", script, "--json", *words).stdout)["iteration"])

    assert iteration("--", "3") == 2
    assert iteration("--iterations", "4") == 4
    assert iteration("--target", "1.5") == 3


_COUNTED = {
    "program": """
from yaqd.ml import report
done, steps = 0, 0
while not report(iteration=done, loss=1 / (1 + done)).stop:
    steps += 1
    done += 1
print(f"{steps} steps")
""",
    "class": _CLASS.replace(
        "    def combine",
        """    def done(self, state): print(f"{self.steps} steps")
    steps = 0
    def combine""",
    ).replace('return {"w": state', 'self.steps += 1; return {"w": state'),
    "run": _CLASS
    + """
    def run(self, evaluate):
        from yaqd.ml import report
        state = {"w": 8.0}
        for done in range(1, 100):
            evaluate(state)
            if report(iteration=done, loss=1 / done).stop:
                break
        print(f"{done} steps")
        return state
""",
}


def test_numbers_of_any_size_and_metrics_of_any_name_are_written(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from yaqd.ml import report\n"
        "report(-5, float('nan'), **{'': 1, 'a\\nb': float('inf'), '\\ud800': 3})\n"
        "report(10**400, 0.5)\n"
    )
    curve = tmp_path / "c.jsonl"
    result = run("local", tmp_path / "train.py", "--curve", curve, "--tensorboard", tmp_path / "tb")
    assert result.exit_code == 0, result.output
    assert result.stderr == "yaq: the loss of iteration -5 is nan: such reports are left out\n"
    assert [json.loads(line)["loss"] for line in curve.read_text().splitlines()] == [None, 0.5]
    assert run("plot", curve, "--output", tmp_path / "a.png").exit_code == 0


@pytest.mark.parametrize("name", _COUNTED)
def test_so_many_iterations_are_done(name: str, tmp_path: Path) -> None:
    """A report before the first one is none."""
    script = tmp_path / "train.py"
    script.write_text(_COUNTED[name])
    result = run("local", script, "--iterations", "4", "--json")
    assert json.loads(result.stdout)["iteration"] == 4
    assert "4 steps" in result.stderr


def test_a_program_runs_as_it_does_by_itself(tmp_path: Path) -> None:
    """With its folder to import from, its name as the first argument, and as the main module."""
    (tmp_path / "beside.py").write_text("answer = 42\n")
    script = tmp_path / "main.py"
    script.write_text("import beside, sys; print(beside.answer, __name__, sys.argv)\n")
    alone = subprocess.run((sys.executable, script, "a", "-b"), capture_output=True, text=True, check=True).stdout
    before = sys.argv, sys.path[:]
    result = run("local", script, "--quiet", "--", "a", "-b")
    assert result.stdout == alone == f"42 __main__ {[str(script), 'a', '-b']}\n"
    assert "reported nothing" in result.stderr
    assert (sys.argv, sys.path) == before


def test_a_class_is_trained_over_its_partitions(script: Path, tmp_path: Path) -> None:
    script.write_text(_CLASS)
    files = [tmp_path / name for name in "abcd"]
    for file in files:
        file.touch()
    words = (
        "--data",
        f"file://{files[0]},{files[1]}",
        "--data",
        f"{files[2]},{files[3]}",
        "--model",
        tmp_path / "model",
    )
    found = json.loads(run("local", script, "--json", *words, "-D", "rate=0.25").stdout)
    a, b, c, d = map(str, files)
    assert from_bytes((tmp_path / "model").read_bytes())["got"] == [[0, a, d], [1, b], [2, c]]
    assert found["reports"] == 6 and found["last_loss"] == 8 * 0.25**5
    assert len(found["sha256"]) == 64
    assert "no such file or folder" in failed(BAD_INPUT, "local", script, "--data", tmp_path / "none")


def test_a_folder_or_a_pattern_stands_for_its_files(script: Path, tmp_path: Path) -> None:
    script.write_text(_CLASS)
    folder = tmp_path / "rows"
    folder.mkdir()
    for given in (folder, tmp_path / "row?", f"file://{folder}"):
        assert f"--data {given}: the folder has no files" in failed(BAD_INPUT, "local", script, "--data", given)
    for name in ("b", "a", "d.csv", "_SUCCESS"):
        (folder / name).touch()
    a, b, d = (str(folder / name) for name in ("a", "b", "d.csv"))
    for given in (folder, f"{folder}/*", f"file://{folder}/*"):
        assert run("local", script, "--quiet", "--data", given, "--model", tmp_path / "model").exit_code == 0
        assert from_bytes((tmp_path / "model").read_bytes())["got"] == [[0, a], [1, b], [2, d]]
    assert "no such file or folder" in failed(BAD_INPUT, "local", script, "--data", f"{folder}/*.npy")


def test_the_last_state_is_handed_over_and_written(script: Path, tmp_path: Path) -> None:
    script.write_text(_CLASS + "    def done(self, state): print('done with', state['w'])\n")
    result = run("local", script, "--quiet", "--model", tmp_path / "model")
    assert (result.exit_code, result.stdout) == (0, "done with 0.125\n")
    assert from_bytes((tmp_path / "model").read_bytes())["w"] == 0.125


def test_what_is_wrong_with_losses_is_said_once(script: Path) -> None:
    script.write_text(
        "from yaqd.ml import report\n"
        "for i, loss in ((0, 1.0), (1, float('nan')), (2, float('inf')), (1, 0.5), (0, 0.4), (5, None), (6, None)):\n"
        "    report(i, loss)\n"
    )
    result = run("local", script, "--quiet")
    assert result.exit_code == 0 and result.stdout == ""
    assert result.stderr.splitlines() == [
        "yaq: the loss of iteration 1 is nan: such reports are left out",
        "yaq: iteration 1 follows 2: numbers must rise; others are left out",
        "yaq: no loss from iteration 5 on: such a job is not scheduled by quality",
    ]


def test_a_program_that_fails_is_one_line_and_its_own_traceback(script: Path) -> None:
    script.write_text(_PROGRAM + "raise ValueError('no data')\n")
    said = run("local", script, "--quiet")
    assert said.exit_code == FAILED
    lines = said.stderr.splitlines()
    assert lines[0] == f"yaq: {script} failed after iteration 5: ValueError: no data"
    assert "yaqd/cli" not in said.stderr and str(script) in lines[2]
    script.write_text("import sys; sys.exit(7)\n")
    assert failed(FAILED, "local", script) == f"{script} ended before its first report: code 7"
    script.write_text("from yaqd.ml import report; report(iteration=0, loss='low')\n")
    assert "report(loss='low'): loss must be a number" in failed(FAILED, "local", script)


def test_a_step_that_raises_is_named_with_partition_and_iteration(script: Path) -> None:
    broken = "def step(self, state, partition): return 1 / (state['w'] - 2 + partition.index - 1)\n"
    script.write_text(_CLASS + "    " + broken)
    said = failed(FAILED, "local", script)
    assert said.splitlines()[0] == (
        "Train.step() on partition 1 in iteration 3 failed: ZeroDivisionError: float division by zero"
    )


def test_bad_input_is_one_line(script: Path, tmp_path: Path) -> None:
    assert "no training script at" in failed(BAD_INPUT, "local", tmp_path / "none.py")
    for command in ("local", "submit"):
        for given in (("--seed", 3), ("--data", script)):
            said = failed(BAD_INPUT, command, script, *given)
            assert (
                said == f"{script} is a program: --data, --seed and --model are of classes; hand it ARGUMENTS after --"
            )
    script.write_text(_CLASS)
    assert "Train takes no ARGUMENTS" in failed(BAD_INPUT, "local", script, "--", "x")
    assert "option rate='x' is no float" in failed(BAD_INPUT, "local", script, "-D", "rate=x")
    assert "Train has no option rat: did you mean rate?" in failed(BAD_INPUT, "local", script, "-D", "rat=1")
    script.write_text(_CLASS.replace("def combine", "def join"))
    assert "has no combine(self, state, partials): define it" in failed(BAD_INPUT, "local", script)
    other = tmp_path / "x"
    other.write_text("{}\n")
    assert "line 1 is no report" in failed(BAD_INPUT, "plot", other, "--output", tmp_path / "a.png")
    other.write_bytes(b"\x89PNG\r\n")
    assert failed(BAD_INPUT, "plot", other, "--output", tmp_path / "a.png").endswith("x: no curve: it is not UTF-8")
    assert "name a file that ends in .png or .svg" in failed(BAD_INPUT, "plot", other, "--output", tmp_path / "a.pdf")
    other = other.rename(tmp_path / "x.json")
    assert "x.json is no curve file" in failed(BAD_INPUT, "plot", other, "--output", tmp_path / "a.png")
    assert "--only nope: without SCRIPT, one of kmeans" in failed(
        BAD_INPUT, "record", "--only", "nope", "--output", tmp_path / "c.json"
    )
    assert "--held-out: without SCRIPT" in failed(BAD_INPUT, "record", other, "--held-out", "--output", "c.json")


def test_event_files_are_tensorboards(script: Path, tmp_path: Path) -> None:
    assert run("local", script, "--quiet", "--tensorboard", tmp_path / "tb").exit_code == 0
    [events] = (tmp_path / "tb").iterdir()
    from tensorboardX.proto.event_pb2 import Event

    data, found = events.read_bytes(), []
    while data:  # TFRecord: length, its checksum, the record, its checksum
        length = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + length])
        found += [(event.step, value.tag, value.simple_value) for value in event.summary.value]
        data = data[16 + length :]
    assert [each for each in found if each[1] == "loss"] == [(i, "loss", 8 / 2**i) for i in range(6)]


def test_curves_are_recorded_appended_and_drawn(script: Path, tmp_path: Path) -> None:
    curves = tmp_path / "mine.json"
    assert run("record", script, "--output", curves, "--iterations", 5, "--quiet").exit_code == 0
    script.write_text(_CLASS)
    words = ("--append", "--name", "halving", "--class", "superlinear", "-D", "rate=0.5", "--seed", 3)
    assert run("record", script, "--output", curves, "--iterations", 5, *words).exit_code == 0
    first, second = json.loads(curves.read_text())["curves"]
    assert first == {"algorithm": "train", "class": "sublinear", "config": "", "losses": [8, 4, 2, 1, 0.5]}
    assert second == {**first, "algorithm": "halving", "class": "superlinear", "config": "rate=0.5 seed=3"}
    for name in ("a.png", "a.svg"):
        assert run("plot", curves, "--output", tmp_path / name, "--normalized").exit_code == 0
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert "<!-- halving rate=0.5 seed=3 -->" in (tmp_path / "a.svg").read_text()
    assert list(tmp_path.glob(".*")) == []


def test_a_file_that_holds_no_curves_is_said_before_anything_trains(script: Path, tmp_path: Path) -> None:
    script.write_text("open(__file__ + '.trained', 'w')\n" + _PROGRAM)
    other = tmp_path / "notes.json"
    for content in (b"{}", b"notes", b"\xff"):
        other.write_bytes(content)
        assert "notes.json is no curve file" in failed(BAD_INPUT, "record", script, "--append", "--output", other)
        assert other.read_bytes() == content
    assert not Path(f"{script}.trained").exists()


def test_a_job_that_ends_early_keeps_its_last_loss(script: Path, tmp_path: Path) -> None:
    words = ("record", script, "--output", tmp_path / "c.json", "--iterations", 8, "--json")
    assert json.loads(run(*words).stdout) == {"output": str(tmp_path / "c.json"), "curves": 1, "recorded": 1}
    [curve] = json.loads((tmp_path / "c.json").read_text())["curves"]
    assert curve["losses"] == [8, 4, 2, 1, 0.5, 0.25, 0.25, 0.25]


def test_losses_that_grow_are_drawn_as_growing(tmp_path: Path) -> None:
    from yaqd.cli.ml.charts import chart, spark
    from yaqd.cli.ml.drawing import PlottedCurve

    def normalized(*losses: float) -> list[float]:
        return [loss for _, loss in PlottedCurve("", list(enumerate(losses))).normalized().losses]

    assert normalized(1, 3, 5) == [1, 1.5, 2]
    assert normalized(5, 1, 3) == [1, 0, 0.5]
    assert normalized(1e308, -1e308) == [1, 0] and normalized(2, 2) == [1, 1]
    assert spark([-1e308, 1e308], 2) == "▁█"
    assert [line.count("•") for line in chart([(0, 1e308), (1, -1e308)], 8, 4)[:4]] == [1, 0, 0, 1]
    for name, losses in {"huge": [1e308, -1e308] * 20, "explodes": [10.0**i for i in range(300)]}.items():
        lines = [json.dumps({"iteration": i, "loss": loss}) for i, loss in enumerate(losses)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
        for words in ((), ("--normalized",)):
            result = run("plot", tmp_path / f"{name}.jsonl", "--output", tmp_path / "a.png", *words)
            assert result.exit_code == 0, result.output


def test_one_curve_is_drawn_with_its_prediction(script: Path, tmp_path: Path) -> None:
    from yaqd.cli.ml.forecast import forecast

    points = [(i, 1 / (i + 1) + 3) for i in range(60)]
    found = forecast(points[:40], 10)
    assert found is not None and found.iterations == tuple(range(39, 50))
    assert [loss for _, loss in points[39:50]] == pytest.approx(found.losses, abs=0.001)
    assert found.off[0] == 0 and list(found.off) == sorted(found.off) and 0 < found.off[-1] < 0.2
    assert forecast(points[:4], 10) is None
    assert run("local", script, "--quiet", "--curve", tmp_path / "c.jsonl").exit_code == 0
    assert run("plot", tmp_path / "c.jsonl", "--output", tmp_path / "a.svg").exit_code == 0
    assert "<!-- 9 of 10 predictions -->" in (tmp_path / "a.svg").read_text()
    assert "nothing.jsonl: no such file" in failed(BAD_INPUT, "plot", "nothing.jsonl", "--output", "a.png")


@pytest.mark.parametrize("number, iterations", ((0, 50), (1, 40), (2, 50)))
def test_the_programs_of_the_docs_learn(number: int, iterations: int, script: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/ml.md").read_text()
    script.write_text(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[number])
    result = run("local", script, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["iteration"] == iterations and found["last_loss"] < 0.5 * found["first_loss"]


@pytest.mark.slow
def test_hashes_are_those_of_a_cluster(script: Path) -> None:
    """`yaq` by itself, in an environment that asks for no seed, or for any."""
    script.write_text("print(hash('partition'), list({'a', 'b', 'c', 'd'}))\n")
    said = set()
    for seed in ({}, {"PYTHONHASHSEED": "random"}):
        command = (sys.executable, "-m", "yaqd.cli", "ml", "local", script, "--quiet")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"} | seed
        said.add(subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout)
    assert len(said) == 1


def test_a_program_that_reports_without_end_is_kept_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "POINTS_MAX", 1000)
    channel = here.CurveKeeper()
    for iteration in range(5000):
        channel.report(iteration, 1 / (iteration + 1), None, {})
    assert 500 <= len(channel.points) <= 1000
    assert channel.reports == 5000
    assert (channel.points[0].iteration, channel.points[-1].iteration) == (0, 4999)
