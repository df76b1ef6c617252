"""`yaq sim line`: from where on queues at nodes pay, with costs that were measured."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from yaqd.cli.app import yaq
from yaqd.cli.exits import BAD_INPUT
from yaqd.sim.line.cells import LineFound
from yaqd.sim.line.costs import SIDES, CostsError, read, shipped
from yaqd.sim.line.report import LinePoint, line


def _run(*words: str) -> Result:
    return CliRunner().invoke(yaq, ["sim", "line", *words])


@pytest.mark.slow
def test_it_prints_a_table_and_where_queues_pay_and_writes_both(tmp_path: Path) -> None:
    words = ("--nodes", "100", "--nodes", "400", "--task", "1", "--heartbeat", "1", "--quick", "--out", str(tmp_path))
    result = _run(*words)
    assert result.exit_code == 0, result.output
    assert "heartbeat 1 s, tasks of 1 s: auto pays everywhere" in result.stdout  # masters poll every second
    found = json.loads((tmp_path / "line.json").read_text())
    assert [point["nodes"] for point in found["points"]] == [10, 40]
    assert all(0.5 < point["ways"]["off"]["used"] < point["ways"]["auto"]["used"] <= 1.0 for point in found["points"])
    assert (tmp_path / "line.svg").stat().st_size > 1000
    assert json.loads(_run(*words, "--json").stdout)["points"] == found["points"]


def _point(nodes: int, auto: float) -> LinePoint:
    return LinePoint(1.0, 5.0, nodes, 1.0, {"off": LineFound(0.8, 0.5, 0.1), "auto": LineFound(auto, 0.5, 0.1)})


@pytest.mark.parametrize(
    ("auto", "where"),
    [
        ((0.8, 0.8, 0.8), "nowhere"),
        ((0.8, 0.83, 0.9), "from 500 nodes on"),
        ((0.9, 0.9, 0.9), "everywhere"),
        ((0.8, 0.9, 0.8), "at 500 nodes"),
    ],
)
def test_the_line_says_where_queues_pay(auto: tuple[float, ...], where: str) -> None:
    points = [_point(nodes, used) for nodes, used in zip((100, 500, 1000), auto, strict=True)]
    assert list(line(points, "auto")) == [f"heartbeat 1 s, tasks of 5 s: auto pays {where}"]


def test_costs_come_with_the_code_and_say_how_they_were_measured() -> None:
    costs = shipped()
    assert set(costs.sides) == set(SIDES)
    assert "benchmarks.rm_bound --costs" in costs.source
    assert all(1e-5 < side.beat_s < 1e-2 for side in costs.sides.values())


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "JSONDecodeError"),
        ("[]", "TypeError"),
        ('{"sides": {"off": {}}}', "beat_s"),
        ('{"sides": {"off": {"beat_s": -1, "call_s": 0, "container_s": 0, "queued_s": 0}}}', "0 to 10 s"),
        ('{"sides": {"off": {"beat_s": 0, "call_s": 0, "container_s": 0, "queued_s": 0}}}', "beat_s is 0"),
        ('{"sides": {"off": {"beat_s": NaN, "call_s": 0, "container_s": 0, "queued_s": 0}}}', "0 to 10 s"),
    ],
)
def test_a_file_that_has_no_costs_is_refused_in_a_line(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "costs.json"
    file.write_text(text)
    with pytest.raises(CostsError, match=what):
        read(file)
    result = _run("--costs", str(file))
    assert result.exit_code == BAD_INPUT
    assert what in result.stderr and len(result.stderr.splitlines()) == 1
