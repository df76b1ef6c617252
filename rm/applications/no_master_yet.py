"""Why an application has no running master yet, or no more, in the words of Hadoop's CapacityScheduler (`AMState`,
`FiCaSchedulerApp`): `yarn application -status` prints them, and users know them.
"""

import time

from rm.applications.records import Attempt, Completion
from rm.scheduler.facts import AttemptView, Facts, QueueView
from rm.scheduler.queues.user_limits import master_need
from yaqd.model import Resource, YarnApplicationAttemptState

_PARTITION = "<DEFAULT_PARTITION>"


def attempt_diagnostics(facts: Facts, attempt: Attempt) -> str:
    """Return what a report says of an attempt: why it waits for its master, or what came of it.

    A running attempt may also hear why it can get nothing else.
    """
    if attempt.state is YarnApplicationAttemptState.SCHEDULED:
        return why_waiting(facts, attempt)
    if attempt.state in (YarnApplicationAttemptState.ALLOCATED, YarnApplicationAttemptState.LAUNCHED):
        return "AM container is launched, waiting for AM container to Register with RM"
    scheduled = facts.attempt(attempt.id)
    if attempt.state is YarnApplicationAttemptState.RUNNING and scheduled is not None and not attempt.diagnostics:
        return facts.why_alone(scheduled) or ""
    return attempt.diagnostics


def crash_diagnostics(completion: Completion, page_url: str) -> str:
    """Return what a report says of an attempt whose master ended unasked.

    The words are those of RMAppAttemptImpl.getAMContainerCrashedDiagnostics. `page_url`: where the application is
    looked at.
    """
    return (
        f"AM Container for {completion.container_id.attempt_id} exited with  exitCode: {completion.exit_status}\n"
        f"Failing this attempt.Diagnostics: {completion.diagnostics}"
        f"For more detailed output, check the application tracking page: {page_url}"
        " Then click on links to logs of each attempt.\n"
    )


def why_waiting(facts: Facts, attempt: Attempt) -> str:
    """Return what a report says of an attempt whose master has no container."""
    at = time.strftime("%a %b %d %H:%M:%S %z %Y", time.localtime(attempt.started_ms / 1000))
    scheduled = facts.attempt(attempt.id)
    if scheduled is None or scheduled.master is None:
        said = "Application is added to the scheduler and is not yet activated. "
        return f"[{at}] {said}{_pending(facts, scheduled) if scheduled is not None else ''}"
    said = "Application is Activated, waiting for resources to be assigned for AM. "
    return f"[{at}] {said}{_activated(facts, scheduled.app.leaf)}"


def _pending(facts: Facts, scheduled: AttemptView) -> str:
    leaf = scheduled.app.leaf
    return (
        f"{facts.why_inactive(scheduled) or ''} Details : AM Partition = {_PARTITION}; "
        f"AM Resource Request = {master_need(scheduled) or Resource()}; "
        f"Queue Resource Limit for AM = {facts.masters_limit(leaf)}; "
        f"User AM Resource Limit of the queue = {facts.user_masters_limit(leaf)}; "
        f"Queue AM Resource Usage = {leaf.masters_used}; "
    )


def _activated(facts: Facts, leaf: QueueView) -> str:
    total, spec = facts.total, leaf.spec
    used = facts.share(leaf.used)

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
