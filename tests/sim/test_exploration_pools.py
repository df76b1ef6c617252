"""Pools of recorded configurations: read as they were published, drawn as they are described."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sim.small_taskset import write_taskset
from yaqd.policies.curves.reach import REACH, LibraryReach
from yaqd.sim.experiments.exploring import LOST_S, ExploreCase, ExploreDrawn, missing_pool, run_exploring
from yaqd.sim.workloads import WorkloadError
from yaqd.sim.workloads.exploration import (
    CIFAR_EPOCHS,
    CIFAR_ROWS,
    CIFAR_TARGET,
    CIFAR_WINNERS,
    cifar,
    draw_cifar,
    find_taskset,
    ranks,
    taskset,
)


def test_a_taskset_is_read_as_its_issue_says(tmp_path: Path) -> None:
    losses: list[Any] = [0.72, 0.36, float("nan"), 2.0, -1.0, None]
    (tmp_path / "one.json").write_text(json.dumps([{"hp": {"x": 1}, "valid": {"loss": losses}}] * 2))
    (found,) = taskset(tmp_path)
    assert found.values[0].tolist() == pytest.approx([0.0, 0.5, 0.0, 0.0, 1.0, 0.0])
    assert (found.name, len(found), found.epochs) == ("one", 2, 6)


def test_the_target_is_the_maximum_of_the_row_with_the_rank(tmp_path: Path) -> None:
    write_taskset(tmp_path / "one.json")
    (found,) = taskset(tmp_path)
    best = np.sort(found.values.max(axis=1))
    assert found.target(1) == best[-1]
    assert found.target(5) == best[-5]
    assert found.target(1000) == best[0]


def test_epochs_take_a_minute_but_for_a_tenth(tmp_path: Path) -> None:
    write_taskset(tmp_path / "one.json", rows=2000)
    (found,) = taskset(tmp_path)
    assert np.median(found.epoch_s) == pytest.approx(60.0, rel=0.02)
    assert np.log(found.epoch_s).std() == pytest.approx(0.1, rel=0.1)


def test_hyperparameters_are_ranks_in_the_order_of_their_names(tmp_path: Path) -> None:
    write_taskset(tmp_path / "one.json")
    (found,) = taskset(tmp_path)
    assert found.params[:, 0].tolist() == pytest.approx((np.arange(30) / 29).tolist())
    assert ranks(np.array([[1e-8], [1.0], [1e-3]])).ravel().tolist() == [0.0, 1.0, 0.5]


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", '[{"hp": {}, "valid": {"loss": []}}]', '[{"hp": {"x": "y"}}]'])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(WorkloadError, match=r"bad\.json"):
        taskset(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YAQD_TASKSET", str(tmp_path / "none"))
    with pytest.raises(WorkloadError, match="none: no such folder"):
        find_taskset()
    assert "none: no such folder" in str(missing_pool([ExploreCase("default", ExploreDrawn(), "default")]))
    assert missing_pool([ExploreCase("default", ExploreDrawn("cifar"), "default")]) is None
    monkeypatch.setenv("YAQD_TASKSET", str(tmp_path))
    assert find_taskset() == tmp_path
    with pytest.raises(ValueError, match=r"no \*\.json in it"):
        run_exploring(ExploreCase("default", ExploreDrawn(), "default"), 1)


def test_drawn_sets_are_what_they_are_said_to_be() -> None:
    sets = [draw_cifar(seed) for seed in range(100, 140)]
    values = np.concatenate([one.values for one in sets])
    assert values.shape == (40 * CIFAR_ROWS, CIFAR_EPOCHS)
    last = values[:, -1]
    assert np.mean(last < 0.13) == pytest.approx(0.32 + 0.18 * 2 / 11, abs=0.03)
    assert np.mean(last > 0.73) == pytest.approx(0.065, abs=0.02)
    times = np.concatenate([one.epoch_s for one in sets])
    assert np.log(times / 60).std() == pytest.approx(0.25, rel=0.05)
    assert np.array_equal(draw_cifar(3).values, draw_cifar(3).values)
    assert not np.array_equal(draw_cifar(3).values, draw_cifar(4).values)


def test_what_ends_high_rises_slowly_where_there_is_overtaking() -> None:
    def early(overtaking: bool) -> tuple[float, float]:
        values = np.concatenate([draw_cifar(seed, overtaking).values for seed in range(20)])
        last, at_ten = values[:, -10:].mean(axis=1), values[:, 9]
        part = (at_ten - 0.1) / (last - 0.1)
        return float(np.median(part[last > 0.7])), float(np.median(part[(last > 0.35) & (last < 0.45)]))

    high, low = early(True)
    assert high < 0.6 * low
    high, low = early(False)
    assert high == pytest.approx(low, abs=0.1)


def test_sets_have_as_many_winners_as_may_be() -> None:
    for one in cifar(10):
        assert int((one.values.max(axis=1) >= CIFAR_TARGET).sum()) in CIFAR_WINNERS
    assert cifar(2, False)[0].name.startswith("cifar-plain-")


def test_a_case_says_times_spread_and_what_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for at in range(2):
        write_taskset(tmp_path / f"{at}.json", seed=at)
    monkeypatch.setenv("YAQD_TASKSET", str(tmp_path))
    drawn = ExploreDrawn(slots=2, rank=3, orders=4)
    numbers, times = run_exploring(ExploreCase("default", drawn, "default"), 1)
    hours = np.array(times).reshape(2, 4) / 3600
    assert numbers["hit_h"] == pytest.approx(float(np.sqrt(hours.mean(axis=1).prod())))
    assert numbers["hit_median_h"] == pytest.approx(float(np.sqrt(np.median(hours, axis=1).prod())))
    assert numbers["hit_mean_h"] == pytest.approx(float(hours.mean()))
    assert numbers["spread_h"] == pytest.approx(float(np.ptp(hours)))
    assert numbers["order_spread_h"] == pytest.approx(float(np.sqrt(np.ptp(hours, axis=1).prod())))
    assert numbers["lost"] == 0
    ours, _ = run_exploring(ExploreCase("index", drawn, "index", kill=0.05), 1)
    assert ours["lost"] == 0
    assert ours["hit_h"] < numbers["hit_h"]


def test_a_drawn_pool_that_ends_without_the_target_counts_sixty_hours() -> None:
    """With 0.4 * 1.5 below the best, Bandit ends what starts late."""
    drawn = ExploreDrawn("cifar", orders=2, sets=3)
    numbers, times = run_exploring(ExploreCase("bandit", drawn, "bandit", boundary=1), 1)
    assert times.count(LOST_S) == numbers["lost"] > 0


def test_a_case_may_ask_any_predictor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_taskset(tmp_path / "0.json")
    monkeypatch.setenv("YAQD_TASKSET", str(tmp_path))
    monkeypatch.setitem(REACH._foreign, "coarse", LibraryReach(shapes=5))
    drawn = ExploreDrawn(slots=2, rank=3, orders=2)
    ours, theirs = (
        run_exploring(ExploreCase("index", drawn, "index", predictor=name), 1)[0] for name in ("library", "coarse")
    )
    assert ours["lost"] == theirs["lost"] == 0 and ours != theirs
    with pytest.raises(ValueError, match="known: library, walkers"):
        run_exploring(ExploreCase("index", drawn, "index", predictor="nobody"), 1)
