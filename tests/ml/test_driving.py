"""Data-parallel jobs: loading their class, calling their methods, the line that each mistake gets."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ml.ml_channel import Watched
from yaqd.cli.ml.here import CurveKeeper, train_class
from yaqd.mapreduce import JobError
from yaqd.ml import IterativeJob, Partition, set_channel
from yaqd.ml.arrays import from_bytes, to_bytes
from yaqd.ml.driving import TrainingError, call_load, call_step, drive
from yaqd.ml.loading import is_iterative, load_iterative


class Halving(IterativeJob):
    """A state that halves; partitions 0, 1, 2."""

    partitions = 3
    iterations = 5

    def load(self, partition: Partition) -> Any:
        return float(partition.index)

    def initial(self) -> Any:
        return np.array([8.0])

    def step(self, state: Any, partition: Any) -> Any:
        return {"half": state / 2, "of": partition}

    def combine(self, state: Any, partials: Any) -> tuple[Any, float]:
        assert [partial["of"] for partial in partials] == [0.0, 1.0, 2.0]
        return partials[0]["half"], float(state[0])


@pytest.fixture(autouse=True)
def no_channel() -> Iterator[None]:
    set_channel(None)
    yield
    set_channel(None)


def steps(job: IterativeJob) -> Callable[[bytes], list[bytes]]:
    data = [call_load(job, Partition.of(index, job.partitions)) for index in range(job.partitions)]
    iteration = 0

    def evaluate(frame: bytes) -> list[bytes]:
        nonlocal iteration
        iteration += 1
        return [call_step(job, frame, index, part, iteration) for index, part in enumerate(data)]

    return evaluate


def test_a_job_is_driven_to_its_last_iteration() -> None:
    channel = Watched()
    set_channel(channel)
    job = Halving()
    assert from_bytes(drive(job, steps(job))) == [0.25]
    assert channel.losses == {1: 8.0, 2: 4.0, 3: 2.0, 4: 1.0, 5: 0.5}


def test_stop_ends_it_and_a_checkpoint_goes_on_to_the_same_bytes() -> None:
    whole = drive(Halving(), steps(Halving()))
    channel = Watched(stop_at=2)
    set_channel(channel)
    assert from_bytes(drive(Halving(), steps(Halving()))) == [2.0]
    after = Watched(saved=channel.saved)
    set_channel(after)
    assert drive(Halving(), steps(Halving())) == whole
    assert list(after.losses) == [3, 4, 5]


def test_a_run_is_given_the_partials_in_order() -> None:
    class Optimized(Halving):
        def run(self, evaluate: Any) -> Any:
            state = self.initial()
            for _ in range(self.limit):
                partials = evaluate(state)
                assert [partial["of"] for partial in partials] == [0.0, 1.0, 2.0]
                state = partials[0]["half"]
            return state

    job = Optimized(iterations=2)
    assert from_bytes(drive(job, steps(job))) == [2.0]


def _failing(method: str, answer: Callable[..., Any]) -> TrainingError:
    job = type("Train", (Halving,), {method: answer})()
    with pytest.raises(TrainingError) as failed:
        drive(job, steps(job))
    assert "\n" not in str(failed.value)
    return failed.value


def test_a_step_that_raises_is_named_with_partition_and_iteration() -> None:
    def step(self: Any, state: Any, partition: Any) -> Any:
        if state[0] == 2 and partition == 1:
            raise ValueError("singular matrix")
        return Halving.step(self, state, partition)

    error = _failing("step", step)
    assert str(error) == "Train.step() on partition 1 in iteration 3 failed: ValueError: singular matrix"
    assert "singular matrix" in error.detail and "yaqd/ml/" not in error.detail


def test_other_mistakes_are_named_too() -> None:
    def fails(*arguments: Any) -> Any:
        raise KeyError("x")

    assert str(_failing("load", fails)) == "Train.load() on partition 0 failed: KeyError: 'x'"
    assert str(_failing("initial", fails)) == "Train.initial() failed: KeyError: 'x'"
    assert str(_failing("combine", fails)) == "Train.combine() in iteration 1 failed: KeyError: 'x'"
    assert "return (state, loss)" in str(_failing("combine", lambda self, state, partials: 3))
    assert "gave the loss 1j: return a number" in str(_failing("combine", lambda self, s, p: (s, 1j)))
    assert "gave the loss of the type int: return a number" in str(
        _failing("combine", lambda self, s, p: (s, 10**5000))
    )
    assert "gave the loss 'abc': return a number" in str(_failing("combine", lambda self, s, p: (s, "abc")))
    assert "Train.step() on partition 0 in iteration 1 gave a set" in str(_failing("step", lambda self, s, p: {1}))
    assert "Train.combine() in iteration 1 gave a set" in str(_failing("combine", lambda self, s, p: ({1}, 1.0)))


def test_an_error_of_many_lines_is_one() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def fails(error: Exception) -> Callable[..., Any]:
        def step(self: Any, state: Any, partition: Any) -> Any:
            raise error

        return step

    said = str(_failing("step", fails(ValueError("shapes\n  (3,)\n  (4,)"))))
    assert said == "Train.step() on partition 0 in iteration 1 failed: ValueError: shapes (3,) (4,)"
    assert str(_failing("step", fails(Silent()))).endswith("failed: Silent")


def test_a_state_must_not_be_changed_in_place() -> None:
    def step(self: Any, state: Any, partition: Any) -> Any:
        state += 1
        return state

    assert "read-only" in str(_failing("step", step))


def test_partitions_have_their_files_and_seeds() -> None:
    parts = [Partition.of(index, 3, ("a", "b", "c", "d"), seed=7) for index in range(3)]
    assert [part.data for part in parts] == [("a", "d"), ("b",), ("c",)]
    assert len({part.seed for part in parts}) == 3
    assert parts[0] == Partition.of(0, 3, ("a", "b", "c", "d"), seed=7) != Partition.of(0, 3, ("a", "b", "c", "d"))


_GOOD = """
from yaqd.ml import IterativeJob, Param
class Train(IterativeJob):
    rate = Param(float, default=0.1, help="step size")
    def load(self, partition): return 1
    def step(self, state, partition): return 1
    def initial(self): return 1
    def combine(self, state, partials): return state, 0.0
