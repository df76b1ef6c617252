"""Merging of a job's map outputs, as its job manager carries it out: the feed decides, the mergers do, reduces read."""

import logging
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from riffle_merger.format.merged import maps_possible, maps_within
from riffle_merger.plan.choice import MergerChoice
from riffle_merger.plan.decisions import CancelMerge, Decision, SendMerge
from riffle_merger.plan.own import own_mergers
from riffle_merger.plan.policy import FAN_IN_MAX
from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId
from tez_adapter.core.demand import Ask
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.mergers import OwnMergers
from tez_adapter.core.records import Completion, Vertex
from tez_adapter.jobspec import JobSpec
from tez_adapter.master.nm_links import NodeLinks
from tez_adapter.master.output_feed import Job, OutputFeed
from tez_adapter.master.record import JobRecord
from tez_adapter.merging.job_mergers import JobMergers
from tez_adapter.merging.links import MergerLinks, SharedOutputs
from tez_adapter.merging.settings import ENABLED_KEY, INDEX_KEY, MergeSettings, own_budget
from yaqd.config import Configuration
from yaqd.ipc import RpcServer
from yaqd.mapreduce.counters import TASK_GROUP, TaskCounter
from yaqd.model import NodeId, Resource
from yaqd.proto import riffle_pb2 as pb
from yaqd.security import Token

log = logging.getLogger(__name__)

_SIZE = (TASK_GROUP, TaskCounter.MAP_OUTPUT_MATERIALIZED_BYTES.value)
#: a merge is given up by the feed; the call that waits for it ends a little later, if nobody ended it
_SLACK_S = 5.0
#: of all outputs on HDFS
_PLACE = "hdfs"


@dataclass(frozen=True, slots=True)
class Shuffle:
    """What is merged together: what the tasks of one vertex leave for those that read parts of it."""

    source: int
    parts: int
    name_of: Callable[[AttemptId], str]
    #: shuffles whose outputs an attempt counts together
    together: int = 1
    #: tells merges of a job's shuffles apart; "" where it has one
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobToMerge:
    """A job whose outputs are merged, and its manager's parts."""

    spec: JobSpec
    conf: Configuration
    machine: JobMachine
    record: JobRecord
    nodes: NodeLinks
    #: the job manager's number
    manager: int
    token: Token
    clock: Callable[[], float]
    #: hears when readers may be told of more
    on_news: Callable[[], None]


