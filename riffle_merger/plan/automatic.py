"""Whether merging pays for a job, and which policy pays most: disk time predicted with it and without.

A node's disk serves `maps / nodes` outputs to every reducer. What its page cache does not hold costs a seek and a
transfer for each block. Merging reads and writes everything once more, in large requests, and leaves fewer, larger
blocks. Some of that work is hidden behind the map stage, whose tasks compute while the disk merges; the last merges,
which are the longer the more files they take, are not. A request also
costs the node's processor something, wherever its bytes are. Merging is chosen when the prediction saves a worthwhile
share and a worthwhile time; of policies that are about as good, the one that leaves the fewest reads: who else uses
the disks is not predicted, and gains by that.
"""

import math
from dataclasses import dataclass
from typing import Final

from riffle_merger.plan.buffers import WRITE_BYTES, read_bytes
from riffle_merger.plan.policy import FAN_IN_MAX, OFF, MergePolicy

_KIB: Final = 1024
_MIB: Final = 1024 * 1024
#: the numbers and sizes that the paper measured
FILES: Final = (5, 10, 20, 40)
BLOCKS: Final = (512 * _KIB, _MIB, 2 * _MIB, 4 * _MIB)
#: a prediction below these is not worth a pass over the data: share of the disk time, and seconds of it on each node
_SHARE_MIN: Final = 0.1
_SECONDS_MIN: Final = 1.0
#: policies whose predictions differ by less than this share are as good as each other
_EQUAL: Final = 0.02
#: of a merge that begins after the last map, what reducers wait for: best effort leaves out the last of them
_LAST: Final = 0.5
#: a merge takes so much more than its share of files so that none is left over
_CRUMBS: Final = 0.125
#: outputs whose sizes vary by more than this (deviation over mean) are merged by block size
_VARIED: Final = 0.25


@dataclass(frozen=True, slots=True)
class ShuffleShape:
    """What is known or expected of a shuffle."""

    maps: int
    partitions: int
    #: stored bytes of one map's output, on average
    output_bytes: float
    #: nodes that the maps run on
    nodes: int
    #: standard deviation of outputs over their mean
    variation: float = 0.0
    #: more maps may come: what will be left over is not known
    grows: bool = False
    #: outputs that one merged file may have
    files_max: int = FAN_IN_MAX


@dataclass(frozen=True, slots=True)
class DiskShape:
    """A node's disk, as measured."""

    #: one small read somewhere else, s
    seek_s: float = 0.008
    bytes_per_s: float = 100e6
    #: memory that keeps files at hand, bytes
    cache_bytes: float = 0.0
    #: processor time of one read request, s
    request_s: float = 20e-6
    #: share of merging that the map stage hides, 0..1
    hidden: float = 0.5
    #: that one merge has for itself while as many run as may, bytes; of the paper's 8 GB for ten
    merge_memory: float = 800.0 * _MIB


@dataclass(frozen=True, slots=True)
class Choice:
    policy: MergePolicy
    #: one line for the user
    reason: str
    #: disk and request time of a node, s
    unmerged_s: float
    merged_s: float
    #: of one reducer
    reads: float
    merged_reads: float


def choose(shuffle: ShuffleShape, disk: DiskShape) -> Choice:
    """Return the policy that pays most, or none."""
    if shuffle.maps < 1 or shuffle.partitions < 1 or not shuffle.output_bytes >= 1:
        return Choice(OFF, "there is nothing to merge", 0.0, 0.0, shuffle.maps, shuffle.maps)
    without = predicted_s(shuffle, disk, 1.0)
    best, best_s, best_fan_in = _best(shuffle, disk, without)
    saved = without - best_s
    what = f"{_time(without)} of each node's disk predicted without merging"
    reads = float(shuffle.maps)
    if best.is_off or saved < _SECONDS_MIN or saved < _SHARE_MIN * without:
        block = shuffle.output_bytes / shuffle.partitions
        reason = f"{what}, {_time(best_s)} with the best of merging (blocks of {block / _KIB:,.0f} KB)"
        if not best.is_off:
            reason += f"; {_too_little(saved)}"
        return Choice(OFF, reason, without, best_s, reads, reads)
    reason = f"{what}, {_time(best_s)} with merging to {best}"
    return Choice(best, reason, without, best_s, reads, reads / best_fan_in)


