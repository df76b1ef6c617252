"""Hadoop's access control lists: `user,user group,group`, or `*` for everybody.

Groups come in as an argument, so that a list can be asked without a look-up and without a clock.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Self

#: the groups of a user, first one first
GroupsOf = Callable[[str], Collection[str]]

_EVERYBODY: Final = "*"


@dataclass(frozen=True, slots=True)
class AccessControlList:
    """Who may (Hadoop's `AccessControlList`)."""

    everybody: bool = False
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse users before the first blank, groups after it; a blank alone means nobody."""
        if _EVERYBODY in text and text.strip() == _EVERYBODY:
            return cls(everybody=True)
        users, _, groups = text.partition(" ")
        return cls.of(users, groups)

    @classmethod
    def of(cls, users: str, groups: str) -> Self:
        """Make a list from two comma-separated ones; `*` in either means everybody."""
        named, grouped = _names(users), _names(groups)
        return cls(_EVERYBODY in named or _EVERYBODY in grouped, named, grouped)

    def allows(self, user: str, groups_of: GroupsOf) -> bool:
        """Return whether the user is allowed. Groups are looked up only when it depends on them."""
        if self.everybody or user in self.users:
            return True
        return bool(self.groups) and not self.groups.isdisjoint(groups_of(user))


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())
