"""What the live rows of `benchmarks.hyperdrive` make of explorations that have run, without running any."""

import math

import numpy as np
import pytest

from benchmarks.hyperdrive import live_rows
from benchmarks.hyperdrive.live_rows import Found, Task
from benchmarks.report import Row
from tez_adapter.jobspec import Exploration

TERMS = Exploration("reward", target=200.0, slots=1, epochs=6, trials=3, lower=-500.0, upper=300.0)
TASK = Task("live-lander", "lander", 3, TERMS, ("default",))
ORDER = [2, 0, 1]


def found(time_s: float, **values: list[float]) -> Found:
    """Return an exploration with trials `t0`, `t1`, ... whose first epoch takes 9 s and each other one 2 s."""
    seen = {int(name[1:]): each for name, each in values.items()}
    return Found(time_s, False, seen, {number: [9.0, *[2.0] * (len(each) - 1)] for number, each in seen.items()})


def test_configurations_have_what_was_seen_of_them_in_any_exploration() -> None:
    one = found(20.0, t0=[-500.0, -100.0, 300.0, 300.0, 300.0])
    other = found(9.0, t1=[-100.0], t0=[-500.0])
    recorded = live_rows.recorded_of(TASK, [(ORDER, one), (ORDER, other)])
    assert recorded.values[2].tolist() == [0.0, 0.5, 1.0, 1.0, 1.0, 1.0]
    assert recorded.values[0].tolist() == [0.5] * 6  # what nobody saw stays as it was last
    assert recorded.values[1].tolist() == [0.0] * 6
    # of one with a few epochs, in the first of which its program starts, the usual time counts
    assert recorded.epoch_s.tolist() == [2.0, 2.0, 2.0]


def test_rows_go_by_means_and_name_each_order() -> None:
    rows: list[Row] = []
    values = [-500.0, -400.0, -300.0, 250.0]
    ours, theirs = [found(10.0, t0=values), found(30.0, t0=values)], [found(40.0, t0=values), found(20.0, t0=values)]
    beside: dict[str, object] = {}
    live_rows.report(TASK, [ORDER, ORDER], {"index": ours, "default": theirs}, rows, beside)  # type: ignore[arg-type]
    by_id = {row.id: row for row in rows}
    assert (by_id["live-lander-default"].ours, by_id["live-lander-default"].theirs) == (20.0, 30.0)
    assert by_id["live-lander-default"].ratio == pytest.approx(1.5)
    # epochs of 9, 2, 2 and 2 s until the reward of 250
    assert by_id["live-simulated-lander-default"].ours == pytest.approx(15.0)
    assert beside["live-lander-default"]["by order"] == "4.00x 0.67x"  # type: ignore[index]


def test_every_policy_explores_the_same_configurations_in_the_order() -> None:
    ours, theirs = (live_rows.terms_under(TASK, policy, ORDER) for policy in ("index", "default"))
    assert ours.configurations == theirs.configurations
    assert len(ours.configurations.splitlines()) == 3
    assert (ours.kill, theirs.kill) == (-100.0, None)
    assert not math.isnan(
        live_rows.replayed(TASK, "index", ORDER, live_rows.recorded_of(TASK, [(ORDER, found(1.0, t0=[0.0]))]))
    )
    assert np.array_equal(np.sort(live_rows.orders(TASK, 2)[1]), np.arange(3))
