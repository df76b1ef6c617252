"""Why a job waits, in the words of `yaq explain`, for those who wait for it.

Asked only while nothing of the job runs and nothing has changed for a while: the answer costs a look at every node.
"""

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from yaqd.cli.output import duration
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.client.follow import JobStatus
    from yaqd.model import ApplicationId

#: how long a job may wait for its job manager's container, and then for those of its tasks, before it is said why, s
PATIENCE_S: Final = 2.0
_TASKS_PATIENCE_S: Final = 5.0
#: how often it is asked, and the same said again, s
_ASK_S: Final = 5.0
_AGAIN_S: Final = 60.0
_TIMEOUT_S: Final = 2.0
_NUMBERS: Final = re.compile(r"(\d+(\.\d+)?(ms|s|m|h)?)+")


def why_it_waits(conf: Configuration, application_id: "ApplicationId") -> str | None:
    """Say in one line why it waits; None: nothing of it is known to wait, or nobody says.

    A stock ResourceManager does not say.
    """
    from yaqd.cli.exits import CommandError
    from yaqd.cli.rm_web import get_json

    try:
        return reason_in(get_json(conf, f"/ws/v1/yaq/explain/{application_id}", timeout_s=_TIMEOUT_S)["explanation"])
    except (CommandError, KeyError, TypeError, ValueError, IndexError):
        return None


def reason_in(found: dict[str, Any]) -> str | None:
    """Return what an explanation comes to; a ResourceManager of an earlier release says less."""
    silence = found.get("masterSilent")
    if silence is not None:
        return str(silence["why"])
    for ask in found["asks"]:
        if ask["isMaster"]:
            return str(ask["why"])
    if found["asks"]:
        first, total = found["asks"][0], found["askedFor"]
        more = f"; {total - first['containers']} more wait, too" if total > first["containers"] else ""
        return f"{_containers(first['containers'])} of priority {first['priority']}: {first['why']}{more}"
    return _at_nodes(found["waiting"], found["waitingCount"])


def _at_nodes(waiting: list[dict[str, Any]], number: int) -> str | None:
    """Of containers that were sent to wait."""
    if not number:
        return None
    said = f"{_containers(number)} wait{'s' * (number == 1)} at nodes"
    starts = [entry for entry in waiting if entry["expectedStartInS"] is not None]
    silent = [entry for entry in waiting if entry["nodeSilentS"] is not None]
    if starts:
        first = min(starts, key=lambda entry: float(entry["expectedStartInS"]))
        most = "at most " if first.get("isAtMost") else ""
        return f"{said}, the first should start in {most}{duration(first['expectedStartInS'] * 1000)}"
    if silent:
        ago = duration(silent[0]["nodeSilentS"] * 1000)
        return f"{said}, of which {silent[0]['node']} has not been heard of for {ago}"
    return said


def _containers(number: int) -> str:
    return f"{number} container{'s' * (number != 1)}"


class WaitingReason:
    """Why a job waits, worth saying once it has waited a while, when it is another reason, and every minute."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        patience_s: float = PATIENCE_S,
        explain: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`explain` knows better than the job's report, or says None."""
        self._clock = clock
        self._patience_s = patience_s
        self._tasks_patience_s = max(patience_s, _TASKS_PATIENCE_S) if patience_s else 0.0
        self._explain = explain
        self._began = self._changed_at = self._ask_at = clock()
        self._seen: object = None
        self._reason: str | None = None
        self._said, self._said_at = "", 0.0

    def of(self, status: "JobStatus") -> str | None:
        """Return the reason if it is to be said now."""
        now, vertices = self._clock(), status.vertices
        seen = status.state, tuple((vertex.name, vertex.done) for vertex in vertices)
        if seen != self._seen or any(vertex.running for vertex in vertices):
            self._seen, self._reason = seen, None
            self._changed_at = self._ask_at = now
        patience_s = self._tasks_patience_s if vertices else self._patience_s
        if status.state.is_final or now - self._changed_at < patience_s:
            return None
        if now >= self._ask_at:
            self._reason, self._ask_at = self._explain(), now + _ASK_S
        return self.news(self._reason or status.waits_for)

    def news(self, waits_for: str) -> str | None:
        """Return the reason if it is to be said now, without the time in front of it."""
        reason, now = re.sub(r"^\[[^]]*\]\s*", "", waits_for).strip(), self._clock()
        is_same = _NUMBERS.sub("", reason) == _NUMBERS.sub("", self._said)
        if not reason or now - self._began < self._patience_s or (is_same and now - self._said_at < _AGAIN_S):
            return None
        self._said, self._said_at = reason, now
        return reason
