"""Why an application's master is not let start, in words; for people, not per decision."""

from typing import Final

from rm.scheduler.queues.admission import CLUSTER_EMPTY, QUEUE_MASTERS_EXCEEDED, YIELDED, why_inactive
from rm.scheduler.queues.user_limits import master_need, masters_limit, user_masters_limit
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.records import AttemptView, QueueView
from yaqd.model import Resource

MASTERS_LIMIT_KEY: Final = "yarn.scheduler.capacity.maximum-am-resource-percent"
NO_NODES: Final = "the cluster has no node in service (`yaq node list --all`)"


def why_not_let_start(view: ClusterView, attempt: AttemptView) -> str:
    """Say what keeps the master of an attempt from being let start, which nobody has done yet."""
    why, leaf, need = why_inactive(view, attempt), attempt.app.leaf, master_need(attempt) or Resource()
    if why is None:
        return f"nothing is in its way any more: it starts once queue {leaf.path} or the cluster's nodes change"
    if why == CLUSTER_EMPTY:
        return NO_NODES
    if why == YIELDED:
        other = view.yielded[attempt.app.id].to
        return (
            f"application masters alone left no room, so its master made way for {other}: it starts again once that "
            f"has ended or there is room for both"
        )
    if why == QUEUE_MASTERS_EXCEEDED:
        limit, whose, before = masters_limit(view, leaf), f"queue {leaf.path}", _one_of(view, leaf, None)
    else:
        user = attempt.app.user
        limit, whose = user_masters_limit(view, leaf), f"{user} in queue {leaf.path}"
        before = _one_of(view, leaf, user)
    if not view.calculator.fits(need, limit):
        before = "all others of the queue have ended: the only one always may"
    return (
        f"the application masters of {whose} may hold {limit} together ({MASTERS_LIMIT_KEY} limits them): another of "
        f"{need} cannot start before {before}"
    )


def _one_of(view: ClusterView, leaf: QueueView, user: str | None) -> str:
    """Say which has to end. Those that were let start hold nothing before a node has room for them."""
    let = [one for _, one in sorted(leaf.attempts.items()) if one.master is not None and user in (None, one.app.user)]
    waiting = [one for one in let if one.id in view.masters_wanted]
    if not waiting:
        return "one of those that run has ended"
    first = waiting[0].id.application_id
    if len(let) == 1:
        return f"{first} has ended, which was let start first and whose master holds nothing yet"
    which = f"that of {first} holds" if len(waiting) == 1 else f"those of {len(waiting)}, {first} first, hold"
    return f"one of {len(let)} has ended that were let start first; {which} nothing yet"
