"""The simulator's benchmark counts what happened and finishes its load."""

import pytest

from benchmarks import simulator


@pytest.mark.parametrize("name", sorted(simulator.systems()))
def test_all_tasks_of_a_small_cluster_are_done_and_counted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "TASKS_A_NODE", {"yarn": 40, "yaq-c": 40})
    seconds, result = simulator.measure(5, simulator.systems()[name])
    assert result.tasks == 200
    assert seconds > 0
    assert simulator.events(result) > 3 * result.tasks
