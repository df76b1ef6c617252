"""The answer to `yaq explain`: from the scheduler's decisions, the nodes' last reports and what became of containers.

A container's decision is kept with it as long as it is not over, whoever made it: the scheduler, or a proxy that said
why. The decision log has the last ones of all applications, also of those that have ended; the records of containers
that ended outlive the ResourceManager. What only a node can know (who waits before whom, until when) is as old as its
last report. Of a node that is silent nothing is expected.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import chain, islice
from typing import Any, Final

from rm.applications.former_attempts import every_attempt
from rm.applications.records import Application, Attempt, RmContainer
from rm.applications.silent_masters import SilentMasters
from rm.cluster import Cluster
from rm.explain.reuse import Reuse
from rm.explain.stages import ExplainStages
from rm.explain.training import ExplainTraining
from rm.node_queues.chosen import why
from rm.node_queues.task_records import accuracy, room_said_ago, was_given_room
from rm.node_queues.words import NodeQueueing
from rm.nodes.cores import ApplicationCores
from rm.nodes.node import RmNode
from rm.scheduler.decisions import (
    Allocate,
    CoresTargeted,
    Keep,
    KeepNoMore,
    LogEntry,
    Outcome,
    Preempt,
    Reserve,
    StagesOrdered,
    Unreserve,
    Update,
    Warn,
)
from rm.scheduler.facts import AttemptView
from rm.scheduler.node_queues.spec import silent_after
from rm.scheduler.why.reasons import WhyWaiting
from yaqd.model import ApplicationId, ContainerId, ExecutionType
from yaqd.policies.asks.table import Ask
from yaqd.policies.queueing import limits
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server

#: asks, containers and decisions of one answer
_ASKS_MAX: Final = 50
_CONTAINERS_MAX: Final = 200
_DECISIONS_MAX: Final = 100
_ATTEMPTS_MAX: Final = 20
_KEPT_BY_PROXY: Final = "the proxy at its master's node keeps them until a node that it knows takes them"
_KEPT_SHORT: Final = (
    "%s: one where they start %s as far as is known, as their master does not say that its containers may wait"
)


class Explain:
    def __init__(
        self,
        cluster: Cluster,
        queueing: NodeQueueing,
        silent_masters: SilentMasters,
        cores: ApplicationCores,
        *,
        heartbeat_s: float,
    ) -> None:
        self._cluster = cluster
        self.training = ExplainTraining(cluster, cores)
        self._stages = ExplainStages(cluster)
        self._silent_masters = silent_masters
        self._queueing = queueing
        self._heartbeat_s = heartbeat_s

    def application(self, app: Application) -> dict[str, Any]:
        records = self._queueing.records.of(app.id)
        # reasons cost a look at every node: none is worked out for what is not told
        asks = list(islice(self._asks(app), _ASKS_MAX))
        waiting, sent = self._waiting(app)
        if app.attempt is not None:
            Reuse(self._cluster, app.attempt.id, waiting, sent).complete(asks)
        silence = self._silent_masters.of(app.attempt)
        facts = self._cluster.scheduler.facts
        return {
            "id": str(app.id),
            "name": app.name,
            "user": app.user,
            "queue": app.queue,
            "state": app.state.name,
            "finalState": _final_state(app),
            "attempts": [self._attempt(attempt) for attempt in every_attempt(app)[-_ATTEMPTS_MAX:]],
            #: its master, where that is not heard of
            "masterSilent": silence.as_json() if silence is not None else None,
            "queueing": self._queueing.is_on,
            #: at how many nodes containers may wait, and why; None: they never do, or wherever an operator said
            "queueingWhy": why(facts.node_queues(), has_core_time=self._queueing.has_core_time),
            "askedFor": self._asked_for(app),
            "asks": asks,
            **self._kept_nodes(app),
            "training": self.training.application(app),
            "stages": self._stages.application(app),
            "waitingCount": sent.total(),
            "waiting": waiting,
            "ended": [record.as_json() for record in records if not record.gave_back],
            "gaveBack": [record.as_json() for record in records if record.gave_back],
            "accuracy": accuracy(records),
            **self._log(app.id),
        }

    def _attempt(self, attempt: Attempt) -> dict[str, Any]:
        """What became of it; why one that waits does is said of its ask."""
        ago_ms = self._cluster.clock.wall_ms() - attempt.finished_ms if attempt.finished_ms else None
        return {
            "attempt": attempt.id.attempt,
            "state": attempt.state.name,
            "node": None if attempt.master is None else str(attempt.master.node_id),
            "endedAgoS": None if ago_ms is None else round(max(0, ago_ms) / 1000, 3),
            "diagnostics": attempt.diagnostics,
        }

    # ---- what it wants

    def _asks(self, app: Application) -> Iterator[dict[str, Any]]:
        attempt = self._scheduled_attempt(app)
        if attempt is None:
            return
        facts = self._cluster.scheduler.facts
        heard_since = self._cluster.clock.now() - silent_after(self._heartbeat_s)
        reasons = facts.reasons(attempt, heard_since)
        for ask in _first(attempt.asks):
            yield self._ask(attempt, ask, reasons.of(ask), ExecutionType.GUARANTEED)
        others = _first(facts.opportunistic_asks(attempt.id))
        if others:
            no_node_takes = facts.no_node_takes(attempt)
            for ask in others:
                yield self._ask(attempt, ask, no_node_takes.of(ask), ExecutionType.OPPORTUNISTIC)
        for priority, count in sorted(self._elsewhere(app).items()):
            yield self._kept(attempt, priority, count)

    def _asked_for(self, app: Application) -> int:
        """Containers, by all of its asks."""
        attempt = self._scheduled_attempt(app)
        if attempt is None:
            return 0
        asks = chain(attempt.asks, self._cluster.scheduler.facts.opportunistic_asks(attempt.id))
        return sum(ask.pending for ask in asks) + sum(self._elsewhere(app).values())

    def _scheduled_attempt(self, app: Application) -> AttemptView | None:
        scheduled = self._cluster.scheduler.facts.application(app.id)
        return scheduled.attempt if scheduled is not None else None

    def _elsewhere(self, app: Application) -> dict[int, int]:
        """By priority, what a proxy keeps."""
        elsewhere = self._cluster.scheduler.facts.elsewhere(app.id)
        return {priority: count for priority, count in elsewhere.items() if count > 0}

    def _ask(self, attempt: AttemptView, ask: Ask, why: WhyWaiting, kind: ExecutionType) -> dict[str, Any]:
        return {
            "priority": ask.key[0],
            "containers": ask.pending,
            "executionType": kind.name,
            "memoryMb": ask.capability.memory_mb,
            "vcores": ask.capability.vcores,
            "isMaster": ask.is_master,
            "waitingS": round(self._cluster.clock.now() - ask.waiting_since, 3),
            "estimateS": self._cluster.scheduler.facts.estimate(attempt.app.id, ask.key[0]),
            "why": why.reason,
            "applicationsAhead": why.ahead,
            "shortestWaitS": why.shortest_wait_s,
            "shortestSaidAgoS": None if why.said_at is None else round(self._cluster.clock.now() - why.said_at, 3),
        }

    def _kept(self, attempt: AttemptView, priority: int, count: int) -> dict[str, Any]:
        """What a proxy says that it keeps: no more than how many."""
        most_s = self._cluster.scheduler.facts.wait_limit(attempt)
        soon = f"within {most_s:g} s" if most_s > 0.0 else "at once"
        return {
            "priority": priority,
            "containers": count,
            "executionType": ExecutionType.OPPORTUNISTIC.name,
            "memoryMb": None,
            "vcores": None,
            "isMaster": False,
            "waitingS": None,
            "estimateS": self._cluster.scheduler.facts.estimate(attempt.app.id, priority),
            "why": _KEPT_BY_PROXY if most_s == math.inf else _KEPT_SHORT % (_KEPT_BY_PROXY, soon),
            "applicationsAhead": 0,
            "shortestWaitS": None,
            "shortestSaidAgoS": None,
        }

    def _kept_nodes(self, app: Application) -> dict[str, Any]:
        """Nodes whose queues are kept for it, and how many are kept for others while it wants opportunistic ones."""
        facts, now = self._cluster.scheduler.facts, self._cluster.clock.now()
        if app.attempt is None:
            return {"keptNodes": [], "keptForOthers": 0}
        kept = [
            {
                "node": str(hold.node.id),
                "sinceS": round(now - hold.since, 3),
                "containers": hold.left,
                "starvedS": round(hold.since - hold.starved_since, 3),
            }
            for hold in facts.opportunistic_holds(app.attempt.id)
        ]
        elsewhere = facts.elsewhere(app.id)
        wants = any(ask.pending for ask in facts.opportunistic_asks(app.attempt.id)) or any(elsewhere.values())
        others = facts.opportunistic_holds_of_others(app.attempt.id) if wants else 0
        return {"keptNodes": kept, "keptForOthers": others}

    # ---- what waits at nodes

    def _waiting(self, app: Application) -> tuple[list[dict[str, Any]], Counter[int]]:
        """Its containers that were sent to wait and that no node is known to run, as many as are told, and how many
        there are by priority."""
        told: list[dict[str, Any]] = []
        sent: Counter[int] = Counter()
        for node_id in app.nodes if app.attempt is not None else ():
            node = self._cluster.nodes.get(node_id)
            if node is None or app.attempt is None:
                continue
            found = self._waiting_at(node, app.attempt)
            sent.update(container.allocation.priority for container, _ in found)
            if found and len(told) < _CONTAINERS_MAX:
                told += self._told(node, found)
        return told[:_CONTAINERS_MAX], sent

    def _waiting_at(self, node: RmNode, attempt: Attempt) -> list[tuple[RmContainer, bool]]:
        """Each with whether its node has it."""
        queue = self._cluster.scheduler.facts.node_queue(node.id)
        sent = queue.waiting if queue is not None else {}
        at_node = _scheduled(node)
        held = _held(node)
        found = []
        for container in node.containers.values():
            if container.id not in attempt.containers:
                continue
            is_there = container.id in at_node
            if container.allocation.execution_type is ExecutionType.GUARANTEED:
                waits = container.id in sent or container.id in held
            else:
                waits = is_there or (container.allocation.queued is not None and not container.is_started)
            if waits:
                found.append((container, is_there))
        return found

    def _told(self, node: RmNode, found: list[tuple[RmContainer, bool]]) -> list[dict[str, Any]]:
        """Those that wait at one node, as they would start."""
        line, held = _line(node), _held(node)
        places = {name: place for place, name in enumerate(line)}
        found.sort(key=lambda waiting: places.get(str(waiting[0].id), len(line)))
        silent_s = node.silent_s(self._cluster.clock.now(), self._heartbeat_s)
        return [
            self._described(container, node, line, is_there, silent_s, held.get(container.id))
            for container, is_there in found
        ]

    def _described(
        self,
        container: RmContainer,
        node: RmNode,
        line: list[str],
        is_there: bool,
        silent_s: float | None,
        held: tuple[float, float | None] | None,
    ) -> dict[str, Any]:
        allocation, name, now = container.allocation, str(container.id), self._cluster.clock.now()
        place = allocation.queued
        said = node.status.yaq_queue.waiting[line.index(name)] if name in line else None
        age_s = now - node.heard_at if node.heard_at is not None else 0.0
        estimate_s = self._cluster.scheduler.facts.estimate(container.attempt.app.id, allocation.priority)
        if estimate_s is None and place is not None:
            estimate_s = place.estimate_s
        expected_s = _expected_s(said, age_s) if said is not None and silent_s is None else None
        held_s, starts_in_s = held if held is not None else (None, None)
        if starts_in_s is not None and silent_s is None:
            expected_s = round(max(0.0, starts_in_s - age_s), 3)
        room_ago_s = room_said_ago(container)
        return {
            "container": name,
            "node": str(node.id),
            "executionType": allocation.execution_type.name,
            "priority": allocation.priority,
            "estimateS": estimate_s,
            "rule": allocation.reason,
            "placedAgoS": round(now - container.created_at, 3),
            "expectedWaitS": _finite(place.expected_wait_s) if place is not None and room_ago_s is None else None,
            #: how long before its node had said that it had room, which others have got; None: it had not
            "roomSaidAgoS": room_ago_s,
            #: there was room for it as the nodes' reports go, which others that came to the node first have got
            "givenRoom": was_given_room(container),
            "wereAhead": None if place is None else place.behind,
            #: False: its master has not started it there
            "isAtNode": is_there or said is not None,
            #: how long the node has not been heard of; None: it reports as it should
            "nodeSilentS": silent_s,
            #: as its node said last; None: it is further back than a node tells of, or its master has not started it
            "waitedS": None if said is None else round(max(0, said.waited_ms) / 1000 + age_s, 3),
            "expectedStartInS": expected_s,
            "behind": None if said is None else line[: line.index(name)],
            #: its turn has come, and its program has waited for a processor for so long; None: it has not
            "heldS": None if held_s is None else round(held_s + age_s, 3),
        }

    # ---- the decision log

    def _log(self, app_id: ApplicationId) -> dict[str, Any]:
        """The application's last decisions, oldest first, and how far back the log goes."""
        log, now = self._cluster.scheduler.facts.log, self._cluster.clock.now()
        entries = [entry for entry in log if _whose(entry.decision) == app_id]
        begins = next(islice(log, 1), None)
        return {
            "decisions": [_entry(entry, now) for entry in entries[-_DECISIONS_MAX:]],
            "decisionsKept": len(entries),
            "logReachesBackS": None if begins is None else round(now - begins.at, 3),
        }


