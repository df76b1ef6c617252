"""Random awkward jobs give the same answers on the cluster, in one process and on stock Hadoop Streaming."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.differential.diff_case import Case, Outcome
from tests.differential.diff_compare import differences
from tests.differential.diff_generate import make_case
from tests.differential.diff_programs import MAPS, Piece, map_alone
from yaqd.mapreduce import Counters, parse_params
from yaqd.mapreduce.job import TaskContext

_HERE = Path(__file__).parent
_SECONDS = 60


def test_a_case_is_the_same_whichever_others_are_drawn() -> None:
    cases = [make_case(3, number) for number in range(40)]
    assert make_case(3, 17) == cases[17]
    assert len({repr(case.program) for case in cases}) > 30


@pytest.mark.parametrize("piece", [piece for piece in MAPS if not piece.fails], ids=lambda piece: piece.name)
def test_no_map_yields_more_than_in_proportion_to_its_line(
    piece: Piece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line may have millions of words."""

    def size_of(words: int) -> int:
        folder = tmp_path / str(words)
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.delenv("DIFF_LAST", raising=False)
        namespace: dict[str, Any] = {"__name__": "generated"}
        exec(map_alone(piece), namespace)
        task = TaskContext(phase="map", index=0)
        task.input_path = "file:///long"
        pairs = namespace["Generated"](parse_params(namespace["Generated"], {}), Counters(), task).map(0, "w " * words)
        return sum(len(repr(pair)) for pair in pairs)

    assert size_of(4000) <= 6 * size_of(1000)


def test_a_difference_of_one_byte_one_record_or_one_word_is_told() -> None:
    case = next(case for case in (make_case(1, n) for n in range(50)) if case.reduces and not case.is_streaming)
    case.program.parts = []
    case.program.is_exact = True
    right = Outcome(True, {"part-r-00000": b"a\t1\nb\t2\n"}, {"TaskCounter": {"MAP_INPUT_RECORDS": 2}})
    assert differences(case, right, right, "cluster") == []
    other = Outcome(True, {"part-r-00000": b"a\t1\nb\t3\n"}, {"TaskCounter": {"MAP_INPUT_RECORDS": 3}})
    told = differences(case, right, other, "cluster")
    assert len(told) == 2 and "line 2" in told[0] and "MAP_INPUT_RECORDS" in told[1]
    assert _fails(case, right, Outcome(True, {}, right.counters))
    assert _fails(case, right, Outcome(False, exit_code=1))
    assert _fails(case, Outcome(False, exit_code=1, messages=["late"]), Outcome(False, exit_code=1, messages=["no"]))


def _fails(case: Case, expected: Outcome, found: Outcome) -> bool:
    return bool(differences(case, expected, found, "local"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_random_jobs_have_the_right_answer_everywhere() -> None:
    command = [sys.executable, str(_HERE), "--seed", "18", "--cases", "71", "--seconds", str(_SECONDS), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert run.returncode == 0, run.stderr[-20_000:]
    report = json.loads(run.stdout)
    assert report["cases"] >= 20 and report["compared"]["cluster"] >= 20 and report["compared"]["local"] >= 10


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.full
@pytest.mark.timeout(600)
def test_stock_daemons_give_the_same_answers_and_launch_as_many_tasks() -> None:
    """One case of lines with two maps and a reduce, one of typed bytes."""
    cases = ["--case", "1", "--case", "4"]
    command = [sys.executable, str(_HERE), "--seed", "41", *cases, "--stock-daemons", "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert run.returncode == 0, run.stderr[-20_000:]
    assert json.loads(run.stdout)["compared"] == {"cluster": 2, "stock daemons": 2}
