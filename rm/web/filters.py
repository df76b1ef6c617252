"""Which applications a REST request asks for (RMWebServices.getApps); what is absent does not restrict."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from multidict import MultiMapping

from rm.applications.records import Application
from rm.web.records import final_status
from yaqd.model import FinalApplicationStatus, YarnApplicationState

#: in Hadoop's order
DESELECTABLE: Final = (
    "resourceRequests",
    "timeouts",
    "appNodeLabelExpression",
    "amNodeLabelExpression",
    "resourceInfo",
)
_ANY_TIME: Final = (0, 2**63)


class BadParameter(ValueError):
    """A query parameter that says nothing sensible."""


@dataclass(frozen=True, slots=True)
class ApplicationFilter:
    states: frozenset[str]
    final_statuses: frozenset[str]
    users: frozenset[str]
    queues: frozenset[str]
    types: frozenset[str]
    tags: frozenset[str]
    name: str
    #: epoch ms, both ends included
    started_ms: tuple[int, int]
    finished_ms: tuple[int, int]
    limit: int | None

    @classmethod
    def read(cls, query: MultiMapping[str]) -> "ApplicationFilter":
        """Raises BadParameter, with Hadoop's words."""
        states = known_states(query, "states", "state")
        final_statuses = words(query, "finalStatus", str.upper)
        _check(final_statuses, FinalApplicationStatus.__members__, "finalStatus")
        limit = _number(query, "limit", 0)
        return cls(
            states=states,
            final_statuses=final_statuses,
            users=words(query, "user"),
            queues=frozenset(queue.rpartition(".")[2] for queue in words(query, "queue")),
            types=words(query, "applicationTypes", str.lower),
            tags=words(query, "applicationTags", str.lower),
            name=query.get("name", ""),
            started_ms=_span(query, "startedTime"),
            finished_ms=_span(query, "finishedTime"),
            limit=limit or None,
        )

    def accepts(self, app: Application) -> bool:
        ended_ms = app.conclusion.finished_ms if app.conclusion is not None else 0
        return (
            (not self.states or app.state.name in self.states)
            and (not self.final_statuses or final_status(app) in self.final_statuses)
            and (not self.users or app.user in self.users)
            and (not self.queues or app.queue.rpartition(".")[2] in self.queues)
            and (not self.types or app.type.lower() in self.types)
            and (not self.tags or any(tag.lower() in self.tags for tag in app.tags))
            and (not self.name or app.name == self.name)
            and self.started_ms[0] <= app.submitted_ms <= self.started_ms[1]
            and self.finished_ms[0] <= ended_ms <= self.finished_ms[1]
        )


def known_states(query: MultiMapping[str], *keys: str) -> frozenset[str]:
    """Raises BadParameter."""
    states = frozenset[str]().union(*(words(query, key, str.upper) for key in keys))
    _check(states, YarnApplicationState.__members__, "application-state")
    return states


def deselected(query: MultiMapping[str]) -> frozenset[str]:
    """Returns fields of applications that the answer is to leave out (DeSelectFields). Raises BadParameter."""
    named = words(query, "deSelects")
    for word in sorted(named):
        if word not in DESELECTABLE:
            known = ", ".join(DESELECTABLE)
            raise BadParameter(f"Invalid deSelects string {word[:60]} specified. It should be one of [{known}]")
    return named


def words(query: MultiMapping[str], key: str, change: Callable[[str], str] = str) -> frozenset[str]:
    """Returns comma-separated and repeated values alike."""
    return frozenset(
        change(word.strip()) for value in query.getall(key, []) for word in value.split(",") if word.strip()
    )


def _check(given: frozenset[str], known: Iterable[str], what: str) -> None:
    for word in sorted(given):
        if word not in known:
            raise BadParameter(f"Invalid {what} {word[:60]} specified. It should be one of [{', '.join(known)}]")


def _span(query: MultiMapping[str], key: str) -> tuple[int, int]:
    begin, end = _number(query, f"{key}Begin", _ANY_TIME[0]), _number(query, f"{key}End", _ANY_TIME[1])
    if begin > end:
        raise BadParameter(f"{key}Begin must be less than {key}End")
    return begin, end


def _number(query: MultiMapping[str], key: str, default: int) -> int:
    value = query.get(key)
    if value is None:
        return default
    if not (value.isascii() and value.isdigit() and len(value) < 19) or (key == "limit" and int(value) == 0):
        raise BadParameter(f"{key} value must be greater then 0")
    return int(value)