def _first(asks: Iterable[Ask]) -> list[Ask]:
    """Those that one answer may tell of."""
    return nsmallest(_ASKS_MAX, (ask for ask in asks if ask.pending), key=lambda ask: ask.key)


def _final_state(app: Application) -> str | None:
    """None while it goes on."""
    return app.conclusion.final_status.name if app.state.is_final and app.conclusion is not None else None


def _whose(decision: Outcome) -> ApplicationId:
    match decision:
        case Allocate(container_id) | Update(container_id) | Warn(container_id) | Preempt(container_id):
            return container_id.application_id
        case Reserve() | Unreserve() | Keep() | KeepNoMore() | CoresTargeted() | StagesOrdered():
            return decision.attempt_id.application_id
    return decision.application_id


def _entry(entry: LogEntry, now: float) -> dict[str, Any]:
    decision = entry.decision
    container_id = getattr(decision, "container_id", None)
    node_id = getattr(decision, "node_id", None)
    return {
        "agoS": round(now - entry.at, 3),
        "decision": type(decision).__name__,
        "after": entry.event,
        "container": None if container_id is None else str(container_id),
        "node": None if node_id is None else str(node_id),
        "reason": getattr(decision, "reason", None),
        "estimateS": decision.queued.estimate_s if isinstance(decision, Allocate) and decision.queued else None,
        "expectedWaitS": _finite(decision.queued.expected_wait_s)
        if isinstance(decision, Allocate) and decision.queued and decision.queued.room_said_at is None
        else None,
    }


