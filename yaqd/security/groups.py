"""Which groups a user is in: what this machine says, as Hadoop's ShellBasedUnixGroupsMapping.

Answers are kept for `hadoop.security.groups.cache.secs`, those for users that the machine does not know for
`hadoop.security.groups.negative-cache.secs`. A look-up goes through the system's name service: microseconds for a local
file, longer for a directory server. So nothing is looked up until a list with groups is asked, and never on an event
loop (`group_lookups`).
"""

import grp
import logging
import math
import os
import pwd
import time
from collections.abc import Callable, Mapping
from typing import Final

from yaqd.config import Configuration

log = logging.getLogger(__name__)

_USERS_REMEMBERED_MAX: Final = 10_000
#: an answer is used at least for so long, by whoever waited for it
_KEPT_MIN_S: Final = 1.0
#: how many times as long an old answer stays good when there is no new one, as in Hadoop
_OLD_FACTOR: Final = 10
_OVERRIDES: Final = "hadoop.user.group.static.mapping.overrides"


class Groups:
    """Ask it with a user's name, which may block; `refresh` forgets what it knew. For any thread."""

    def __init__(
        self,
        *,
        kept_s: float,
        unknown_kept_s: float,
        overrides: Mapping[str, tuple[str, ...]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kept_s = kept_s
        self._unknown_kept_s = unknown_kept_s
        self._overrides = dict(overrides)
        self._now = now
        #: user -> groups, good until
        self._known: dict[str, tuple[tuple[str, ...], float]] = {}
        #: how often everything was forgotten
        self.generation = 0

    @classmethod
    def read(cls, conf: Configuration) -> "Groups":
        """Raises ConfigError."""
        return cls(
            kept_s=conf.get_duration_ms("hadoop.security.groups.cache.secs", unit="s", minimum=0) / 1000,
            unknown_kept_s=conf.get_duration_ms("hadoop.security.groups.negative-cache.secs", unit="s", minimum=0)
            / 1000,
            overrides=_read_overrides(conf),
        )

    def __call__(self, user: str) -> tuple[str, ...]:
        """Groups of a user, the primary one first; none for a user that this machine does not know. Blocking."""
        known = self.known(user)
        if known is None:
            known = unix_groups(user)
            self.learn(user, known)
        return known

    def known(self, user: str) -> tuple[str, ...] | None:
        """Return what is known without a look-up; None where one is due."""
        fixed = self._overrides.get(user)
        if fixed is not None:
            return fixed
        groups, until = self._known.get(user, ((), -math.inf))
        return groups if self._now() < until else None

    def learn(self, user: str, groups: tuple[str, ...]) -> None:
        """Keep what a look-up gave."""
        self._keep(user, groups, self._kept_s if groups else self._unknown_kept_s)

    def not_found(self, user: str) -> None:
        """Note that a look-up gave no answer.

        What was known before holds on for a while; else the user is in no group.
        """
        groups, until = self._known.get(user, ((), -math.inf))
        is_too_old = self._now() > until + (_OLD_FACTOR - 1) * self._kept_s
        self._keep(user, () if is_too_old else groups, self._unknown_kept_s)

    def _keep(self, user: str, groups: tuple[str, ...], seconds: float) -> None:
        if len(self._known) >= _USERS_REMEMBERED_MAX and user not in self._known:
            self._known.clear()
        self._known[user] = (groups, self._now() + max(seconds, _KEPT_MIN_S))

    def refresh(self, conf: Configuration) -> None:
        """Read the fixed mapping again and forget the rest. Raises ConfigError."""
        self._overrides = _read_overrides(conf)
        self._known.clear()
        self.generation += 1


def unix_groups(user: str) -> tuple[str, ...]:
    """Return names of the groups that the machine's name service gives. Blocking."""
    try:
        ids = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except (KeyError, OSError, ValueError):  # the last: a NUL in the name
        return ()
    return tuple(_name(number) for number in ids)


def _name(group_id: int) -> str:
    try:
        return grp.getgrgid(group_id).gr_name
    except KeyError:
        return str(group_id)


def _read_overrides(conf: Configuration) -> dict[str, tuple[str, ...]]:
    """`user=group,group;user=;` as Hadoop writes it."""
    overrides = {}
    for entry in (conf.get(_OVERRIDES) or "").split(";"):
        user, equals, groups = entry.partition("=")
        if not user.strip():
            continue
        if "=" in groups:
            raise conf.error(_OVERRIDES, "cannot be read", "write user=group,group;user=group")
        overrides[user.strip()] = tuple(g.strip() for g in groups.split(",") if g.strip()) if equals else ()
    return overrides
