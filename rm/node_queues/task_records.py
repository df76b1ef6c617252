"""What became of containers: how long they should have waited and run, and how long they did.

Kept for the last containers of the last applications. So `yaq explain` can say how right the estimates were also when
an application is over. Those of the last ones of all are in the state store, a row an application, and outlive this
ResourceManager.
"""

import json
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

from rm.applications.records import RmContainer
from rm.node_queues.accuracy import accuracy_of
from rm.store.state_store import StateStore, log_failed_write
from yaqd.model import ApplicationId, ExecutionType
from yaqd.proto import yarn_common_pb2 as common

_PER_APPLICATION: Final = 200
_APPLICATIONS: Final = 1000
#: of them in the store
_STORED: Final = 200
_SAVE_INTERVAL_S: Final = 30.0
_SAVED_AT_ONCE: Final = 10
#: a row is no longer than this, or it is not ours
_ROW_MAX: Final = 1 << 20
#: SQLite's columns hold what was put in, whatever their types say
_ROWS: Final = (
    "SELECT application, records FROM task_records"
    f" WHERE typeof(application) = 'text' AND typeof(records) = 'text' AND length(records) <= {_ROW_MAX}"
    f" ORDER BY rowid DESC LIMIT {_STORED}"
)
_on_failure: Final = partial(log_failed_write, "how right estimates were will not be known after a restart")


@dataclass(frozen=True, slots=True)
class TaskRecord:
    container: str
    node: str
    priority: int
    #: as known when it was placed; None: no end was known. Rows of an earlier release may have what was known when it
    #: ended, where it was given free room
    estimate_s: float | None
    #: where it should have waited; None: it was given free room, or nobody knew
    expected_wait_s: float | None
    rule: str
    queued_s: float
    run_s: float
    #: it waited where the node had said so long before that it had room, s; None: it had said how long one waits
    room_said_ago_s: float | None = None
    #: from its turn until a processor was free to start its program on, s; None: its node does not say
    held_s: float | None = None
    #: free room was counted for it: if it waited all the same, what was sent to wait there had come to the node first
    was_given_room: bool = False
    #: it waited in vain: its node gave it back, and it was placed again
    gave_back: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "container": self.container,
            "node": self.node,
            "priority": self.priority,
            "estimateS": self.estimate_s,
            "ranS": round(self.run_s, 3),
            "expectedWaitS": None if self.expected_wait_s is None else round(self.expected_wait_s, 3),
            "waitedS": round(self.queued_s, 3),
            "heldS": None if self.held_s is None else round(self.held_s, 3),
            "rule": self.rule,
            "roomSaidAgoS": self.room_said_ago_s,
            "givenRoom": self.was_given_room,
            "gaveBack": self.gave_back,
        }


