"""Which map outputs of an unmodified job become one merged file, and when: a decision without I/O.

Nobody tells the node how many maps a job has or which of them run here, so it goes by what appears. Outputs are put
together in the order in which they come, which is the order in which reducers ask for them. A merge is due when the
policy says that it is enough. Fewer are merged when none has come for a while: for longer than they lately kept it
waiting. So waves of maps, and a busy node, are told from the end of the map stage. What reducers have mostly read
already, or what has large blocks, is left alone.

With the automatic policy the job is taken for as large as what has appeared of it here: outputs wait until merging so
many of such a size is predicted to pay on the node's disk, which for a small job never comes.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from riffle_merger.format.merged import maps_within
from riffle_merger.plan.automatic import Choice, DiskShape, ShuffleShape, choose
from riffle_merger.plan.policy import OFF, MergePolicy

#: gaps between appearances that are remembered
_GAPS = 32
#: times the longest of them without an output that end the stage
_QUIET_GAPS = 1.5
_FILES_MIN = 2


@dataclass(frozen=True, slots=True)
class Output:
    """A map output that was found whole."""

    map_id: str
    #: stored
    size_bytes: int
    partitions: int


@dataclass(frozen=True, slots=True)
class Merge:
    """To be asked of the merger."""

    merge_id: str
    map_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WatchSettings:
    #: None: chosen for each job by what has appeared of it
    policy: MergePolicy | None
    #: outputs whose average block is as large are left alone, bytes
    block_bytes_max: int
    #: silence after which fewer outputs are merged, at least and at most
    quiet_min_s: float
    quiet_max_s: float
    #: memory for the index of one merged file: nothing is served from a file whose index takes more
    index_bytes_max: int
    #: merges asked for and not over
    outstanding_max: int = 4


class JobWatch:
    """Decides for one job on one node. Times are seconds of any clock.

    A clock that jumps makes merges larger or smaller.
    """

    def __init__(self, settings: WatchSettings, began_at: float) -> None:
        """`began_at`: when the job's first container came here."""
        self._settings = settings
        #: in order of appearance
        self._waiting: deque[Output] = deque()
        #: of the first output, and of all that are merged
        self._partitions = 0
        #: all that appeared and were not left alone: how many, their bytes, and these squared
        self._seen, self._seen_bytes, self._seen_squares = 0, 0.0, 0.0
        #: of what appeared: left as it is for its size, and since most of it had been read before it was merged
        self.left_alone, self.read_before = 0, 0
        #: of those left alone: since the index of a merged file has no room for two of so many partitions
        self.without_index = 0
        #: the last automatic one, None before the first
        self.choice: Choice | None = None
        self._gaps: deque[float] = deque(maxlen=_GAPS)
        self._last_at = began_at
        self._number = 0
        self._outstanding: dict[str, Merge] = {}

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def outstanding(self) -> int:
        return len(self._outstanding)

    def appeared(self, outputs: Sequence[Output], now: float) -> None:
        """Notes that `outputs` were found since the last call."""
        indexed = [output for output in outputs if self._files_max(output.partitions) >= _FILES_MIN]
        wanted = [output for output in indexed if not self._is_left_alone(output)]
        self.without_index += len(outputs) - len(indexed)
        self.left_alone += len(outputs) - len(wanted)
        if not wanted:
            return
        self._gaps.append(max(0.0, now - self._last_at))
        self._last_at = now
        self._waiting.extend(wanted)
        for output in wanted:
            self._seen += 1
            self._seen_bytes += output.size_bytes
            self._seen_squares += output.size_bytes**2

    def decide(self, now: float, *, fetched: float = 0.0, disk: DiskShape | None = None) -> list[Merge]:
        """Returns what to merge now.

        `fetched`: share of what appeared so far that reducers have read, 0..1. `disk`: the node's, which the automatic
        policy needs.
        """
        policy = self._policy(disk)
        if fetched > 0.5:
            self.read_before += 0 if policy.is_off else len(self._waiting)
            self._waiting.clear()  # most reducers would never read the merged file
            return []
        merges: list[Merge] = []
        while not policy.is_off and len(self._outstanding) < self._settings.outstanding_max:
            count = self._due(policy, is_quiet=self._is_quiet(now))
            if not count:
                break
            self._number += 1
            merge = Merge(f"nm-{self._number}", tuple(self._waiting.popleft().map_id for _ in range(count)))
            self._outstanding[merge.merge_id] = merge
            merges.append(merge)
        return merges

    def over(self, merge_id: str) -> None:
        """Notes that the merge is done, or failed: the originals stay, and nothing is tried twice."""
        self._outstanding.pop(merge_id, None)

    def _is_left_alone(self, output: Output) -> bool:
        limit = self._settings.block_bytes_max
        if output.partitions < 1 or output.size_bytes >= limit * output.partitions:
            return True
        self._partitions = self._partitions or output.partitions
        return output.partitions != self._partitions

    def _files_max(self, partitions: int) -> int:
        return maps_within(self._settings.index_bytes_max, partitions)

    def _policy(self, disk: DiskShape | None) -> MergePolicy:
        files_max = self._files_max(self._partitions)
        if self._settings.policy is not None:
            return self._settings.policy.within(files_max)
        if not self._waiting or disk is None:
            return OFF
        mean = self._seen_bytes / self._seen
        variance = max(0.0, self._seen_squares / self._seen - mean**2)
        variation = variance**0.5 / mean if mean > 0 else 0.0
        shape = ShuffleShape(self._seen, self._partitions, mean, 1, variation, grows=True, files_max=files_max)
        self.choice = choose(shape, disk)
        return self.choice.policy

    def _due(self, policy: MergePolicy, *, is_quiet: bool) -> int:
        """How many of those that wait make a merge, 0 if none is due."""
        while self._waiting and policy.leaves_alone(self._waiting[0].size_bytes / self._waiting[0].partitions):
            self._waiting.popleft()
            self.left_alone += 1
        files, block_bytes = 0, 0.0
        for output in self._waiting:
            files += 1
            block_bytes += output.size_bytes / output.partitions
            if policy.is_enough(files, block_bytes):
                return files if files >= _FILES_MIN else 0
        return files if is_quiet and files >= _FILES_MIN else 0

    def _is_quiet(self, now: float) -> bool:
        settings = self._settings
        longest = max(self._gaps, default=0.0)
        return now - self._last_at >= min(max(settings.quiet_min_s, _QUIET_GAPS * longest), settings.quiet_max_s)
