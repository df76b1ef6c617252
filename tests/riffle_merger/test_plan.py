"""The merge scheduler and what goes with it: every output is published once, whatever happens to the merges."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from riffle_merger.plan.automatic import BLOCKS, DiskShape, ShuffleShape, candidates, choose, predicted_s
from riffle_merger.plan.counts import Buffers, ReadCounter, Unit
from riffle_merger.plan.decisions import CancelMerge, Decision, MapOutput, Publish, SendMerge
from riffle_merger.plan.merge_scheduler import MergeScheduler, MergeSpec
from riffle_merger.plan.policy import FAN_IN_MAX, OFF, MergePolicy
from riffle_merger.plan.states import MergeState

KIB = 1024
MB = KIB * KIB


def output(index: int, node: str = "n0", size: int = 1000, number: int = 0) -> MapOutput:
    return MapOutput(index, f"attempt_{index}_{number}", node, size)


def scheduler(maps: int, policy: MergePolicy, **more: float) -> MergeScheduler:
    return MergeScheduler(MergeSpec(maps, 10, policy, **more))  # type: ignore[arg-type]


def sends(decisions: list[Decision]) -> list[SendMerge]:
    return [d for d in decisions if isinstance(d, SendMerge)]


def published(decisions: list[Decision]) -> list[tuple[str, ...]]:
    return [tuple(o.attempt for o in d.outputs) for d in decisions if isinstance(d, Publish)]


def test_a_merge_is_sent_as_soon_as_a_node_has_n_outputs_while_the_maps_still_run() -> None:
    plan = scheduler(100, MergePolicy(files=3))
    assert not plan.finished(output(0, "a"), 0) and not plan.finished(output(1, "b"), 0)
    assert not plan.finished(output(2, "a"), 0)
    [send] = plan.finished(output(3, "a"), 0)
    assert isinstance(send, SendMerge) and send.node == "a"
    assert [o.map_index for o in send.outputs] == [0, 2, 3]
    [publish] = plan.merged(send.merge, 1)
    assert publish == Publish("a", send.outputs, send.merge)


def test_merging_by_block_size_leaves_large_outputs_alone_and_fills_up_with_small_ones() -> None:
    plan = scheduler(100, MergePolicy(block_bytes=100))  # 10 partitions: outputs of 1,000 bytes are large enough
    assert published(plan.finished(output(0, size=1000), 0)) == [("attempt_0_0",)]
    assert not plan.finished(output(1, size=400), 0)
    assert not plan.finished(output(2, size=400), 0)
    [send] = sends(plan.finished(output(3, size=200), 0))
    assert len(send.outputs) == 3


def test_empty_outputs_do_not_gather_without_end() -> None:
    plan = scheduler(FAN_IN_MAX + 1, MergePolicy(block_bytes=100))
    made = [d for i in range(FAN_IN_MAX) for d in plan.finished(output(i, size=0), 0)]
    assert [len(send.outputs) for send in sends(made)] == [FAN_IN_MAX]


def test_what_is_left_at_the_end_of_the_map_stage_is_merged_too_but_for_single_outputs() -> None:
    plan = scheduler(5, MergePolicy(files=3), best_effort=1.0)
    for i, node in enumerate("aabb"):
        assert not plan.finished(output(i, node), 0)
    last = plan.finished(output(4, "c"), 0)
    assert sorted(len(s.outputs) for s in sends(last)) == [2, 2]
    assert published(last) == [("attempt_4_0",)]
    assert not plan.is_settled
    for send in sends(last):
        plan.merged(send.merge, 1)
    assert plan.is_settled


def test_best_effort_cancels_the_last_merges_and_hands_out_their_originals() -> None:
    plan = scheduler(40, MergePolicy(files=2), best_effort=0.95, outstanding=100)
    sent = [s for i in range(40) for s in sends(plan.finished(output(i, f"n{i // 2}"), 0))]
    assert len(sent) == 20
    for send in sent[:18]:
        assert published(plan.merged(send.merge, 1)) == [tuple(o.attempt for o in send.outputs)]
    last = plan.merged(sent[18].merge, 1)
    assert [d.merge for d in last if isinstance(d, CancelMerge)] == [sent[19].merge]
    assert published(last)[1:] == [tuple(o.attempt for o in sent[19].outputs)]
    assert plan.is_settled and plan.pending == 0
    assert plan.merges[sent[19].merge] is MergeState.CANCELLED
    # it was quicker than its cancelling: nothing is published twice
    assert not plan.merged(sent[19].merge, 2) and not plan.anomalies


def test_a_failed_merge_ends_in_the_originals_and_a_node_that_keeps_failing_is_left_alone() -> None:
    plan = scheduler(100, MergePolicy(files=2), node_failures=2)
    for round_ in range(2):
        plan.finished(output(2 * round_), 0)
        [send] = sends(plan.finished(output(2 * round_ + 1), 0))
        assert published(plan.failed(send.merge, 1)) == [tuple(o.attempt for o in send.outputs)]
    assert published(plan.finished(output(50), 2)) == [("attempt_50_0",)]
    assert not published(plan.finished(output(51, "other"), 2))


def test_a_merge_that_hangs_is_given_up() -> None:
    plan = scheduler(100, MergePolicy(files=2), timeout_s=60)
    plan.finished(output(0), 0)
    [send] = sends(plan.finished(output(1), 10))
    assert not plan.tick(70)
    given_up = plan.tick(70.1)
    assert CancelMerge(send.merge, "n0") in given_up
    assert published(given_up) == [("attempt_0_0", "attempt_1_0")]
    assert not plan.merged(send.merge, 80)
    assert len(plan.anomalies) == 1


def test_a_lost_output_takes_its_merge_with_it_and_the_others_gather_again() -> None:
    plan = scheduler(100, MergePolicy(files=3))
    for i in range(2):
        plan.finished(output(i), 0)
    [send] = sends(plan.finished(output(2), 0))
    assert plan.lost("attempt_1_0", 1) == [CancelMerge(send.merge, "n0")]
    [again] = sends(plan.finished(output(1, number=1), 2))
    assert {o.attempt for o in again.outputs} == {"attempt_0_0", "attempt_2_0", "attempt_1_1"}


def test_a_merger_has_a_bounded_number_of_requests_and_gets_the_next_when_one_is_over() -> None:
    plan = scheduler(100, MergePolicy(files=2), outstanding=2)
    sent = [s for i in range(8) for s in sends(plan.finished(output(i), 0))]
    assert [s.merge for s in sent] == [0, 1]
    assert [s.merge for s in sends(plan.merged(0, 1))] == [2]


def test_a_node_without_a_merger_hands_out_its_originals() -> None:
    plan = scheduler(3, MergePolicy(files=2))
    plan.finished(output(0), 0)
    assert published(plan.without_merger("n0", 0)) == [("attempt_0_0",)]
    assert published(plan.finished(output(1), 0)) == [("attempt_1_0",)]
    plan.finished(output(2), 0)
    assert plan.is_settled


def test_merges_wait_for_a_merger_that_is_being_started_and_for_no_other() -> None:
    plan = scheduler(100, MergePolicy(files=2), outstanding=1)
    plan.await_merger("n0")
    for index in range(4):
        assert not plan.finished(output(index), 0)
    plan.finished(output(4, "other"), 0)
    assert len(sends(plan.finished(output(5, "other"), 0))) == 1
    [send] = sends(plan.with_merger("n0", 1))
    assert not plan.with_merger("n0", 1)  # said again
    assert len(sends(plan.merged(send.merge, 2))) == 1


def test_a_merger_that_is_there_at_last_merges_what_comes_then() -> None:
    plan = scheduler(100, MergePolicy(files=2), node_failures=1)
    plan.without_merger("n0", 0)
    assert published(plan.finished(output(0), 0)) == [("attempt_0_0",)]
    plan.with_merger("n0", 1)
    assert not plan.finished(output(1), 1)
    [send] = sends(plan.finished(output(2), 1))
    plan.failed(send.merge, 2)
    plan.with_merger("n0", 3)  # that it is there is no news: its merges fail
    assert published(plan.finished(output(3), 3)) == [("attempt_3_0",)]


@pytest.mark.parametrize(
    "bad", [{"files": 1}, {"files": FAN_IN_MAX + 1}, {"files": 5, "block_bytes": 5}, {"files": -1}]
)
def test_policies_that_cannot_be_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="merge"):
        MergePolicy(**bad)


@pytest.mark.parametrize(
    ("policy", "most", "within"),
    [
        (MergePolicy(files=40), 200, MergePolicy(files=40)),
        (MergePolicy(files=40), 7, MergePolicy(files=7)),
        (MergePolicy(block_bytes=MB), 200, MergePolicy(block_bytes=MB)),
        (MergePolicy(block_bytes=MB), 7, MergePolicy(block_bytes=MB, files_max=7)),
        (MergePolicy(block_bytes=MB, files_max=5), 7, MergePolicy(block_bytes=MB, files_max=5)),
        (MergePolicy(files=40), 1, OFF),
        (MergePolicy(block_bytes=MB), 0, OFF),
        (OFF, 7, OFF),
    ],
)
def test_a_policy_within_a_number_of_files(policy: MergePolicy, most: int, within: MergePolicy) -> None:
    assert policy.within(most) == within


@pytest.mark.parametrize("variation", [0.0, 1.0])
@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("most", [2, 7, 33])
def test_no_more_files_are_chosen_than_may_be_and_what_is_predicted_is_of_as_many(
    variation: float, grows: bool, most: int
) -> None:
    shuffle = ShuffleShape(4000, 500, 500 * 16_384.0, 4, variation, grows=grows, files_max=most)
    choice = choose(shuffle, DiskShape())
    assert not choice.policy.is_off and (choice.policy.files or choice.policy.files_max) <= most
    assert choice.reads / choice.merged_reads <= most
    free = choose(replace(shuffle, files_max=FAN_IN_MAX), DiskShape())
    assert choice.merged_s >= free.merged_s and free.reads / free.merged_reads > most
    assert choose(replace(shuffle, files_max=1), DiskShape()).policy.is_off


@pytest.mark.parametrize("share", [0.0, -1.0, 1.1, math.nan])
def test_shares_that_cannot_be_are_refused(share: float) -> None:
    with pytest.raises(ValueError, match="cannot"):
        MergeSpec(1, 1, OFF, best_effort=share)


POLICIES = st.one_of(
    st.builds(lambda n: MergePolicy(files=n), st.integers(2, 6)),
    st.builds(lambda b: MergePolicy(block_bytes=b), st.integers(1, 400)),
    st.just(OFF),
)
#: what happens next and to which of those it may happen to
STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1 << 16)), max_size=200)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(POLICIES, st.integers(0, 12), st.sampled_from([0.3, 0.95, 1.0]), st.integers(1, 3), STEPS)
def test_every_present_output_is_published_exactly_once(
    policy: MergePolicy, maps: int, best_effort: float, outstanding: int, steps: list[tuple[int, int]]
) -> None:
    plan = scheduler(maps, policy, best_effort=best_effort, outstanding=outstanding, timeout_s=50)
    world = _World(plan, maps)
    for at, (kind, pick) in enumerate(steps):
        world.step(kind, pick, float(at))
        world.check()
    world.finish(float(len(steps)))
    assert plan.is_settled and plan.pending == 0
    present = set(world.present.values())
    assert present <= set(world.told)
    assert not plan.anomalies


class _World:
    """Maps that end, run again and lose their outputs; mergers that answer, fail and hang."""

    def __init__(self, plan: MergeScheduler, maps: int) -> None:
        self.plan, self.maps = plan, maps
        self.present: dict[int, str] = {}
        self.numbers: Counter[int] = Counter()
        self.told: Counter[str] = Counter()
        self.under_way: dict[int, SendMerge] = {}
        self.awaited: set[str] = set()

    def step(self, kind: int, pick: int, now: float) -> None:
        if kind < 5 and self.maps:
            self.end_of_map(pick % self.maps, pick, now)
        elif kind < 7 and self.under_way:
            self.answer(sorted(self.under_way)[pick % len(self.under_way)], now, failed=kind == 6 and pick % 3 == 0)
        elif kind == 7 and self.present:
            index = sorted(self.present)[pick % len(self.present)]
            self.take(self.plan.lost(self.present.pop(index), now))
        elif kind == 8:
            self.news_of_a_merger(f"n{pick % 3}", pick // 3 % 10, now)
        elif kind == 9:
            self.take(self.plan.tick(now))

    def news_of_a_merger(self, node: str, news: int, now: float) -> None:
        if news == 0:
            self.take(self.plan.without_merger(node, now))
        elif news < 5:
            self.plan.await_merger(node)
            self.awaited.add(node)
        else:
            self.awaited.discard(node)
            self.take(self.plan.with_merger(node, now))

    def end_of_map(self, index: int, pick: int, now: float) -> None:
        if index not in self.present or pick % 7 == 0:
            number = self.numbers[index]
            self.numbers[index] += 1
            made = output(index, f"n{pick % 3}", pick % 5000, number)
            self.present[index] = made.attempt
            self.take(self.plan.finished(made, now))

    def answer(self, merge: int, now: float, *, failed: bool) -> None:
        del self.under_way[merge]
        self.take(self.plan.failed(merge, now) if failed else self.plan.merged(merge, now))

    def take(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            match decision:
                case SendMerge():
                    assert len(decision.outputs) >= 2 and len({o.node for o in decision.outputs}) == 1
                    assert not any(self.told[o.attempt] for o in decision.outputs)
                    assert decision.node not in self.awaited
                    self.under_way[decision.merge] = decision
                case CancelMerge():
                    assert self.under_way.pop(decision.merge).node == decision.node
                case Publish():
                    self.told.update(o.attempt for o in decision.outputs)
                    if decision.merge is not None:
                        assert self.plan.merges[decision.merge] is MergeState.DONE

    def check(self) -> None:
        assert all(times == 1 for times in self.told.values())
        assert self.plan.pending == sum(not self.told[attempt] for attempt in self.present.values())
        assert max(Counter(m.node for m in self.under_way.values()).values(), default=0) <= self.plan.spec.outstanding

    def finish(self, now: float) -> None:
        for index in range(self.maps):
            if index not in self.present:
                self.end_of_map(index, index, now)
        for node in sorted(self.awaited):
            self.news_of_a_merger(node, 9, now)
        while self.under_way:
            self.answer(min(self.under_way), now, failed=False)
            self.check()


# ---- counts


def test_the_papers_example_of_4_3_5() -> None:
    """100 GB, 1,000 x 1,000, 40-way with buffers of 10 MB: 1,000,000 requests become 45,000."""
    ends = [MapOutput(i, str(i), "n", 100_000_000) for i in range(1000)]
    buffers = Buffers(read=10_000_000, write=10_000_000)
    unmerged, merged = ReadCounter(1000, buffers, Unit()), ReadCounter(1000, buffers, Unit())
    unmerged.add(Publish("n", (o,)) for o in ends)
    merged.add(Publish("n", tuple(ends[i : i + 40]), i) for i in range(0, 1000, 40))
    assert unmerged.requests == 1_000_000
    assert merged.requests == 45_000
    assert merged.mean_read == 4_000_000


# ---- automatic


def test_the_small_production_job_is_left_alone_and_the_others_are_merged() -> None:
    kb = KIB
    jobs = ((915, 200, 983 * kb), (7040, 1438, 120 * kb), (8064, 2500, 147 * kb), (36145, 20011, 360 * kb))
    for memory, files in ((256 << 20, 20), ((8 << 30) / 10, 40)):
        chosen = [
            choose(ShuffleShape(m, r, block * r, nodes=100), DiskShape(merge_memory=memory)) for m, r, block in jobs
        ]
        assert [c.policy.is_off for c in chosen] == [True, False, False, False]
        assert all(c.reads / c.merged_reads >= files for c in chosen[1:])


def test_of_policies_about_as_good_the_one_that_leaves_the_fewest_reads_is_chosen() -> None:
    job, disk = ShuffleShape(8064, 2500, 2500 * 147 * KIB, nodes=100), DiskShape(merge_memory=800 << 20)
    fewer, more = (predicted_s(job, disk, files) for files in (21, 41))
    assert 0.98 < fewer / more < 1.02
    assert choose(job, disk).policy == MergePolicy(files=41)
    # with less memory the reads of larger merges are shorter, and it is not as good any more
    small = replace(disk, merge_memory=256 << 20)
    assert predicted_s(job, small, 41) > 1.02 * predicted_s(job, small, 21)
    assert choose(job, small).policy == MergePolicy(files=21)
    # where more come, the smaller merge comes first
    assert choose(replace(job, nodes=1, maps=80, grows=True), disk).policy == MergePolicy(files=20)


@pytest.mark.parametrize(
    ("here", "files"), [(39, 40), (40, 40), (41, 41), (45, 45), (46, 40), (80.64, 41), (90, 45), (91, 40), (400, 40)]
)
def test_a_few_outputs_that_would_be_left_over_are_merged_with_the_others(here: float, files: int) -> None:
    shuffle = ShuffleShape(round(here * 100), 2500, 2500 * 150_000, nodes=100)
    assert candidates(shuffle)[-1] == MergePolicy(files=files)


def test_what_memory_holds_is_not_worth_merging() -> None:
    shuffle = ShuffleShape(2000, 200, 200 * 16 * KIB, nodes=10)
    assert not choose(shuffle, DiskShape()).policy.is_off
    assert choose(shuffle, DiskShape(cache_bytes=64e9)).policy.is_off


def test_a_gain_too_small_to_count_is_said_to_be_that() -> None:
    tiny = choose(ShuffleShape(6, 2, 2 * KIB, nodes=2), DiskShape(cache_bytes=64e9))
    assert tiny.policy.is_off and tiny.merged_s < tiny.unmerged_s
    assert tiny.reason.endswith("; a gain of less than 1 s does not count")
    slow = choose(ShuffleShape(2000, 200, 200 * 256 * KIB, nodes=10), DiskShape(seek_s=0.0033))
    assert slow.policy.is_off and slow.unmerged_s - slow.merged_s > 1
    assert slow.reason.endswith("; a gain of less than 10% does not count")
    assert "does not count" not in choose(ShuffleShape(1, 1, 1 * KIB, nodes=1), DiskShape()).reason


def test_outputs_of_many_sizes_are_merged_by_block_size() -> None:
    shuffle = ShuffleShape(2000, 200, 200 * 16 * KIB, nodes=10, variation=1.0)
    assert choose(shuffle, DiskShape()).policy.block_bytes in BLOCKS


@given(
    st.builds(
        ShuffleShape,
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.one_of(st.floats(0, 1e15), st.just(math.nan)),
        st.integers(0, 10**5),
        st.floats(0, 10),
    )
)
@example(ShuffleShape(1, 1, 5e-324, nodes=2))  # so little that a half of it is nothing
@example(ShuffleShape(3, 10**6, 1.0, nodes=10**5, variation=1.0))
def test_any_shape_gets_an_answer(shuffle: ShuffleShape) -> None:
    choice = choose(shuffle, DiskShape())
    assert choice.merged_s <= choice.unmerged_s or choice.policy.is_off
    assert choice.reason