def _finite(seconds: float) -> float | None:
    return round(seconds, 3) if math.isfinite(seconds) else None


def _expected_s(said: server.QueuedContainer, age_s: float) -> float | None:
    """Until it starts, by a report of so long ago."""
    expected_s = limits.duration(said.expected_ms / 1000 if said.HasField("expected_ms") else None)
    return _finite(max(0.0, expected_s - age_s))


def _scheduled(node: RmNode) -> set[ContainerId]:
    """The containers that had not started, as the node said last."""
    return {
        convert.container_id(said.container_id)
        for said in node.status.containersStatuses
        if said.state != common.C_COMPLETE and said.container_sub_state == common.CSS_SCHEDULED
    }


def _held(node: RmNode) -> dict[ContainerId, tuple[float, float | None]]:
    """The containers whose programs wait for a processor: for how long at its last report, and until they start then,
    s; None: it does not say."""
    found = {}
    for said in node.status.containersStatuses:
        times = said.yaq_times
        if said.state != common.C_COMPLETE and times.HasField("held_ms"):
            starts_in_s = (
                _finite(limits.duration(times.starts_in_ms / 1000)) if times.HasField("starts_in_ms") else None
            )
            found[convert.container_id(said.container_id)] = max(0, times.held_ms) / 1000, starts_in_s
    return found


def _line(node: RmNode) -> list[str]:
    """The containers that wait at a node in the order in which they would start, as it said last."""
    return [str(convert.container_id(entry.container_id)) for entry in node.status.yaq_queue.waiting]