class TaskRecords:
    def __init__(self, store: StateStore, now: float) -> None:
        self._store = store
        self._saved_at = now
        #: the least recently changed first
        self._by_app: dict[ApplicationId, deque[TaskRecord]] = {}
        #: as they were stored, until somebody asks; the oldest first
        self._unread: dict[ApplicationId, str] = {}
        #: applications in the store, the least recently written first, those that have changed since, and those of
        #: them that are being written
        self._stored: dict[ApplicationId, None] = {}
        self._unsaved: dict[ApplicationId, None] = {}
        self._saving: dict[ApplicationId, None] = {}
        for name, text in reversed(store.read(_ROWS)):
            try:
                app_id = ApplicationId.parse(name)
            except ValueError:
                continue
            self._unread[app_id] = text
            self._stored[app_id] = None

    def of(self, app_id: ApplicationId) -> list[TaskRecord]:
        """List the application's records, oldest first."""
        return list(self._of(app_id))

    def _of(self, app_id: ApplicationId) -> deque[TaskRecord]:
        text = self._unread.pop(app_id, None)
        if text is not None and app_id not in self._by_app:
            self._by_app[app_id] = deque(_read(text), maxlen=_PER_APPLICATION)
        return self._by_app.get(app_id) or deque(maxlen=_PER_APPLICATION)

    def note(self, container: RmContainer, times: common.TaskTimes, *, gave_back: bool = False) -> None:
        """Note a container that ended well, or that its node gave back. `times`: as the node says."""
        app_id, allocation = container.attempt.app.id, container.allocation
        records = self._of(app_id)
        self._by_app.pop(app_id, None)
        self._by_app[app_id] = records
        if len(self._by_app) > _APPLICATIONS:
            del self._by_app[next(iter(self._by_app))]
        place = allocation.queued
        room_ago_s = room_said_ago(container)
        expected_s = place.expected_wait_s if place is not None and room_ago_s is None else None
        estimate_s = container.estimate_s
        if place is not None and place.estimate_s is not None:
            estimate_s = place.estimate_s
        records.append(
            TaskRecord(
                str(container.id),
                str(container.node_id),
                allocation.priority,
                estimate_s,
                expected_s if expected_s is not None and expected_s < math.inf else None,
                allocation.reason,
                max(0, times.queued_ms) / 1000,
                max(0, times.run_ms) / 1000,
                room_ago_s,
                max(0, times.held_ms) / 1000 if times.HasField("held_ms") else None,
                was_given_room(container),
                gave_back,
            )
        )
        self._unsaved[app_id] = None

    # ---- the state store

    def save_due(self, now: float) -> None:
        """Save a few records at a time: a row takes its time, and everything else waits."""
        if not self._saving and now - self._saved_at >= _SAVE_INTERVAL_S:
            self._saved_at = now
            self._saving, self._unsaved = self._unsaved, {}
        for app_id in list(islice(self._saving, _SAVED_AT_ONCE)):
            del self._saving[app_id]
            self._save(app_id)

    def save(self) -> None:
        """Write down what has changed."""
        for app_id in list((self._saving | self._unsaved).keys())[-_STORED:]:
            self._save(app_id)
        self._saving.clear()
        self._unsaved.clear()

    def _save(self, app_id: ApplicationId) -> None:
        """A failed write is logged."""
        records = self._by_app.get(app_id)
        if not records:
            return
        self._stored.pop(app_id, None)
        self._stored[app_id] = None
        text = json.dumps([astuple(record) for record in records], separators=(",", ":"))
        sql = "INSERT OR REPLACE INTO task_records VALUES (?, ?)"
        self._store.write(sql, (str(app_id), text)).add_done_callback(_on_failure)
        if len(self._stored) > _STORED:
            oldest = next(iter(self._stored))
            del self._stored[oldest]
            gone = self._store.write("DELETE FROM task_records WHERE application = ?", (str(oldest),))
            gone.add_done_callback(_on_failure)


def _read(text: str) -> Iterator[TaskRecord]:
    """Whatever of a row makes sense."""
    try:
        rows = json.loads(text)
    except ValueError:
        return
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, list) or not len(_FIELDS) - _LATER <= len(row) <= len(_FIELDS):
            continue
        if all(_is_one_of(value, kinds) for value, kinds in zip(row, _FIELDS, strict=False)):
            yield TaskRecord(*row)


#: types of a stored record's fields
_FIELDS: Final = (
    *((str,), (str,), (int,), (float, None), (float, None), (str,), (float,), (float,)),
    *((float, None), (float, None), (bool,), (bool,)),
)
#: the last ones, which older rows do not have
_LATER: Final = 4


def _is_one_of(value: object, kinds: tuple[type | None, ...]) -> bool:
    if value is None:
        return None in kinds
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return any(kind is not None and type(value) is kind for kind in kinds)


def room_said_ago(container: RmContainer) -> float | None:
    """Return how long before the container was sent to wait its node said that it had room, s; None: it did not."""
    place = container.allocation.queued
    if place is None or place.room_said_at is None:
        return None
    return round(max(0.0, container.created_at - place.room_said_at), 3)


def was_given_room(container: RmContainer) -> bool:
    """Return whether the scheduler counted free room for the container."""
    allocation = container.allocation
    return allocation.queued is None and allocation.execution_type is ExecutionType.GUARANTEED


def accuracy(records: list[TaskRecord]) -> dict[str, Any]:
    """Return how far off estimates and waits were, in the mean over those that had one."""
    return accuracy_of([record.as_json() for record in records])
