"""Why an application has no running master yet, in the words of Hadoop's CapacityScheduler (`AMState`,
`FiCaSchedulerApp`): `yarn application -status` prints them, and users know them.
"""

import time

from rm.attempt import Attempt
from rm.scheduler.admission import why_inactive
from rm.scheduler.users import master_need, masters_limit, user_masters_limit
from rm.scheduler.view import AttemptView, ClusterView, QueueView
from yaqd.model import Resource

_PARTITION = "<DEFAULT_PARTITION>"


def why_waiting(view: ClusterView, attempt: Attempt) -> str:
    """What a report of an attempt whose master has no container says."""
    at = time.strftime("%a %b %d %H:%M:%S %z %Y", time.localtime(attempt.started_ms / 1000))
    scheduled = view.attempt(attempt.id)
    if scheduled is None or scheduled.master is None:
        said = "Application is added to the scheduler and is not yet activated. "
        return f"[{at}] {said}{_pending(view, scheduled) if scheduled is not None else ''}"
    said = "Application is Activated, waiting for resources to be assigned for AM. "
    return f"[{at}] {said}{_activated(view, scheduled.app.leaf)}"


def _pending(view: ClusterView, scheduled: AttemptView) -> str:
    leaf = scheduled.app.leaf
    return (
        f"{why_inactive(view, scheduled) or ''} Details : AM Partition = {_PARTITION}; "
        f"AM Resource Request = {master_need(scheduled) or Resource()}; "
        f"Queue Resource Limit for AM = {masters_limit(view, leaf)}; "
        f"User AM Resource Limit of the queue = {user_masters_limit(view, leaf)}; "
        f"Queue AM Resource Usage = {leaf.masters_used}; "
    )


def _activated(view: ClusterView, leaf: QueueView) -> str:
    total, spec = view.nodes.total, leaf.spec
    used = view.calculator.share(leaf.used, total)

    def part(share: float) -> Resource:
        return Resource(int(total.memory_mb * share), int(total.vcores * share))

    return (
        f" Details : AM Partition = {_PARTITION} ; Partition Resource = {total} ; "
        f"Queue's Absolute capacity = {spec.absolute_capacity * 100:.1f} % ; "
        f"Queue's Absolute used capacity = {used * 100:.1f} % ; "
        f"Queue's Absolute max capacity = {spec.absolute_maximum * 100:.1f} % ; "
        f"Queue's capacity (absolute resource) = {part(spec.absolute_capacity)} ; "
        f"Queue's used capacity (absolute resource) = {leaf.used} ; "
        f"Queue's max capacity (absolute resource) = {part(spec.absolute_maximum)} ; "
    )
