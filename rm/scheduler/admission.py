"""Which applications a queue takes, and how a running tree of queues takes a new configuration."""

from rm.scheduler.queues import PREFIX, QueueConfigError, QueueSpec, QueueState, SchedulerSpec
from rm.scheduler.view import ClusterView, QueueView, build_queues


def refusal(leaf: QueueView | None, name: str) -> str | None:
    """Why the queue takes no new application, None when it does."""
    if leaf is None:
        return f"Application submitted to unknown queue: {name}. `yaq queue list` shows the queues."
    if not leaf.is_leaf:
        return f"Queue {leaf.path} is not a leaf queue. Submit to one of the queues below it."
    if any(q.spec.state is not QueueState.RUNNING for q in leaf.upwards()):
        return f"Queue {leaf.path} is STOPPED. Cannot accept submission of application."
    if len(leaf.applications) >= leaf.spec.maximum_applications:
        most = leaf.spec.maximum_applications
        return f"Queue {leaf.path} already has {most} applications, cannot accept submission of application."
    return None


def may_submit(leaf: QueueView, user: str) -> bool:
    """Whether the queue, or one above it, lets the user submit (or administrate, which includes it)."""
    return any(is_listed(q.spec.submit_acl, user) for q in leaf.upwards()) or may_administer(leaf, user)


def may_administer(queue: QueueView, user: str) -> bool:
    return any(is_listed(q.spec.administer_acl, user) for q in queue.upwards())


def is_listed(acl: str, user: str) -> bool:
    """Users stand before the first blank of a list; groups, after it, are not looked at."""
    return acl.strip() == "*" or user in acl.split(" ", 1)[0].split(",")


def check_refresh(view: ClusterView, spec: SchedulerSpec) -> None:
    """Raise `QueueConfigError` when the new configuration would leave something running without its queue."""
    specs = {s.path: s for s in spec.root.walk()}
    for path, queue in view.queues.items():
        new = specs.get(path)
        in_use = bool(queue.applications) or queue.containers > 0
        if new is None and in_use:
            raise QueueConfigError(path, None, "still has applications: stop the queue and wait for them first")
        if new is not None and new.children and queue.is_leaf and in_use:
            raise QueueConfigError(path, None, "still has applications and cannot get queues below it")
    if type(spec.calculator) is not type(view.calculator):
        raise QueueConfigError(PREFIX + "resource-calculator", None, "cannot change while running: restart")


def graft(view: ClusterView, spec: QueueSpec) -> None:
    """Build the tree anew, keeping the queues that exist with all they hold."""
    old = view.queues

    def adopt(fresh: QueueView) -> QueueView:
        kept = old.get(fresh.path, fresh)
        kept.spec = fresh.spec
        kept.children = [adopt(child) for child in fresh.children]
        for child in kept.children:
            child.parent = kept
        return kept

    adopt(build_queues(spec))
    view.queues = {q.path: q for q in view.root.walk()}
