"""Reads of indexes are counted alike with merging and without it."""

import pytest

from benchmarks.riffle.counts import Shuffle, count
from benchmarks.riffle.indexes import ALL_AT_HAND, READ_BYTES, IndexMemory, index_requests, merged_index_bytes
from riffle_merger.format import MergedIndex
from riffle_merger.plan.counts import Buffers, ReadCounter
from riffle_merger.plan.merge_scheduler import MergeSpec
from riffle_merger.plan.policy import OFF, MergePolicy

MAPS, NODES, FILES = 400, 10, 20
NOTHING = IndexMemory(0, 0)


def counted(partitions: int, policy: MergePolicy) -> ReadCounter:
    shuffle = Shuffle(MAPS, partitions, 1000, NODES)
    return count(shuffle, MergeSpec(MAPS, partitions, policy, best_effort=1.0), Buffers())


@pytest.mark.parametrize(("policy", "files"), [(OFF, MAPS), (MergePolicy(files=FILES), MAPS // FILES)])
def test_each_reducer_has_an_index_read_again_that_has_no_room(policy: MergePolicy, files: int) -> None:
    found = counted(50, policy)
    assert index_requests(found, NODES, looks=False, memory=ALL_AT_HAND) == files == found.index_reads(looks=False)
    assert index_requests(found, NODES, looks=True, memory=ALL_AT_HAND) == found.index_reads(looks=True)
    assert index_requests(found, NODES, looks=False, memory=NOTHING) == 50 * files
    assert index_requests(found, NODES, looks=False) == files


def test_a_merged_index_is_as_long_as_it_is_counted() -> None:
    names, partitions = [f"attempt_{number}" for number in range(FILES)], 1000
    index = MergedIndex.build(names, [[(0, 0)] * FILES] * partitions, [[0] * FILES] * partitions)
    stored, cost = merged_index_bytes(FILES, partitions)
    # but for its names, and some hundred bytes
    assert 0 < len(index.to_bytes()) - stored < 32 * FILES
    assert 0 < index.cost_bytes - cost < 32 * FILES + 512


@pytest.mark.parametrize("policy", [OFF, MergePolicy(files=FILES)])
def test_a_cache_hits_for_the_share_that_it_holds(policy: MergePolicy) -> None:
    found = counted(1001, policy)
    of_output, of_merged = MAPS / NODES * (1001 * 24 + 8 + 512), 2 * merged_index_bytes(FILES, 1001)[1]
    half = IndexMemory(round(of_output / 2), round(of_merged / 2))
    asked = index_requests(found, NODES, looks=False, memory=half)
    assert asked == pytest.approx(found.files * (1 + 1000 / 2), rel=1e-4)
    # the one kind's memory is none of the other's
    other = IndexMemory(0, half.merged) if found.merged_files else IndexMemory(half.outputs, 0)
    assert index_requests(found, NODES, looks=False, memory=other) == asked


def test_a_long_index_counts_for_the_reads_that_it_takes() -> None:
    partitions = READ_BYTES // (16 + 20 * FILES) + 1
    found = counted(partitions, MergePolicy(files=FILES))
    assert index_requests(found, NODES, looks=False, memory=ALL_AT_HAND) == 2 * found.merged_files
    # those of outputs are short: each is looked at with one read
    assert index_requests(found, NODES, looks=True, memory=ALL_AT_HAND) == 4 * found.merged_files + MAPS
