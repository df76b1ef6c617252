"""What reduces are told of map outputs while these are merged."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riffle_merger.merger.disk import DiskFacts
from riffle_merger.plan.automatic import DiskShape
from riffle_merger.plan.decisions import CancelMerge, SendMerge
from riffle_merger.plan.policy import OFF, MergePolicy
from tests.examples import examples
from tez_adapter.core.dag import AttemptId
from tez_adapter.core.records import Completion
from tez_adapter.master.output_feed import Job, OutputFeed
from tez_adapter.merging.settings import MergeSettings


def feed(maps: int, policy: MergePolicy | None, *, partitions: int = 10, size: int = 1000, **more: Any) -> OutputFeed:
    job = Job(maps, partitions, lambda a: f"m{a.task}_{a.number}", lambda _: size, lambda _: True, lambda: 1)
    return OutputFeed(job, MergeSettings(policy, **more))


def done(index: int, number: int = 0, *, available: bool = True, node: str = "h:1") -> Completion:
    return Completion(AttemptId(0, index, number), node, node.partition(":")[0], available)


def told(found: OutputFeed) -> list[tuple[int, bool, str]]:
    return [(entry.attempt.task, entry.available, entry.merged) for entry in found.entries]


def test_reduces_hear_of_outputs_once_they_are_merged_by_the_merged_files_name() -> None:
    found = feed(4, MergePolicy(files=2), best_effort=1.0)
    completions = [done(0), done(1)]
    [send] = found.follow(completions, 0)
    assert isinstance(send, SendMerge)
    assert found.entries == []
    found.merged(send.merge, "file", 2000, 3, 1)
    assert told(found) == [(0, True, "file"), (1, True, "file")]
    completions += [done(2), done(3)]
    [second] = found.follow(completions, 2)
    assert isinstance(second, SendMerge)
    found.failed(second.merge, 3)
    assert told(found)[2:] == [(2, True, ""), (3, True, "")]
    summary = found.summary()
    assert (summary["files"], summary["reads"], summary["merge_requests"]) == (3, 4, 3)
    assert summary["merges"] == {"done": 1, "failed": 1}


@pytest.mark.parametrize(
    ("maps", "policy", "why"),
    [
        (
            3,
            MergePolicy(block_bytes=100),
            "nothing was merged: 3 of 3 outputs have such blocks, or larger ones, already",
        ),
        (3, MergePolicy(block_bytes=301), "nothing was merged: no merge came to its end"),
        (1, MergePolicy(block_bytes=1000), "one map output has nothing to be merged with"),
        (1, OFF, "one map output has nothing to be merged with"),
        (3, OFF, ""),
    ],
)
def test_why_nothing_was_merged_is_said(maps: int, policy: MergePolicy, why: str) -> None:
    found = feed(maps, policy, best_effort=1.0)
    for decision in found.follow([done(index) for index in range(maps)], 0):
        if isinstance(decision, SendMerge):
            found.failed(decision.merge, 1)
    assert len(found.entries) == maps and found.summary()["unmerged"] == why


def test_outputs_of_nodes_without_mergers_are_said_to_have_none() -> None:
    job = Job(3, 10, lambda a: f"m{a.task}", lambda _: 1, lambda _: False, lambda: 3)
    found = OutputFeed(job, MergeSettings(MergePolicy(files=2)))
    found.follow([done(index, node=f"h{index}:1") for index in range(3)], 0)
    assert found.summary()["unmerged"] == "nothing was merged: nowhere were two outputs and a merger for them"


def wide(policy: MergePolicy | None, files_max: int) -> OutputFeed:
    """200 maps of 50,000 partitions."""
    job = Job(
        *(200, 50_000, lambda a: f"m{a.task}_{a.number}", lambda _: 500_000_000, lambda _: True, lambda: 1),
        files_max=files_max,
        files_max_by="some.key",
    )
    return OutputFeed(job, MergeSettings(policy, outstanding=200))


@pytest.mark.parametrize("policy", [None, MergePolicy(files=200), MergePolicy(block_bytes=1 << 30)])
def test_merges_are_of_no_more_outputs_than_one_file_may_have(policy: MergePolicy | None) -> None:
    found = wide(policy, 16)
    made = found.follow([done(index) for index in range(200)], 0)
    assert [len(send.outputs) for send in made if isinstance(send, SendMerge)] == [16] * 12 + [8]
    summary = found.summary()
    assert "16 files" in summary["policy"]
    assert summary["reason"].endswith("the index of one merged file has room for 16 outputs of 50,000 parts (some.key)")


@pytest.mark.parametrize("policy", [None, OFF, MergePolicy(files=200), MergePolicy(block_bytes=1 << 30)])
def test_where_no_two_outputs_may_be_in_one_file_nothing_is_merged_or_held(policy: MergePolicy | None) -> None:
    found = wide(policy, 1)
    assert not found.follow([done(0)], 0)
    assert told(found) == [(0, True, "")]
    why = "nothing was merged: the index of a merged file has no room for two outputs of 50,000 parts (some.key)"
    assert found.summary()["unmerged"] == ("" if policy == OFF else why)


def test_without_merging_the_list_is_the_machines_own() -> None:
    found = feed(3, OFF)
    completions = [done(0), done(1), done(0, available=False), done(0, 1)]
    assert not found.follow(completions, 0)
    assert found.entries == completions


def test_an_automatic_no_tells_everything_that_was_held() -> None:
    found = feed(100, None, disk=DiskShape(cache_bytes=1e12))
    completions = [done(index) for index in range(4)]
    assert not found.follow(completions, 0)
    assert found.entries == []
    completions.append(done(4))
    assert not found.follow(completions, 0)
    assert found.entries == completions
    assert found.choice is not None and found.choice.policy.is_off
    assert found.summary()["automatic"]


def test_an_automatic_yes_merges_what_was_held() -> None:
    found = feed(4000, None, partitions=500, size=500 * 16_384)
    made = found.follow([done(index) for index in range(50)], 0)
    assert found.choice is not None and not found.choice.policy.is_off
    assert any(isinstance(decision, SendMerge) for decision in made)


QUICK, SLOW = DiskFacts(1, 10**10, 10**13), DiskFacts(8000, 10**8, 0)


@pytest.mark.parametrize(("tried", "is_merged"), [((QUICK, SLOW, QUICK), False), ((SLOW, QUICK, SLOW), True)])
def test_the_automatic_choice_goes_by_what_most_nodes_found_of_their_disks(
    tried: tuple[DiskFacts, ...], is_merged: bool
) -> None:
    """Not by what the job manager takes its own disk for, which would be the opposite."""
    known = SLOW if not is_merged else QUICK
    disk = DiskShape(known.seek_us / 1e6, known.bytes_per_s, known.available_bytes)
    job = Job(1000, 100, lambda a: f"m{a.task}", lambda _: 100 * 16_384, lambda _: True, lambda: 3, disks=lambda: tried)
    found = OutputFeed(job, MergeSettings(None, disk=disk))
    found.follow([done(index) for index in range(5)], 0)
    assert found.choice is not None and found.choice.policy.is_off == (not is_merged), found.choice


def test_outputs_of_a_small_job_are_not_held_for_more_than_it_has() -> None:
    found = feed(2, None)
    completions = [done(0), done(1)]
    found.follow(completions, 0)
    assert found.entries == completions


def test_a_lost_output_is_withdrawn_where_it_was_announced_and_only_there() -> None:
    found = feed(3, MergePolicy(files=2), best_effort=1.0)
    completions = [done(0), done(1)]
    [send] = found.follow(completions, 0)
    assert isinstance(send, SendMerge)
    found.merged(send.merge, "file", 0, 0, 0)
    completions += [done(1, available=False), done(2), done(2, available=False)]
    assert not found.follow(completions, 0)
    assert told(found) == [(0, True, "file"), (1, True, "file"), (1, False, "")]
    completions += [done(1, 1), done(2, 1)]
    [again] = found.follow(completions, 0)
    assert isinstance(again, SendMerge)
    assert [output.attempt for output in again.outputs] == ["m1_1", "m2_1"]


def late(maps: int) -> tuple[OutputFeed, set[str]]:
    """A feed whose mergers are there or being started: the set, which the test changes."""
    there: set[str] = set()
    coming = {"h:1"}
    job = Job(
        maps,
        10,
        lambda a: f"m{a.task}_{a.number}",
        lambda _: 1000,
        there.__contains__,
        lambda: 1,
        is_merger_coming=lambda place: place in coming - there,
    )
    return OutputFeed(job, MergeSettings(MergePolicy(files=2), best_effort=1.0)), there


def test_outputs_that_are_there_before_their_merger_are_merged_by_it() -> None:
    found, there = late(4)
    completions = [done(index) for index in range(3)]
    assert not found.follow(completions, 0)
    assert found.entries == [] and found.awaited(0.5) == ["h:1"]
    there.add("h:1")
    [send] = found.tick(1)
    assert isinstance(send, SendMerge) and not found.awaited(1)
    found.merged(send.merge, "file", 2000, 3, 2)
    assert told(found) == [(0, True, "file"), (1, True, "file")]


def test_a_merger_that_does_not_come_holds_outputs_up_for_a_while_alone() -> None:
    found, there = late(8)
    completions = [done(0), done(1), done(2, node="h2:1")]
    found.follow(completions, 0)
    assert told(found) == [(2, True, "")]  # there is none at the other, and none is being started
    assert not found.tick(4) and told(found) == [(2, True, "")]
    assert not found.tick(6) and not found.awaited(6)
    assert told(found)[1:] == [(0, True, ""), (1, True, "")]
    there.add("h:1")
    completions += [done(3), done(4)]
    assert [type(decision) for decision in found.follow(completions, 60)] == [SendMerge]


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from([None, OFF, MergePolicy(files=2), MergePolicy(files=3), MergePolicy(block_bytes=250)]),
    st.integers(1, 8),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1 << 16)), max_size=80),
)
def test_a_reader_of_the_list_ends_with_exactly_the_outputs_that_are_there(
    policy: MergePolicy | None, maps: int, steps: list[tuple[int, int]]
) -> None:
    found = feed(maps, policy)
    completions: list[Completion] = []
    present: dict[int, int] = {}
    numbers = dict.fromkeys(range(maps), 0)
    open_merges: dict[int, SendMerge] = {}

    def take(decisions: list[Any]) -> None:
        for decision in decisions:
            if isinstance(decision, SendMerge):
                open_merges[decision.merge] = decision
            elif isinstance(decision, CancelMerge):
                open_merges.pop(decision.merge)

    def end(index: int) -> None:
        if index not in present:
            present[index] = numbers[index]
            completions.append(done(index, numbers[index], node=f"h{index % 2}:1"))
            numbers[index] += 1

    for kind, pick in steps:
        if kind == 0:
            end(pick % maps)
        elif kind == 1 and present:
            index = sorted(present)[pick % len(present)]
            completions.append(done(index, present.pop(index), available=False, node=f"h{index % 2}:1"))
        elif open_merges:
            merge = sorted(open_merges)[pick % len(open_merges)]
            del open_merges[merge]
            take(found.merged(merge, f"f{merge}", 0, 0, 0) if kind == 2 else found.failed(merge, 0))
        take(found.follow(completions, 0))
    for index in range(maps):
        end(index)
    take(found.follow(completions, 0))
    while open_merges:
        merge = min(open_merges)
        del open_merges[merge]
        take(found.merged(merge, f"f{merge}", 0, 0, 0))
    readable: dict[AttemptId, str] = {}
    for entry in found.entries:
        if entry.available:
            assert entry.attempt not in readable
            readable[entry.attempt] = entry.merged
        else:
            del readable[entry.attempt]
    assert readable.keys() == {AttemptId(0, index, number) for index, number in present.items()}
    assert not found.anomalies()
