"""Which applications a queue takes, which of them may start their masters, and how a running tree of queues takes a new
configuration. The texts are those of Hadoop's CapacityScheduler and its leaf queues.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from rm.scheduler.queues.spec import PREFIX, QueueConfigError, QueueSpec, QueueState, SchedulerSpec
from rm.scheduler.queues.user_limits import master_need, masters_limit, user_masters_limit
from rm.scheduler.view.calculators import CALCULATORS, Calculator
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.records import AttemptView, QueueView, build_queues
from yaqd.model import ApplicationId, Resource

QUEUE_MASTERS_EXCEEDED: Final = "Queue's AM resource limit exceeded. "
USER_MASTERS_EXCEEDED: Final = "User's AM resource limit exceeded. "
YIELDED: Final = "Its AM was preempted so that another application can go on. "
CLUSTER_EMPTY: Final = "Skipping AM assignment as cluster resource is empty. "

#: of an unknown queue's name, characters; names it is compared with; queues that are listed
_NAME_COMPARED: Final = 100
_NAMES_COMPARED: Final = 1000
_QUEUES_SHOWN: Final = 8

#: the groups of a user
GroupsOf = Callable[[str], Collection[str]]


def refusal(view: ClusterView, app_id: ApplicationId, name: str, user: str) -> str | None:
    """Say why the queue takes no new application of this user; None when it does."""
    leaf = view.find_queue(name)
    if leaf is None:
        return f"Application {app_id} submitted by user {user} to unknown queue: {name}{queue_hint(view, name)}"
    if not leaf.is_leaf:
        return f"Application {app_id} submitted by user {user} to non-leaf queue: {leaf.path}"
    if len(view.applications) >= view.spec.maximum_applications:
        return f"Maximum system application limit reached,cannot accept submission of application: {app_id}"
    if any(q.spec.state is not QueueState.RUNNING for q in leaf.upwards()):
        return f"Queue {leaf.path} is STOPPED. Cannot accept submission of application: {app_id}"
    has = len(leaf.applications)
    if has >= leaf.spec.maximum_applications:
        return f"Queue {leaf.path} already has {has} applications, cannot accept submission of application: {app_id}"
    owner = leaf.users.get(user)
    has = owner.applications if owner is not None else 0
    if has >= leaf.spec.maximum_user_applications:
        return (
            f"Queue {leaf.path} already has {has} applications from user {user}"
            f" cannot accept submission of application: {app_id}"
        )
    return None


def queue_hint(view: ClusterView, name: str) -> str:
    """Say which queue was meant perhaps, and which ones there are. The text ends the sentence that names the unknown
    one."""
    from difflib import get_close_matches  # a misspelt queue is rare, and this is a part of no decision

    leaves = {queue.path: queue.spec.name for queue in view.queues.values() if queue.is_leaf}
    wanted = name[:_NAME_COMPARED].rpartition(".")[2]
    compared = {last: path for path, last in islice(leaves.items(), _NAMES_COMPARED)}
    near = get_close_matches(wanted, compared, 1)
    shown = ", ".join(islice(leaves, _QUEUES_SHOWN))
    more = f" and {len(leaves) - _QUEUES_SHOWN} more" if len(leaves) > _QUEUES_SHOWN else ""
    return f"{f'; did you mean {compared[near[0]]}?' if near else ''} (queues: {shown}{more})"


def admissible(view: ClusterView, leaf: QueueView) -> Iterator[tuple[AttemptView, Resource]]:
    """Yield waiting attempts whose masters may start, in order, each with its master's size; none twice.

    The owner admits each one before it asks for the next. One that is too large, or whose user has its share, keeps
    nobody back.
    """
    for *_, sequence in list(leaf.inactive):
        if leaf.masters and not view.calculator.fits(leaf.masters_used + view.least, masters_limit(view, leaf)):
            return
        attempt = leaf.attempts[sequence]
        if why_inactive(view, attempt) is None:
            yield attempt, master_need(attempt) or Resource()


def why_inactive(view: ClusterView, attempt: AttemptView) -> str | None:
    """Say why the attempt's master may not start; None when it may. The first of a queue may unless it yielded."""
    leaf, need = attempt.app.leaf, master_need(attempt)
    if need is None:
        return None
    if not view.nodes.total.memory_mb:
        return CLUSTER_EMPTY
    if attempt.app.id in view.yielded:
        return YIELDED
    if not leaf.masters:
        return None
    fits = view.calculator.fits
    if not fits(leaf.masters_used + need, masters_limit(view, leaf)):
        return QUEUE_MASTERS_EXCEEDED
    if not fits(attempt.app.owner.masters_used + need, user_masters_limit(view, leaf)):
        return USER_MASTERS_EXCEEDED
    return None


def may_submit(leaf: QueueView, user: str, groups_of: GroupsOf) -> bool:
    """Tell whether the queue, or one above it, lets the user submit. Who may administrate may submit as well."""
    return is_listed_above(leaf, lambda spec: spec.submit_acl, user, groups_of) or may_administer(leaf, user, groups_of)


def may_administer(queue: QueueView, user: str, groups_of: GroupsOf) -> bool:
    return is_listed_above(queue, lambda spec: spec.administer_acl, user, groups_of)


def is_listed_above(queue: QueueView, acl: Callable[[QueueSpec], str], user: str, groups_of: GroupsOf) -> bool:
    """Tell whether the list of the queue, or of one above it, names the user or a group of the user's."""
    return any(is_listed(acl(q.spec), user, groups_of) for q in queue.upwards())


def is_listed(acl: str, user: str, groups_of: GroupsOf) -> bool:
    """Tell whether the list names the user or a group of the user's. Users stand before its first blank, groups after
    it."""
    users, _, groups = acl.partition(" ")
    if acl.strip() == "*" or user in users.split(","):
        return True
    named = [group.strip() for group in groups.split(",") if group.strip()]
    return bool(named) and not set(groups_of(user)).isdisjoint(named)


def refresh(view: ClusterView, spec: SchedulerSpec) -> None:
    """Take a new configuration; raises `QueueConfigError`, the view is then as before.

    Where it names no calculator the one that runs stays, as in Hadoop; another start takes the default.
    """
    check_refresh(view, spec)
    spec = replace(spec, calculator=view.calculator)
    attempts = [a for q in view.queues.values() for a in q.attempts.values() if a.filed_at is not None]
    for attempt in attempts:
        view.unfile(attempt)
    graft(view, spec.root)
    view.spec = spec
    view.set_limits()
    for attempt in attempts:
        view.file(attempt)


def check_refresh(view: ClusterView, spec: SchedulerSpec) -> None:
    """Raise `QueueConfigError` when the new configuration would leave something running without its queue."""
    specs = {s.path: s for s in spec.root.walk()}
    for path, queue in view.queues.items():
        new = specs.get(path)
        in_use = bool(queue.applications) or queue.containers + queue.sent.containers > 0
        if new is None and in_use:
            raise QueueConfigError(path, None, "still has applications: stop the queue and wait for them first")
        if new is not None and new.children and queue.is_leaf and in_use:
            raise QueueConfigError(path, None, "still has applications and cannot get queues below it")
    if spec.names_calculator and type(spec.calculator) is not type(view.calculator):
        remedy = f"{_name(view.calculator)} is what runs, and only another start changes that"
        raise QueueConfigError(PREFIX + "resource-calculator", _name(spec.calculator), remedy)


def _name(calculator: Calculator) -> str:
    return next(name for name, kind in CALCULATORS.items() if type(calculator) is kind)


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
