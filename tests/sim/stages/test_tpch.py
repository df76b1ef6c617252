"""Recorded graphs are pickles: a process of its own reads arrays, and refuses everything else without running it."""

import io
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sim.stages.tpch_files import STAGE, write_graph
from yaqd.sim.workloads.drawn import WorkloadError
from yaqd.sim.workloads.graphs import FIRST, FRESH, REST
from yaqd.sim.workloads.tpch import find_tpch, tpch


def test_durations_are_cleaned_as_the_public_simulator_does(tmp_path: Path) -> None:
    graphs = tpch(write_graph(tmp_path, {0: STAGE, 1: STAGE}))
    assert (len(graphs), graphs.tasks.tolist(), graphs.waits.tolist()) == (1, [3, 3], [0, 1])

    def durations(point: int, kind: int) -> list[float]:
        at, many = int(graphs.wave_at[0, point, kind]), int(graphs.wave_len[0, point, kind])
        return [float(one) for one in graphs.values[at : at + many]]

    assert [durations(0, kind) for kind in (FRESH, FIRST, REST)] == [[0.3], [0.2], [0.1]]
    # nothing fresh is recorded with ten: the first wave, and a warm-up
    assert [durations(1, kind) for kind in (FRESH, FIRST, REST)] == [[0.15], [0.15], [0.09, 0.08]]
    assert graphs.is_cold[0, :2, FRESH].tolist() == [False, True]
    # more executors than were recorded
    assert durations(7, REST) == durations(1, REST)
    assert graphs.mean_s[0] == pytest.approx(np.mean([0.3, 0.2, 0.15, 0.1, 0.09, 0.08]))


class _Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("is_inside", [True, False])
def test_a_pickle_that_names_anything_else_is_refused_and_not_run(tmp_path: Path, is_inside: bool) -> None:
    mark = tmp_path / "ran"
    folder = write_graph(tmp_path / "data", {0: _Evil(mark) if is_inside else STAGE})
    if not is_inside:
        path = folder / "2g" / "task_duration_1.npy"
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, {"descr": "|O", "fortran_order": False, "shape": ()})
        path.write_bytes(head.getvalue() + pickle.dumps(_Evil(mark)))
    with pytest.raises(WorkloadError, match=r"names posix\.mkdir"):
        tpch(folder)
    assert not mark.exists()


_EMPTY: dict[str, Any] = {"fresh_durations": {}, "first_wave": {}, "rest_wave": {}}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({0: _EMPTY, 1: _EMPTY}, "no wave"),
        ({0: STAGE | {"rest_wave": {5: [float("nan")]}}, 1: STAGE}, "no number"),
        ({0: STAGE | {"first_wave": {5: [-1.0]}}, 1: STAGE}, "negative"),
        ({0: {}, 1: STAGE}, "fresh_durations"),
        ({0: STAGE}, "edges name stages"),
        ([1, 2], "task_duration_1.npy"),
    ],
)
def test_what_is_no_graph_is_refused_with_the_file(tmp_path: Path, found: Any, said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        tpch(write_graph(tmp_path, found))


def test_a_truncated_file_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    folder = write_graph(tmp_path / "data", {0: STAGE, 1: STAGE})
    path = folder / "2g" / "task_duration_1.npy"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(WorkloadError, match="no array can be read"):
        tpch(folder)
    (tmp_path / "none").mkdir()
    with pytest.raises(WorkloadError, match=r"no task_duration"):
        tpch(tmp_path / "none")


def test_a_circle_is_refused_where_jobs_are_laid_out(tmp_path: Path) -> None:
    from yaqd.policies.clotho.heuristics import Fair
    from yaqd.sim.stages.world import run_load
    from yaqd.sim.workloads.graphs import batch

    graphs = tpch(write_graph(tmp_path, {0: STAGE, 1: STAGE}, ((0, 1), (1, 0))))
    with pytest.raises(ValueError, match="circle"):
        run_load(batch(graphs, 1, jobs=1), Fair())


def test_the_variable_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YAQD_TPCH", str(tmp_path / "absent"))
    with pytest.raises(WorkloadError, match="YAQD_TPCH"):
        find_tpch()
    monkeypatch.setenv("YAQD_TPCH", str(tmp_path))
    assert find_tpch() == tmp_path