def _best(shuffle: ShuffleShape, disk: DiskShape, without: float) -> tuple[MergePolicy, float, float]:
    """Policy, its seconds and its fan-in."""
    found = [(OFF, without, 1.0)]
    for policy in candidates(shuffle):
        fan_in = fan_in_of(policy, shuffle)
        if fan_in >= 2 and fan_in > found[-1][2]:  # else there are no more outputs to put into a file
            found.append((policy, predicted_s(shuffle, disk, fan_in), fan_in))
    least = min(seconds for _, seconds, _ in found)
    good = [one for one in found if one[1] <= least * (1 + _EQUAL) and one[1] < without]
    # where more come, what is there is merged by the smaller number; the larger has its turn when it is better
    return found[0] if least == without else good[0 if shuffle.grows else -1]


def _too_little(saved: float) -> str:
    """Why merging that would save something is not chosen."""
    if saved < _SECONDS_MIN:
        return f"a gain of less than {_SECONDS_MIN:g} s does not count"
    return f"a gain of less than {_SHARE_MIN:.0%} does not count"


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def candidates(shuffle: ShuffleShape) -> tuple[MergePolicy, ...]:
    """List the policies to choose from, least merging first."""
    if shuffle.variation > _VARIED:
        found = [MergePolicy(block_bytes=size) for size in BLOCKS]
    else:
        here = 0.0 if shuffle.grows else shuffle.maps / max(1, shuffle.nodes)
        found = [MergePolicy(files=_without_crumbs(files, here)) for files in FILES]
    return tuple(dict.fromkeys(policy.within(shuffle.files_max) for policy in found))


def _without_crumbs(files: int, here: float) -> int:
    """A few more files in each merge, where a node would be left with a few outputs that make no merge worth having."""
    merges = here // files
    return math.ceil(here / merges) if merges and here / merges <= files * (1 + _CRUMBS) else files


def fan_in_of(policy: MergePolicy, shuffle: ShuffleShape) -> float:
    """Return how many outputs a policy puts into one file, on average."""
    here = max(1.0, shuffle.maps / max(1, shuffle.nodes))
    if policy.is_off:
        return 1.0
    if policy.files:
        return min(float(policy.files), here)
    block = shuffle.output_bytes / shuffle.partitions
    if policy.leaves_alone(block):
        return 1.0
    return min(float(-(-policy.block_bytes // block)), policy.files_max, here)


def predicted_s(shuffle: ShuffleShape, disk: DiskShape, fan_in: float) -> float:
    """Predict seconds of one node's disk and of serving, from the end of its maps to the last reducer's read."""
    here = shuffle.maps / max(1, shuffle.nodes)
    size = here * shuffle.output_bytes
    reads = here * shuffle.partitions / max(1.0, fan_in)
    missing = max(0.0, 1.0 - disk.cache_bytes / size)
    seconds = reads * (disk.request_s + missing * disk.seek_s) + missing * size / disk.bytes_per_s
    if fan_in > 1:
        # what is written has to reach the disk; what is read was just written, and is at hand if it fits
        longest = read_bytes(fan_in, shuffle.partitions, disk.merge_memory)
        read_s = size / disk.bytes_per_s + size / min(longest, shuffle.output_bytes) * disk.seek_s
        written_s = size / disk.bytes_per_s + size / WRITE_BYTES * disk.seek_s
        seconds += (1 - disk.hidden) * (missing * read_s + written_s)
        # the last merges begin when the last maps have ended, and hide behind nothing: the more files, the longer
        last = fan_in * shuffle.output_bytes / disk.bytes_per_s
        seconds += _LAST * (1 + missing) / 2 * last
    return seconds
