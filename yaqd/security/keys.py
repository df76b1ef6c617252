"""Master keys: what passwords are made with, and how they are replaced without anybody noticing.

At the ResourceManager a *next* key is made every `interval_s` and shown to those who verify. It is put to use
`activation_s` later, when all of them know it (1.5 expiry intervals of a node, as Hadoop does). A NodeManager keeps the
current key and the previous one. Time and randomness are handed in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from yaqd.proto import yarn_server_pb2 as pb

ROLLING_INTERVAL_S: Final = 86_400.0
ACTIVATION_DELAY_S: Final = 900.0
_KEY_BYTES: Final = 20
_INT32: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class MasterKey:
    #: signed 32-bit
    key_id: int
    key: bytes

    def __repr__(self) -> str:
        return f"MasterKey({self.key_id})"  # never the key

    def to_pb(self) -> pb.MasterKey:
        return pb.MasterKey(key_id=self.key_id, bytes=self.key)

    @classmethod
    def from_pb(cls, message: pb.MasterKey) -> "MasterKey":
        return cls(message.key_id, message.bytes)


class RollingKeys:
    """The issuer's keys. `roll(now)` moves them on; nothing happens between calls."""

    def __init__(
        self,
        *,
        now: float,
        random: Callable[[int], bytes],
        interval_s: float = ROLLING_INTERVAL_S,
        activation_s: float = ACTIVATION_DELAY_S,
    ) -> None:
        if activation_s >= interval_s:
            raise ValueError(f"activation delay {activation_s} s must be shorter than the interval {interval_s} s")
        self._random = random
        self._interval_s = interval_s
        self._activation_s = activation_s
        first_id = int.from_bytes(random(4), "big", signed=True) // 2  # room to count up from a random start
        self.current = MasterKey(first_id, random(_KEY_BYTES))
        #: made, shown to verifiers, not used yet
        self.next: MasterKey | None = None
        self._rolled_at = now

    def roll(self, now: float) -> bool:
        """Make or activate a key when its time has come; return whether anything changed."""
        changed = False
        if self.next is None and now - self._rolled_at >= self._interval_s:
            self.next = MasterKey(self._following_id(), self._random(_KEY_BYTES))
            self._rolled_at = now
            changed = True
        if self.next is not None and now - self._rolled_at >= self._activation_s:
            self.current, self.next = self.next, None
            changed = True
        return changed

    def _following_id(self) -> int:
        return (self.current.key_id + 1 + _INT32 // 2) % _INT32 - _INT32 // 2

    @property
    def newest(self) -> MasterKey:
        """The next key once it exists, else the current one."""
        return self.next or self.current

    def find(self, key_id: int) -> MasterKey | None:
        """Return the key a password may have been made with; none once another is in use, as at a stock issuer."""
        for key in (self.current, self.next):
            if key is not None and key.key_id == key_id:
                return key
        return None


class VerifierKeys:
    """The keys a NodeManager has been given: the current one and the one before."""

    def __init__(self) -> None:
        self.current: MasterKey | None = None
        self.previous: MasterKey | None = None

    def set_current(self, key: MasterKey) -> None:
        """Take a key from the ResourceManager; one whose id is known already is ignored."""
        if self.current is not None and self.current.key_id == key.key_id:
            return
        self.previous, self.current = self.current, key

    @property
    def newest(self) -> MasterKey | None:
        return self.current

    def find(self, key_id: int) -> MasterKey | None:
        for key in (self.current, self.previous):
            if key is not None and key.key_id == key_id:
                return key
        return None