"""


def test_a_script_is_a_class_or_a_program(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_GOOD)
    assert is_iterative(script) and load_iterative(script).__name__ == "Train"
    script.write_text("raise SystemExit('is not run')")
    assert not is_iterative(script)
    with pytest.raises(JobError, match="has no job class Train: it has no subclass"):
        is_iterative(f"{script}:Train")
    script.write_text("from elsewhere import Train")
    assert is_iterative(f"{script}:Train")
    script.write_text("def (")
    with pytest.raises(JobError, match=r"train.py is no Python: "):
        is_iterative(script)
    with pytest.raises(JobError, match="no training script at"):
        is_iterative(tmp_path / "other.py")


@pytest.mark.parametrize(
    "old, new, said",
    (
        ("def load(self, partition)", "def lode(self, partition)", r"Train has no load\(self, partition\): define it$"),
        ("def combine", "def join", r"has no combine\(self, state, partials\): define it, or run\(evaluate\)"),
        (
            "state, partition)",
            "state)",
            r"step\(self, state\) cannot be called: define it as step\(self, state, part",
        ),
        ("def initial", "async def initial", "leave out its async"),
        ("rate = Param", "limit = Param", "cannot be an option"),
        ("rate =", "partitions = 0; rate =", "partitions is 0: give a number from 1"),
        ("(IterativeJob)", "", "has no job class: define a subclass of yaqd.ml.IterativeJob"),
    ),
)
def test_mistakes_in_a_class_are_found_before_it_runs(tmp_path: Path, old: str, new: str, said: str) -> None:
    script = tmp_path / "train.py"
    assert old in _GOOD
    script.write_text(_GOOD.replace(old, new))
    with pytest.raises(JobError, match=said) as found:
        load_iterative(script)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"rows": [rows]}, lambda rows: (1, (rows,))])
def test_what_a_step_changes_in_its_data_is_refused_not_lost_with_its_worker(wrap: Callable[[Any], Any]) -> None:
    class Changing(Halving):
        def load(self, partition: Partition) -> Any:
            return wrap(np.ones(3))

        def step(self, state: Any, partition: Any) -> Any:
            rows = partition
            while not isinstance(rows, np.ndarray):
                rows = rows["rows"] if isinstance(rows, dict) else rows[-1]
            rows += 1.0
            return rows

    job = Changing({}, seed=0, data=(), iterations=0)
    data = call_load(job, Partition.of(1, 3, (), 0))
    with pytest.raises(TrainingError, match=r"step\(\) on partition 1 in iteration 2 failed: ValueError: .*read-only"):
        call_step(job, to_bytes(np.zeros(1)), 1, data, 2)


def test_a_step_has_the_state_for_itself_also_where_one_process_computes_all() -> None:
    class Listing(IterativeJob):
        partitions = 4

        def load(self, partition: Partition) -> int:
            return partition.index

        def initial(self) -> Any:
            return {"seen": []}

        def step(self, state: Any, partition: int) -> int:
            state["seen"].append(partition)
            return len(state["seen"])

        def combine(self, state: Any, partials: Sequence[int]) -> tuple[Any, float]:
            return {"seen": [*state["seen"], *partials]}, 0.0

    job = Listing({}, seed=0, data=(), iterations=2)
    assert from_bytes(train_class(job, CurveKeeper())) == {"seen": [1] * 4 + [5] * 4}
