"""An application goes to another leaf queue with all it holds, waits for and has reserved.

Whether it may is the caller's question. What it holds counts for the new queue at once, even above that queue's limit.
Nothing is taken away, and nothing further is given until it fits again (as Hadoop's LeafQueue.attachContainer).
"""

from bisect import insort

from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.records import AppView, QueueView
from rm.scheduler.view.user import UserView


def rehome(view: ClusterView, app: AppView, target: QueueView) -> None:
    source, attempt = app.leaf, app.attempt
    was_filed = attempt is not None and attempt.filed_at is not None
    if attempt is not None:
        view.unfile(attempt)
        del source.attempts[app.sequence]
        if attempt.master is None:
            source.inactive.remove((-app.priority, app.sequence))
        else:
            view.count_master(attempt, attempt.master, -1)
    sent = view.node_queues.recall(app)
    view.book(app, app.used * -1, -app.containers)
    view.leave(app)
    app.leaf = target
    app.owner = target.users.get(app.user) or UserView(app.user)
    view.enter(app)
    view.book(app, app.used, app.containers)
    view.node_queues.send_again(sent)
    if attempt is None:
        return
    target.attempts[app.sequence] = attempt
    if attempt.master is None:
        insort(target.inactive, (-app.priority, app.sequence))
    else:
        view.count_master(attempt, attempt.master, 1)
    if was_filed:
        view.file(attempt)
