"""What reduces are told of map outputs while these are merged: the list they follow, and the merges behind it.

Without merging reduces hear of each output as its map ends. With it they hear once an output is settled: as part of a
merged file, or, left alone, cancelled or failed, as it is. The decisions are `riffle_merger.plan`'s; what is remembered
here is only what belongs to the list. With the automatic policy the first outputs are held until there are enough of
them to choose by; a job that is left alone is then told of everything as it comes.
"""

import math
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from riffle_merger.merger.disk import DiskFacts
from riffle_merger.plan.automatic import Choice, ShuffleShape, choose
from riffle_merger.plan.decisions import Decision, MapOutput, Publish
from riffle_merger.plan.merge_scheduler import MergeScheduler, MergeSpec
from riffle_merger.plan.policy import FAN_IN_MAX, OFF, MergePolicy
from riffle_merger.plan.states import MergeState
from tez_adapter.core.dag import AttemptId
from tez_adapter.core.records import Completion
from tez_adapter.merging.settings import MergeSettings

#: outputs whose sizes the automatic choice goes by
_SAMPLE: Final = 5
#: a merger that is being started is waited for so long; then its node's outputs are read as they are until it is there
_AWAITED_S: Final = 5.0


@dataclass(slots=True)
class _Tally:
    """For whoever asks afterwards what merging did."""

    merged_outputs: int = 0
    merged_files: int = 0
    left_alone: int = 0
    #: whose blocks are as large as the policy wants them without a merge
    large: int = 0
    merged_bytes: int = 0
    merge_requests: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """What the feed needs to know of its job."""

    maps: int
    partitions: int
    name_of: Callable[[AttemptId], str]
    #: stored bytes of a finished map's output
    size_of: Callable[[AttemptId], int]
    has_merger: Callable[[str], bool]
    #: nodes that the job runs on
    nodes: Callable[[], int]
    #: what these nodes' mergers found of their disks
    disks: Callable[[], Collection[DiskFacts]] = tuple
    #: what is merged together: a node's outputs, unless told otherwise
    place_of: Callable[[str], str] = str
    #: whether a merger that is not there is being started
    is_merger_coming: Callable[[str], bool] = lambda _: False
    #: outputs that one merged file may have for its index, and what that is due to
    files_max: int = FAN_IN_MAX
    files_max_by: str = ""


