"""The node queue's words in messages: orders from the ResourceManager in, what the node says of its queue out.

Orders come from one daemon to all nodes, so a wrong one must do no harm: what makes no sense is replaced by what does,
and said in the log once.
"""

import logging
import math
from dataclasses import replace
from typing import Final

from nm.node_queue import (
    Event,
    JobReport,
    JobsReported,
    MastersExpected,
    NodeQueueSettings,
    NodeQueueSnapshot,
    NodeQueueStatistics,
    SettingsChanged,
)
from yaqd.model import ApplicationId
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import JobFacts, TaskFacts
from yaqd.policies.queueing.order import Ordering, Scope
from yaqd.proto import convert
from yaqd.proto import yarn_server_pb2 as server

log = logging.getLogger(__name__)

_MAX_WAIT_S: Final = 60.0
_STARVE_S: Final = 10.0
_STARVE_RATIO: Final = 10.0
#: a longer time is as good as none, and its milliseconds fit the wire
_LONGEST_S: Final = 1e9
_SHORTEST_WAIT_S: Final = 0.1
_NAMES_WARNED_MAX: Final = 100
#: Hadoop's NodeManager reports the memory of opportunistic containers in whole GiB
_MB_PER_GB: Final = 1024
#: masters that one node is to expect
_MASTERS_MAX: Final = 1000
#: leaf queues with an order of their own
_LEAVES_MAX: Final = 10_000
_SCOPES: Final = tuple(Scope)


class NodeQueueCommands:
    """Turns messages into events for the queue."""

    def __init__(self, *, max_length: int) -> None:
        #: containers that may wait on this node, whatever is ordered
        self.max_length = max_length
        self._warned: set[str] = set()

    def events(self, message: server.NodeQueueOrders) -> list[Event]:
        events: list[Event] = []
        if message.HasField("settings"):
            events.append(SettingsChanged(self.settings(message.settings)))
        if message.jobs:
            events.append(JobsReported(tuple(map(_job_report, message.jobs))))
        if message.HasField("masters"):
            rooms = message.masters.rooms[:_MASTERS_MAX]
            known = {convert.application_id(one.application_id): convert.resource(one.resource) for one in rooms}
            events.append(MastersExpected(known))
        return events

    def settings(self, message: server.NodeQueueSettings) -> NodeQueueSettings:
        ordering = self._ordering_of(message, message.scope)
        leaves = tuple((one.queue, self._ordering_of(one, message.scope)) for one in message.leaves[:_LEAVES_MAX])
        return NodeQueueSettings(
            enabled=message.enabled,
            max_queued=min(max(0, message.max_queued), self.max_length),
            ordering=replace(ordering, leaves=leaves),
            max_wait_s=max(_SHORTEST_WAIT_S, self._seconds(message, "max_wait_ms", _MAX_WAIT_S, _MAX_WAIT_S)),
        )

    def _ordering_of(self, message: server.NodeQueueSettings | server.LeafOrder, scope: str) -> Ordering:
        ratio = message.starve_ratio if message.HasField("starve_ratio") else math.inf
        if math.isnan(ratio) or ratio < 0:
            self._warn("starve_ratio", ratio, _STARVE_RATIO)
            ratio = _STARVE_RATIO
        starve_s = self._seconds(message, "starve_ms", _STARVE_S, math.inf)
        return self.ordering(message.order, starve_s, ratio, scope)

    def ordering(self, strategy: str, starve_s: float, starve_ratio: float, scope: str) -> Ordering:
        """Makes the ordering of that name; by arrival, in the same turns, where nobody knows the name."""
        try:
            return Ordering(strategy or "fifo", starve_s, starve_ratio, scope or "all")
        except ValueError as error:
            self._warn("order", f"{strategy} (scope {scope}): {error}", "fifo")
            # turns keep the shares of queues and users, whatever the order in them
            turns = scope if scope in _SCOPES else Scope.ALL
            return Ordering("fifo", starve_s, starve_ratio, turns)

    def _seconds(
        self, message: server.NodeQueueSettings | server.LeafOrder, name: str, sane_s: float, unset_s: float
    ) -> float:
        if not message.HasField(name):
            return unset_s
        seconds: float = getattr(message, name) / 1000
        if seconds < 0:
            self._warn(name, seconds, sane_s)
            return sane_s
        return min(seconds, _LONGEST_S)

    def _warn(self, what: str, value: object, instead: object) -> None:
        text = f"{what} {str(value)[:200]}"
        if text not in self._warned and len(self._warned) < _NAMES_WARNED_MAX:
            self._warned.add(text)
            log.warning("the ResourceManager orders a node queue with %s; %s is taken instead", text, instead)


