"""Merging of a flow's outputs: each channel that is shuffled has a merging of its own, each stage one list to read."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId
from tez_adapter.core.demand import Ask
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.records import Completion
from tez_adapter.flow.names import output_name
from tez_adapter.flow.plan import EdgeKind, FlowPlan
from tez_adapter.merging.driver import JobToMerge, Merging, Shuffle
from tez_adapter.merging.settings import ENABLED_KEY, MergeSettings

#: a stage and one of its channels
Channel = tuple[int, int]


class FlowMerging:
    """Merging of all of a flow's shuffles, as `Merging` is of one."""

    def __init__(self, plan: FlowPlan, machine: JobMachine, on_news: Callable[[], None]) -> None:
        """`on_news` hears when stages may be told of more."""
        self._plan, self._machine, self._on_news = plan, machine, on_news
        self.shuffles: dict[Channel, Merging] = {}
        #: by channel: the stages that read it, and how many entries of its list they have been told
        self._readers: dict[Channel, list[int]] = {}
        self._told: dict[Channel, int] = {}
        for stage, found in enumerate(plan.stages):
            for edge in found.edges:
                channel = (edge.source, edge.channel)
                readers = self._readers.setdefault(channel, [])
                if stage not in readers:  # a side that two of its steps have is fetched twice, and told once
                    readers.append(stage)
        self._lists: list[list[Completion]] = [[] for _ in plan.stages]

    @classmethod
    def of(cls, job: JobToMerge, plan: FlowPlan) -> Self | None:
        """Make a flow's merging; None where nothing is merged. Raises ConfigError."""
        if not job.conf.get_bool(ENABLED_KEY):
            return None
        found = cls(plan, job.machine, job.on_news)
        job, settings = replace(job, on_news=found.news), MergeSettings.read(job.conf)
        for stage in plan.stages:
            for edge in stage.edges:
                if edge.kind is EdgeKind.SHUFFLE:
                    shuffle = _shuffle(job.spec.job_id, plan, edge.source, edge.channel)
                    found.shuffles[(edge.source, edge.channel)] = Merging(job, shuffle, settings)
        return found

    def news(self) -> None:
        """Take in what a merge has come to."""
        self._collect()
        self._on_news()

    def follow(self) -> None:
        for merging in self.shuffles.values():
            merging.follow()
        self._collect()

    def tick(self) -> None:
        for merging in self.shuffles.values():
            merging.tick()

    def _collect(self) -> None:
        """Tell readers what is settled of the channels that they read."""
        for channel, readers in self._readers.items():
            merging = self.shuffles.get(channel)
            known = self._machine.vertices[channel[0]].completions if merging is None else merging.entries
            told = self._told.get(channel, 0)
            for entry in known[told:]:
                for stage in readers:
                    self._lists[stage].append(replace(entry, channel=channel[1]))
            self._told[channel] = len(known)

    def outputs(self, vertex: int) -> Sequence[Completion] | None:
        """Return what a stage may read, in the order it came and went."""
        return self._lists[vertex] if 0 <= vertex < len(self._lists) else None

    def summary(self) -> dict[str, Any]:
        """Return what was decided for each shuffle, by its stage and channel, for the job's history."""
        stages = self._plan.stages
        return {
            "shuffles": {
                f"{stages[stage].name}, {self._named(stage, channel)}": merging.summary()
                for (stage, channel), merging in self.shuffles.items()
            }
        }

    def _named(self, stage: int, channel: int) -> str:
        readers = self._readers[(stage, channel)]
        return "for " + ", ".join(self._plan.stages[reader].name for reader in readers)

    async def close(self) -> None:
        for merging in self.shuffles.values():
            await merging.close()

    # ---- a flow starts no mergers of its own

    def handle(self, event: ev.Event) -> bool:
        """Say that no event concerns mergers alone."""
        return False

    def asks(self) -> list[Ask]:
        return []

    @property
    def wanted(self) -> tuple[int, ...]:
        return ()

    def end(self) -> None:
        """Do nothing: merges that run end with the job."""


def _shuffle(job_id: str, plan: FlowPlan, source: int, channel: int) -> Shuffle:
    stage = plan.stages[source]

    def name_of(attempt: AttemptId) -> str:
        return output_name(job_id, stage, channel, attempt.task, attempt.number)

    return Shuffle(source, stage.channels[channel], name_of, len(stage.channels), f"-{source}-{channel}")
