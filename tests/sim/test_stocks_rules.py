"""Stock's rules in the simulator: what one heartbeat gives, passes over all nodes, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest

from nm.settings import NodeSettings
from rm.settings.daemon import RmSettings, read_queues
from tests.sim.sim_jobs import mixed, same, stage
from yaqd.cli.exits import CommandError
from yaqd.cli.simulation.systems import parse_system
from yaqd.config import Configuration
from yaqd.sim.central import Central
from yaqd.sim.scheduling.spec import scheduler_spec
from yaqd.sim.simulation import ClusterShape, SimResult, System, simulate
from yaqd.sim.workload import SimJob, Workload

#: what is given reaches its node at once
SHAPE = ClusterShape(nodes=1, slots=8, heartbeat_s=1.0, am_poll_s=0.0, network_s=0.0, start_gap_s=0.0, prepare_s=0.0)
STOCK = parse_system("yarn,rules=stock")


def of_one_job(system: System, tasks: int = 8, shape: ClusterShape = SHAPE) -> SimResult:
    return simulate(shape, Workload((SimJob("one", (stage(tasks, 100.0),)),)), system, 1)


def beats_of(result: SimResult) -> list[int]:
    """Count the tasks that started at each time, the first time first."""
    return [int(count) for count in np.unique(np.round(result.started, 6), return_counts=True)[1]]


def test_a_node_fills_by_as_many_a_heartbeat_as_is_said() -> None:
    assert beats_of(of_one_job(parse_system("yarn"))) == [8], "ours gives away all that is free"
    assert beats_of(of_one_job(STOCK)) == [1] * 8
    assert beats_of(of_one_job(parse_system("yarn,rules=stock,off_switch_max=3"))) == [3, 3, 2]


def test_a_pass_offers_each_node_one_and_heartbeats_offer_none() -> None:
    shape = replace(SHAPE, nodes=4, heartbeat_s=1000.0)
    result = of_one_job(parse_system("yarn,rules=stock,async_s=0.005"), 10, shape)
    starts = sorted(result.started)
    assert beats_of(result) == [4, 4, 2]
    assert math.isclose(starts[4] - starts[0], 0.005) and math.isclose(starts[8] - starts[4], 0.005)


def test_what_is_unsaid_is_as_a_cluster_with_the_one_key_has_it() -> None:
    conf = Configuration.load(environ={}, overrides={"yaq.compat": "stock"})
    live, model = RmSettings.read(conf).scheduler_limits(), Central(SHAPE, Workload(()), STOCK, 1)
    told = model.limits()
    assert (told.rules, told.at_asks, told.queueing) == (live.rules, live.at_asks, live.queueing)
    assert scheduler_spec(SHAPE, STOCK).heartbeat == read_queues(conf).heartbeat
    assert scheduler_spec(SHAPE, STOCK).root.children[0].ordering == read_queues(conf).root.children[0].ordering
    assert STOCK.out_of_turn and NodeSettings.read(conf).own_ways.out_of_turn
    assert not parse_system("yarn,rules=stock,out_of_turn=off").out_of_turn


@pytest.mark.parametrize("text", ["yarn,rules=stock", "yarn,rules=stock,job_order=fair,async_s=0.05"])
def test_heartbeats_that_can_do_nothing_may_be_left_out(text: str) -> None:
    shape, workload = ClusterShape(nodes=4, slots=3), mixed(12)
    every = simulate(shape, workload, parse_system(text), 3, skip_idle=False)
    assert same(every, simulate(shape, workload, parse_system(text), 3))
    assert every.tasks == sum(len(one.tasks) for job in workload.jobs for one in job.stages)


def test_passes_end_where_nothing_can_be_given() -> None:
    """A job's limit keeps it from what is free: passes in vain are not played for ever."""
    lines = (("root.default.maximum-capacity", "50"), ("root.default.capacity", "50"), ("root.other.capacity", "50"))
    shape = replace(SHAPE, queues=(("default", 50.0), ("other", 50.0)), scheduler=lines)
    result = of_one_job(parse_system("yarn,rules=stock,async_s=0.005"), 8, shape)
    assert (result.tasks, sum(result.started < 50.0), beats_of(result)) == (8, 4, [1] * 8)
    assert result.counts["events"] < 200


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("yarn,rules=stok", "no rules are called 'stok'; there are yaq, stock"),
        ("yarn,rules=stock,at_asks=on", "rules=stock gives nothing at asks"),
        ("yarn,off_switch_max=4", "are of stock's rules: say rules=stock"),
        ("yarn,async_s=0.005", "are of stock's rules: say rules=stock"),
        ("yarn,rules=stock,off_switch_max=0", "it must be 1 or more"),
        ("yaq-c,rules=stock", "is none of yaq-c's parameters"),
    ],
)
def test_what_cannot_be_is_refused(text: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        parse_system(text)
