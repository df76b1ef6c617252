"""`yaq sim`: what it prints, writes and refuses."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from yaqd.cli.app import yaq
from yaqd.cli.exits import BAD_INPUT, FAILED
from yaqd.cli.simulation import screen as sim_screen
from yaqd.cli.simulation.systems import comparison, parse_system
from yaqd.policies.guard import survive
from yaqd.sim.experiments import EXPERIMENTS, run_experiment
from yaqd.sim.experiments.runner import PolicyFailed
from yaqd.sim.workloads import Arrivals, Drawn


def run(*words: str) -> Result:
    return CliRunner().invoke(yaq, list(words))


def test_list_names_everything_that_can_be_run() -> None:
    text = run("sim", "list").stdout
    assert all(name in text for name in (*EXPERIMENTS, "hive-ms", "heavy-tailed", "yarn-opportunistic", "starve_s"))
    assert set(json.loads(run("sim", "list", "--json").stdout)["experiments"]) == set(EXPERIMENTS)


@pytest.mark.slow
def test_compare_prints_and_writes(tmp_path: Path) -> None:
    words = ("--workload", "5-sec", "--jobs", "3", "--nodes", "4", "--seeds", "2", "--system", "yarn")
    result = run("sim", "compare", *words, "--system", "yarn,out_of_turn=on", "--out", str(tmp_path / "new"))
    assert result.exit_code == 0, result.output
    assert "median yarn,out_of_turn=on" in result.stdout
    assert "heartbeat 1 s" in result.stdout
    (stock,) = (line for line in result.stdout.splitlines() if line.endswith("decisions at heartbeats: yarn"))
    assert "out of turn off" in stock
    (prompt,) = (line for line in result.stdout.splitlines() if line.endswith(": yarn,out_of_turn=on"))
    assert "out of turn on" in prompt
    assert "3 jobs, Poisson arrivals at 0.8 of the slots" in result.stdout
    written = json.loads((tmp_path / "new" / "compare.json").read_text())
    assert len(written["runs"]) == 4
    assert (tmp_path / "new" / "compare-jct.png").stat().st_size > 1000
    assert json.loads(run("sim", "compare", *words, "--json").stdout)["experiment"] == "compare"


def test_replay_runs_a_recorded_history(tmp_path: Path) -> None:
    job = {"type": "job", "name": "words", "user": "eve", "started_ms": 1000, "vertices": {"map": 1}}
    attempt = {"type": "attempt", "vertex": "map", "task": 0, "state": "SUCCEEDED"}
    lines = [job, {**attempt, "started_ms": 2000, "finished_ms": 9000}]
    (tmp_path / "job_1_0001.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    shape = ("--nodes", "2", "--slots", "2", "--seeds", "1", "--system", "yarn", "--json")
    result = run("sim", "replay", str(tmp_path), *shape)
    assert result.exit_code == 0, result.output
    (ran,) = json.loads(result.stdout)["runs"]
    assert 7.0 < ran["metrics"]["sub_median"] < 7.0 + 3.0 + 2.0 + 1.0 + 0.1


@pytest.mark.parametrize(
    ("node", "words", "size", "note"),
    [
        ("n1:4", (), "1 nodes x 2 slots", "--nodes 1 and --slots 2 from the history: so many nodes ran tasks and"),
        ("n1:4", ("--slots", "3"), "1 nodes x 3 slots", "--nodes 1 from the history: so many nodes ran tasks; the"),
        (None, ("--nodes", "2"), "2 nodes x 4 slots", "--slots 4 assumed: the history does not say where"),
        (None, (), "80 nodes x 4 slots", "--nodes 80 and --slots 4 assumed: the history does not say where"),
        (None, ("--nodes", "2", "--slots", "2"), "2 nodes x 2 slots", ""),
    ],
)
def test_replay_is_on_the_cluster_of_the_history(
    node: str | None, words: tuple[str, ...], size: str, note: str, tmp_path: Path
) -> None:
    job = {"type": "job", "name": "words", "user": "eve", "started_ms": 1000, "vertices": {"map": 2}}
    attempt = {"type": "attempt", "vertex": "map", "state": "SUCCEEDED", "node": node, "finished_ms": 9000}
    lines = [job, *({**attempt, "task": task, "started_ms": 2000 + task} for task in (0, 1))]
    (tmp_path / "job_1_0001.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = ("sim", "replay", str(tmp_path), "--seeds", "1", "--system", "yarn", *words)
    said = json.loads(run(*asked, "--json").stdout)
    assert any(line.startswith(size) for line in said["conditions"])
    assert [text[: len(note)] for text in said["notes"]] == ([note] if note else [])
    text = run(*asked).stdout
    assert size in text and note in text


def test_a_cluster_in_trouble_is_slower_and_says_what_troubles_it() -> None:
    words = ("--workload", "5-sec", "--jobs", "4", "--nodes", "4", "--seeds", "1", "--system", "yarn", "--json")
    trouble = ("--noise", "0.4", "--speeds", "1,0.5", "--sizes", "1,1,2", "--crowding", "1", "--fail", "0@10+30")
    calm, troubled = (json.loads(run("sim", "compare", *words, *more).stdout) for more in ((), trouble))
    assert troubled["runs"][0]["metrics"]["makespan"] > 1.2 * calm["runs"][0]["metrics"]["makespan"]
    said = " ".join(troubled["conditions"])
    assert "noise 0.4, speeds 1/0.5, sizes 1/1/2, crowding 1, 1 failures" in said


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("sparrow,late_binding=off", "late_binding", False),
        ("yaq-c,default_estimate_s=2.5", "default_estimate_s", 2.5),
        ("yaq-c,default_estimate_s=none", "default_estimate_s", None),
        ("yarn,job_order=srjf,job_starve_s=7", "job_starve_s", 7.0),
        ("yaq-c,at_asks=off", "at_asks", False),
    ],
)
def test_parameters_reach_the_system(text: str, field: str, value: object) -> None:
    assert getattr(parse_system(text), field) == value


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("run", "yaq-orderin"), "did you mean yaq-ordering"),
        (("run", "zzz"), "`yaq sim list` shows them"),
        (("compare", "--workload", "hive-ms", "--system", "yarnx"), "there is no system 'yarnx'"),
        (("compare", "--workload", "hive-ms", "--system", "yarn,bound=3"), "none of yarn's parameters"),
        (
            ("compare", "--workload", "hive-ms", "--system", "yaq-c,rebalance=on"),
            "Nor does a cluster even out what yaq-c",
        ),
        (("compare", "--workload", "hive-ms", "--system", "yaq-c,rebalance_gain_s=5"), "yaq.distributed.rebalance.*"),
        (
            ("compare", "--workload", "hive-ms", "--system", "yaq-d,rebalance=off,rebalance_most=3"),
            "rebalance_most changes nothing with rebalance=off",
        ),
        (("compare", "--workload", "hive-ms", "--system", "yaq-c,bound=-3"), "must not be negative"),
        (("compare", "--workload", "hive-ms", "--system", "yaq-c,bound=0"), "1 to 1000000, or none for any number"),
        (("compare", "--workload", "hive-ms", "--system", "yaq-d,bound=2000000"), "1 to 1000000, or none"),
        (("compare", "--workload", "hive-ms", "--system", "mercury,bound=no"), "'no', not a whole number or none"),
        (("compare", "--workload", "hive-ms", "--system", "yaq-c,bound_target=2"), "it is a part, 0 to 1"),
        (("compare", "--workload", "hive-ms", "--system", "yaq-c,bound_target=1"), "no bound keeps"),
        (("compare", "--workload", "hive-ms", "--system", "yaq-d,place=best"), "place policy 'best': there is none"),
        (("compare", "--workload", "hive-ms", "--system", "yaq-c,order=sfjf"), "there is none; known: srjf, lrtf"),
        (("compare", "--workload", "hive-ms", "--system", "yaq-c,order"), "order needs a value: order=..."),
        (("compare", "--workload", "hive-ms", "--system", "yaq-c,bound=2,bound=3"), "bound twice"),
        (("compare", "--workload", "hive-ms", "--system", "yarn,job_order=sfjf"), "there are fifo, fair, srjf"),
        (("compare", "--workload", "hive-ms", "--system", "yaq-d,order_scope=us"), "there are all, queue, user"),
        (("compare", "--workload", "hive-ms", "--system", "yaq-c,starve_s=nan"), "must not be negative"),
        (("compare", "--workload", "hive-ms", "--system", "yaq-c,bound=few"), "not a whole number"),
        (("compare", "--workload", "hive-ms", "--system", "yarn,out_of_turn=perhaps"), "not true or false"),
        (("compare", "--workload", "hive-ms", "--system", "yaq-c,default_estimate_s=few"), "not a number or none"),
        (("compare", "--workload", "hive-ms", "--system", "yaq-c,default_estimate_s=inf"), "without an end it is none"),
        (("compare", "--workload", "hive-ms", "--system", "yarn", "--system", "yarn"), "the same one twice"),
        (("compare", "--workload", "/no/such", "--system", "yarn"), "nor a file"),
        (("compare", "--workload", "5-sec", "--fail", "3", "--system", "yarn"), "must be NODE@SECONDS"),
        (("compare", "--workload", "5-sec", "--nodes", "3", "--fail", "3@1", "--system", "yarn"), "nodes are 0 to 2"),
        (("compare", "--workload", "5-sec", "--speeds", "1,nan", "--system", "yarn"), "must be numbers from"),
        (("run", "yaq-c", "--sizes", "1,0"), "must be numbers from"),
        (("compare", "--workload", "5-sec", "--noise", "nan", "--system", "yarn"), "finite"),
        (("replay", "/no/such", "--system", "yarn"), "No such file"),
    ],
)
def test_bad_input_is_one_clear_line(words: tuple[str, ...], why: str) -> None:
    result = run("sim", *words)
    assert result.exit_code == BAD_INPUT, result.output
    assert why in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("folder", ["/proc/x", "/proc/self", "/dev/null/x"])
@pytest.mark.parametrize("command", ["run", "compare", "replay"])
def test_a_folder_that_takes_no_files_is_refused_before_anything_runs(
    folder: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def computed(*_: object, **__: object) -> None:
        pytest.fail("it ran first")

    monkeypatch.setattr(sim_screen, "run_experiment", computed)
    attempt = {"type": "attempt", "vertex": "map", "task": 0, "state": "SUCCEEDED", "started_ms": 2, "finished_ms": 9}
    lines = [{"type": "job", "name": "w", "user": "eve", "started_ms": 1, "vertices": {"map": 1}}, attempt]
    (tmp_path / "job_1_0001.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = {
        "run": ("yaq-ordering", "--quick"),
        "compare": ("--workload", "5-sec", "--system", "yarn"),
        "replay": (str(tmp_path), "--system", "yarn"),
    }[command]
    result = run("sim", command, *words, "--out", folder)
    assert result.exit_code == BAD_INPUT, result.output
    assert result.stderr.startswith(f"yaq: --out {folder}: ") and len(result.stderr.splitlines()) == 1


def test_without_matplotlib_the_numbers_are_there_and_the_reason_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    words = ("--workload", "5-sec", "--jobs", "1", "--nodes", "4", "--seeds", "1", "--system", "yarn")
    result = run("sim", "compare", *words, "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "pip install 'yaqd[plots]'" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["compare.json"]


#: the file of faulty orders, line by line
FAULTY = (
    "import sys",
    "class Odd(Exception):",
    "    def __init__(self, a, b): super().__init__(f'{a} {b}')",
    "def value(task, job): return float('soon')",
    "def zero(task, job): return 1 / 0",
    "def leaves(task, job): sys.exit(3)",
    "def odd(task, job): raise Odd('so', 'odd')",
    "def text(task, job): return 'x'",
)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file of a package, found by its entry points, whose orders raise."""
    folder = tmp_path_factory.mktemp("faulty")
    file = folder / "sim_faulty.py"
    file.write_text("\n".join(FAULTY))
    info = folder / "sim_faulty-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sim-faulty\nVersion: 1\n")
    names = ("value", "zero", "leaves", "odd", "text")
    lines = "\n".join(f"sim-{name} = sim_faulty:{name}" for name in names)
    (info / "entry_points.txt").write_text(f"[yaqd.order]\n{lines}\n")
    survive(None)  # a daemon that another test ran in this process goes on for as long as that does
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield file


