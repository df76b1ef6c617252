"""The benchmark that tries what else could be decided."""

import json

import pytest

pytest.importorskip("numba")

from benchmarks.clotho import ahead
from yaqd.config.stage_weights import shipped_weights
from yaqd.policies.clotho.shapes import AT, HEAD
from yaqd.policies.clotho.weights import unpack
from yaqd.policies.curves.samples import Floats
from yaqd.sim.stages.compiled.run import learned_run
from yaqd.sim.stages.rules import Rules
from yaqd.sim.workloads.graphs import draw_graphs, draw_load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
_GRAPHS = draw_graphs(3, 8)


def _weights(has_graph: bool) -> Floats:
    weights = unpack(shipped_weights()).flat()
    for name in ("score_out", "limit_out"):
        weights[AT[name] : AT[name] + HEAD] = 0.05 if has_graph else 0.0
    return weights


@pytest.mark.parametrize("has_graph", [True, False])
def test_with_nothing_to_try_it_is_the_run_itself(monkeypatch: pytest.MonkeyPatch, has_graph: bool) -> None:
    load, rules, weights = draw_load(_GRAPHS, 5, 6, 8.0), Rules(12), _weights(has_graph)
    run = ahead.Ahead(load, weights, rules)
    with monkeypatch.context() as patch:
        patch.setattr(ahead, "_JOBS_TRIED", 0)
        assert run.mean_s() == learned_run(load, weights, rules).mean_s
    assert (run.decisions, run.changed) == (0, 0)


@pytest.mark.parametrize("has_graph", [True, False])
def test_what_was_chosen_is_found_to_cost_what_the_run_comes_to(
    monkeypatch: pytest.MonkeyPatch, has_graph: bool
) -> None:
    load, rules, weights = draw_load(_GRAPHS, 5, 6, 8.0), Rules(12), _weights(has_graph)
    cost, costs = ahead.Ahead._cost, list[float]()

    def chosen(self: ahead.Ahead, source: int, stage: int, many: int) -> float:
        costs.append(cost(self, source, stage, many))
        return 0.0 if len(costs) % 2 else 1.0

    # of two ways the first, which the weights have chosen, is taken each time
    monkeypatch.setattr(ahead.Ahead, "_others", lambda self, source, idle, stage: [(stage, 1)])
    monkeypatch.setattr(ahead.Ahead, "_cost", chosen)
    mean_s = learned_run(load, weights, rules).mean_s
    assert ahead.Ahead(load, weights, rules).mean_s() == mean_s
    assert len(costs) > 50 and set(costs[::2]) == {mean_s}


@pytest.mark.parametrize("has_graph", [True, False])
def test_what_is_tried_leaves_no_trace_and_is_never_worse(has_graph: bool) -> None:
    load, rules, weights = draw_load(_GRAPHS, 5, 6, 8.0), Rules(12), _weights(has_graph)
    run = ahead.Ahead(load, weights, rules)
    found = run.mean_s()
    assert run.decisions >= run.changed > 0
    assert found < learned_run(load, weights, rules).mean_s
    again = ahead.Ahead(load, weights, rules)
    assert (again.mean_s(), again.decisions, again.changed) == (found, run.decisions, run.changed)


def test_a_row_is_printed_with_what_was_gained(capsys: pytest.CaptureFixture[str]) -> None:
    assert ahead.main(["--graphs", "drawn", "--only", "paper", "--sequences", "2", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["row"] == "paper" and row["ahead_s"] < row["shipped_s"] and row["lower"] > 0.0
    assert str(ahead.Gained(**row)).startswith("paper, 2 sequences: shipped ")
