"""`report`: what reaches the channel, what is refused, and how the channel is found."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from yaqd.ml import Said, last_checkpoint, report, set_channel, threads


class Awkward:
    """A tensor of many elements, as some libraries' raise."""

    def __float__(self) -> float:
        raise RuntimeError("only one element tensors can be converted")

    def __index__(self) -> int:
        raise RuntimeError("no index")

    def __repr__(self) -> str:
        raise RuntimeError("nor this")


def kind(value: object) -> str:
    return type(value).__name__


class Kept:
    """A channel that keeps what it is told."""

    def __init__(self, said: Said) -> None:
        self.said = said
        self.heard: list[tuple[int, float | None, Mapping[str, float]]] = []
        self.wants_checkpoint = False
        self.checkpoints: list[bytes] = []

    def report(
        self,
        iteration: int,
        loss: float | None,
        checkpoint: Callable[[], bytes] | None,
        metrics: Mapping[str, float],
    ) -> Said:
        self.heard.append((iteration, loss, metrics))
        if self.wants_checkpoint and checkpoint is not None:
            self.checkpoints.append(checkpoint())
        return self.said

    def last_checkpoint(self) -> bytes | None:
        return self.checkpoints[-1] if self.checkpoints else None


@pytest.fixture
def channel() -> Iterator[Kept]:
    kept = Kept(Said(cores=1.5))
    set_channel(kept)
    yield kept
    set_channel(None)


def test_a_report_reaches_the_channel_and_its_answer_the_program(channel: Kept) -> None:
    assert report(iteration=3, loss=0.5, accuracy=0.9) == Said(cores=1.5, stop=False)
    assert report(4) == channel.said
    assert channel.heard == [(3, 0.5, {"accuracy": 0.9}), (4, None, {})]


def test_numbers_of_numpy_are_numbers(channel: Kept) -> None:
    report(np.int64(1), np.float32(0.25), accuracy=np.array(0.5))  # type: ignore[arg-type]
    assert channel.heard == [(1, 0.25, {"accuracy": 0.5})]
    assert [type(value) for value in channel.heard[0][:2]] == [int, float]


@pytest.mark.parametrize(
    "loss", ("0.5", b"1", "abc", [1.0], object(), 1j, 10**400, 10**5000, np.zeros((9, 9)), Awkward()), ids=kind
)
def test_a_loss_that_is_no_number_is_refused_in_one_line(channel: Kept, loss: Any) -> None:
    with pytest.raises(TypeError, match=r"^report\(loss=.*: loss must be a number$"):
        report(1, loss)
    with pytest.raises(TypeError, match=r"^report\(f1=.*: f1 must be a number$"):
        report(1, 0.5, f1=loss)
    assert not channel.heard


@pytest.mark.parametrize("loss", (float("nan"), float("inf"), -1.0))
def test_losses_that_are_odd_numbers_pass(channel: Kept, loss: float) -> None:
    report(1, loss)
    assert repr(channel.heard[0][1]) == repr(loss)


@pytest.mark.parametrize("iteration", (1.5, "a", None, 1j, np.zeros((3, 3)), Awkward()), ids=kind)
def test_an_iteration_is_an_integer(channel: Kept, iteration: Any) -> None:
    with pytest.raises(TypeError, match=r"^report\(iteration=.*: iteration must be a whole number$"):
        report(iteration, 0.5)


def test_a_checkpoint_is_made_only_when_it_is_wanted(channel: Kept) -> None:
    made: list[int] = []

    def checkpoint() -> bytes:
        made.append(1)
        return b"state"

    report(1, 0.5, checkpoint)
    assert not made and last_checkpoint() is None
    channel.wants_checkpoint = True
    report(2, 0.4, checkpoint)
    assert made == [1] and last_checkpoint() == b"state"


def test_a_checkpoint_that_is_no_function_is_refused_before_it_is_wanted(channel: Kept) -> None:
    with pytest.raises(TypeError, match=r"^report\(checkpoint=b'state'\): checkpoint must be a function that returns"):
        report(1, 0.5, b"state")  # type: ignore[arg-type]


def test_an_iteration_is_within_what_a_message_holds(channel: Kept) -> None:
    report(10**5000)
    report(-(1 << 64))
    assert [heard[0] for heard in channel.heard] == [2**63 - 1, -(2**63) + 1]


def test_pools_follow_the_cores(channel: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    from threadpoolctl import threadpool_info, threadpool_limits

    monkeypatch.setitem(threads._set, "threads", 0)  # another test's
    with threadpool_limits():  # puts back what was
        for cores, count in ((1.0, 1), (1.2, 2), (0.05, 1)):
            channel.said = Said(cores)
            report(1, 0.5, threads="auto")
            assert {pool["num_threads"] for pool in threadpool_info()} == {count}


def _run(program: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, env={**os.environ, **environment}, timeout=60
    )


def test_outside_a_cluster_nothing_happens() -> None:
    done = _run("from yaqd.ml import report; print(report(1, 0.5).cores, report(2, 0.4, a=1).stop)")
    assert (done.stdout, done.stderr) == (f"{float(len(os.sched_getaffinity(0)))} False\n", "")


@pytest.mark.parametrize(
    "given, named",
    (
        ("'3', 0.5", r"report(iteration='3'): iteration must be a whole number"),
        ("1.5", "report(iteration=1.5): iteration must be a whole number"),
        ("3, '0.5'", "report(loss='0.5'): loss must be a number"),
        ("3, 0.5, f1='x'", "report(f1='x'): f1 must be a number"),
        ("3, 0.5, b'state'", "report(checkpoint=b'state'): checkpoint must be a function that returns bytes"),
    ),
)
def test_what_a_cluster_refuses_is_refused_everywhere(given: str, named: str) -> None:
    done = _run(f"from yaqd.ml import report; report({given})")
    assert done.returncode == 1 and done.stderr.endswith(f"\nTypeError: {named}\n")


def test_the_environment_must_not_choose_any_module() -> None:
    """Nothing of it is imported, and the program trains on."""
    for named in ("antigravity:geohash", "tez_adapter.no_such:f", "tez_adapter.history", "tez_adapterx:f", ":", "x"):
        program = "import sys; from yaqd.ml import report; report(1); report(2); print('antigravity' in sys.modules)"
        done = _run(program, YAQ_REPORT_CHANNEL=named)
        assert done.stdout == "False\n" and done.returncode == 0
        assert done.stderr.count("\n") == 1 and named in done.stderr


def test_a_report_imports_no_library() -> None:
    program = (
        "import sys, yaqd.ml; yaqd.ml.report(1, 0.5); "
        "print([name for name in ('numpy', 'threadpoolctl', 'asyncio') if name in sys.modules])"
    )
    assert _run(program).stdout == "[]\n"