def _job_report(message: server.JobFacts) -> JobReport:
    work = message.remaining_work_ms / 1000 if message.HasField("remaining_work_ms") else None
    tasks = message.remaining_tasks if message.HasField("remaining_tasks") else None
    path = message.critical_path_ms / 1000 if message.HasField("critical_path_ms") else None
    return JobReport(
        convert.application_id(message.application_id),
        JobFacts(
            remaining_work=work if work is None or work >= 0 else None,
            remaining_tasks=tasks if tasks is None or tasks >= 0 else None,
            critical_path=path if path is None or path >= 0 else None,
        ),
        arrival=message.arrival_ms / 1000 if message.HasField("arrival_ms") else None,
        estimates={
            stage.priority: _estimate(stage.estimate_ms if stage.HasField("estimate_ms") else None)
            for stage in message.estimates
        },
    )


def _estimate(milliseconds: int | None) -> float | None:
    """A negative one is nobody's estimate, nor is one longer than a life."""
    seconds = limits.duration(None if milliseconds is None else milliseconds / 1000)
    return seconds if seconds < math.inf else None


def task_facts(token: server.ContainerTokenIdentifier, job: ApplicationId) -> TaskFacts:
    """Reads what a container's token says of it beside its resources. A stock ResourceManager's says little."""
    task = token.yaq_task
    if token.HasField("yaq_task"):
        arrival = task.job_arrival_ms / 1000
    else:  # ids tell in which order jobs came, which is all that anybody asks
        arrival = job.cluster_timestamp / 1000 + job.id / 1e6
    return TaskFacts(
        job,
        user=token.appSubmitter,
        queue=task.leaf_queue,
        job_arrival=arrival,
        estimate=_estimate(task.estimate_ms if task.HasField("estimate_ms") else None),
        priority=token.priority.priority,
        waited_s=max(0, task.waited_ms) / 1000,
        most_wait_s=max(_SHORTEST_WAIT_S, task.most_wait_ms / 1000) if task.HasField("most_wait_ms") else math.inf,
    )


def queue_pb(queue: NodeQueueSnapshot) -> server.NodeQueue:
    message = server.NodeQueue(running=queue.running, queued=queue.queued, wait_ms=wait_ms(queue.wait_s))
    for waiting in queue.waiting:
        entry = message.waiting.add(waited_ms=wait_ms(waiting.waited_s))
        convert.put_container_id(entry.container_id, waiting.container_id)
        if math.isfinite(waiting.expected_s):
            entry.expected_ms = wait_ms(waiting.expected_s)
    return message


def opportunistic_pb(queue: NodeQueueStatistics) -> server.OpportunisticContainersStatus:
    return server.OpportunisticContainersStatus(
        running_opport_containers=queue.opportunistic_running,
        opport_memory_used=queue.opportunistic_used.memory_mb // _MB_PER_GB,
        opport_cores_used=queue.opportunistic_used.vcores,
        queued_opport_containers=queue.opportunistic_queued,
        wait_queue_length=queue.queued,
        opport_queue_capacity=queue.opportunistic_max,
    )


def wait_ms(seconds: float) -> int:
    """Converts seconds to milliseconds; -1: for ever."""
    return round(1000 * min(seconds, _LONGEST_S)) if math.isfinite(seconds) else -1
