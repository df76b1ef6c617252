"""The order of jobs at the ResourceManager, and policies that other packages bring along."""

from itertools import pairwise
from math import inf, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_facts import facts, few, hostile_s, job_id, queued, sane_s

from yaqd.policies.queueing.bounds import BOUNDS
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.job_order import JOB_ORDERS, JobOrdering, WaitingJob
from yaqd.policies.queueing.order import ORDERS, Ordering
from yaqd.policies.queueing.place_scores import PLACES
from yaqd.policies.queueing.registry import UnknownPolicy

names = st.sampled_from(["srjf", "lrtf", "ejf", "sjf", "cpath"])


def waiting(number: st.SearchStrategy[int], seconds: st.SearchStrategy[float]) -> st.SearchStrategy[WaitingJob]:
    tasks = st.none() | st.integers(-3, 50)
    about = st.builds(JobFacts, st.none() | seconds, tasks, st.none() | seconds)
    return st.builds(WaitingJob, number.map(job_id), seconds, seconds, about, st.none() | seconds)


def jobs_of(seconds: st.SearchStrategy[float]) -> st.SearchStrategy[list[WaitingJob]]:
    return st.lists(waiting(st.integers(1, 99), seconds), unique_by=lambda job: job.job, max_size=10)


@few
@given(jobs_of(sane_s), names, sane_s, st.sampled_from([0.0, 30.0, inf]), st.sampled_from([0.5, 3.0, inf]))
def test_the_starved_first_then_by_the_strategy(jobs, name, now, starve_s, ratio) -> None:
    ordering = JobOrdering(name, starve_s, ratio)
    ordered = ordering.sorted(jobs, now)
    starved = [job for job in ordered if ordering.is_starved(job, now)]
    assert ordered[: len(starved)] == starved
    assert all(one.arrival <= two.arrival for one, two in pairwise(starved))
    rank = JOB_ORDERS[name]
    assert all(rank(one) <= rank(two) for one, two in pairwise(ordered[len(starved) :]))


@few
@given(jobs_of(hostile_s), names, hostile_s, hostile_s, hostile_s)
def test_hostile_numbers_leave_nobody_out(jobs, name, now, starve_s, ratio) -> None:
    ordered = JobOrdering(name, starve_s, ratio).sorted(jobs, now)
    assert sorted(job.job for job in ordered) == sorted(job.job for job in jobs)


def test_each_strategy_by_hand() -> None:
    one = WaitingJob(job_id(1), 3.0, 3.0, JobFacts(50.0, 9, 30.0), 40.0)
    two = WaitingJob(job_id(2), 2.0, 2.0, JobFacts(70.0, 4, 50.0), 60.0)
    unknown = WaitingJob(job_id(3), 1.0, 1.0)
    firsts = {name: JobOrdering(name, inf).sorted([unknown, two, one], 4.0)[0] for name in JOB_ORDERS.names()}
    assert firsts == {"srjf": one, "lrtf": two, "ejf": unknown, "sjf": one, "cpath": one}
    # nobody knows how long it takes, but it has waited for long enough
    assert JobOrdering("srjf", starve_s=60).sorted([one, two, unknown], 61.5)[0] is unknown


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
    )
    info = tmp_path / "their_policies-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-policies\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[yaqd.order]\nlifo = their_policies:lifo\nnan = their_policies:nan\nsrjf = their_policies:nan\n"
        "gone = their_policies:gone\n[yaqd.place]\nfullest = their_policies:fullest\n"
        "[yaqd.bound]\ntwo = their_policies:two\n[yaqd.job_order]\nlate = their_policies:late\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("foreign")
def test_a_third_partys_policies_are_found_by_name() -> None:
    line = [queued(n, facts(n), since=float(n)) for n in range(3)]
    assert Ordering("lifo", inf, inf).sorted(line, {}, 5) == line[::-1]
    assert Ordering("nan", inf, inf).sorted(line, {}, 5) == line
    assert BOUNDS["two"](10, 5.0, 3.0, 0.05) == 2
    early, late = WaitingJob(job_id(1), 1.0, 1.0), WaitingJob(job_id(2), 2.0, 2.0)
    assert JobOrdering("late").sorted([early, late], 3.0) == [late, early]
    assert PLACES["fullest"].draws is None
    assert ORDERS.names()[:6] == ["srjf", "lrtf", "stf", "ejf", "fifo", "cpath"]
    assert "lifo" in ORDERS.names()
    # a shipped name stays what it is
    assert Ordering("srjf", inf, inf).pick(line, {job_id(2): JobFacts(1.0)}, 5) is line[2]


@pytest.mark.usefixtures("foreign")
def test_one_that_does_not_load_says_so() -> None:
    with pytest.raises(UnknownPolicy, match=r"'gone'.*their_policies:gone does not load"):
        Ordering("gone")


def test_a_threshold_that_is_none_starves_all() -> None:
    assert JobOrdering("srjf", nan, -1.0) == JobOrdering("srjf", 0.0, 0.0)
