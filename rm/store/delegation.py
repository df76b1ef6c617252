"""Delegation tokens and their keys in the state store, so that a restart does not turn their holders away."""

import asyncio
from functools import partial
from typing import Final

from rm.store.state_store import StateStore, log_failed_write
from yaqd.security import MasterKey
from yaqd.security.delegation import DelegationKey, DelegationToken, DelegationTokens

_on_failure: Final = partial(log_failed_write, "delegation tokens will not outlive this ResourceManager")


class DelegationStore:
    def __init__(self, store: StateStore) -> None:
        self._store = store

    def load(self) -> tuple[list[DelegationKey], list[DelegationToken]]:
        """Load keys and tokens. Blocking; before the store is started. Raises StateStoreError."""
        keys = self._store.read("SELECT id, key, expires_ms FROM delegation_key")
        tokens = self._store.read("SELECT sequence, identifier, good_until_ms FROM delegation_token")
        return (
            [DelegationKey(MasterKey(key_id, key), expires_ms) for key_id, key, expires_ms in keys],
            [DelegationToken(*row) for row in tokens],
        )

    def put_token(self, token: DelegationToken) -> "asyncio.Future[None]":
        row = (token.sequence, token.identifier, token.good_until_ms)
        return self._store.write("INSERT OR REPLACE INTO delegation_token VALUES (?, ?, ?)", row)

    def forget_token(self, token: DelegationToken) -> "asyncio.Future[None]":
        return self._store.write("DELETE FROM delegation_token WHERE sequence = ?", (token.sequence,))

    def roll(self, tokens: DelegationTokens) -> None:
        """Make and drop keys and tokens whose time has come; a failed write is logged."""
        made, old_keys, ended = tokens.roll()
        written = [self.forget_token(token) for token in ended]
        written += [self._store.write("DELETE FROM delegation_key WHERE id = ?", (key_id,)) for key_id in old_keys]
        if made is not None:
            row = (made.key.key_id, made.key.key, made.expires_ms)
            written.append(self._store.write("INSERT OR REPLACE INTO delegation_key VALUES (?, ?, ?)", row))
        for done in written:
            done.add_done_callback(_on_failure)
