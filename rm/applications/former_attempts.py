"""Attempts that earlier ResourceManagers made: what the state store keeps of each, and how clients see them.

A record is written when an attempt begins and once more when it ends, each time in the same commit as something else.
One whose ResourceManager ended first has no end of its own: it has failed with it.
"""

import json
from typing import Any, Final

from rm.applications.records import Application, Attempt, Completion, RmContainer
from rm.scheduler.decisions import Allocate
from yaqd.model import (
    ApplicationAttemptId,
    ContainerId,
    ExecutionType,
    ExitStatus,
    NodeId,
    Resource,
    YarnApplicationAttemptState,
)
from yaqd.model.endings import ENDED_WITH_RM
from yaqd.policies.asks.rows import Locality

#: what of an attempt's diagnostics outlives the ResourceManager, characters
_DIAGNOSTICS_MAX: Final = 4096


def record_of(attempt: Attempt) -> str:
    """Return the attempt's record as JSON, times in epoch ms."""
    found: dict[str, Any] = {"started": attempt.started_ms}
    if attempt.is_over:
        found |= {"finished": attempt.finished_ms, "state": attempt.state.name}
        found |= {"text": attempt.diagnostics[:_DIAGNOSTICS_MAX], "url": attempt.tracking_url}
    master = attempt.master
    if master is not None:
        found["master"] = {"id": str(master.id), "node": str(master.node_id), "web": master.http_address}
        if master.completion is not None:
            found["master"]["exit"] = master.completion.exit_status
    return json.dumps(found, separators=(",", ":"))


def lost_with_the_daemon(app: Application, now_ms: int) -> tuple[int, str] | None:
    """Return number and record of the last attempt, ended now; None if its ResourceManager saw its end."""
    number = app.earlier_attempts
    found = _parsed(app.former.get(number))
    if found is None or "state" in found:
        return None
    found |= {"finished": now_ms, "state": YarnApplicationAttemptState.FAILED.name, "text": ENDED_WITH_RM}
    if app.conclusion is not None:  # its end had been told, its master was about to go
        state = app.conclusion.state.name
        found |= {"finished": app.conclusion.finished_ms, "state": state, "text": app.conclusion.diagnostics}
    return number, json.dumps(found, separators=(",", ":"))


def every_attempt(app: Application) -> list[Attempt]:
    """List the attempts of earlier ResourceManagers, as far as they are known, then our own."""
    former = (_attempt(app, number, text) for number, text in sorted(app.former.items()))
    return [*(attempt for attempt in former if attempt is not None), *app.attempts]


def _attempt(app: Application, number: int, text: str) -> Attempt | None:
    found = _parsed(text)
    if found is None:
        return None
    try:
        attempt = Attempt(ApplicationAttemptId(app.id, number), app, int(found["started"]))
        attempt.machine.state = YarnApplicationAttemptState[found["state"]]
        attempt.finished_ms = int(found["finished"])
        attempt.diagnostics, attempt.tracking_url = str(found["text"]), str(found.get("url", ""))
        attempt.progress = 1.0
        master = found.get("master")
        if master is not None:
            attempt.master = _container(attempt, master)
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
    return attempt


def _container(attempt: Attempt, found: dict[str, Any]) -> RmContainer:
    asked = attempt.app.context.resource
    size = Resource(asked.memory, asked.virtual_cores)
    container_id, node = ContainerId.parse(found["id"]), NodeId.parse(found["node"])
    guaranteed = ExecutionType.GUARANTEED
    given = Allocate(container_id, node, size, 0, 0, guaranteed, Locality.NONE, True, "before this ResourceManager")
    container = RmContainer(given, attempt, str(found["web"]), attempt.started_ms)
    status = int(found.get("exit", ExitStatus.ABORTED))
    container.finished_ms = attempt.finished_ms
    container.completion = Completion(container_id, status, attempt.diagnostics, size, guaranteed, node)
    return container


def _parsed(text: str | None) -> dict[str, Any] | None:
    try:
        found = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
