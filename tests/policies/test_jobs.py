"""The order of jobs at the ResourceManager, and policies that other packages bring along."""

from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm.node_queue import Arrived, NodeQueue
from tests.policies.policy_facts import facts, few, hostile_s, job_id, queued
from yaqd.model import ExecutionType, Resource
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.bounds import BOUNDS
from yaqd.policies.queueing.estimates import ESTIMATES, Estimator
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.job_order import JOB_ORDERS, WaitingJob
from yaqd.policies.queueing.order import ORDERS, Ordering
from yaqd.policies.queueing.place_scores import PLACES
from yaqd.policies.queueing.rebalance import REBALANCES
from yaqd.policies.registry import UnknownPolicy

names = st.sampled_from(["srjf", "lrtf", "ejf", "sjf", "cpath"])


def waiting(number: st.SearchStrategy[int], seconds: st.SearchStrategy[float]) -> st.SearchStrategy[WaitingJob]:
    tasks = st.none() | st.integers(-3, 50)
    about = st.builds(JobFacts, st.none() | seconds, tasks, st.none() | seconds)
    return st.builds(WaitingJob, number.map(job_id), seconds, seconds, about, st.none() | seconds)


def jobs_of(seconds: st.SearchStrategy[float]) -> st.SearchStrategy[list[WaitingJob]]:
    return st.lists(waiting(st.integers(1, 99), seconds), unique_by=lambda job: job.job, max_size=10)


def in_order(name: str, jobs: list[WaitingJob]) -> list[WaitingJob]:
    """As the scheduler's lines have them while nobody is starved."""
    return sorted(jobs, key=lambda job: (limits.rank(JOB_ORDERS[name](job)), job.arrival, job.job))


@few
@given(jobs_of(hostile_s), names)
def test_hostile_numbers_have_their_rank_too(jobs: list[WaitingJob], name: str) -> None:
    ranks = [limits.rank(JOB_ORDERS[name](job)) for job in jobs]
    assert all(rank == rank for rank in ranks)


def test_each_strategy_by_hand() -> None:
    one = WaitingJob(job_id(1), 3.0, 3.0, JobFacts(50.0, 9, 30.0), 40.0)
    two = WaitingJob(job_id(2), 2.0, 2.0, JobFacts(70.0, 4, 50.0), 60.0)
    unknown = WaitingJob(job_id(3), 1.0, 1.0)
    firsts = {name: in_order(name, [unknown, two, one])[0] for name in JOB_ORDERS.names()}
    assert firsts == {"srjf": one, "lrtf": two, "ejf": unknown, "sjf": one, "cpath": one}


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with policies of its own."""
    (tmp_path / "their_policies.py").write_text(
        "from yaqd.policies.queueing.place_scores import PlaceStrategy\n"
        "def lifo(task, job): return -task.since\n"
        "def nan(task, job): return float('nan')\n"
        "def late(job): return -job.arrival\n"
        "def two(slots, mean_s, gap_s, idle): return 2\n"
        "fullest = PlaceStrategy(lambda node: 1 / (1 + node.queued))\n"
        "def longest(seen, before): return max(seen.mean if seen else 0, before or 0)\n"
        "def wrong(seen, before): return float('nan')\n"
        "def none(total, free, running, queued, needed, now): return -1.0\n"
        "def never(loads, least_gain_s): return []\n"
    )
    info = tmp_path / "their_policies-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-policies\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[yaqd.order]\nlifo = their_policies:lifo\nnan = their_policies:nan\nsrjf = their_policies:nan\n"
        "gone = their_policies:gone\n[yaqd.place]\nfullest = their_policies:fullest\n"
        "[yaqd.bound]\ntwo = their_policies:two\n[yaqd.job_order]\nlate = their_policies:late\n"
        "[yaqd.estimate]\nlongest = their_policies:longest\nwrong = their_policies:wrong\n"
        "[yaqd.wait]\nnone = their_policies:none\n[yaqd.rebalance]\nnever = their_policies:never\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("foreign")
def test_a_third_partys_policies_are_found_by_name() -> None:
    line = [queued(n, facts(n), since=float(n)) for n in range(3)]
    assert Ordering("lifo", inf, inf).sorted(line, {}, 5) == line[::-1]
    assert Ordering("nan", inf, inf).sorted(line, {}, 5) == line
    assert BOUNDS["two"](10, 5.0, 3.0, 0.05) == 2
    early, late = WaitingJob(job_id(1), 1.0, 1.0), WaitingJob(job_id(2), 2.0, 2.0)
    assert in_order("late", [early, late]) == [late, early]
    estimator = Estimator(default_s=9.0, policy=ESTIMATES["longest"])
    estimator.observe("run", 2.0)
    estimator.observe("before", 5.0)
    assert estimator.estimate("run", "before") == 5.0
    estimator.policy = ESTIMATES["wrong"]
    assert estimator.estimate("run", "before") == 9.0, "what says nothing is no estimate"
    node = NodeQueue(Resource(100, 1), max_length=5, wait="none")
    node.handle(Arrived(line[0].container_id, Resource(10, 1), ExecutionType.GUARANTEED), 0.0)
    assert node.snapshot(0.0).wait_s == inf, "a wait that cannot be is for ever"
    assert REBALANCES["never"]([], 0.0) == []
    assert PLACES["fullest"].draws is None
    assert ORDERS.names()[:6] == ["srjf", "lrtf", "stf", "ejf", "fifo", "cpath"]
    assert "lifo" in ORDERS.names()
    # a shipped name stays what it is
    assert Ordering("srjf", inf, inf).pick(line, {job_id(2): JobFacts(1.0)}, 5) is line[2]


@pytest.mark.usefixtures("foreign")
def test_one_that_does_not_load_says_so() -> None:
    with pytest.raises(UnknownPolicy, match=r"'gone'.*their_policies:gone does not load"):
        Ordering("gone")
