"""What must outlive the ResourceManager, in one SQLite file: applications, how they ended, how often we were started.

WAL with `synchronous=FULL`: a commit is on the disk when it returns. One thread writes; whatever has gathered while it
was committing goes into the next commit together. So the cost of a flush is shared by all that wait for it. The event
loop never waits for the disk, it gets futures.
"""

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rm.applications.records import Application, Conclusion
from rm.store.lock import StoreLock, StoreTaken
from yaqd.model import ApplicationId, FinalApplicationStatus, YarnApplicationState

log = logging.getLogger(__name__)

_SCHEMA_VERSION: Final = 1
#: writes that may wait; beyond it submitters are refused
_QUEUE_MAX: Final = 10_000
_BATCH_MAX: Final = 500

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS application (
    cluster_timestamp INTEGER NOT NULL,
    id INTEGER NOT NULL,
    user TEXT NOT NULL,
    context BLOB NOT NULL,       -- ApplicationSubmissionContext as submitted
    submitted_ms INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    state INTEGER,               -- NULL while it is not over; else YarnApplicationState
    final_status INTEGER,
    diagnostics TEXT,
    tracking_url TEXT,
    launched_ms INTEGER,
    finished_ms INTEGER,
    PRIMARY KEY (cluster_timestamp, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS application_change (  -- what users changed after the submission; the last values
    cluster_timestamp INTEGER NOT NULL,
    id INTEGER NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    expires_ms INTEGER,
    PRIMARY KEY (cluster_timestamp, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempt (  -- what became of each; JSON
    cluster_timestamp INTEGER NOT NULL,
    id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (cluster_timestamp, id, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS application_use (  -- of one that has ended; JSON
    cluster_timestamp INTEGER NOT NULL,
    id INTEGER NOT NULL,
    totals TEXT NOT NULL,
    PRIMARY KEY (cluster_timestamp, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS task_estimate (  -- of recurring jobs' stages
    key TEXT PRIMARY KEY,
    count INTEGER NOT NULL,
    mean_s REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS task_records (  -- of applications' last containers, the last written last; JSON
    application TEXT PRIMARY KEY,
    records TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS drained_node (name TEXT PRIMARY KEY);  -- by command; a host, or host:port
CREATE TABLE IF NOT EXISTS forced_node (name TEXT PRIMARY KEY);  -- drained, what it ran was not waited for; host:port
CREATE TABLE IF NOT EXISTS delegation_key (id INTEGER PRIMARY KEY, key BLOB NOT NULL, expires_ms INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS delegation_token (
    sequence INTEGER PRIMARY KEY,
    identifier BLOB NOT NULL,
    good_until_ms INTEGER NOT NULL
);
"""


class StateStoreError(Exception):
    """The store cannot be used; the message says which file, why, and what to do."""


@dataclass(frozen=True, slots=True)
class StoredChange:
    """What users last made of an application that had been submitted otherwise."""

    queue: str
    priority: int
    expires_ms: int | None


@dataclass(frozen=True, slots=True)
class StoredApplication:
    id: ApplicationId
    user: str
    context: bytes
    submitted_ms: int
    attempts: int
    launched_ms: int
    #: None while it is not over
    conclusion: Conclusion | None
    change: StoredChange | None = None
    #: what it used, JSON; "": nobody knows
    use: str = ""
    #: what is known of its attempts by number, JSON
    former: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredState:
    #: 0 at the first start on this file, then one more each time
    epoch: int
    #: oldest first
    applications: tuple[StoredApplication, ...]


@dataclass(frozen=True, slots=True)
class _Write:
    sql: str
    values: tuple[object, ...]
    done: "asyncio.Future[None]"


class StateStore:
    """Open it, `load`, `start`, then write. `path` None keeps everything in memory only."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._writes: queue.Queue[_Write | None] = queue.Queue(_QUEUE_MAX)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock: StoreLock | None = None
        try:
            self._database = self._open()
        except StateStoreError:
            self._unlock()
            raise
        #: writes that the disk has, and the commits it took
        self.writes = 0
        self.commits = 0

    def _open(self) -> sqlite3.Connection:
        try:
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = StoreLock(self._path)
                self._path.touch(mode=0o600)  # keys and users' tokens are in it
            database = sqlite3.connect(
                self._path or ":memory:", timeout=2.0, isolation_level=None, check_same_thread=False
            )
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=FULL")
            database.executescript(_SCHEMA)
            found = database.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
        except StoreTaken as error:
            remedy = "stop it first, or set yaq.rm.state-store.path to another file"
            raise StateStoreError(f"{error}: {remedy}") from None
        except (OSError, sqlite3.Error) as error:
            remedy = "make the folder writable, or set yaq.rm.state-store.path to another file"
            raise StateStoreError(f"cannot use the state store {self._path}: {error}; {remedy}") from error
        if found is not None and found[0] != _SCHEMA_VERSION:
            raise StateStoreError(
                f"the state store {self._path} has version {found[0]}, this program reads {_SCHEMA_VERSION}: "
                "set yaq.rm.state-store.path to a new file"
            )
        return database

    def load(self) -> StoredState:
        """Read everything, and count this start. Blocking; before the event loop has anything else to do."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute("INSERT OR REPLACE INTO meta VALUES ('schema', ?)", (_SCHEMA_VERSION,))
            found = self._database.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()
            epoch = found[0] + 1 if found is not None else 0
            self._database.execute("INSERT OR REPLACE INTO meta VALUES ('epoch', ?)", (epoch,))
            rows = self._database.execute(
                "SELECT cluster_timestamp, id, user, context, submitted_ms, attempts, launched_ms, state, final_status,"
                " diagnostics, tracking_url, finished_ms, queue, priority, expires_ms, totals"
                " FROM application LEFT JOIN application_change USING (cluster_timestamp, id)"
                " LEFT JOIN application_use USING (cluster_timestamp, id)"
                " ORDER BY cluster_timestamp, id"
            ).fetchall()
            former: dict[tuple[object, object], dict[int, str]] = {}
            for timestamp, number, attempt, record in self._database.execute("SELECT * FROM attempt"):
                former.setdefault((timestamp, number), {})[int(attempt)] = str(record)
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise StateStoreError(
                f"cannot read the state store {self._path}: {error}; is another program at work on it?"
            ) from error
        return StoredState(epoch, tuple(_stored(row, former.get(row[:2], {})) for row in rows))

    def read(self, sql: str) -> list[Any]:
        """Return the rows of a query. Blocking; before `start`. Raises StateStoreError."""
        try:
            return self._database.execute(sql).fetchall()
        except sqlite3.Error as error:
            raise StateStoreError(f"cannot read the state store {self._path}: {error}") from error

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.Thread(target=self._write_on, name="rm-state-store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write what is waiting and close the file. Blocking; a few milliseconds."""
        if self._thread is not None:
            self._writes.put(None)
            self._thread.join(timeout=5.0)
            self._thread = None
        self._database.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()

    # ---- writes; each future is done when the disk has it, or fails with StateStoreError

    def put_submission(self, app: Application) -> "asyncio.Future[None]":
        return self.write(
            "INSERT OR REPLACE INTO application (cluster_timestamp, id, user, context, submitted_ms)"
            " VALUES (?, ?, ?, ?, ?)",
            (app.id.cluster_timestamp, app.id.id, app.user, app.context.SerializeToString(), app.submitted_ms),
        )

    def put_change(self, app: Application) -> "asyncio.Future[None]":
        return self.write(
            "INSERT OR REPLACE INTO application_change VALUES (?, ?, ?, ?, ?)",
            (app.id.cluster_timestamp, app.id.id, app.queue, app.priority, app.expires_ms),
        )

    def put_attempt(self, app: Application, number: int) -> "asyncio.Future[None]":
        return self.write(
            "UPDATE application SET attempts = ? WHERE cluster_timestamp = ? AND id = ?",
            (number, app.id.cluster_timestamp, app.id.id),
        )

    def put_attempt_record(self, app: Application, number: int, record: str) -> "asyncio.Future[None]":
        return self.write(
            "INSERT OR REPLACE INTO attempt VALUES (?, ?, ?, ?)", (app.id.cluster_timestamp, app.id.id, number, record)
        )

    def put_conclusion(self, app: Application, conclusion: Conclusion) -> "asyncio.Future[None]":
        return self.write(
            "UPDATE application SET state = ?, final_status = ?, diagnostics = ?, tracking_url = ?, finished_ms = ?,"
            " launched_ms = ? WHERE cluster_timestamp = ? AND id = ?",
            (
                conclusion.state.value,
                conclusion.final_status.value,
                conclusion.diagnostics,
                conclusion.tracking_url,
                conclusion.finished_ms,
                app.launched_ms,
                app.id.cluster_timestamp,
                app.id.id,
            ),
        )

    def put_use(self, app: Application) -> "asyncio.Future[None]":
        return self.write(
            "INSERT OR REPLACE INTO application_use VALUES (?, ?, ?)",
            (app.id.cluster_timestamp, app.id.id, app.use_as_text()),
        )

    def forget(self, app: Application) -> "asyncio.Future[None]":
        key = (app.id.cluster_timestamp, app.id.id)
        for table in ("application_change", "application_use", "attempt"):
            self.write(f"DELETE FROM {table} WHERE cluster_timestamp = ? AND id = ?", key)
        return self.write("DELETE FROM application WHERE cluster_timestamp = ? AND id = ?", key)

    def write(self, sql: str, values: tuple[object, ...]) -> "asyncio.Future[None]":
        """Write one statement; the future is done when the disk has it."""
        assert self._loop is not None, "start() comes first"
        done: asyncio.Future[None] = self._loop.create_future()
        try:
            self._writes.put_nowait(_Write(sql, values, done))
        except queue.Full:
            done.set_exception(StateStoreError(f"{_QUEUE_MAX} writes wait for the state store: its disk is too slow"))
        return done

    # ---- the writer's thread

    def _write_on(self) -> None:
        is_open = True
        while is_open:
            batch = [self._writes.get()]
            while len(batch) < _BATCH_MAX and not self._writes.empty():
                batch.append(self._writes.get())
            writes = [write for write in batch if write is not None]
            is_open = len(writes) == len(batch)
            if writes:
                self._settle(writes, self._commit(writes))

    def _commit(self, batch: list[_Write]) -> Exception | None:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            for write in batch:
                self._database.execute(write.sql, write.values)
            self._database.execute("COMMIT")
        except (sqlite3.Error, OSError, OverflowError) as error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            return StateStoreError(f"cannot write the state store {self._path}: {error}")
        self.writes += len(batch)
        self.commits += 1
        return None

    def _settle(self, batch: list[_Write], error: Exception | None) -> None:
        def tell() -> None:
            for write in batch:
                if write.done.done():
                    continue
                if error is None:
                    write.done.set_result(None)
                else:
                    write.done.set_exception(error)

        assert self._loop is not None
        on_loop: Callable[..., object] = self._loop.call_soon_threadsafe
        try:
            on_loop(tell)
        except RuntimeError:
            log.debug("the event loop is gone; nobody waits for %d writes", len(batch))


def log_failed_write(consequence: str, done: "asyncio.Future[None]") -> None:
    """Log a write that failed: for a write's `add_done_callback`."""
    if not done.cancelled() and done.exception() is not None:
        log.error("%s: %s", consequence, done.exception())


def _stored(row: tuple[object, ...], former: Mapping[int, str]) -> StoredApplication:
    timestamp, number, user, context, submitted, attempts, launched, state, status, text, url, finished = row[:12]
    queue, priority, expires, use = row[12:]
    conclusion = None
    if state is not None:
        conclusion = Conclusion(
            YarnApplicationState(int(str(state))),
            FinalApplicationStatus(int(str(status))),
            str(text),
            str(url),
            int(str(finished)),
        )
    return StoredApplication(
        ApplicationId(int(str(timestamp)), int(str(number))),
        str(user),
        bytes(context) if isinstance(context, bytes) else b"",
        int(str(submitted)),
        int(str(attempts)),
        int(str(launched or 0)),
        conclusion,
        StoredChange(str(queue), int(str(priority)), int(str(expires)) if expires is not None else None)
        if queue is not None
        else None,
        str(use or ""),
        former,
    )
