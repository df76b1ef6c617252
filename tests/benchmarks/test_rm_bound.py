"""The driver of `benchmarks.rm_bound`, small: our ResourceManager in this process, with and without queues at nodes."""

from pathlib import Path

import pytest

from benchmarks.rm_bound.sides import SIDES
from benchmarks.rm_bound.windows import Load, measure, measure_costs
from benchmarks.rm_load import our_manager

_LOAD = Load(nodes=20, slots=2, task_s=0.2, heartbeat_s=0.5, masters=2, poll_s=0.2, warm_s=1.5, window_s=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["off", "always"])
async def test_nodes_run_what_masters_are_given(tmp_path: Path, name: str) -> None:
    side = SIDES[name]
    with our_manager(tmp_path, 0, side.site) as manager:
        found = await measure(manager, side, _LOAD, tmp_path)
    assert 0.2 < found.used <= 1.0
    # what ended had begun, and each task takes its time
    assert found.ended * _LOAD.task_s == pytest.approx(found.used * 40 * found.seconds, rel=0.15)
    assert (found.waiting > 0) is (name == "always")
    assert found.beats >= 20 * found.seconds
    assert found.refused == 0


@pytest.mark.slow
async def test_costs_are_small_and_positive(tmp_path: Path) -> None:
    side = SIDES["off"]
    # Processor time is read in ticks of 10 ms, so that many must pass with heartbeats alone.
    quick = {"yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 20}
    with our_manager(tmp_path, 0, {**side.site, **quick}) as manager:
        costs, _ = await measure_costs(manager, side, _LOAD, tmp_path)
    assert 0 < costs.beat_s < 0.01
    assert -0.001 < costs.call_s < 0.01  # processor time is read in ticks of 10 ms
    assert costs.container_s < 0.02
