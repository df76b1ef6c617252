"""What a queue and those below it hold and have held, counted anew when asked (Hadoop's QueueMetrics, `yarn top`)."""

from collections import Counter

from rm.cluster import Cluster
from rm.scheduler.facts import QueueView
from yaqd.model import Resource, YarnApplicationState
from yaqd.proto import yarn_common_pb2 as common


def queue_statistics(queue: QueueView, cluster: Cluster) -> common.QueueStatistics:
    """Count a queue's statistics. Ended applications count as far as the ResourceManager remembers them."""
    facts = cluster.scheduler.facts
    leaves = {leaf.path: leaf for leaf in queue.walk() if leaf.is_leaf}
    states = _ended(cluster, leaves)
    pending, pending_containers = Resource(), 0
    waiting = {name for leaf in leaves.values() for name, user in leaf.users.items() if user.waiting}
    for leaf in leaves.values():
        for app in leaf.applications.values():
            states["RUNNING" if cluster.applications[app.id].state.name == "RUNNING" else "PENDING"] += 1
            for ask in app.attempt.asks if app.attempt is not None else ():
                pending = pending + ask.capability * ask.pending
                pending_containers += ask.pending
    held = facts.reserved_in(queue)
    reserved = sum(held, Resource())
    room = ((queue.limit or facts.total) - queue.used).floored()
    return common.QueueStatistics(
        numAppsSubmitted=states.total(),
        numAppsRunning=states["RUNNING"],
        numAppsPending=states["PENDING"],
        numAppsCompleted=states["FINISHED"],
        numAppsKilled=states["KILLED"],
        numAppsFailed=states["FAILED"],
        numActiveUsers=len(waiting),  # as in Hadoop: not those whose applications have all that they asked for
        availableMemoryMB=room.memory_mb,
        allocatedMemoryMB=queue.used.memory_mb,
        pendingMemoryMB=pending.memory_mb,
        reservedMemoryMB=reserved.memory_mb,
        availableVCores=room.vcores,
        allocatedVCores=queue.used.vcores,
        pendingVCores=pending.vcores,
        reservedVCores=reserved.vcores,
        allocatedContainers=queue.containers,
        pendingContainers=pending_containers,
        reservedContainers=len(held),
    )


def _ended(cluster: Cluster, leaves: dict[str, QueueView]) -> Counter[str]:
    """Applications that the scheduler no longer has, by how they ended."""
    live = {app_id for leaf in leaves.values() for app_id in leaf.applications}
    states: Counter[str] = Counter()
    is_here: dict[str, bool] = {}
    for app in cluster.applications.values():
        if app.queue not in is_here:
            found = cluster.scheduler.facts.queue(app.queue)
            is_here[app.queue] = found is not None and found.path in leaves
        if is_here[app.queue] and app.id not in live and app.state >= YarnApplicationState.FINISHED:
            states[app.state.name] += 1
    return states
