"""The benchmark of what weights fitted to one sequence could do."""

import json

import numpy as np
import pytest

pytest.importorskip("numba")

from benchmarks.clotho import headroom
from yaqd.policies.clotho.shapes import AT, SIZE, WIDE
from yaqd.policies.curves.samples import Floats


def test_random_moves_come_down_a_slope_and_never_end_above_where_they_began() -> None:
    scores = slice(AT["score_linear"], AT["score_linear"] + WIDE)
    start = np.zeros(SIZE)
    start[scores] = 1.0

    def cost(weights: Floats) -> float:
        return float(np.abs(weights[scores]).mean())

    first, least = headroom.climb(start, cost, 300, np.random.default_rng(2))
    assert first == 1.0 and least < 0.5
    assert headroom.climb(np.zeros(SIZE), cost, 50, np.random.default_rng(2)) == (0.0, 0.0)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_row_has_fitted_weights_below_the_shipped_ones(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--graphs", "drawn", "--only", "batch", "--only", "makespan", "--sequences", "3", "--trials", "12"]
    assert headroom.main([*words, "--seconds", "0", "--json"]) == 0
    batch, makespan = json.loads(capsys.readouterr().out)
    assert (batch["row"], makespan["row"]) == ("batch", "makespan")
    for one in (batch, makespan):
        assert one["sequences"] == 2, "two run in any case"
        assert one["fitted_s"] < one["shipped_s"] and one["weighted"].startswith("weighted-fair ")
        assert one["fitted_lower"] == pytest.approx(1.0 - one["fitted_s"] / one["weighted_s"])


def test_a_mean_above_weighted_fair_sharing_is_said_to_be() -> None:
    row = headroom.Room("batch", 2, 6, "weighted-fair 0", 100.0, 110.0, 90.0, -0.1, 0.02, 0.1, 0.01)
    assert str(row) == (
        "batch, 2 sequences: weighted-fair 0 100.0 s, shipped 110.0 s (10.0% +- 2.0% above), "
        "fitted in 6 trials 90.0 s (10.0% +- 1.0% below)"
    )