@pytest.mark.parametrize(
    ("name", "why", "where"),
    [
        ("value", "ValueError: could not convert string to float: 'soon'", "line 4, in value"),
        ("zero", "ZeroDivisionError: division by zero", "line 5, in zero"),
        ("leaves", "SystemExit: 3", "line 6, in leaves"),
        ("odd", "Odd: so odd", "line 7, in odd"),
        ("text", "ValueError: could not convert string to float: 'x'", "line 8, what text returned"),
    ],
)
def test_what_a_policy_of_others_raises_is_said_with_its_name_and_place(
    name: str, why: str, where: str, faulty: Path
) -> None:
    shape = ("--nodes", "2", "--slots", "2", "--seeds", "1", "--system", f"yaq-c,bound=2,order=sim-{name}")
    result = run("sim", "compare", "--workload", "5-sec", "--jobs", "4", *shape)
    said = f"order policy 'sim-{name}' (sim_faulty:{name}): {why} ({faulty}, {where})"
    assert result.stderr == f"yaq: compare: {said}, with yaq-c,bound=2,order=sim-{name}, seed 1\n"
    assert result.exit_code == FAILED


@pytest.mark.parametrize("workers", [1, 2])
def test_it_comes_through_from_worker_processes(workers: int, faulty: Path) -> None:
    drawn = Drawn("5-sec", 4, Arrivals("poisson", 0.8))
    systems = ("yaq-c,bound=2,order=sim-odd", "yaq-c,bound=3,order=sim-odd")  # either may be the first
    experiment = comparison("compare", drawn, nodes=2, slots=2, heartbeat=1.0, polling=1.0, start=1.0, systems=systems)
    with pytest.raises(PolicyFailed, match=r"'sim-odd'.*Odd: so odd .*line 7, in odd"):
        run_experiment(experiment, (1,), workers=workers)