class Merging:
    """Merging for one shuffle of a job. Call `follow` when the machine has moved, `tick` now and then."""

    def __init__(
        self,
        job: JobToMerge,
        shuffle: Shuffle,
        settings: MergeSettings,
        *,
        folder: str | None = None,
        own: JobMergers | None = None,
    ) -> None:
        """`folder`: of the outputs on HDFS, where they are there. Then `own` are mergers that the job can start where
        no node has one."""
        self._shuffle = shuffle
        self._machine, self._record, self._nodes = job.machine, job.record, job.nodes
        self._clock, self._on_news = job.clock, job.on_news
        self._choice_said = False
        self._folder, self._own = folder, own
        self._own_most = settings.own
        self._own_wanted: int | None = None
        shared = None if folder is None else self._shared(folder, settings)
        if folder is not None:
            settings = settings.for_shared()
        self._feed = OutputFeed(self._job(settings), settings)
        self._links = MergerLinks(
            job.spec.job_id,
            f"am{job.manager}{shuffle.name}",
            job.token,
            self._address_of,
            timeout_s=settings.timeout_s + _SLACK_S,
            on_merged=self._merged,
            on_failed=self._failed,
            shared=shared,
        )

    def _shared(self, folder: str, settings: MergeSettings) -> SharedOutputs:
        choice = MergerChoice[tuple[str, int]](random.sample, asked=settings.asked)
        shared = SharedOutputs(folder, settings.replication, self._mergers, choice, self._clock)
        if self._own is None:
            return shared
        return replace(shared, news=partial(self._another_merger, self._own), on_lost=self._own.lost)

    def _job(self, settings: MergeSettings) -> Job:
        """What the feed may ask."""
        is_local = self._folder is None
        # no node serves from files on HDFS: each reduce reads its own row of their indexes
        parts = self._shuffle.parts
        files_max = maps_within(settings.index_bytes_max, parts) if is_local else maps_possible(parts)
        return Job(
            maps=self._source.spec.tasks,
            partitions=parts,
            name_of=self._shuffle.name_of,
            size_of=self._size_of,
            has_merger=self._has_merger,
            nodes=self._node_count,
            disks=self._nodes.disks.values,
            place_of=str if is_local else _anywhere,
            is_merger_coming=lambda place: bool(self._mergerless(place)),
            files_max=min(FAN_IN_MAX, files_max),
            files_max_by=INDEX_KEY if is_local else "its format has no more",
        )

    @classmethod
    def of(
        cls, job: JobToMerge, *, server: RpcServer, perform: Callable[[ev.Decision], None], folder: str | None
    ) -> "Merging | None":
        """Make the job's merging; None where nothing is merged: reduces are told of outputs as maps end.

        `server`: of the job's tasks. `perform` carries out what is decided of containers. Raises ConfigError.
        """
        spec, conf, machine = job.spec, job.conf, job.machine
        if not spec.reduces or not conf.get_bool(ENABLED_KEY):
            return None
        if machine.vertices[0].spec.failures_max_percent:
            return None  # merging waits for outputs of maps that the job may have to do without
        settings = MergeSettings.read(conf)
        own = None
        if folder is not None and settings.own:
            own = JobMergers(own_mergers_of(conf, machine, settings.own_wait_s), server, perform)
        return cls(job, Shuffle(0, spec.reduces, job.record.attempt_name), settings, folder=folder, own=own)

    @property
    def _source(self) -> Vertex:
        return self._machine.vertices[self._shuffle.source]

    @property
    def entries(self) -> Sequence[Completion]:
        """What readers are told of the outputs, in its order."""
        return self._feed.entries

    def outputs(self, vertex: int) -> Sequence[Completion] | None:
        """Return what a vertex may read; None: it reads nothing that is merged."""
        return self.entries if vertex == 1 else None

    # ---- mergers of the job's own

    def handle(self, event: ev.Event) -> bool:
        """Handle an event that may concern the job's own mergers. Returns whether it concerned these alone."""
        return self._own is not None and self._own.handle(event)

    def asks(self) -> list[Ask]:
        return [] if self._own is None else self._own.asks()

    @property
    def wanted(self) -> tuple[int, ...]:
        """The mergers still wanted; changes exactly when the asks should be told again."""
        return () if self._own is None else (self._own.wanted,)

    def end(self) -> None:
        """End merging: the job is over."""
        if self._own is not None:
            self._own.end()

    # ---- what happens

    def follow(self) -> None:
        self._do(self._feed.follow(self._source.completions, self._clock()))
        if self._feed.choice is not None and not self._choice_said:
            self._choice_said = True
            log.info("map outputs: %s (%s)", self._feed.choice.policy, self._feed.choice.reason)

    def tick(self) -> None:
        now = self._clock()
        if self._own is not None:
            self._own_wanted = None
            self._own.tick(self._machine, now)
        self._news(self._feed.tick(now))
        for place in self._feed.awaited(now):
            for node in self._mergerless(place):
                self._nodes.ask_services(node)

    def summary(self) -> dict[str, Any]:
        found = self._feed.summary()
        if self._folder is not None:
            found |= {"storage": "hdfs", "mergers": {f"{h}:{p}": count for (h, p), count in self._links.done.items()}}
        if self._own is not None and (self._own.starts or not self._of_nodes()):
            found |= {"own_mergers": self._own.starts, "own_mergers_trouble": self._own.trouble}
        return found

    async def close(self) -> None:
        await self._links.close()

    def _merged(self, merge: int, answer: pb.MergeResponse) -> None:
        requests = max(0, answer.reads) + max(0, answer.writes)
        self._news(self._feed.merged(merge, answer.name, max(0, answer.bytes), requests, self._clock()))

    def _failed(self, merge: int, _: str) -> None:
        self._news(self._feed.failed(merge, self._clock()))

    def _news(self, decisions: Iterable[Decision]) -> None:
        self._do(decisions)
        self._on_news()

    def _do(self, decisions: Iterable[Decision]) -> None:
        cancelled = []
        for decision in decisions:
            if isinstance(decision, SendMerge):
                self._links.send(decision)
            elif isinstance(decision, CancelMerge):
                cancelled.append(decision)
        if cancelled:
            self._links.cancel(cancelled)
        for line in self._feed.anomalies():
            log.warning("%s", line)
        if self._own is not None:
            self._mind(self._own)

    def _mind(self, own: JobMergers) -> None:
        """Containers for mergers are asked for when there is something to merge, and end when there is nothing more."""
        if self._feed.is_over:
            own.end()
        elif self._feed.pending and not self._of_nodes() and not self._mergerless(_PLACE):
            own.want(self._own_count(), self._machine)
        if not own.wanted:
            self._machine.held.to_lend = 0

    def _own_count(self) -> int:
        """The nodes are counted anew with each tick."""
        if self._own_wanted is None:
            nodes = max(1, self._node_count())
            choice = self._feed.choice
            gain_s = None if choice is None else nodes * (choice.unmerged_s - choice.merged_s)
            maps = self._source.spec.tasks
            self._own_wanted = own_mergers(maps, nodes, gain_s, most=self._own_most)
        return self._own_wanted

    def _has_merger(self, place: str) -> bool:
        if self._folder is None:
            return self._address_of(place) is not None
        if self._mergers():
            return True
        if self._own is None or not self._own.may_come or self._mergerless(place):
            return False
        if not self._own_count():
            self._own.end("starting them would take what merging saves")
            return False
        return True

    def _mergers(self) -> list[tuple[str, int]]:
        """That take any merge of outputs on HDFS."""
        return self._of_nodes() + ([] if self._own is None else self._own.known())

    async def _another_merger(self, own: JobMergers) -> bool:
        """Waits for one of the job's own. False at once where nodes have mergers: then none is started, and where all
        of theirs have failed, the originals are read."""
        return not self._of_nodes() and await own.news()

    def _of_nodes(self) -> list[tuple[str, int]]:
        """Of all nodes that have started a container of the job."""
        ports = self._nodes.merger_ports
        return [(node.host, port) for node, port in ports.items() if 0 < port < 65536]

    def _mergerless(self, place: str) -> list[NodeId]:
        """Nodes of a place that said that their mergers are being started."""
        ports = self._nodes.merger_ports
        nodes = ports if self._folder is not None else (NodeId.parse(place),)
        return [node for node in nodes if ports.get(node) == 0]

    def _address_of(self, node: str) -> tuple[str, int] | None:
        node_id = NodeId.parse(node)
        port = self._nodes.merger_ports.get(node_id, 0)
        return (node_id.host, port) if 0 < port < 65536 else None

    def _size_of(self, attempt: AttemptId) -> int:
        for group, name, value in self._record.counters_of(attempt):
            if (group, name) == _SIZE:
                return value // self._shuffle.together
        return 0

    def _node_count(self) -> int:
        nodes = {container.node for container in self._machine.containers.values()}
        return len(nodes | {entry.node for entry in self._source.completions})


def own_mergers_of(conf: Configuration, machine: JobMachine, wait_s: float) -> OwnMergers:
    """Make mergers in containers as large as a map's, which the cluster gives or the job could not run.

    Raises ConfigError.
    """
    of_map = machine.vertices[0].spec.resource
    own = OwnMergers(Resource(of_map.memory_mb, of_map.vcores), wait_s=wait_s)
    if not own_budget(conf, of_map.memory_mb):
        own.end(f"they would be as large as maps, whose {of_map.memory_mb} MB (mapreduce.map.memory.mb) are too little")
    return own


def _anywhere(_: str) -> str:
    """Outputs on HDFS are merged whichever nodes made them."""
    return _PLACE
