"""Delegation tokens of the ResourceManager: whoever holds one acts as its owner until it is cancelled or runs out.

Rules and texts are those of Hadoop's AbstractDelegationTokenSecretManager: a token is good for a renewal interval, its
renewer may renew it until its greatest age, owner and renewer may cancel it. Keys roll; one is kept as long as a token
made with it can live. Nothing here reads a clock or writes a file: times are handed in as epoch ms, and whoever owns
this object writes down what `mint`, `renew`, `cancel` and `roll` return.
"""

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from yaqd.ipc.errors import InvalidToken, YarnError
from yaqd.proto import yarn_server_pb2 as pb
from yaqd.security.keys import MasterKey
from yaqd.security.secrets import parse_identifier
from yaqd.security.token import Token, token_password

RM_DELEGATION_TOKEN: Final = "RM_DELEGATION_TOKEN"

_KEY_BYTES: Final = 20
#: tokens that are neither cancelled nor expired
_TOKENS_MAX: Final = 100_000
_NAME_MAX: Final = 256
_DENIED: Final = "org.apache.hadoop.security.AccessControlException: "
_INVALID: Final = "org.apache.hadoop.security.token.SecretManager$InvalidToken: "

_Identifier = pb.YARNDelegationTokenIdentifier


@dataclass(frozen=True, slots=True)
class DelegationKey:
    """A master key and when the last token made with it has run out, epoch ms."""

    key: MasterKey
    expires_ms: int


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token that is good, as it is written down."""

    sequence: int
    identifier: bytes
    #: epoch ms; it is good until then unless it is renewed
    good_until_ms: int


@dataclass(frozen=True, slots=True)
class DelegationLimits:
    """`yarn.resourcemanager.delegation.*`, in ms."""

    key_interval_ms: int
    renew_interval_ms: int
    lifetime_ms: int


class DelegationTokens:
    """The issuer. Serves an RpcServer as its `TokenSecrets`."""

    kind: Final = RM_DELEGATION_TOKEN

    def __init__(
        self,
        limits: DelegationLimits,
        *,
        now_ms: Callable[[], int],
        random: Callable[[int], bytes],
        keys: Iterable[DelegationKey] = (),
        tokens: Iterable[DelegationToken] = (),
    ) -> None:
        """`keys` and `tokens` are what an earlier issuer wrote down."""
        self._limits = limits
        self._now_ms = now_ms
        self._random = random
        self._keys = {found.key.key_id: found for found in keys}
        self._tokens = {found.identifier: found for found in tokens if self._is_ours(found)}
        self._sequence = max((found.sequence for found in self._tokens.values()), default=0)
        self._current: DelegationKey | None = None
        self._rolled_ms = 0

    def _is_ours(self, token: DelegationToken) -> bool:
        """Whether the key that it was made with is still there."""
        return _parse(token.identifier).masterKeyId in self._keys

    def __len__(self) -> int:
        return len(self._tokens)

    # ---- keys

    def roll(self) -> tuple[DelegationKey | None, list[int], list[DelegationToken]]:
        """Make a key when it is time (always at the start), drop what has run out: new key, old key ids, tokens."""
        now_ms = self._now_ms()
        made = None
        if self._current is None or now_ms - self._rolled_ms >= self._limits.key_interval_ms:
            key = MasterKey(max(self._keys, default=0) + 1, self._random(_KEY_BYTES))
            made = DelegationKey(key, now_ms + self._limits.key_interval_ms + self._limits.lifetime_ms)
            self._keys[key.key_id] = self._current = made
            self._rolled_ms = now_ms
        old = [key_id for key_id, found in self._keys.items() if found.expires_ms < now_ms]
        for key_id in old:
            del self._keys[key_id]
        ended = [token for token in self._tokens.values() if token.good_until_ms < now_ms]
        for token in ended:
            del self._tokens[token.identifier]
        return made, old, ended

    # ---- tokens

    def mint(self, owner: str, renewer: str, real_user: str) -> tuple[Token, DelegationToken]:
        """Raises YarnError when there are too many."""
        if len(self._tokens) >= _TOKENS_MAX:
            raise YarnError(f"{_TOKENS_MAX} delegation tokens are in use: cancel some, or wait until they run out")
        if self._current is None:
            raise AssertionError("roll() comes first")
        now_ms, key = self._now_ms(), self._current.key
        self._sequence += 1
        identifier = _Identifier(
            owner=owner,
            renewer=renewer[:_NAME_MAX],
            realUser=real_user or None,
            issueDate=now_ms,
            maxDate=now_ms + self._limits.lifetime_ms,
            sequenceNumber=self._sequence,
            masterKeyId=key.key_id,
        ).SerializeToString()
        record = DelegationToken(self._sequence, identifier, now_ms + self._limits.renew_interval_ms)
        self._tokens[identifier] = record
        return Token(identifier, token_password(key.key, identifier), self.kind, ""), record

    def renew(self, token: Token, user: str | None) -> DelegationToken:
        """Renews a token. `user` None stands for its own renewer (the ResourceManager asks). Raises YarnError."""
        said = _parse(token.identifier)
        user = said.renewer if user is None else user
        now_ms = self._now_ms()
        if said.maxDate < now_ms:
            ages = f" max expiration date: {_date(said.maxDate)} currentTime: {_date(now_ms)}"
            raise YarnError(f"{_INVALID}{user} tried to renew an expired token {_shown(said)}{ages}")
        if not said.renewer:
            raise YarnError(f"{_DENIED}{user} tried to renew a token {_shown(said)} without a renewer")
        if said.renewer != user:
            why = f"with non-matching renewer {said.renewer}"
            raise YarnError(f"{_DENIED}{user} tries to renew a token {_shown(said)} {why}")
        if not self._is_genuine(token, said):
            raise YarnError(f"{_DENIED}{user} is trying to renew a token {_shown(said)} with wrong password")
        known = self._tokens.get(token.identifier)
        if known is None:
            raise YarnError(f"{_INVALID}Renewal request for unknown token {_shown(said)}")
        renewed = min(said.maxDate, now_ms + self._limits.renew_interval_ms)
        self._tokens[token.identifier] = record = DelegationToken(known.sequence, known.identifier, renewed)
        return record

    def cancel(self, token: Token, user: str) -> DelegationToken:
        """Raises YarnError."""
        said = _parse(token.identifier)
        if user not in (said.owner, said.renewer):
            raise YarnError(f"{_DENIED}{user} is not authorized to cancel the token {_shown(said)}")
        if token.identifier not in self._tokens or not self._is_genuine(token, said):
            raise YarnError(f"{_INVALID}Token not found {_shown(said)}")
        return self._tokens.pop(token.identifier)

    def _is_genuine(self, token: Token, said: _Identifier) -> bool:
        found = self._keys.get(said.masterKeyId)
        return found is not None and hmac.compare_digest(
            token_password(found.key.key, token.identifier), token.password
        )

    # ---- what a server asks

    def password(self, kind: str | None, identifier: bytes) -> bytes:
        """Raises InvalidToken."""
        if kind is not None and kind != self.kind:
            raise InvalidToken(f"token of kind {kind[:80]!r}, expected {self.kind}")
        known = self._tokens.get(identifier)
        if known is None:
            raise InvalidToken(f"token {_shown(parse_identifier(_Identifier, identifier))} can't be found in cache")
        said, now_ms = _parse(identifier), self._now_ms()
        if known.good_until_ms < now_ms:
            ages = f"current time: {_date(now_ms)} expected renewal time: {_date(known.good_until_ms)}"
            raise InvalidToken(f"token {_shown(said)} has expired, {ages}")
        return token_password(self._keys[said.masterKeyId].key.key, identifier)

    def user(self, identifier: bytes) -> str:
        return parse_identifier(_Identifier, identifier).owner


def _parse(identifier: bytes) -> _Identifier:
    try:
        return parse_identifier(_Identifier, identifier)
    except InvalidToken as error:
        raise YarnError(f"{_INVALID}{error.message}") from None


def _shown(said: _Identifier) -> str:
    """As Hadoop writes one, cut where a stranger's may be long."""
    names = f"owner={said.owner[:_NAME_MAX]}, renewer={said.renewer[:_NAME_MAX]}, realUser={said.realUser[:_NAME_MAX]}"
    dates = f"issueDate={said.issueDate}, maxDate={said.maxDate}"
    return (
        f"({RM_DELEGATION_TOKEN} {names}, {dates}, sequenceNumber={said.sequenceNumber}, "
        f"masterKeyId={said.masterKeyId})"
    )


def _date(epoch_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(epoch_ms // 1000).astimezone()
    except (ValueError, OverflowError, OSError):
        return str(epoch_ms)
    return f"{moment:%Y-%m-%d %H:%M:%S},{epoch_ms % 1000:03d}{moment:%z}"
