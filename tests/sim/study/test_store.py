"""The store of the study: cut, damaged, in use, of other code."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sim.study.study_cells import GROUND, SEEDS, tiny
from yaqd.sim.study.design import OFF
from yaqd.sim.study.run import run_study, wanted
from yaqd.sim.study.store import FinishedTrial, StoreError, StudyStore
from yaqd.sim.study.trial import StudyTrial

TRIALS = [StudyTrial(GROUND, OFF, seed, 0.7) for seed in range(4)]


def filled(folder: Path) -> StudyStore:
    store = StudyStore(folder)
    with store.writing():
        store.started({"command": "yaq sim study", "digest": "d"})
        for trial in TRIALS:
            store.add(trial, FinishedTrial({"median": float(trial.seed)}, 0.5, "d"))
    return store


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_cut_store_loses_the_cut_line_alone(tmp_path: Path, data: st.DataObject) -> None:
    """And what is added after that stands beside what was whole."""
    store = filled(tmp_path)
    text = store.path.read_bytes()
    cut = data.draw(st.integers(0, len(text)))
    store.path.write_bytes(text[:cut])
    whole = text[:cut].count(b"\n")
    again = StudyStore(tmp_path)
    assert len(again.starts) + len(again.found) == whole
    assert list(again.found) == [trial.key for trial in TRIALS[: max(0, whole - 1)]]
    with again.writing():
        for trial in TRIALS:
            if trial.key not in again.found:
                again.add(trial, FinishedTrial({"median": float(trial.seed)}, 0.5, "d"))
    assert StudyStore(tmp_path).found == store.found
    assert store.path.read_bytes().endswith(b"\n")
    store.path.unlink()


def test_damage_before_the_last_line_is_named(tmp_path: Path) -> None:
    store = filled(tmp_path)
    lines = store.path.read_bytes().splitlines(keepends=True)
    store.path.write_bytes(b"".join([*lines[:2], lines[2][:20] + b"\n", *lines[3:]]))
    with pytest.raises(StoreError, match="line 3"):
        StudyStore(tmp_path)


def test_two_runs_do_not_write_one_store(tmp_path: Path) -> None:
    with StudyStore(tmp_path).writing(), pytest.raises(StoreError, match="another run"), StudyStore(tmp_path).writing():
        pass


def test_what_another_run_added_meanwhile_is_kept(tmp_path: Path) -> None:
    early = StudyStore(tmp_path)
    late = filled(tmp_path)
    with early.writing():
        assert early.found == late.found
    assert StudyStore(tmp_path).found == late.found


def test_results_of_other_code_are_refused(tmp_path: Path) -> None:
    store = filled(tmp_path)
    store.check("d")
    with pytest.raises(StoreError, match=r"other code \(d; this is e\)"), store.writing():
        run_study(tiny(), SEEDS, store, "e")


def test_only_what_is_missing_is_run(tmp_path: Path) -> None:
    cells = tiny()
    store = StudyStore(tmp_path)
    told: list[tuple[int, int]] = []
    with store.writing():
        first = run_study(cells, SEEDS[:1], store, "d", progress=lambda done, total, what: told.append((done, total)))
    # three saturated runs for each of three systems, and one run of each
    assert first == 9 + 3
    assert told[-1] == (12, 12)
    assert [done for done, _ in told] == list(range(1, 13))
    again = StudyStore(tmp_path)
    assert wanted(cells, SEEDS, again).later == 6
    with again.writing():
        assert run_study(cells, SEEDS, again, "d") == 6
        assert run_study(cells, SEEDS, again, "d") == 0


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_processes(tmp_path: Path) -> None:
    found = []
    for workers in (1, 2):
        store = StudyStore(tmp_path / str(workers))
        with store.writing():
            run_study(tiny(), SEEDS, store, "d", workers=workers)
        found.append(
            {
                key: {name: number for name, number in one.figures.items() if name != "rm_us_task"}
                for key, one in StudyStore(tmp_path / str(workers)).found.items()
            }
        )
    assert found[0] == found[1]