@dataclass(slots=True)
class OutputFeed:
    """Merges go out as decisions, `SendMerge` and `CancelMerge`; their ends come in with `merged` and `failed`."""

    job: Job
    settings: MergeSettings
    entries: list[Completion] = field(default_factory=list)
    #: what the automatic choice was and why; None while it is open, and where the policy is configured
    choice: Choice | None = None
    _policy: MergePolicy | None = None
    _scheduler: MergeScheduler | None = None
    _seen: int = 0
    _held: list[Completion] = field(default_factory=list)
    _ids: dict[str, Completion] = field(default_factory=dict)
    _announced: set[str] = field(default_factory=set)
    #: places that had outputs and no merger, and since when
    _awaited: dict[str, float] = field(default_factory=dict)
    _files: dict[int, str] = field(default_factory=dict)
    _tally: _Tally = field(default_factory=_Tally)

    def __post_init__(self) -> None:
        if self.settings.policy is not None:
            self._decide(self.settings.policy)
        elif self.job.files_max < 2:
            self._decide(OFF)

    # ---- what happens

    def follow(self, completions: Sequence[Completion], now: float) -> list[Decision]:
        """Take in what came to the machine's list since the last call."""
        made: list[Decision] = []
        while self._seen < len(completions):
            entry = completions[self._seen]
            self._seen += 1
            if self._policy is None:
                self._held.append(entry)
                made += self._decide_if_known(now)
            else:
                made += self._take(entry, now)
        return made

    def merged(self, merge: int, name: str, size: int, requests: int, now: float) -> list[Decision]:
        """Note that the merge is done; its file has this name."""
        if self._scheduler is None:
            return []
        self._files[merge] = name
        self._tally.merge_requests += requests
        to_do = self._announce(self._scheduler.merged(merge, now))
        if self._scheduler.merges.get(merge) is MergeState.DONE:
            self._tally.merged_bytes += size
        self._files.pop(merge, None)
        return to_do

    def failed(self, merge: int, now: float) -> list[Decision]:
        return self._announce(self._scheduler.failed(merge, now)) if self._scheduler is not None else []

    def tick(self, now: float) -> list[Decision]:
        if self._scheduler is None:
            return []
        found = [decision for place in list(self._awaited) for decision in self._merger_of(place, self._scheduler, now)]
        return self._announce([*found, *self._scheduler.tick(now)])

    def awaited(self, now: float) -> list[str]:
        """List places whose outputs wait for a merger that is being started: ask whether it is there."""
        return [place for place, since in self._awaited.items() if self._is_awaited(place, since, now)]

    def anomalies(self) -> list[str]:
        """Take the anomalies for the log; each is said once."""
        if self._scheduler is None:
            return []
        taken, self._scheduler.anomalies = self._scheduler.anomalies, []
        return taken

    @property
    def pending(self) -> int:
        """Outputs that gather or are being merged."""
        return 0 if self._scheduler is None else self._scheduler.pending

    @property
    def is_over(self) -> bool:
        """Whether nothing will be merged any more."""
        if self._scheduler is None:
            return self._policy is not None
        return self._scheduler.is_over

    # ---- the policy

    def _decide_if_known(self, now: float) -> list[Decision]:
        present = [entry.attempt for entry in self._held if entry.available]
        if len(present) < min(_SAMPLE, self.job.maps):
            return []
        sizes = [float(max(0, self.job.size_of(attempt))) for attempt in present]
        mean = statistics.fmean(sizes)
        variation = statistics.pstdev(sizes) / mean if mean > 0 else 0.0
        job = self.job
        shape = ShuffleShape(job.maps, job.partitions, mean, max(1, job.nodes()), variation, files_max=job.files_max)
        self.choice = choose(shape, self.settings.disk_of(self.job.disks()))
        self._decide(self.choice.policy)
        held, self._held = self._held, []
        return [decision for entry in held for decision in self._take(entry, now)]

    def _decide(self, policy: MergePolicy) -> None:
        self._policy = policy = policy.within(self.job.files_max)
        settings = self.settings
        spec = MergeSpec(
            self.job.maps,
            self.job.partitions,
            policy,
            best_effort=settings.best_effort,
            timeout_s=settings.timeout_s,
            outstanding=settings.outstanding,
        )
        self._scheduler = None if policy.is_off else MergeScheduler(spec)

    # ---- outputs

    def _take(self, entry: Completion, now: float) -> list[Decision]:
        name = self.job.name_of(entry.attempt)
        if self._scheduler is None:
            self.entries.append(entry)
            return []
        if not entry.available:
            decisions = self._scheduler.lost(name, now)
            self._ids.pop(name, None)
            if name in self._announced:
                self._announced.discard(name)
                self.entries.append(Completion(entry.attempt, entry.node, entry.host, False))
            return self._announce(decisions)
        self._ids[name] = entry
        place = self.job.place_of(entry.node)
        output = MapOutput(entry.attempt.task, name, place, max(0, self.job.size_of(entry.attempt)))
        self._tally.large += self._scheduler.spec.policy.leaves_alone(output.size / self.job.partitions)
        decisions = self._merger_of(place, self._scheduler, now)
        return self._announce([*decisions, *self._scheduler.finished(output, now)])

    def _merger_of(self, place: str, scheduler: MergeScheduler, now: float) -> list[Decision]:
        """Tell the scheduler whether there is one. It may listen only after the first maps of a job have ended."""
        if self.job.has_merger(place):
            self._awaited.pop(place, None)
            return scheduler.with_merger(place, now)
        if self._is_awaited(place, self._awaited.setdefault(place, now), now):
            scheduler.await_merger(place)
            return []
        return scheduler.without_merger(place, now)

    def _is_awaited(self, place: str, since: float, now: float) -> bool:
        return now - since < _AWAITED_S and self.job.is_merger_coming(place)

    def _announce(self, decisions: list[Decision]) -> list[Decision]:
        """Add what is settled to the list; what is left is for the mergers."""
        to_do: list[Decision] = []
        for decision in decisions:
            if not isinstance(decision, Publish):
                to_do.append(decision)
                continue
            merged = "" if decision.merge is None else self._files[decision.merge]
            if merged:
                self._tally.merged_files += 1
                self._tally.merged_outputs += len(decision.outputs)
            else:
                self._tally.left_alone += len(decision.outputs)
            for output in decision.outputs:
                entry = self._ids[output.attempt]
                self._announced.add(output.attempt)
                self.entries.append(Completion(entry.attempt, entry.node, entry.host, True, merged))
        return to_do

    # ---- afterwards

    def summary(self) -> dict[str, Any]:
        """Return what was decided and what it came to, for the job's history."""
        tally = self._tally
        policy = self._policy or OFF
        states = list(self._scheduler.merges.values()) if self._scheduler is not None else []
        saved = (tally.merged_outputs - tally.merged_files) * self.job.partitions
        return {
            "policy": str(policy),
            "automatic": self.settings.policy is None,
            "reason": "; ".join(filter(None, [self.choice.reason if self.choice is not None else "", self._limit()])),
            "unmerged": self._why_nothing(),
            "predicted_s": _finite(self.choice.merged_s) if self.choice is not None else None,
            "predicted_unmerged_s": _finite(self.choice.unmerged_s) if self.choice is not None else None,
            "reads": self.job.maps,
            "files": tally.merged_files + tally.left_alone if self._scheduler is not None else self.job.maps,
            "merged_outputs": tally.merged_outputs,
            "merged_files": tally.merged_files,
            "merged_bytes": tally.merged_bytes,
            "merge_requests": tally.merge_requests,
            "saved_reads": saved,
            "merges": {state.value.lower(): states.count(state) for state in MergeState if state in states},
        }

    def _limit(self) -> str:
        """What kept merges from being of more outputs; empty where nothing may have."""
        policy, most = self._policy or OFF, self.job.files_max
        if policy.is_off or most >= FAN_IN_MAX or most not in (policy.files, policy.files_max):
            return ""
        return f"the index of one merged file has room for {most} outputs of {self._parts()}"

    def _parts(self) -> str:
        return f"{self.job.partitions:,} parts ({self.job.files_max_by})"

    def _why_nothing(self) -> str:
        """Why nothing was merged although something was to be; empty where something was, or nothing should."""
        if self.job.maps == 1:
            return "one map output has nothing to be merged with"
        if self.job.files_max < 2 and self.settings.policy != OFF:
            return f"nothing was merged: the index of a merged file has no room for two outputs of {self._parts()}"
        if self._scheduler is None or self._tally.merged_files:
            return ""
        if self._scheduler.merges:
            return "nothing was merged: no merge came to its end"
        if self._tally.large:
            large = min(self._tally.large, self.job.maps)
            return f"nothing was merged: {large} of {self.job.maps} outputs have such blocks, or larger ones, already"
        return "nothing was merged: nowhere were two outputs and a merger for them"


def _finite(number: float) -> float | None:
    return round(number, 3) if math.isfinite(number) else None
