"""Writes to the state store under way: who waits for them, and what their outcome leads to.

A submission is in the store before it is answered, and a master that has unregistered hears of it when its
application's end is there. What cannot be written is logged and, where something depends on it, told.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from rm.applications.life import Applications
from rm.applications.records import Application, Attempt
from rm.effects import (
    ForgetApplication,
    NoteAttempt,
    StoreAttempt,
    StoreChange,
    StoreConclusion,
    StoreEffect,
    StoreSubmission,
    StoreUse,
)
from rm.store.state_store import StateStore, StateStoreError
from yaqd.model import ApplicationId

log = logging.getLogger(__name__)

_Outcome = Callable[[Application, "asyncio.Future[None]"], None]


class StoreWrites:
    def __init__(self, store: StateStore, applications: Applications) -> None:
        self._store = store
        self._applications = applications
        #: writes under way, by application
        self._under_way: dict[ApplicationId, asyncio.Future[None]] = {}

    def carry_out(self, effect: StoreEffect) -> None:
        """Begin the write."""
        store = self._store
        match effect:
            case StoreSubmission(app):
                self._begin(app, store.put_submission(app), self._submission_outcome)
            case StoreChange(app):
                self._begin(app, store.put_change(app), lambda app, done: _log_failure(done))
            case StoreConclusion(app):
                self._conclusion(app)
            case StoreUse(app):
                store.put_use(app).add_done_callback(_log_failure)
            case StoreAttempt(app, number):
                store.put_attempt(app, number).add_done_callback(_log_failure)
            case NoteAttempt(app, number, record):
                store.put_attempt_record(app, number, record).add_done_callback(_log_failure)
            case ForgetApplication(app):
                store.forget(app).add_done_callback(_log_failure)

    def _conclusion(self, app: Application) -> None:
        assert app.conclusion is not None
        self._begin(app, self._store.put_conclusion(app, app.conclusion), self._conclusion_outcome)
        if app.attempt is not None:
            app.attempt.book_usage(app.conclusion.finished_ms)
        self.carry_out(StoreUse(app))  # once more when its master is gone, if that comes to be

    # ---- waiting

    async def submission_stored(self, app: Application) -> None:
        """Wait for the store. Raises StateStoreError."""
        done = self._under_way.get(app.id)
        if done is not None:
            await asyncio.shield(done)

    async def conclusion_stored(self, attempt: Attempt) -> None:
        """Wait for the store, or for its failure."""
        done = self._under_way.get(attempt.app.id)
        if done is not None:
            with suppress(StateStoreError):
                await asyncio.shield(done)

    # ---- outcomes

    def _begin(self, app: Application, done: "asyncio.Future[None]", outcome: _Outcome) -> None:
        """Come back through `outcome` when the store has it; whoever awaits `done` as well is woken after that."""
        self._under_way[app.id] = done

        def settled(future: "asyncio.Future[None]") -> None:
            if self._under_way.get(app.id) is future:
                del self._under_way[app.id]
            if not future.cancelled():
                outcome(app, future)

        done.add_done_callback(settled)

    def _submission_outcome(self, app: Application, done: "asyncio.Future[None]") -> None:
        error = done.exception()
        if error is None:
            self._applications.application_stored(app)
        else:
            log.error("%s: not accepted: %s", app.id, error)
            self._applications.application_not_stored(app)

    def _conclusion_outcome(self, app: Application, done: "asyncio.Future[None]") -> None:
        error = done.exception()
        if error is not None:
            log.error("%s: its end is not in the state store and will be unknown after a restart: %s", app.id, error)
        self._applications.conclusion_stored(app)


def _log_failure(done: "asyncio.Future[None]") -> None:
    if not done.cancelled() and done.exception() is not None:
        log.error("%s", done.exception())
